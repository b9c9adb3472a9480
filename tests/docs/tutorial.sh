#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tutorial of sdk/doc, from an empty folder, with what is installed: its
# blocks in their order, with under a minute's work.  What the other pages name is there.
. "$COFFER_SOURCE/tests/build/tap.sh"
. "$COFFER_SOURCE/tests/docs/blocks.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR COFFER_PROVIDER
doc=$COFFER_SOURCE/sdk/doc
plan 5

check "every block of the tutorial is run" \
  silent unmarked "$doc/tutorial.md" 'run: here|file: [a-zA-Z.]*'
check "an sdk to work against" make -s -C "$COFFER_BUILD" install \
  DESTDIR="$tmp/dest"
links () {
  for page in "$doc"/*.md; do
    installed=$(find "$tmp/dest" -path "*/doc/*/${page##*/}")
    [ -n "$installed" ] || echo "${page##*/} is not installed"
    grep -oE '\]\([^)]*\)' "$page" | sed 's/..\(.*\)./\1/' | grep -v '^http' \
      | while read -r f; do
        [ -e "$doc/$f" ] || echo "${page##*/}: $f is not there"
      done
  done
}
check "the pages are installed, and what they point to" silent links

PKG_CONFIG_LIBDIR=$(dirname "$(find "$tmp/dest" -name coffer.pc)")
PKG_CONFIG_SYSROOT_DIR=$tmp/dest
export PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
# A library with sanitizers wants a module with them.
CC=$(sed -n 's/^\(CC\|SANITIZE\) = *//p' "$COFFER_BUILD/Makefile" | tr '\n' ' ')
kit_of "$tmp/bin"
PATH=$tmp/bin:$PATH
export CC PATH
mkdir "$tmp/empty"
chmod go-w "$tmp/empty"
script "$doc/tutorial.md" | sed "s/x86_64/$(uname -m)/" > "$tmp/script"
cd "$tmp/empty" || exit 1
# Seconds that processors worked for this shell's children: what is promised is
# not that a machine has nothing else to do.
worked () { # sets $seconds; `times` in a substitution has children of its own
  times >"$tmp/times"
  seconds=$(awk -F '[ms ]+' \
    'NR == 2 { print int ($1 * 60 + $2 + $3 * 60 + $4) }' "$tmp/times")
}
worked; begun=$seconds
check "the tutorial runs" timeout 300 sh -eux "$tmp/script"
worked; took=$((seconds - begun))
# Nor is what sanitizers slow down.
grep -q '^SANITIZE = .' "$COFFER_BUILD/Makefile" && most=300 || most=60
check "with under a minute's work: $took s" [ "$took" -lt "$most" ]
finish
