#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each public header stands alone, for a strict C99 and a C++17 compiler.
. "$COFFER_SOURCE/tests/build/tap.sh"
cc=${CC:-cc}
cxx=
for c in ${CXX:-c++ g++ clang++}; do
  command -v "$c" >/dev/null 2>&1 && { cxx=$c; break; }
done
include=$COFFER_SOURCE/sdk/include

# The POSIX types of fd.h and path.h are asked for as an author would.
alone () { # COMPILER LANGUAGE STANDARD HEADER
  printf '#include <coffer/%s>\n#include <coffer/%s>\nextern int alone;\n' \
    "$4" "$4" > "$tmp/alone.$2"
  $1 -x "$2" -std="$3" -pedantic-errors -Wall -Wextra -Werror \
    -D_POSIX_C_SOURCE=200809L -I "$include" -fsyntax-only "$tmp/alone.$2"
}

set -- $(ls "$include/coffer")
plan $(($# * 2))
for h; do
  check "coffer/$h alone in C99" alone "$cc" c c99 "$h"
  if [ -n "$cxx" ]; then
    check "coffer/$h alone in C++17" alone "$cxx" c++ c++17 "$h"
  else
    skip "coffer/$h alone in C++17" "a C++ compiler"
  fi
done
finish
