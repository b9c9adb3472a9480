#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `coffer provider` and `coffer seal`: what is listed, told and verified, and
# that nothing of a provider runs before it was judged.  The modules are
# tests/modules/bad.c: each would leave a mark and abort.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3
roles both
modules=$COFFER_BUILD/tests/modules
COFFER_TEST_MARK=$T/mark; export COFFER_TEST_MARK
providers=$COFFER_HOME/providers
mkdir -p "$providers" "$COFFER_HOME/config/providers.d"
without_conformance

manifest () { # ID [FILE]
  cat <<END
# a comment, café ☃
manifest: 1
id: $1
summary: "one of the tests ☃"
version: 0.1.0
license: Apache-2.0
module:
  - {arch: $(uname -m), file: ${2:-bad.so}, sha256: ""}
contract: {major: 0, minor: 1}
threads: serial
capabilities: [exec]
isolation: {kind: container, host_kernel_shared: true}
config:
  key: {type: secret, env: COFFER_TEST_SECRET}
  url: {type: url, default: "https://example.org"}
END
}
# As an installation leaves it: with the receipt that pins the manifest.
receive () { # ID
  hash=$(sha256sum "$providers/$1/$1.yaml" | cut -d' ' -f1)
  printf '{"trust":"local","manifest_sha256":"%s"}' "$hash" \
    >"$providers/$1/receipt.json"
}
install_module () { # ID MODULE
  mkdir -p "$providers/$1" && cp "$modules/$2" "$providers/$1/bad.so"
  chmod 755 "$providers/$1/bad.so"
  manifest "$1" >"$providers/$1/$1.yaml"
}
no_mark () { [ ! -e "$COFFER_TEST_MARK" ]; }

# -- sealing
install_module good good.so
run coffer seal "$providers/good/good.yaml"
is "seal: exit status" "$status" 0
is "seal: the hash is the file's" \
  "$(grep -o '[0-9a-f]\{64\}' "$providers/good/good.yaml")" \
  "$(sha256sum "$providers/good/bad.so" | cut -d' ' -f1)"
manifest good | sed 's/sha256: ""/HERE/' >"$T/before"
sed 's/sha256: "[0-9a-f]*"/HERE/' "$providers/good/good.yaml" >"$T/after"
same "seal: nothing else changes" "$T/before" "$T/after"
run coffer seal "$T/none.yaml"
is "seal: a manifest that is not there" "$status" 4
mkdir "$T/empty"
run coffer seal "$providers/good/good.yaml" --dir "$T/empty" --output "$T/out.yaml"
like "seal: a module that is not there" "$status $(cat "$err")" '^1 .*E8006.* bad.so'
like "seal: what to do then" "$(cat "$err")" 'hint: build it first'
printf 'manifest: 1\nid: x\nsumary: y\n' >"$T/x.yaml"
run coffer seal "$T/x.yaml"
is "seal: a manifest that is wrong" "$status" 2
like "seal: says where and what was meant" "$(head -1 "$err")" \
  'E6002: .*x.yaml:3:1: unknown key "sumary": did you mean "summary"'
for m in execstack twosymbols rpath minor major needs nonote twonotes slash; do
  install_module "bad-$m" "$m.so"
  cp "$providers/bad-$m/bad-$m.yaml" "$T/kept"
  run coffer seal "$providers/bad-$m/bad-$m.yaml"
  is "seal: $m is refused" "$status" 1
  same "seal: and its manifest stays as it was" \
    "$providers/bad-$m/bad-$m.yaml" "$T/kept"
  rm -rf "${providers:?}/bad-$m"
done
ok "seal: no code of a module ran" no_mark

# -- dropped in by hand
run coffer provider list --json
is "list: exit status" "$status" 0
is "list: shipped providers" \
  "$(json "$out" '[p["trust"] for p in d["providers"] if p["id"] in ("host","linux")]')" \
  "['packaged', 'packaged']"
is "list: the default" "$(json "$out" 'd["default_provider"], d["default_source"]')" \
  "('linux', 'builtin')"
is "list: what was dropped in is quarantined" \
  "$(json "$out" '[(p["trust"], p["state"]) for p in d["providers"] if p["id"] == "good"]')" \
  "[('dropped', 'quarantined')]"
run coffer call good probe
is "quarantined: a call is refused" "$status" 5
like "quarantined: by its code" "$(cat "$err")" 'E8002'

