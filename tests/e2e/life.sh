# SPDX-License-Identifier: Apache-2.0
# coffer sandbox pause, resume, metrics, ps, attach, signal; commands that outlive
# the coffer that started them.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox

run coffer sandbox create
id=$(cat "$out"); remember "$id"

# ---- pause ----------------------------------------------------------------
coffer sandbox exec -d "$id" -c 'while :; do echo . >> dots; sleep 0.01; done' >"$T/ticker"
dots () { coffer sandbox download "$id" dots - 2>/dev/null | wc -c; }
moves () { [ "$(dots)" -gt "$1" ]; }
soon 5 moves 1
run coffer sandbox pause "$id"
like "pause says so, and when it ends" "$status $(cat "$out")" "^0 $id paused, ends 20"
before=$(dots); sleep 0.3
is "nothing moves meanwhile, and files are reached" "$(dots)" "$before"
run coffer sandbox list --json
is "a list shows it" "$(json "$out" '[s["state"] for s in d]')" "['paused']"
run coffer sandbox exec "$id" -- true
like "no command is started" "$status $(cat "$err")" '^125 coffer: E2003: .*paused'
like "and what to do is said" "$(cat "$err")" "hint: coffer sandbox info $id .*resume"
run coffer sandbox connect "$id"
like "connect says that it does not run" "$status $(cat "$err")" '^1 coffer: E2003: .* is paused'
run coffer sandbox resume --json "$id"
is "resume" "$(json "$out" '(d["id"], d["state"])')" "('$id', 'running')"
ok "and it goes on" soon 5 moves "$before"
run coffer sandbox pause sb-00000000000000000000000000
like "pausing what is not there" "$status $(cat "$err")" '^4 coffer: E2009'

# ---- ps and signal ----------------------------------------------------------
run coffer sandbox ps "$id"
like "ps shows it" "$(cat "$out")" '^e1 +running +[0-9-]+ [0-9:]+ +background$'
run coffer sandbox signal "$id" "$(cat "$T/ticker")" KILL
is "signal" "$status $(cat "$out" "$err")" "0 "
run coffer sandbox attach "$id" "$(cat "$T/ticker")"
is "what it ended with is kept" "$status" 137
run coffer sandbox ps --json "$id"
is "ps --json" "$(json "$out" '[(s["exec"], s["state"], s["background"]) for s in d]')" "[('e1', 'exited', True)]"
run coffer sandbox signal "$id" e1
like "a signal to one that has ended" "$status $(cat "$err")" '^1 coffer: E2003'
run coffer sandbox signal "$id" e1 NOTHING
like "no signal" "$status $(cat "$err")" '^2 coffer: E6006: NOTHING is no signal'
run coffer sandbox attach "$id" e99
like "no command" "$status $(cat "$err")" '^125 coffer: E3002'

# ---- attach -----------------------------------------------------------------
exec_id=$(coffer sandbox exec -d "$id" -c 'printf "café\n☃\n"; echo two >&2; while [ ! -e go ]; do sleep 0.02; done; echo late; exit 9')
"$COFFER_BUILD/coffer" sandbox attach "$id" "$exec_id" >"$T/live" 2>"$T/live.err" &
listener=$!
soon 5 grep -q '☃' "$T/live"
like "attach gives on what is there already" "$(cat "$T/live")" '☃'
kill -TERM $listener; wait $listener; is "a signal ends the listening" "$?" 143
like "and says that the command runs on" "$(cat "$T/live.err")" "E3004: no longer listening to $exec_id"
"$COFFER_BUILD/coffer" sandbox attach "$id" "$exec_id" >"$T/live" 2>"$T/live.err" &
listener=$!
coffer sandbox exec "$id" -- touch go
status=0; wait $listener || status=$?
printf 'café\n☃\nlate\n' >"$T/want"
same "attach goes on to its end" "$T/live" "$T/want"
is "with its status, and its error output apart" "$status $(cat "$T/live.err")" "9 two"
run coffer sandbox attach --json "$id" "$exec_id"
is "attach --json" "$(json "$out" '(d["exec"], d["status"], d["stdout"]["data"], d["stderr"]["data"])')" \
  "('$exec_id', 9, 'café\\n☃\\nlate\\n', 'two\\n')"

# More than is kept: the beginning, the end, and how much is missing.
exec_id=$(coffer sandbox exec -d "$id" -c 'echo first; head -c 3000000 /dev/zero; echo last')
run coffer sandbox attach "$id" "$exec_id"
is "the beginning of much output" "$(head -n 1 "$out")" first
is "its end" "$(tail -c 5 "$out")" last

# ---- a host that is killed --------------------------------------------------
"$COFFER_BUILD/coffer" sandbox exec --timeout 60s "$id" -c 'echo $$ > pid; while [ ! -e over ]; do sleep 0.02; done; echo > done; exit 3' &
host=$!
soon 5 coffer sandbox download "$id" pid -
kill -KILL $host; wait $host 2>/dev/null
run coffer sandbox exec "$id" -c 'touch over; while [ ! -e done ]; do sleep 0.02; done; echo yes'
is "a command goes on without its host" "$(cat "$out")" yes
run coffer sandbox ps --json "$id"
is "and is known" "$(json "$out" '[s["state"] for s in d if not s["background"]][-2:-1]')" "['exited']"

# ---- kill -9 -1 -------------------------------------------------------------
coffer sandbox exec -d "$id" -c 'while [ ! -e end ]; do sleep 0.02; done; exit 4' >"$T/other"
run coffer sandbox exec "$id" -c 'kill -9 -1; echo $?'
is "everybody at once cannot be signalled" "$(cat "$out")" 1
run coffer sandbox exec --timeout 300ms "$id" -c 'setsid sleep 700 & sleep 700'
like "a timeout" "$status $(cat "$err")" '^124 coffer: E3003'
run coffer sandbox exec "$id" -c 'ps ax | grep -c "[s]leep 700"'
is "ends all that is its own" "$(cat "$out")" 0
coffer sandbox exec "$id" -- touch end
run coffer sandbox attach "$id" "$(cat "$T/other")"
is "and nothing else" "$status" 4

# ---- metrics ----------------------------------------------------------------
run coffer sandbox exec "$id" -c 'head -c 2000000 /dev/zero > big'
run coffer sandbox metrics --json "$id"
is "metrics --json" "$(json "$out" '(d["disk_bytes"] > 2000000, d["processes"] >= 1, d["cpu_seconds_total"] > 0, "nothing" in d)')" \
  "(True, True, True, False)"
run coffer sandbox metrics "$id"
like "metrics for people" "$(cat "$out")" '^cpu_seconds_total +[0-9.]+ s$'

# ---- time goes on while it rests --------------------------------------------
run coffer sandbox create --ttl 2s
mortal=$(cat "$out"); remember "$mortal"
coffer sandbox exec -d "$mortal" -- sleep 600 >/dev/null
coffer sandbox pause "$mortal" >/dev/null
ended () { ! coffer sandbox info "$mortal"; }
soon 10 ended
run coffer sandbox info "$mortal"
is "a paused one ends in its time" "$status" 4
run coffer sandbox prune

run coffer sandbox kill "$id"
finish
