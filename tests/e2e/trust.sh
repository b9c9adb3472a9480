# SPDX-License-Identifier: Apache-2.0
# What is demanded of a provider before anything of it runs: a report of the
# conformance kit that is of these very bytes.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3
roles both alike
umask 022
parrot=$COFFER_HOME/providers/parrot
mkdir -p "$parrot" "$COFFER_HOME/config"
install -m 644 "$COFFER_BUILD/tests/e2e/modules/parrot.so" \
  "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" "$parrot"
coffer seal "$parrot/parrot.yaml"
contract=$(coffer contract --json | python3 -c '
import json, sys
d = json.load (sys.stdin)
print (d["major"], d["minor"])')

# receive EXPR: a receipt with a good report, after a change to c (what is said
# of conformance), or with c = None.
receive () {
  printf '{"verdict":"conformant"}' >"$parrot/conformance.json"
  # shellcheck disable=SC2086
  python3 - "$parrot" "$1" $contract <<'PY'
import hashlib, json, os, sys
folder, change, major, minor = sys.argv[1:]
def of (name):
    return hashlib.sha256 (open (os.path.join (folder, name), "rb").read ()).hexdigest ()
c = {"verdict": "conformant", "report": "conformance.json",
     "report_sha256": of ("conformance.json"), "manifest_sha256": of ("parrot.yaml"),
     "module_sha256": of ("parrot.so"), "kit": "0.1.0", "mode": "worker",
     "contract": {"major": int (major), "minor": int (minor)},
     "time": "2026-11-30T12:00:00Z"}
exec (change)
r = {"receipt": 1, "id": "parrot", "trust": "local", "manifest_sha256": of ("parrot.yaml")}
if c:
    r["conformance"] = c
json.dump (r, open (os.path.join (folder, "receipt.json"), "w"))
PY
}
# refused WHAT MESSAGE: by a call and, with what helps, by doctor.
refused () {
  run coffer call parrot probe
  like "$1: a call is refused" "$status $(head -1 "$err")" "^1 coffer: E8008: .*$2"
  like "$1: and what helps is named" "$(cat "$err")" 'coffer kit parrot --record'
  run coffer provider doctor parrot --json
  is "$1: doctor starts it, and says that" \
    "$status $(json "$out" '[(x["check"], x["code"]) for x in d["checks"] if not x["ok"]]')" \
    "1 [('conformance', 'E8008')]"
}

receive 'c = None'
refused "no report" 'no report of the conformance kit'
receive 'c["verdict"] = "failed"'
refused "a report that says failed" 'failed the conformance kit'
receive 'c["verdict"] = "incomplete"'
refused "a report that says incomplete" 'incomplete'
receive 'c["mode"] = "in-process"'
refused "tried in the kit's own process" 'not tried in a worker'
receive 'c["manifest_sha256"] = "0" * 64'
refused "for another manifest" 'another manifest'
receive 'c["module_sha256"] = "0" * 64'
refused "for another module" 'another module'
receive 'c["contract"]["minor"] += 1'
refused "for another contract" 'another contract'
receive 'c["report_sha256"] = "0" * 64'
refused "another report" 'not the one that was recorded'
run coffer provider verify parrot
like "another report: verify says so too" "$status $(cat "$out")" 'failed +conformance .*not the one'
receive 'pass'; rm "$parrot/conformance.json"
refused "the report is gone" 'cannot be read'
receive 'pass'; ln -sf /etc/passwd "$parrot/conformance.json"
refused "the report is a link" 'cannot be read'
rm "$parrot/conformance.json"
receive 'c["report"] = "../parrot/conformance.json"'
refused "the report lies elsewhere" 'cannot be read'
receive 'del c["module_sha256"]'
refused "a report of no module" 'another module'

receive 'pass'
run coffer call parrot probe
is "a report that is of these bytes: a call is made" "$status" 0
run coffer provider doctor parrot
like "doctor says when it was tried" "$status $(cat "$out")" \
  'ok +conformance +conformant, by the report of 2026-11-30T12:00:00Z'
run coffer provider info parrot
like "info tells it" "$(cat "$out")" '^conformance +conformant, 2026-11-30T12:00:00Z'
run coffer provider list --json
is "list too" \
  "$(json "$out" '[p["conformance"] for p in d["providers"] if p["id"] == "parrot"]')" "['conformant']"
# The operator's file decides, strictly.
receive 'c = None'
without_conformance
run coffer call parrot probe
is "require_conformance: false: a call is made" "$status" 0
run coffer provider doctor parrot
is "require_conformance: false: doctor is content" "$status" 0
like "and says why" "$(cat "$out")" 'ok +conformance +not demanded'
printf 'require_conformance: no\n' >"$COFFER_HOME/config/coffer.yaml"
run coffer call parrot probe
like "what is no flag is refused" "$status $(cat "$err")" '^2 .*E6003: .*coffer.yaml:1:22: '
rm "$COFFER_HOME/config/coffer.yaml"
run coffer provider doctor host
like "what is shipped with coffer needs none" "$status $(cat "$out")" \
  'ok +conformance +shipped with coffer'
# One call, with the credentials that are configured.
without_conformance
PARROT_TOKEN=right-hunter2-hunter2; export PARROT_TOKEN
run coffer provider doctor parrot --probe --json
is "doctor --probe: an answer" \
  "$status $(json "$out" '[(x["ok"], x["detail"]) for x in d["checks"] if x["check"] == "call"]')" \
  "0 [(True, 'sandbox_list was answered')]"
PARROT_TOKEN=wrong-hunter2-hunter2
run coffer provider doctor parrot
is "wrong credentials: doctor makes no call" "$status $(grep -c ' call ' "$out")" "0 0"
run coffer provider doctor parrot --probe
like "doctor --probe: wrong credentials fail" "$status $(grep ' call ' "$out")" '^1 +failed +call '
like "with what helps" "$(cat "$out")" 'next: check the provider.s key'
unlike "and are not shown" "$(cat "$out" "$err")" hunter2
run coffer provider doctor parrot --probe --json
is "by their code" \
  "$status $(json "$out" '[x["code"] for x in d["checks"] if not x["ok"]]')" "1 ['E1001']"
unlike "nor there" "$(cat "$out" "$err")" hunter2
unset PARROT_TOKEN
run coffer provider doctor host --probe
is "doctor --probe: of a provider without credentials" "$status" 0
run coffer provider doctor linux --probe
like "of linux, as far as it can be used here" "$(cat "$out")" 'sandbox_list was answered|failed'
printf 'require_signature: true\n' >"$COFFER_HOME/config/coffer.yaml"
receive 'pass'
run coffer call parrot probe
like "require_signature: without one it is refused" "$status $(cat "$err")" '^5 .*E8025: '
run coffer call host probe
is "require_signature: what is shipped needs none" "$status" 0
finish