# -- received
receive good
run coffer provider info good --json
is "info: trust is the receipt's" "$(json "$out" 'd["trust"], d["state"]')" \
  "('local', 'enabled')"
is "info: a value with its origin" \
  "$(json "$out" '[(c.get("value"), c.get("origin")) for c in d["config"]]')" \
  "[(None, None), ('https://example.org', 'default')]"
unlike "info: nothing that was not said" "$(cat "$out")" 'homepage|memory_bytes|operator_file'
COFFER_TEST_SECRET=hunter2-hunter2; export COFFER_TEST_SECRET
for command in "list" "info good" "verify" "doctor good"; do
  # shellcheck disable=SC2086
  run coffer provider $command
  unlike "$command: the secret is not in it" "$(cat "$out" "$err")" hunter2
  # shellcheck disable=SC2086
  run coffer provider $command --json
  unlike "$command --json: nor in this" "$(cat "$out" "$err")" hunter2
done
run coffer provider info good
like "info: but where it is" "$(cat "$out")" 'key .*secret.*env:COFFER_TEST_SECRET'
like "info: and that it is had unasked" "$(cat "$out")" \
  'may know +key, from the variable COFFER_TEST_SECRET'
unset COFFER_TEST_SECRET
printf 'enabled: false\n' >"$COFFER_HOME/config/providers.d/good.yaml"
run coffer call good probe
is "disabled: a call is refused" "$status" 5
run coffer provider info good
is "disabled: info still tells" "$status" 0
run coffer provider doctor good
is "disabled: doctor does not say that all is well" "$status" 1
like "disabled: but by which file" "$(cat "$out")" 'failed +enabled .*good.yaml says'
: >"$COFFER_HOME/config/providers.d/godo.yaml"
run coffer provider list
like "an operator file for nobody is named" "$status $(cat "$err")" '^0 .*providers.d/godo.yaml is not read'
rm "$COFFER_HOME/config/providers.d/godo.yaml"
# Only a worker is held by what the operator narrows, shipped or not.
echo 'permissions: {namespaces: false}' >"$COFFER_HOME/config/providers.d/linux.yaml"
run coffer call linux probe --in-process
like "narrowed: not in this process" "$status $(cat "$err")" '^5 .*E5001: .*only a worker'
run coffer run -- true
like "narrowed: run keeps to it" "$status $(cat "$err")" '^125 .*E2005: '
rm "$COFFER_HOME/config/providers.d/linux.yaml"
printf 'config: {url: "ftp://x"}\n' >"$COFFER_HOME/config/providers.d/good.yaml"
run coffer provider list
is "a wrong operator file: the list goes on" "$status" 0
like "a wrong operator file: is named with its place" "$(cat "$out")" \
  'good.* broken .*good.yaml:1:15: url must be'
rm "$COFFER_HOME/config/providers.d/good.yaml"

# -- verify
run coffer provider verify
is "verify: exit status" "$status" 0
run coffer provider verify --json
is "verify --json" "$(json "$out" 'd["ok"], all (p["ok"] for p in d["providers"])')" \
  "(True, True)"

# tampered WHAT CODE: after a change to `good`, verify and calls refuse it.
tampered () {
  run coffer provider verify good --json
  is "$1: verify fails" "$status" 1
  is "$1: by the code" \
    "$(json "$out" '[c["code"] for c in d["providers"][0]["checks"] if not c["ok"]]')" \
    "['$2']"
  run coffer provider verify linux
  is "$1: others are fine" "$status" 0
  run coffer provider doctor good
  is "$1: doctor fails" "$status" 1
  run coffer call good probe
  ok "$1: a call is refused" [ "$status" -ne 0 ]
  like "$1: by the same code" "$(head -1 "$err")" "$2"
  ok "$1: no code of it ran" no_mark
  cp "$modules/good.so" "$T/new" && chmod 755 "$T/new"
  rm -rf "$providers/good/bad.so" && mv "$T/new" "$providers/good/bad.so"
}
tampered_at () { # WHAT CODE COMMAND…
  tampered_what=$1 tampered_code=$2; shift 2
  "$@" || note "could not tamper: $*"
  tampered "$tampered_what" "$tampered_code"
}
file=$providers/good/bad.so
tampered_at "another module" E8006 cp "$modules/abort.so" "$file"
tampered_at "one byte more" E8006 sh -c 'printf x >>"$1"' - "$file"
tampered_at "cut off" E8006 truncate -s 1000 "$file"
tampered_at "empty" E8006 truncate -s 0 "$file"
tampered_at "a sparse gigabyte" E8006 truncate -s 1G "$file"
tampered_at "writable by others" E6005 chmod 777 "$file"
tampered_at "a fifo" E6005 sh -c 'rm "$1" && mkfifo "$1"' - "$file"
tampered_at "a link" E6005 sh -c 'mv "$1" "$1.x" && ln -s bad.so.x "$1"' - "$file"
tampered_at "missing" E8006 rm "$file"

