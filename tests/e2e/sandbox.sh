# SPDX-License-Identifier: Apache-2.0
# coffer sandbox create, connect, list, info, exec, extend, kill, prune.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox

run coffer sandbox list
is "no sandbox to begin with" "$status $(wc -l <"$out")" "0 1"
run coffer sandbox list --json
is "as JSON: an empty list" "$(cat "$out")" "[]"

run coffer sandbox create -e 'WHO=you' --metadata for=test
id=$(cat "$out"); remember "$id"
like "create prints an id" "$status $id" '^0 sb-[0-9a-z]{26}$'
is "and nothing else" "$(wc -l <"$out") $(cat "$err")" "1 "
run coffer sandbox list
like "list shows it" "$(cat "$out")" "^$id +linux +running +[0-9-]+ [0-9:]+ +(59m|1h)"
run coffer sandbox list --json
is "list --json" "$(json "$out" '[(s["id"], s["provider"], s["state"]) for s in d]')" \
  "[('$id', 'linux', 'running')]"
run coffer sandbox info "$id"
like "info shows its state" "$(cat "$out")" '^state +running$'
run coffer sandbox info --json "$id"
is "info --json" "$(json "$out" '(d["id"], d["state"], d["metadata"])')" "('$id', 'running', ['for=test'])"
unlike "values of variables are not kept" "$(cat "$out")" 'WHO=you'
run coffer sandbox connect "$id"
is "connect" "$status" 0
run coffer sandbox connect --json --ttl 2h "$id"
is "connect --ttl lets it live longer" \
  "$(json "$out" 'round ((d["expires_ns"] - __import__ ("time").time_ns ()) / 36e11)')" 2

run coffer sandbox exec "$id" -- printf 'café\n☃\n'
printf 'café\n☃\n' >"$T/want"
same "exec: exact bytes" "$out" "$T/want"
run coffer sandbox exec "$id" -c 'echo "$WHO $1 $X" >&2; exit 9' -e X=y
is "exec -c: a string for a shell, with variables" "$status $(cat "$err")" "9 you  y"
run coffer sandbox exec "$id" -c 'echo kept >f; sleep 70 >/dev/null 2>&1 &'
run coffer sandbox exec "$id" -- cat f
is "files stay between commands" "$(cat "$out")" kept
printf 'in\n' | coffer sandbox exec -i "$id" -- cat >"$out" 2>"$err"
is "exec -i" "$(cat "$out")" in
run coffer sandbox exec --timeout 1s "$id" -- sh -c 'sleep 60 & sleep 60'
is "exec --timeout" "$status" 124
run coffer sandbox exec "$id" -- true
is "which does not end the sandbox" "$status" 0
run coffer sandbox exec --json "$id" -- sh -c 'printf "\377"'
is "exec --json" "$(json "$out" '(d["status"], d["stdout"]["encoding"])')" "(0, 'base64')"
run coffer sandbox exec "$id" -- no-such
is "exec of what is not there" "$status" 127
run coffer sandbox exec "$id"
like "exec of nothing" "$status $(head -1 "$err")" '^125 coffer: E6001: '
run coffer sandbox exec "$id" -c true -- ls
like "exec of two things" "$status $(head -1 "$err")" '^125 coffer: E6001: '

run coffer sandbox exec -d "$id" -c 'echo late >late; sleep 71'
like "exec -d prints an id and does not wait" "$status $(cat "$out")" '^0 [^ ]+$'
ok "what it started runs" soon 5 coffer sandbox exec "$id" -- test -s late
run coffer sandbox exec -d --json "$id" -- true
is "exec -d --json" "$(json "$out" '(d["sandbox"], "exec" in d, "status" in d)')" "('$id', True, False)"

run coffer sandbox extend "$id" 3h
is "extend" "$status" 0
run coffer sandbox list
like "extend is seen by list" "$(cat "$out")" "(2h 59m|3h)"
run coffer sandbox extend --json "$id" 3h
is "extend says all that info says" "$(json "$out" 'd["metadata"]')" "['for=test']"
run coffer sandbox extend "$id" soon
like "extend by what is no time" "$status $(head -1 "$err")" '^2 coffer: E6006: '

run coffer sandbox create --ttl 1s
short=$(cat "$out"); remember "$short"
is "a short one" "$status" 0

run coffer sandbox kill "$id"
is "kill" "$status $(cat "$out")" "0 $id killed"
run coffer sandbox kill --json "$id"
is "killing it again is success, and said" "$status $(json "$out" '(d["id"], d["already_gone"])')" \
  "0 ('$id', True)"
run coffer sandbox info "$id"
like "it is unknown now" "$status $(head -1 "$err")" '^4 coffer: E2009: '
run coffer sandbox exec "$id" -- true
like "to exec too" "$status $(head -1 "$err")" '^125 coffer: E2009: '

sleep 1.2
ok "what has expired ends by itself" soon 5 none_of_ours
run coffer sandbox prune
is "prune" "$status" 0
run coffer sandbox list --json
is "nothing is listed" "$(cat "$out")" "[]"

for word in sb-00000000000000000000000000 nonsense ../../etc "$(printf 'a\nb')"; do
  run coffer sandbox kill "$word"
  is "kill of what nobody knows is success" "$status" 0
  run coffer sandbox info "$word"
  like "info of it is not" "$status $(head -1 "$err")" '^4 coffer: E2009: '
  is "and is one line and a hint" "$(wc -l <"$err")" 2
done

for n in 1 2 3; do remember "$(coffer sandbox create)"; done
run coffer sandbox kill --all
like "--all asks, and nobody is there" "$status $(head -1 "$err")" '^2 coffer: E6001: .*nobody is there'
is "so that all are still there" "$(coffer sandbox list | grep -c running)" 3
run coffer sandbox kill --all --yes
is "--yes answers" "$status $(grep -c killed "$out")" "0 3"

# -- the sandbox of a run, seen by others -------------------------------------
coffer run -- sh -c 'echo up; exec sleep 60' >"$T/up" 2>"$T/up.err" &
owner=$!
soon 10 test -s "$T/up"
id=$(coffer sandbox list --json | python3 -c 'import json, sys
print (*[s["id"] for s in json.load (sys.stdin) if s["ephemeral"]])')
like "a run that is at work is in the list" "$id" '^sb-[0-9a-z]+$'
is "and has a file, no folder and no row" \
  "$(ls "$COFFER_HOME/run/runs") $(ls "$COFFER_HOME/run/linux" | grep -c "$id")" "$id 0"
run coffer sandbox kill "$id"
wait "$owner"; ended=$?
is "killing it ends its owner" "$status $ended" "0 143"
run coffer sandbox kill "$id"
like "which is gone then" "$status $(cat "$out")" '^0 .*gone'
is "and nothing of it is left" "$(ls "$COFFER_HOME/run/runs")" ""

finish
