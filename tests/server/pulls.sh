# SPDX-License-Identifier: Apache-2.0
# How far a sandbox is whose image comes from far away: in the events of the daemon,
# and on the terminal of who asks it.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
roles both alike
needs python3 curl
python3 "$COFFER_SOURCE/tests/server/pulls-engine.py" "$T/engine" "$T/left" \
  >"$T/engine.out" 2>&1 &
engine=$!
soon 30 test -S "$T/engine"
serve_config <<YAML
require_conformance: false
YAML
# Of the engine, the daemon alone knows.
DOCKER_HOST=unix://$T/engine
export DOCKER_HOST
ok "a daemon over an engine that has no image" serve_start
unset DOCKER_HOST

create () { # BODY [CURL OPTION…]
  create_body=$1
  shift
  api POST /api/v1/sandboxes -H 'Content-Type: application/json' -d "$create_body" "$@"
}
lines () { # EXPRESSION over `lines`
  python3 -c 'import json, sys
lines = [json.loads (l) for l in open (sys.argv[1], encoding="utf-8")]
print (eval (sys.argv[2]))' "$out" "$1"
}
accept='Accept: application/x-ndjson'

create '{"provider": "docker", "image": "broken:1"}' -H "$accept"
is "a create that takes its time is told of in lines" \
  "$code $(header content-type)" "200 application/x-ndjson"
is "each says what is done, and of what" \
  "$(lines 'set ((l["what"], l["total"]) for l in lines[1:-1])')" \
  "{('pulling broken:1', 1000000)}"
is "and they go up" \
  "$(lines '[l["done"] for l in lines[:-1]] == sorted ({l["done"] for l in lines[:-1]})')" \
  True
is "there are fewer than the engine has" "$(lines '3 <= len (lines) < 50')" True
is "the last says why there is none" \
  "$(lines 'lines[-1]["event"], lines[-1]["error"]["code"], lines[-1]["error"]["message"].split (": ", 2)[2]')" \
  "('failed', 'E8005', 'pull broken:1: it is broken')"
like "which is among the errors of late" \
  "$(api GET /api/v1/errors; cat "$out")" 'it is broken'
create '{"provider": "docker", "image": "-v"}' -H "$accept"
like "what fails at once has a status of its own" \
  "$code $(header content-type)" '^4.. application/json'
create '{"provider": "docker", "image": "broken:1"}'
is "who asks for no lines gets none" "$code $(header content-type)" \
  "502 application/json"
create '{"provider": "docker", "image": "broken:1"}' -H "$accept" \
  -H 'Idempotency-Key: once'
is "nor does who has a key" "$code $(header content-type)" "502 application/json"

NO_COLOR=1 python3 "$COFFER_SOURCE/tests/e2e/type.py" '[]' "$COFFER_BUILD/coffer" \
  sandbox create --provider docker --image broken:1 >"$out" 2>&1
like "the command line shows a bar" "$(tr '\r' '\n' <"$out")" \
  'pulling broken:1  \[#+\.*\] +[0-9]+%  [0-9.]+ [KM]iB of'
like "and the error" "$(tr '\r' '\n' <"$out")" 'E8005: .*it is broken'
like "with its status" "$(tail -n 1 "$out")" '^status 1 '

curl -sS -N --unix-socket "$socket" -H "$accept" -H 'Content-Type: application/json' \
  -d '{"provider": "docker", "image": "hang:1"}' http://localhost/api/v1/sandboxes \
  >"$T/hangs" 2>&1 &
leaves=$!
ok "one that never ends" soon 30 grep -q '"done":1000000' "$T/hangs"
kill "$leaves"
wait "$leaves" 2>/dev/null
ok "is given up when its client leaves" soon 30 test -e "$T/left"
none () { [ "$(coffer sandbox list --json)" = '[]' ]; }
ok "and nothing is left of any" soon 30 none
serve_stop
is "the daemon ends" "$status" 0
kill "$engine"
wait "$engine" 2>/dev/null
finish
