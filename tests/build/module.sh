#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A module is built as coffer-provider(3) says, by a strict C99 and a C++17
# compiler, with the public headers alone; each exports one symbol and passes
# the gate, which `coffer seal` asks.
. "$COFFER_SOURCE/tests/build/tap.sh"
cc=${CC:-cc}
cxx=
for c in ${CXX:-c++ g++ clang++}; do
  command -v "$c" >/dev/null 2>&1 && { cxx=$c; break; }
done

cat > "$tmp/plain.cc" <<'CC'
#include <coffer/provider.h>

namespace {

int instance;

int32_t
open (coffer_call *call, void *, const char *const *, const coffer_open_opts *)
{
  return coffer_opened (call, &instance);
}

int32_t
close (coffer_call *, void *, const coffer_close_opts *)
{
  return COFFER_OK;
}

int32_t
probe (coffer_call *call, void *, const coffer_probe_opts *opts)
{
  coffer_fact fact = {};

  fact.size = sizeof fact;
  fact.name = COFFER_HAS (opts, size) ? "options" : "none";
  fact.state = "ok";
  return coffer_emit_fact (call, &fact);
}

coffer_operations
fill ()
{
  coffer_operations all = {};

  all.size = sizeof all;
  all.open = open;
  all.close = close;
  all.probe = probe;
  return all;
}

const coffer_operations operations = fill ();

}

COFFER_PROVIDER (plain, COFFER_THREADS_PARALLEL, 0, operations)
CC

manifest () { # NAME THREADS
  cat > "$tmp/$1.yaml" <<YAML
manifest: 1
id: $1
summary: A module of a test
version: 0.1.0
license: Apache-2.0
module:
  - {arch: $(uname -m), file: $1.so, sha256: ""}
contract: {major: 0, minor: 1}
threads: $2
capabilities: []
isolation: {kind: none, host_kernel_shared: true}
YAML
}

build () { # COMPILER LANGUAGE STANDARD SOURCE NAME
  # shellcheck disable=SC2086
  $1 -x "$2" -std="$3" -pedantic-errors -Wall -Wextra -Werror -fPIC \
    -fvisibility=hidden -I "$COFFER_SOURCE/sdk/include" -c "$4" \
    -o "$tmp/$5.o" &&
  $1 -shared -Wl,-z,defs -Wl,-z,nodelete -Wl,-z,now -Wl,-z,noexecstack \
    -o "$tmp/$5.so" "$tmp/$5.o"
}

exports_one () { # NAME
  exported=$(nm -D --defined-only "$tmp/$1.so" | awk '{ print $3 }')
  [ "$exported" = coffer_provider_0 ] || { echo "exports: $exported"; return 1; }
}

seals () { # NAME THREADS
  manifest "$1" "$2"
  "$COFFER_BUILD/coffer" seal "$tmp/$1.yaml" &&
  grep -qE 'sha256: "?[0-9a-f]{64}' "$tmp/$1.yaml"
}

plan 6
check "sdk/doc/demo.c in C99" \
  build "$cc" c c99 "$COFFER_SOURCE/sdk/doc/demo.c" demo
check "it exports one symbol" exports_one demo
check "it passes the gate" seals demo serial
if [ -n "$cxx" ]; then
  check "a module in C++17" build "$cxx" c++ c++17 "$tmp/plain.cc" plain
  check "it exports one symbol" exports_one plain
  check "it passes the gate" seals plain parallel
else
  skip "a module in C++17" "a C++ compiler"
  skip "it exports one symbol" "a C++ compiler"
  skip "it passes the gate" "a C++ compiler"
fi
finish
