# SPDX-License-Identifier: Apache-2.0
# Archives that want out of the sandbox they are unpacked in: each must do harm
# where tar alone unpacks it, else it proves nothing, and none where coffer does.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs python3 tar
needs_sandbox

serve_start || { ok "the daemon starts" false; finish; }
box=$(coffer sandbox create 2>"$err") && remember "$box"
client ../attack/archives-client.py "$box"
coffer sandbox kill "$box" >/dev/null 2>&1
serve_stop
is "the daemon ends" "$status" 0
unlike "nothing broke in it" "$(cat "$T/serve.err") ." "AddressSanitizer|ThreadSanitizer|runtime error"
finish
