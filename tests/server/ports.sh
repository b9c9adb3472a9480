# SPDX-License-Identifier: Apache-2.0
# Ports of a sandbox over the daemon's API: a real server, a hostile one, and one
# that speaks WebSocket.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3
needs_sandbox

serve_start || { ok "the daemon starts" false; finish; }
id=$(coffer sandbox create) && remember "$id"
coffer sandbox upload "$id" "$COFFER_SOURCE/tests/server/inside.py" inside.py >/dev/null 2>&1
coffer sandbox exec -d "$id" -- python3 inside.py >/dev/null
client ports-client.py "$id" "$(coffer token create inside 2>/dev/null)"
coffer sandbox kill "$id" >/dev/null
serve_stop
is "the daemon ends" "$status" 0
unlike "nothing broke in it" "$(cat "$T/serve.err") ." "AddressSanitizer|ThreadSanitizer|runtime error"
finish
