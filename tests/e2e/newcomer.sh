# SPDX-License-Identifier: Apache-2.0
# What somebody sees who uses coffer for the first time: a reader that had
# enough, --verbose, an interrupt, and hints that name the next step.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs_sandbox
cd "$T" || exit 1

# ---- nobody reads any more ---------------------------------------------------
unread () { # CMD…
  { sleep 0.2; status=0; "$@" 2>"$err" || status=$?; echo "$status" >"$T/code"; } | true
  is "$2 ${3:-}, and nobody reads: silent" "$(cat "$T/code" "$err")" 141
}
unread coffer version
unread coffer explain
unread coffer help --json
unread coffer provider list
unread coffer call host probe
unread coffer run --json -- true

run coffer run --mem -- true
like "-- is no value" "$status $(cat "$err")" '^125 coffer: E6001: --mem needs a value'

finish
