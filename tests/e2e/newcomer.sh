# SPDX-License-Identifier: Apache-2.0
# What somebody sees who uses coffer for the first time: a reader that had
# enough, --verbose, an interrupt, and hints that name the next step.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox
cd "$T" || exit 1

# ---- nobody reads any more ---------------------------------------------------
mkfifo "$T/unread"
unread () { # CMD…
  exec 8<>"$T/unread" 9>"$T/unread" 8>&-
  status=0; "$@" >&9 2>"$err" || status=$?
  echo "$status" >"$T/code"
  exec 9>&-
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
run env COFFER_LOG=debug "$COFFER_BUILD/coffer" run --verbose -- true
like "and takes nothing from COFFER_LOG" "$(cat "$err")" '^coffer: debug: '
run coffer run -- true
is "and nothing without it" "$(cat "$err")" ""

"$COFFER_BUILD/coffer" run -- sh -c 'echo up; exec sleep 60' >"$T/up" 2>"$err" </dev/null &
pid=$!
soon 5 test -s "$T/up"
kill -TERM $pid; status=0; wait $pid || status=$?
like "an interrupt says what was ended" "$status $(cat "$err")" \
  '^143 coffer: E3004: interrupted; it and all that it started were ended'
is "and not to run it again" "$(grep -c 'run it again' "$err")" 0

id=$(coffer sandbox create --metadata who=you); remember "$id"
run coffer sandbox shell "$id"
like "a shell without a terminal" "$(cat "$err")" "hint: coffer sandbox exec $id -c"
run coffer sandbox exec -d "$id" -- nosuch
like "a background command that is not there" "$status $(cat "$out" "$err")" '^127 coffer: E3001: nosuch: '
run coffer sandbox exec -d "$id" -- /etc/passwd
like "and one that is no program" "$status $(cat "$out" "$err")" '^126 coffer: E3001: /etc/passwd: '
run coffer sandbox exec -d --json "$id" -- nosuch
is "and as JSON" "$status $(json "$out" 'd["status"], d["exit"]["failure_errno"]')" "127 (127, 2)"
run coffer sandbox exec -d "$id" -- true
like "one that is over at once has an id" "$status $(cat "$out" "$err")" '^0 e[0-9]+$'
done_id=$(cat "$out")
soon 5 coffer sandbox attach "$id" "$done_id"
run coffer sandbox signal "$id" "$done_id"
like "a signal to what has ended" "$(cat "$err")" "hint: coffer sandbox ps $id "
echo x >f
run coffer sandbox upload "$id" f /workspace
like "a folder in place of a file" "$status $(cat "$err")" '^[1-9] coffer: E4'
like "and what to write" "$(cat "$err")" 'hint: .* write /workspace/f$'
run coffer sandbox upload "$id" f /workspace/none/f
like "no such folder" "$(cat "$err")" 'hint: -p makes '
run coffer sandbox upload -p "$id" f /workspace/none/f
is "which it does" "$status" 0
run coffer sandbox info "$id"
like "info has lines, and no JSON" "$(cat "$out")" '^metadata +who=you$'
is "no braces" "$(grep -c '[]{}[]' "$out")" 0
run coffer sandbox extend "$id" 2h
like "extend prints one line" "$(wc -l <"$out") $(cat "$out")" "^1 $id running, ends 20"
run coffer sandbox connect "$id"
like "connect prints one line" "$(wc -l <"$out") $(cat "$out")" "^1 $id running, ends 20"
run coffer run --user root -- true
like "root inside" "$(cat "$err")" 'hint: leave --user out'
run coffer template add x nope.tar
is "a tar file that is not there is named once" "$(head -1 "$err" | grep -o nope | wc -l)" 1
run coffer run --profile offline-readonly --mem 8G --json -- true
is "a shipped profile bounds memory" \
  "$(json "$out" '[(c["field"], c["applied"]) for c in d["applied"]["profile"]["clamped"]]')" \
  "[('memory', 536870912)]"
run coffer run --net allow -- true
is "allow without a list is warned of once" "$(grep -c 'warning: network: .*--allow' "$err")" 1
run coffer sandbox kill --verbose "$id"
like "kill --verbose" "$(cat "$err")" "sandbox: $id: killed"

finish