# The file changes all the time: what is loaded is what was hashed, so that each
# call has the sealed module or none.
mkdir "$providers/parrot" && file=$providers/parrot/parrot.so
cp "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" "$providers/parrot/"
cp "$COFFER_BUILD/tests/e2e/modules/parrot.so" "$T/sealed"
cp "$modules/abort.so" "$T/other"
chmod 755 "$T/sealed" "$T/other" && cp "$T/sealed" "$file"
coffer seal "$providers/parrot/parrot.yaml" && receive parrot
(
  trap 'exit 0' TERM
  while :; do
    cp "$T/other" "$T/swap" && mv "$T/swap" "$file"
    cp "$T/sealed" "$T/swap" && mv "$T/swap" "$file"
  done
) &
swapper=$!
odd=0 turns=0 good=0
while [ $turns -lt 20 ] || { [ $good -eq 0 ] && [ $turns -lt 200 ]; }; do
  run coffer call parrot probe
  case $status$(head -1 "$err") in
    0*) good=$((good + 1)) ;;
    *E8006*) ;;
    *) odd=$((odd + 1)); note "$status $(head -1 "$err")" ;;
  esac
  turns=$((turns + 1))
done
kill "$swapper"; wait "$swapper" 2>/dev/null
is "a file that is swapped: the sealed module or a refusal" "$odd" 0
ok "a file that is swapped: and the sealed one sometimes" [ $good -gt 0 ]
ok "a file that is swapped: no code of the other one ran" no_mark
rm -r "$providers/parrot"

# A module with a true hash that the gate refuses all the same.
install_module minor minor.so
sed -i "s/sha256: \"\"/sha256: \"$(sha256sum "$modules/minor.so" | cut -d' ' -f1)\"/" \
  "$providers/minor/minor.yaml"
receive minor
run coffer provider verify minor --json
is "a later contract: the gate says so" \
  "$(json "$out" '[c["code"] for c in d["providers"][0]["checks"] if not c["ok"]]')" \
  "['E8004']"
run coffer call minor probe
like "a later contract: a call too" "$(head -1 "$err")" E8004
rm -r "$providers/minor"
ok "and no constructor ran" no_mark

printf 'threads: [\n' >>"$providers/good/good.yaml"
run coffer provider list --json
is "a broken manifest: the list goes on" "$status" 0
is "a broken manifest: it alone is broken" \
  "$(json "$out" 'sorted (p["id"] for p in d["providers"] if p["state"] != "enabled")')" \
  "['good']"
like "a broken manifest: with its place" \
  "$(json "$out" '[p["error"]["message"] for p in d["providers"] if "error" in p][0]')" \
  'good.yaml:[0-9]+:[0-9]+: '
manifest good | sed 's/one of/none of/' >"$providers/good/good.yaml"
coffer seal "$providers/good/good.yaml"
run coffer provider verify good --json
is "a manifest that the receipt does not pin" \
  "$(json "$out" '[c["code"] for c in d["providers"][0]["checks"] if not c["ok"]]')" \
  "['E8006']"
receive good

# -- doctor
for command in info doctor verify; do
  run coffer provider $command linu
  is "$command: an unknown provider" "$status" 4
  like "$command: the nearest is named" "$(cat "$err")" 'E8001: .*|did you mean linux'
done
run coffer provider doctor host
like "doctor: what helps has a line of its own" "$(cat "$out")" \
  '^  isolation: use the linux provider for code that is not trusted$'
run coffer provider doctor host --json
is "doctor: the steps, in order" "$(json "$out" '[c["check"] for c in d["checks"]]')" \
  "['installed', 'integrity', 'trust', 'contract', 'config', 'permissions', 'handshake', 'probe', 'conformance']"
is "doctor: all are well" "$(json "$out" 'd["ok"]'), $status" "True, 0"
ok "doctor: facts are told" [ "$(json "$out" 'len (d["facts"]) > 0')" = True ]
finish
