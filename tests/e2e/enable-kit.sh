# SPDX-License-Identifier: Apache-2.0
# `coffer provider enable` where a report is demanded: the kit decides, and
# what it finds is kept with the receipt.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3
umask 022
providers=$COFFER_HOME/providers
drop () { # ID MODULE MANIFEST
  mkdir -p "$providers/$1"
  install -m 644 "$2" "$providers/$1/$1.so"
  sed "s/x86_64/$(uname -m)/; s/sha256: \"[^\"]*\"/sha256: \"\"/" "$3" \
    >"$providers/$1/$1.yaml"
  coffer seal "$providers/$1/$1.yaml" >/dev/null || exit 1
}
state () {
  coffer provider list --json >"$T/list"
  json "$T/list" "[(p['state'], p['trust']) for p in d['providers'] if p['id'] == '$1']"
}
drop example "$COFFER_BUILD/tests/e2e/modules/example.so" \
  "$COFFER_SOURCE/sdk/template/example.yaml"
run coffer provider enable example --yes --json
note "$(grep 'passed, ' "$err")"
ok "the kit has tried it" grep -q '^[0-9]* passed, [0-9]* failed, [0-9]* skipped$' "$err"
# Its own word decides: of a build with sanitizers nothing is ever conformant.
if ! grep -q '^# conformant: ' "$err"; then
  like "one that the kit does not find conformant is refused" "$status $(cat "$out")" \
    '^1 .*E8008.*(failed the conformance kit|incomplete)'
  is "and it is in quarantine still" "$(state example)" "[('quarantined', 'dropped')]"
else
  is "one that keeps the contract is enabled" \
    "$status $(json "$out" '(d["state"], d["trust"])')" "0 ('enabled', 'local')"
  like "and its report is kept" \
    "$(json "$providers/example/receipt.json" 'd["conformance"]["verdict"], d["conformance"]["mode"]')" \
    "'conformant', 'worker'"
  is "beside it, by its hash" \
    "$(json "$providers/example/receipt.json" 'd["conformance"]["report_sha256"]')" \
    "$(sha256sum <"$providers/example/conformance.json" | cut -c 1-64)"
  run coffer call example probe
  is "a call is made" "$status" 0
  run coffer provider enable example
  is "once more: it is not tried again" "$status $(cat "$out" "$err")" "0 example is enabled already"
  run coffer provider doctor example
  like "doctor says so" "$status $(grep conformance "$out")" '^0 +ok +conformance +conformant'
  printf x >>"$providers/example/conformance.json"
  run coffer call example probe
  like "a report that was changed counts no more" "$status $(cat "$err")" '^1 .*E8008'
fi
cat >"$T/demo.yaml" <<'END'
manifest: 1
id: demo
summary: makes no sandboxes
version: 0.1.0
license: Apache-2.0
module:
  - {arch: x86_64, file: demo.so, sha256: ""}
contract: {major: 0, minor: 1}
threads: serial
capabilities: []
isolation: {kind: none, host_kernel_shared: true}
END
drop demo "$COFFER_BUILD/tests/e2e/modules/demo.so" "$T/demo.yaml"
run coffer provider enable demo --yes
like "one that makes no sandboxes is refused" "$status $(grep E8008 "$err")" \
  '^1 .*E8008: .*failed the conformance kit'
is "and is in quarantine as before" "$(state demo)" "[('quarantined', 'dropped')]"
ok "without a receipt" test ! -e "$providers/demo/receipt.json"
finish
