# SPDX-License-Identifier: Apache-2.0
# coffer serve: it starts, answers on both kinds of sockets, says what is wrong,
# and ends.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3

serve_start || { ok "the daemon starts" false; finish; }
ok "it says where it listens" test -S "$socket"
is "the socket is its user's alone" "$(stat -c %a "$socket")" 600
is "and below the runtime folder" "$socket" "$COFFER_HOME/run/serve.sock"

api GET /api/v1
is "it answers on the unix socket" "$code" 200
is "with JSON" "$(header content-type)" application/json
is "that names the program" "$(json "$out" 'd["name"] + " " + d["api"]')" "coffer v1"
is "of this version" "$(json "$out" 'd["version"]')" \
  "$(coffer version --json >"$T/v" && json "$T/v" 'd["version"]')"
like "a reply has an id" "$(header x-request-id)" '^req-[0-9a-z]{26}$'
first=$(header x-request-id)
api GET /api/v1
ok "another one each" test "$(header x-request-id)" != "$first"
is "no cache keeps it" "$(header cache-control)" no-store
api HEAD /api/v1 -I
is "HEAD is answered as GET" "$code$(header content-length)" \
  "200$(coffer version --json >/dev/null; api GET /api/v1; wc -c <"$out" | tr -d ' ')"

tcp GET /api/v1
is "on TCP it wants a token" "$code" 401
is "and says which" "$(header www-authenticate)" 'Bearer realm="coffer"'
is "with an error as documented" \
  "$(json "$out" 'd["error"]["code"], sorted (d["error"])')" \
  "('E1003', ['code', 'details', 'hint', 'message', 'name', 'retryable'])"

api GET /nothing
is "an unknown path" "$code $(json "$out" 'd["error"]["code"]')" "404 E7003"
api GET /api/v1/
is "a slash more is another path" "$code" 404
api GET '/api%2Fv1'
is "an escaped slash splits nothing" "$code" 404
api DELETE /api/v1
is "another method" "$code $(json "$out" 'd["error"]["code"]')" "405 E7004"
is "names those that are there" "$(header allow)" "GET, HEAD"
api GET '/api/v1?x=%zz'
is "a bad escape" "$code $(json "$out" 'd["error"]["code"]')" "400 E7005"
api GET "/api/v1" -H "X-Long: $(printf '%020000d' 0)"
is "headers beyond the limit" "$code $(json "$out" 'd["error"]["code"]')" "431 E7007"
api GET "/api/v1" -H "X-Long: $(printf '%0100000d' 0)"
is "and far beyond it" "$code" 431

run coffer serve --listen none
is "a second one is refused" "$status" 1
like "in a clear line" "$(cat "$err")" 'E5003: another coffer serve runs'
run coffer serve --listen 127.0.0.1:x
is "an address that is none" "$status" 2
run coffer serve --socket relative
is "a socket that is no absolute path" "$status" 2

serve_stop
is "SIGTERM ends it in order" "$status" 0
ok "its socket is gone" test ! -e "$socket"

serve_start
kill -KILL "$server"; wait "$server" 2>/dev/null
ok "a killed one leaves its socket" test -S "$socket"
serve_start
api GET /api/v1
is "the next one takes its place" "$code" 200
serve_stop

long=$T/$(printf '%0100d' 0)/$(printf '%0100d' 1)
mkdir -p "$long"
serve_start --socket "$long/s"
(cd "$long" && curl -sS --unix-socket s http://localhost/api/v1) >"$out" 2>"$err"
is "a socket's path may be longer than an address" \
  "$(json "$out" 'd["name"]')" coffer
serve_stop
run coffer serve --socket "$T/out" --listen none
is "what is no socket is left alone" "$status" 2
ok "and is still there" test -f "$T/out"

finish
