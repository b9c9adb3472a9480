#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What an author outside has: the installed headers, helpers, coffer.pc and
# coffer, and nothing of the tree.  A provider made of them is compiled, sealed,
# checked and called.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs make pkg-config python3 sha256sum
# A library with sanitizers wants a module with them.
CC=$(sed -n 's/^\(CC\|SANITIZE\) = *//p' "$COFFER_BUILD/Makefile" | tr '\n' ' ')
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
dest="$T/d e"

install_it () {
  make -s -C "$COFFER_BUILD" install DESTDIR="$dest" >"$T/log" 2>&1
}
ok "make install into a DESTDIR" install_it
pc=$(find "$dest" -name coffer.pc)
ok "coffer.pc is there" test -f "$pc"
mkdir "$T/pc"
# The folder's name has a space: pkg-config's answer is split by the shell, so
# it is asked about a link without one.
ln -s "$dest" "$T/root"
pc_dir=$T/root${pc#"$dest"}
pc_dir=${pc_dir%/*}
PKG_CONFIG_LIBDIR=$pc_dir PKG_CONFIG_SYSROOT_DIR=$T/root
export PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR

number () { # MAJOR|MINOR, of the header
  sed -n "s/^#define COFFER_CONTRACT_$1 //p" \
    "$COFFER_SOURCE/sdk/include/coffer/contract.h"
}
is "the contract is that of the headers" \
  "$(pkg-config --variable=contract_major coffer).$(pkg-config --variable=contract_minor coffer)" \
  "$(number MAJOR).$(number MINOR)"
ok "providersdir is where the modules are" \
  test -f "$dest$(pkg-config --variable=providersdir coffer | sed "s|^$T/root||")/host.so"

mkdir "$T/notes"
cp "$COFFER_SOURCE/tests/e2e/stranger/notes.c" "$T/notes"
cd "$T/notes" || exit 1
compile () {
  # shellcheck disable=SC2046,SC2086
  $CC -std=gnu11 -Wall -Wextra -Werror -O2 -fPIC -fvisibility=hidden -shared \
    -Wl,-z,defs -Wl,-z,nodelete $(pkg-config --cflags coffer) notes.c \
    $(pkg-config --libs coffer) -o notes.so
}
run compile
is "a module is compiled by coffer.pc alone" "$status $(cat "$err")" "0 "
is "it exports one symbol" \
  "$(nm -D --defined-only notes.so | sed 's/.* //')" coffer_provider_0
included=$(cd "$dest" && find . -path '*/include/coffer/*.h' | wc -l)
is "every public header is installed" "$included" \
  "$(find "$COFFER_SOURCE/sdk/include/coffer/" -name '*.h' | wc -l)"

cat > notes.yaml <<END
manifest: 1
id: notes
summary: Notes in folders
version: 1.2.3
license: Apache-2.0
module:
  - {arch: $(uname -m), file: notes.so, sha256: ""}
contract: {major: 0, minor: 1}
threads: serial
capabilities: [files]
isolation: {kind: none, host_kernel_shared: true}
END
installed=$(find "$dest" -type f -name coffer -path '*/bin/*')
run "$installed" seal notes.yaml
is "the installed coffer seals it" "$status" 0
is "with the hash of the module" \
  "$(grep -o '[0-9a-f]\{64\}' notes.yaml)" \
  "$(sha256sum notes.so | cut -d' ' -f1)"

without_conformance
mkdir -p "$COFFER_HOME/providers/notes"
install -m 644 notes.yaml notes.so "$COFFER_HOME/providers/notes"
chmod go-w "$COFFER_HOME/providers" "$COFFER_HOME/providers/notes"
run coffer --json provider info notes
is "what was dropped in shows and is not loaded" \
  "$(json "$out" 'd["id"], d["version"], d["state"]')" \
  "('notes', '1.2.3', 'quarantined')"
printf '{"trust":"local","manifest_sha256":"%s"}\n' \
  "$(sha256sum < notes.yaml | cut -c 1-64)" \
  > "$COFFER_HOME/providers/notes/receipt.json"
chmod 644 "$COFFER_HOME/providers/notes/receipt.json"
run coffer --json provider info notes
is "with its receipt it is enabled" "$(json "$out" 'd["state"]')" enabled
run coffer provider doctor notes
is "doctor finds nothing wrong" "$status" 0

run coffer --json call notes sandbox_create sandbox=sb-1
is "a sandbox is made through a worker" "$status" 0
printf 'café\n☃\n' > body
status=0
coffer call notes file_write sandbox=sb-1 "path=你好 世界/'q\".txt" in=- \
  opts.parents=1 < body > "$out" 2> "$err" || status=$?
is "bytes go in" "$status" 0
coffer call notes file_read sandbox=sb-1 "path=你好 世界/'q\".txt" \
  "out=$T/back" > "$out" 2> "$err"
same "and come back" body "$T/back"
run coffer call notes sandbox_kill sandbox=sb-1
is "the sandbox is ended" "$status" 0
run coffer call notes exec_start sandbox=sb-1 argv=true
is "what it does not claim is refused" "$status" 2
like "by its code" "$(cat "$err")" E8010
finish
