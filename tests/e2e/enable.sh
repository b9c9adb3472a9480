# SPDX-License-Identifier: Apache-2.0
# `coffer provider enable` of a folder that was dropped in by hand: checked as
# if it were loaded, without running anything of it; then it has a receipt.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3 minisign
roles both
umask 022
providers=$COFFER_HOME/providers config=$COFFER_HOME/config
modules=$COFFER_BUILD/tests/modules
COFFER_TEST_MARK=$T/mark; export COFFER_TEST_MARK
mkdir -p "$providers" "$config/providers.d"
without_conformance
drop () { # ID MODULE [sed script for the manifest]
  mkdir -p "$providers/$1"
  install -m 644 "$2" "$providers/$1/parrot.so"
  sed "s/^id: .*/id: $1/; ${3:-}" "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" \
    >"$providers/$1/$1.yaml"
  coffer seal "$providers/$1/$1.yaml" >/dev/null 2>&1 || :
}
parrot=$COFFER_BUILD/tests/e2e/modules/parrot.so
state () {
  coffer provider list --json >"$T/list"
  json "$T/list" "[(p['state'], p['trust']) for p in d['providers'] if p['id'] == '$1']"
}

drop parrot "$parrot"
run coffer call parrot probe
like "dropped in: refused, and what helps is named" "$status $(cat "$err")" \
  'coffer provider enable parrot'
run coffer provider doctor parrot
like "doctor names it too" "$(cat "$out")" 'next: coffer provider enable parrot'
run coffer provider list
like "and list" "$(cat "$out")" 'parrot .* quarantined +dropped .*enable parrot'
run coffer provider enable parrot --json
is "enable" "$status $(json "$out" '(d["id"], d["state"], d["trust"], d["changed"])')" \
  "0 ('parrot', 'enabled', 'local', True)"
receipt=$providers/parrot/receipt.json
is "its receipt pins manifest and module" \
  "$(json "$receipt" '(d["manifest_sha256"], [m["sha256"] for m in d["modules"]])')" \
  "('$(sha256sum <"$providers/parrot/parrot.yaml" | cut -c 1-64)', ['$(sha256sum <"$providers/parrot/parrot.so" | cut -c 1-64)'])"
is "and says where it came from" \
  "$(json "$receipt" '(d["source"]["kind"], d["source"]["location"], "commit" in d["source"])')" \
  "('folder', '$providers/parrot', False)"
run coffer call parrot probe
is "a call is made" "$status" 0
cp "$receipt" "$T/receipt"
run coffer provider enable parrot
is "once more" "$status $(cat "$out")" "0 parrot is enabled already"
same "and nothing is written" "$receipt" "$T/receipt"

# Nothing that would be refused when it is loaded gets a receipt.
refused () { # ID WHAT PATTERN
  run coffer provider enable "$1"
  like "$2: is refused" "$status $(head -1 "$err")" "$3"
  ok "$2: and has no receipt" test ! -e "$providers/$1/receipt.json"
  run coffer provider list
  is "$2: the list goes on" "$status" 0
  run coffer call parrot probe
  is "$2: and so do others" "$status" 0
}
drop tampered "$parrot"; printf x >>"$providers/tampered/parrot.so"
refused tampered "another module than was sealed" '^1 coffer: E8006: '
drop unsealed "$parrot"
sed -i 's/sha256: "[0-9a-f]*"/sha256: ""/' "$providers/unsealed/unsealed.yaml"
refused unsealed "a manifest that is not sealed" '^1 coffer: E8006: '
for module in abort twosymbols execstack; do
  drop odd "$modules/$module.so"
  sed -i "s/sha256: \"[^\"]*\"/sha256: \"$(sha256sum <"$modules/$module.so" | cut -c 1-64)\"/" \
    "$providers/odd/odd.yaml"
  refused odd "a module that the gate refuses ($module)" '^1 coffer: E800[47]: '
  rm -r "$providers/odd"
done
ok "no code of theirs ran" test ! -e "$COFFER_TEST_MARK"
drop greedy "$parrot" '$a permissions: {namespaces: true}'
refused greedy "one that asks for what only shipped ones get" '^5 coffer: E5001: '
drop other "$parrot" && sed -i 's/^id: .*/id: another/' "$providers/other/other.yaml"
refused other "one whose manifest has another id" '^2 coffer: E6002: '
drop loose "$parrot" && chmod 777 "$providers/loose"
refused loose "a folder that others can write" '^5 coffer: E6005: '
mkdir "$providers/empty"
refused empty "an empty folder" '^4 coffer: E9004: .*no manifest'
cp -r "$providers/parrot" "$T/elsewhere" && rm "$T/elsewhere/receipt.json"
ln -s "$T/elsewhere" "$providers/link"
refused link "a link" '^5 coffer: E6005: '
rm -r "$providers/link" "$providers/empty" "$providers/loose" "$providers/other" \
  "$providers/greedy" "$providers/unsealed"
run coffer provider enable none-such
is "what is not there" "$status" 4

# The operator's file.
drop off "$parrot"
printf '# not yet\nenabled: false\n' >"$config/providers.d/off.yaml"
run coffer provider enable off
is "one that was disabled before: enabled" "$status $(cat "$out")" "0 off is enabled"
is "by the line that said so" "$(cat "$config/providers.d/off.yaml")" \
  "$(printf '# not yet\nenabled: true')"
drop wrong "$parrot"
printf 'limits: {calls: many}\n' >"$config/providers.d/wrong.yaml"
refused wrong "one whose operator file is wrong" '^2 coffer: E600[24]: .*wrong.yaml|^2 coffer: E6003: '
rm -r "$providers/wrong" "$config/providers.d/wrong.yaml"

# Signatures.
mkdir "$config/trusted.d"
minisign -G -W -p "$config/trusted.d/one.pub" -s "$T/one.sec" >/dev/null || exit 1
printf 'require_conformance: false\nrequire_signature: true\n' >"$config/coffer.yaml"
drop signed "$parrot"
run coffer provider enable signed
like "unsigned, where it is demanded" "$status $(cat "$err")" '^5 .*E8025: '
is "is in quarantine still" "$(state signed)" "[('quarantined', 'dropped')]"
sign () { minisign -S -s "$T/one.sec" -m "$providers/$1/$1.yaml" >/dev/null; }
sign signed
run coffer provider enable signed
is "signed" "$status $(state signed)" "0 [('enabled', 'signed')]"
run coffer call signed probe
is "signed: a call is made" "$status" 0
run coffer call parrot probe
like "one that was enabled without" "$status $(cat "$err")" '^5 .*E8025: '
sign parrot
run coffer provider enable parrot
is "is enabled once it is signed" "$status $(state parrot)" "0 [('enabled', 'signed')]"
run coffer call parrot probe
is "and a call is made" "$status" 0

# The kit.
rm "$config/coffer.yaml"
drop untried "$parrot"
run coffer provider enable untried
like "what is to be tried asks first" "$status $(cat "$err")" '^1 .*E8008: .*tried by the conformance kit'
like "and says how to go on" "$(cat "$err")" 'coffer provider enable untried --yes'
is "and is in quarantine still" "$(state untried)" "[('quarantined', 'dropped')]"
finish
