# SPDX-License-Identifier: Apache-2.0
# Folders over the daemon's API, as tar and watched, with the reference provider,
# which has both.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3
coffer () { "$COFFER_BUILD/tests/mutants/coffer" "$@"; }
serve_program=$COFFER_BUILD/tests/mutants/coffer

# By itself: a daemon makes none that nothing isolates.
first=$(coffer sandbox create --provider reference 2>"$err") && remember "$first"
second=$(coffer sandbox create --provider reference 2>"$err") && remember "$second"
serve_start || { ok "the daemon starts" false; finish; }
client folders-client.py "$first" "$second"
coffer sandbox kill "$first" "$second" >/dev/null
serve_stop
is "the daemon ends" "$status" 0
unlike "nothing broke in it" "$(cat "$T/serve.err") ." "AddressSanitizer|ThreadSanitizer|runtime error"
finish
