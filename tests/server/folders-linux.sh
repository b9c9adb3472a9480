# SPDX-License-Identifier: Apache-2.0
# Folders over the daemon's API, as tar and watched, with sandboxes of linux.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3
needs_sandbox

serve_start || { ok "the daemon starts" false; finish; }
first=$(coffer sandbox create 2>"$err") && remember "$first"
second=$(coffer sandbox create 2>"$err") && remember "$second"
client folders-client.py "$first" "$second"
coffer sandbox kill "$first" "$second" >/dev/null 2>&1
serve_stop
is "the daemon ends" "$status" 0
unlike "nothing broke in it" "$(cat "$T/serve.err") ." "AddressSanitizer|ThreadSanitizer|runtime error"
finish
