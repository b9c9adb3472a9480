# SPDX-License-Identifier: Apache-2.0
# Providers, profiles, templates, metrics and the kit over the daemon's API: the
# same records as the command line's, and the same changes.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3
umask 022
providers=$COFFER_HOME/providers config=$COFFER_HOME/config
mkdir -p "$providers" "$config/providers.d" "$config/profiles"
without_conformance
serve_start || { ok "the daemon starts" false; finish; }

drop () { # ID
  mkdir -p "$providers/$1.new"
  install -m 644 "$COFFER_BUILD/tests/e2e/modules/parrot.so" "$providers/$1.new/parrot.so"
  sed "s/^id: .*/id: $1/" "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" \
    >"$providers/$1.new/$1.yaml"
  coffer seal "$providers/$1.new/$1.yaml" >/dev/null 2>&1
  mv "$providers/$1.new" "$providers/$1"
}
# What the API and the command line say of the same, but for what the program has
# in itself.
both () { # WHAT PATH CMD…
  both_what=$1; api GET "$2"; shift 2
  coffer "$@" --json >"$T/cli" 2>"$err"
  is "$both_what is as on the command line" "$code $(json "$out" 'd')" "200 $(json "$T/cli" '(isinstance (d, dict) and d.pop ("built_in", 0), d)[1]')"
}
state () { # ID
  api GET /api/v1/providers
  json "$out" "[(p['state'], p['trust']) for p in d['providers'] if p['id'] == '$1']"
}
error () { printf '%s %s' "$code" "$(json "$out" 'd["error"]["code"]')"; }

# -- list and info
both "the list" /api/v1/providers provider list
both "a second time" /api/v1/providers provider list
both "linux" /api/v1/providers/linux provider info linux
api GET /api/v1/providers/nothing
is "one that is not there" "$(error)" "404 E8001"
api GET /api/v1/providers/..%2Fx
is "no id" "$code" 400
api HEAD /api/v1/providers -I
is "HEAD" "$code" 200

# -- one that is dropped in while the daemon runs
drop parrot
is "a folder that is dropped in is seen" "$(state parrot)" "[('quarantined', 'dropped')]"
api POST /api/v1/providers/parrot/default
is "it cannot be the default" "$code" 403
api POST /api/v1/providers/parrot/enable
is "enable" "$code $(json "$out" 'd["id"], d["state"], d["trust"], d["changed"]')" \
  "200 ('parrot', 'enabled', 'local', True)"
api POST /api/v1/providers/parrot/enable
is "once more changes nothing" "$(json "$out" 'd["changed"]')" False
both "its info" /api/v1/providers/parrot provider info parrot
api POST /api/v1/providers/parrot/default
is "default" "$code $(json "$out" 'd["id"]')" "200 parrot"
both "the list with it" /api/v1/providers provider list
api POST /api/v1/providers/linux/default
is "and back" "$(json "$out" 'd["id"]')" linux
api POST /api/v1/providers/parrot/disable
is "disable" "$code $(json "$out" 'd["state"], d["changed"]')" "200 ('disabled', True)"
is "is what the command line sees" \
  "$(coffer provider info parrot --json >"$T/cli"; json "$T/cli" 'd["state"]')" disabled
coffer provider enable parrot >/dev/null
is "and the other way round" "$(state parrot)" "[('enabled', 'local')]"
printf '\n' >>"$providers/parrot/parrot.yaml"
is "one that was changed is broken" "$(state parrot)" "[('broken', 'local')]"
api GET /api/v1/providers/parrot/doctor
is "doctor says so" "$code $(json "$out" 'd["ok"]')" "200 False"
rm -rf "$providers/parrot"
is "one that is taken away is gone" "$(state parrot)" "[]"
api GET /api/v1/providers/linux/doctor
is "doctor starts it" "$code $(json "$out" 'sorted (d), [c["check"] for c in d["checks"] if c["check"] in ("handshake", "probe")]')" \
  "200 (['checks', 'facts', 'id', 'ok'], ['handshake', 'probe'])"

