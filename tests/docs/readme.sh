#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commands of README.md run.  A fenced block of commands stands below a
# comment that says who runs it: `run: here` is this scenario, in one shell and
# in the order of the file; `run: contrib/check` is that script.  A block below
# `file: NAME` is written to that file first.
. "$COFFER_SOURCE/tests/build/tap.sh"
. "$COFFER_SOURCE/tests/docs/blocks.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
readme=$COFFER_SOURCE/README.md
plan 6

check "every block says who runs it" silent unmarked "$readme" \
  'run: here|run: contrib/check|file: .*'

# What contrib/check runs stands in it word by word, but for make's options.
covered () {
  blocks "$readme" "run: contrib/check" | while read -r line; do
    case $line in
      'cd build'|'sh contrib/check') ;;
      'make'*) grep -q "make.*${line#make}" "$COFFER_SOURCE/contrib/check" \
        || echo "$line" ;;
      *) word=$(echo "$line" | sed 's/.*\(contrib\/[a-z]*\|configure\).*/\1/')
        grep -q "$word" "$COFFER_SOURCE/contrib/check" || echo "$line" ;;
    esac
  done
}
check "contrib/check runs the rest" silent covered

head -25 "$readme" > "$tmp/head"
check "the two commands and a first success are in the first 25 lines" \
  sh -c 'for w in "sh contrib/quickstart" "sh contrib/check" \
    "coffer run -w . -- python3 script.py"; do
    grep -qF "$w" "$1" || { echo "not there: $w"; exit 1; }; done' - "$tmp/head"

links () {
  grep -oE '\]\([^)]*\)' "$readme" | sed 's/..\(.*\)./\1/' | grep -v '^http' \
    | while read -r f; do
      [ -e "$COFFER_SOURCE/$f" ] || echo "$f is not there"
    done
  grep -oE '^\| `[^`]*` \|' "$readme" | tr -d '|` ' | while read -r f; do
    case $f in
      */*|sdk|plugins|manifests|tests|contrib)
        [ -e "$COFFER_SOURCE/$f" ] || echo "$f is not there" ;;
    esac
  done
}
check "what README.md points to is there" silent links

# An author works against an installed sdk.
check "an sdk to work against" make -s -C "$COFFER_BUILD" install \
  DESTDIR="$tmp/dest"
PKG_CONFIG_PATH=$(dirname "$(find "$tmp/dest" -name coffer.pc)")
PKG_CONFIG_SYSROOT_DIR=$tmp/dest
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR

mkdir "$tmp/here" "$tmp/home"
kit_of "$tmp/here/build"
grep -oE '^<!-- file: .* -->$' "$readme" | awk '{ print $3 }' \
  | while read -r name; do
    blocks "$readme" "file: $name" | sed "s/x86_64/$(uname -m)/" > "$tmp/here/$name"
  done
COFFER_HOME=$tmp/home
export COFFER_HOME
cd "$tmp/here" || exit 1
blocks "$readme" "run: here" > "$tmp/commands"
check "the commands run" timeout 120 sh -euxc '. "$1"' - "$tmp/commands"
finish
