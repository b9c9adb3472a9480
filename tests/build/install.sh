#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make install-strip into a DESTDIR: the manifests there name the bytes there,
# and uninstall takes all of it away again.
. "$COFFER_SOURCE/tests/build/tap.sh"
cd "$COFFER_BUILD" || exit 1
# A make of ours, not a part of the one that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
dest="$tmp/d e"
plan 6

check "install-strip into a DESTDIR" \
  make -s install-strip DESTDIR="$dest"
providers=$(find "$dest" -type d -name 'providers-*')

# Judged by sha256sum, not by coffer.
sealed () {
  set -- "$providers"/*.yaml
  [ -e "$1" ] || { echo "no manifests"; return 1; }
  cd "$providers" || return 1
  for m in *.yaml; do
    for hash in $(grep -oE '[0-9a-f]{64}' "$m"); do
      sha256sum -- *.so coffer-* 2>/dev/null | grep -q "^$hash " \
        || echo "$m: $hash is of no file here"
    done
    grep -qE '[0-9a-f]{64}' "$m" || echo "$m: not sealed"
  done
}
check "manifests are sealed against the stripped files" silent sealed

unstripped () {
  find "$dest" -type f \( -name '*.so' -o -perm -100 \) | while read -r f; do
    LC_ALL=C readelf -WS "$f" 2>/dev/null | grep -q ' \.symtab ' && echo "$f"
  done
}
check "everything is stripped" silent unstripped
check "no libtool archive" silent find "$dest" -name '*.la'
check "uninstall" make -s uninstall DESTDIR="$dest"
check "uninstall leaves no file" silent find "$dest" ! -type d
finish
