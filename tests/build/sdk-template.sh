#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The template, as an author gets it: copied from a DESTDIR install, built by
# make and by autotools with nothing but what is installed there, sealed, and
# packed, installed, kitted and made to run a command.
. "$COFFER_SOURCE/tests/build/tap.sh"
. "$COFFER_SOURCE/tests/docs/blocks.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR COFFER_PROVIDER
# A library with sanitizers wants a module with them.
CC=$(sed -n 's/^\(CC\|SANITIZE\) = *//p' "$COFFER_BUILD/Makefile" | tr '\n' ' ')
dest=$tmp/dest
plan 14

check "make install into a DESTDIR" \
  make -s -C "$COFFER_BUILD" install DESTDIR="$dest"
PKG_CONFIG_LIBDIR=$(dirname "$(find "$dest" -name coffer.pc)")
PKG_CONFIG_SYSROOT_DIR=$dest
ACLOCAL_PATH=$(dirname "$(find "$dest" -name coffer.m4)")
export PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR ACLOCAL_PATH CC
template=$(pkg-config --variable=templatedir coffer)
template=$dest${template#"$dest"}
sealer=$(find "$dest" -type f -name coffer -path '*/bin/*')

# What is installed seals; what runs is beside the helpers of the build.
cp -r "$template" "$tmp/plain"
cd "$tmp/plain" || exit 1
check "make, by coffer.pc alone" sh -c \
  'make COFFER="$1" CC="$CC" WARN="-std=gnu11 -Wall -Wextra -Werror" \
    >"$2" 2>&1 || { cat "$2"; exit 1; }' - "$sealer" "$tmp/make.log"
traces () {
  grep -hF -e "$COFFER_SOURCE" "$tmp/make.log"
  # Sanitizers name in each object the file that it is of.
  grep -q '^SANITIZE = *-' "$COFFER_BUILD/Makefile" \
    || grep -lF -e "$(cd "$COFFER_SOURCE" && pwd -P)/sdk" build/example.so
}
check "and nothing of the tree" silent traces
check "it exports one symbol" sh -c \
  'nm -D --defined-only build/example.so | grep -v "__[a-z]*san_\|__odr" \
    | awk "{ print \$3 }" | grep -vx coffer_provider_0 && exit 1 || exit 0'
sealed () {
  hash=$(sha256sum < build/example.so | cut -c 1-64)
  grep -q "sha256: \"$hash\"" build/example.yaml
}
check "the manifest names its bytes" sealed

# A place of our own, with what was packed of a folder installed in it.
home () { # DIR
  rm -rf "$tmp/home" "$tmp/packed"
  mkdir -p -m 755 "$tmp/home/config" "$tmp/packed"
  echo 'require_conformance: false' > "$tmp/home/config/coffer.yaml"
  coffer provider pack "$1" --output "$tmp/packed" &&
  coffer provider install "$tmp/packed"/*.tar.gz --yes
}
coffer () { COFFER_HOME="$tmp/home" "$COFFER_BUILD/coffer" "$@"; }
runs () { # DIR [ID]
  home "$1" || return 1
  said=$(printf 'café\n☃\n' | coffer run --provider "${2:-example}" -i -e A=1 -- \
    sh -c 'cat; echo $A; exit 7') && status=0 || status=$?
  [ "$said $status" = "$(printf 'café\n☃\n1') 7" ] \
    || { echo "said $said and $status"; return 1; }
}
check "it is packed and installed, and a command runs in it" runs build
kit_of "$tmp/bin"
check "it is conformant" "$tmp/bin/coffer" kit build/example.yaml
times_out () {
  coffer run --provider example --timeout 1s -- \
    sh -c 'sleep 4242 & (sleep 4242 &) ; sleep 4242' && status=0 || status=$?
  [ "$status" = 124 ] || { echo "status $status"; return 1; }
  ! ps -eo stat,args | grep -v '^Z' | grep '[s]leep 4242'
}
check "its time is over for all that it started" times_out
left () { find "$tmp/home/run/example" -mindepth 1 2>/dev/null; }
check "nothing is left of it" silent left
killed () {
  coffer run --provider example -- sh -c 'kill -9 $PPID; sleep 30' \
    && status=0 || status=$?
  [ "$status" = 125 ] || { echo "status $status"; return 1; }
  runs build && silent left
}
check "a worker that dies leaves nothing for the next" killed

cp -r "$template" "$tmp/auto"
cd "$tmp/auto" || exit 1
# Given a name as its README says, and one operation changed.
blocks README.md 'run: rename' > "$tmp/rename"
sh -eu "$tmp/rename"
sed -i 's/"LANG=C.UTF-8"/& , "CHANGED=yes"/' inside.c
configured () {
  mv autotools/* . && rm Makefile && rmdir autotools && autoreconf -fi &&
  ./configure COFFER="$sealer" CC="$CC" && make &&
  make install DESTDIR="$tmp/package"
}
check "autotools, by coffer.m4 alone" configured
check "a command runs in that" runs build crate
changed () {
  said=$(coffer run --provider crate -- sh -c 'echo "$CHANGED"')
  [ "$said" = yes ] || { echo "said $said"; return 1; }
}
check "with the operation that was changed" changed
check "and with another COFFER_PROVIDERSDIR" sh -c \
  'make -s install DESTDIR="$1" COFFER_PROVIDERSDIR=/elsewhere \
    && test -f "$1/elsewhere/crate.yaml"' - "$tmp/package"
finish
