#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The example in C++, as an author gets it: copied from a DESTDIR install and
# built with what is installed there, sealed, kitted, and called.
. "$COFFER_SOURCE/tests/build/tap.sh"
. "$COFFER_SOURCE/tests/docs/blocks.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR COFFER_PROVIDER
plan 6
# The one of the compiler that built the library, whose sanitizers it may have.
case $(sed -n 's/^CC = *//p' "$COFFER_BUILD/Makefile") in
  *clang*) wanted="clang++ c++ g++" ;;
  *) wanted="g++ c++ clang++" ;;
esac
for c in ${CXX:-$wanted}; do
  command -v "$c" >/dev/null 2>&1 && { cxx=$c; break; }
done
if [ -z "${cxx:-}" ]; then
  while [ "$tap_n" -lt "$tap_plan" ]; do
    skip "a provider in C++" "a C++ compiler"
  done
  finish
fi
dest=$tmp/dest
check "make install into a DESTDIR" \
  make -s -C "$COFFER_BUILD" install DESTDIR="$dest"
PKG_CONFIG_LIBDIR=$(dirname "$(find "$dest" -name coffer.pc)")
PKG_CONFIG_SYSROOT_DIR=$dest
COFFER_HOME=$tmp/home
export PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR COFFER_HOME
cp -r "$(find "$dest" -type d -path '*/examples/cxx')" "$tmp/cxx"
cd "$tmp/cxx" || exit 1
check "make, by coffer.pc alone" make \
  COFFER="$(find "$dest" -type f -name coffer -path '*/bin/*')" \
  CXX="$cxx $(sed -n 's/^SANITIZE = *//p' "$COFFER_BUILD/Makefile")" \
  CXXFLAGS="-O2 -Werror"
exports_one () {
  [ "$(nm -D --defined-only build/shelf.so | awk '{ print $3 }')" \
    = coffer_provider_0 ]
}
check "it exports one symbol, whatever its templates do" exports_one
kit_of "$tmp/bin"
check "it is conformant" "$tmp/bin/coffer" kit build/shelf.yaml
mkdir -p -m 755 "$tmp/home/config"
echo 'require_conformance: false' > "$tmp/home/config/coffer.yaml"
check "it is installed" "$COFFER_BUILD/coffer" provider install build --yes
keeps () {
  "$COFFER_BUILD/coffer" call shelf sandbox_create sandbox=sb-1 \
    spec.metadata=of=cxx > "$tmp/said" && grep -q '"of=cxx"' "$tmp/said"
}
check "and called" keeps
finish
