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

# ---- hints -------------------------------------------------------------------
run coffer run -w .:wr -- true
like "a suffix turned around" "$(cat "$err")" 'did you mean \.:rw\?'
run coffer run -v /nope:/x -- true
like "a folder that is not there: which option" "$(cat "$err")" 'E6006: --volume /nope: No such'
run coffer run --accept nope -- true
like "no capability: where they are" "$(cat "$err")" 'hint: .*provider info'
run coffer profile show default
like "no maximum is any" "$(cat "$out")" '^disk|^memory +512MiB +[^-]'
like "a word has no maximum" "$(cat "$out")" '^root +read-only +- '

# ---- in a sandbox ------------------------------------------------------------
run coffer run --verbose -- sh -c 'echo "$1" >&2' sh s3cret
for what in 'provider: linux .*chosen, the default' 'opened in this process' \
  'passed the checks' 'made by linux in' 'e1: started' 'ended with status 0' \
  'ended, with all that ran'; do
  like "--verbose says: $what" "$(cat "$err")" "coffer: info: .*$what"
done
is "--verbose does not show arguments" "$(grep -c s3cret "$err")" 1
run coffer run -- true
is "and nothing without it" "$(cat "$err")" ""

"$COFFER_BUILD/coffer" run -- sh -c 'echo up; exec sleep 60' >"$T/up" 2>"$err" </dev/null &
pid=$!
tries=0
while [ ! -s "$T/up" ] && [ $tries -lt 100 ]; do tries=$((tries + 1)); sleep 0.05; done
kill -TERM $pid; status=0; wait $pid || status=$?
like "an interrupt says what was ended" "$status $(cat "$err")" \
  '^143 coffer: E3004: interrupted; it and all that it started were ended'
is "and not to run it again" "$(grep -c 'run it again' "$err")" 0

id=$(coffer sandbox create); remember "$id"
run coffer sandbox shell "$id"
like "a shell without a terminal" "$(cat "$err")" "hint: coffer sandbox exec $id -c"
run coffer sandbox kill --verbose "$id"
like "kill --verbose" "$(cat "$err")" "sandbox: $id: killed"

finish