# -- a judgement is demanded
rm "$config/coffer.yaml"
drop second
api POST /api/v1/providers/second/enable
is "what the kit has not judged is refused" "$(error)" "409 E8008"
like "and what helps is named" "$(json "$out" 'd["error"]["hint"]')" 'enable\?kit=1'
is "it is as it was" "$(state second)" "[('quarantined', 'dropped')]"
rm -rf "$providers/second"

# -- the kit
kit_lines () { # EXPRESSION over `lines`
  python3 -c 'import json, sys
lines = [json.loads (l) for l in open (sys.argv[1], encoding="utf-8")]
print (eval (sys.argv[2]))' "$out" "$1"
}
api POST "/api/v1/kit/linux?only=codes.*&seed=7"
is "the kit runs" "$code $(header content-type)" "200 application/x-ndjson"
is "it says first what it tries" "$(kit_lines 'lines[0]["event"], lines[0]["provider"]')" \
  "('started', 'linux')"
is "and last its report" \
  "$(kit_lines 'lines[-1]["event"], lines[-1]["report"]["seed"], lines[-1]["report"]["provider"]["id"]')" \
  "('report', 7, 'linux')"
api POST /api/v1/kit/nothing
is "of no provider" "$(error)" "404 E8001"
api POST "/api/v1/kit/..%2F..%2Ftmp"
is "nor of a folder" "$code" 400
api POST "/api/v1/kit/linux?seed=x"
is "a seed that is none" "$code" 400
# One at a time; who leaves ends it.
curl -sS -N --unix-socket "$socket" -X POST http://localhost/api/v1/kit/linux >"$T/first" 2>/dev/null &
left=$!
soon 10 grep -q started "$T/first"
api POST /api/v1/kit/linux
is "a second one is refused" "$(error)" "409 E5003"
kill "$left"; wait "$left" 2>/dev/null
again () {
  api POST "/api/v1/kit/linux?only=no.such.case"
  [ "$code" = 200 ]
}
ok "until the first was left" soon 60 again

# -- profiles, templates
api GET /api/v1/profiles
coffer profile list --json >"$T/cli"
is "profiles" "$code $(json "$out" 'd["profiles"]')" "200 $(json "$T/cli" '(isinstance (d, dict) and d.pop ("built_in", 0), d)[1]')"
both "a profile" /api/v1/profiles/offline-readonly profile show offline-readonly
api GET /api/v1/profiles/nothing
is "one that is not there" "$(error)" "404 E9004"
api GET "/api/v1/profiles/%00"
is "nor can be" "$code" 400
api GET /api/v1/templates
is "templates" "$code $(cat "$out")" '200 {"templates":[]}'

# -- metrics
if coffer run -- true 2>"$err"; then
  id=$(coffer sandbox create) && remember "$id"
  api GET "/api/v1/sandboxes/$id/metrics"
  is "metrics" "$code $(json "$out" '"memory_bytes" in d and "cpu_seconds_total" in d')" "200 True"
  api POST /api/v1/providers/linux/disable
  api GET "/api/v1/sandboxes/$id/metrics"
  is "nothing is done with a provider that was disabled" "$(error)" "403 E8002"
  coffer provider enable linux >/dev/null
  # The daemon looks once a second.
  works () { api GET "/api/v1/sandboxes/$id/metrics"; [ "$code" = 200 ]; }
  ok "until it is enabled, by whomever" soon 5 works
  coffer sandbox kill "$id" >/dev/null
else
  skip "metrics" "a machine that can isolate"
fi
api GET "/api/v1/sandboxes/sb-00000000000000000000000000/metrics"
is "of no sandbox" "$(error)" "404 E2009"

serve_stop
is "the daemon ends" "$status" 0
unlike "nothing broke in it" "$(cat "$T/serve.err") ." "AddressSanitizer|ThreadSanitizer|runtime error"
finish
