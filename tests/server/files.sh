# SPDX-License-Identifier: Apache-2.0
# Files over the daemon's API: parts, streams, names of any bytes, no way out.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3
needs_sandbox

serve_start || { ok "the daemon starts" false; finish; }
id=$(coffer sandbox create --disk 2G) && remember "$id"
client files-client.py "$id" "$server"
coffer sandbox kill "$id" >/dev/null
serve_stop
is "the daemon ends" "$status" 0
unlike "nothing broke in it" "$(cat "$T/serve.err") ." "AddressSanitizer|ThreadSanitizer|runtime error"
finish
