# SPDX-License-Identifier: Apache-2.0
# /api/v1/box: sessions by names of the caller's own, commands in them, processes
# that run on, and what a platform asks to know.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3

box () { # METHOD PATH [BODY]
  box_method=$1 box_path=$2
  if [ $# -gt 2 ]; then
    api "$box_method" "/api/v1/box$box_path" -H 'Content-Type: application/json' -d "$3"
  else
    api "$box_method" "/api/v1/box$box_path"
  fi
}
data () { json "$out" "(lambda data: ($1)) (d[\"data\"])"; }
fault () { json "$out" 'd["error"]["name"]'; }
sandboxes () { api GET /api/v1/sandboxes; json "$out" 'len (d["sandboxes"])'; }

mkdir -p "$COFFER_HOME/config"
cat >"$COFFER_HOME/config/coffer.yaml" <<'END'
accept: [limit.memory, limit.pids, limit.disk]
serve:
  box: {idle_ttl: 300s, max_sessions: 6, max_processes: 3}
END
serve_start || { ok "the daemon starts" false; finish; }
box GET /status
is "status" "$code" 200
if [ "$(data 'data["available"]')" != True ]; then
  note "$(cat "$out")"
  serve_stop
  skip "sessions" "a provider that isolates here"
  finish
fi
is "an envelope as clients know it" "$(json "$out" 'd["code"], d["msg"]')" "(0, 'ok')"
is "the backend has its name and facts" \
  "$(data 'data["backend"]["name"], data["backend"]["available"], len (data["backend"]["readiness"]) > 0')" \
  "('linux', True, True)"
is "nothing is there yet" \
  "$(data '[data[k] for k in ("active_sessions", "managed_processes", "recent_error_count", "session_ttl_sec")]')" \
  "[0, 0, 0, 300.0]"
said () { grep -q "$1" "$T/serve.err"; }
ok "the log says so" soon 15 said 'native sandbox tools available backend=linux'

# Names that a careless rule would take for one.
for name in 'user@x' 'user-x' 'user x' 'ü☃'; do
  box POST /exec "{\"session_id\": \"$name\", \"cmd\": \"echo '$name' >mine; ls | wc -l\"}"
  is "'$name' is a sandbox of its own" "$(data 'data["stdout"], data["status"], data["ok"]')" \
    "('1\\n', 'completed', True)"
done
box POST /exec '{"session_id": "user@x", "cmd": "cat mine; echo no >&2; exit 7", "env": {"A": "b"}, "workdir": "/workspace/new/folder"}'
is "what was made is not where it was not" "$(data 'data["exit_code"], data["ok"]')" "(7, False)"
box POST /exec '{"session_id": "user@x", "cmd": "cat ../../mine; echo $A; pwd", "env": {"A": "b"}, "workdir": "/workspace/new/folder"}'
is "a session keeps what was made; a working folder is made" "$(data 'data["stdout"]')" \
  "$(printf 'user@x\nb\n/workspace/new/folder')"
box GET /sessions
is "sessions are listed by the names that were given" \
  "$(data 'sorted (s["session_id"] for s in data) == sorted (["user@x", "user-x", "user x", "ü☃"])')" True
is "with what they are" \
  "$(data '[(s["backend_name"], s["network"], s["memory_mb"], s["cpus"], s["mount_path"]) for s in data][0]')" \
  "('linux', 'off', 512, 1.0, '/workspace')"

# Reuse and conflict.
box POST /exec '{"session_id": "user-x", "cmd": "cat mine", "timeout_sec": 9, "memory_mb": 512}'
is "what is given and the same is no conflict" "$(data 'data["stdout"]')" "user-x"
box POST /exec '{"session_id": "user-x", "cmd": "true", "memory_mb": 256}'
is "what differs is, by its name" \
  "$code $(fault) $(json "$out" 'd["error"]["details"]["field"], d["error"]["details"]["existing"], d["code"]')" \
  "409 SESSION_CONFLICT ('memory_mb', 512, 2013)"
for body in '{"cmd": "true"}' '{"session_id": "a/b", "cmd": "true"}' '{"session_id": "x"}' \
  '{"session_id": "x", "cmd": ""}' '{"session_id": "x", "cmd": "true", "tenant": "t"}' \
  '{"session_id": "x", "cmd": "true", "memory_mb": 1}' '{"session_id": "x", "cmd": "true", "timeout_sec": 0}' \
  '{"session_id": "x", "cmd": "true", "network": "on"}' '{"session_id": "x", "cmd": "true", "mount_path": "/m"}' \
  '{"session_id": "x", "cmd": "true", "workdir": "w"}' '{"session_id": "x", "cmd": "true", "env": {"A": 1}}'; do
  box POST /exec "$body"
  is "refused: $body" "$code $(fault)" "422 INVALID"
done
box POST /exec '{"session_id": "x", "cmd": "true", "host_path": "/etc"}'
is "a folder of the host that nobody allowed" "$code" 403
is "nothing was made for what was refused" "$(sandboxes)" 4

# How a command ends.
box POST /exec '{"session_id": "user-x", "cmd": "echo begun; sleep 600", "timeout_sec": 1}'
is "a timeout is told" \
  "$(data 'data["status"], data["exit_code"], data["stdout"], data["stderr"]')" \
  "('timed_out', None, 'begun\\n', 'Command timed out after 1 seconds.')"
box POST /exec '{"session_id": "user-x", "cmd": "cat mine"}'
is "and the session lives on" "$(data 'data["stdout"]')" "user-x"
box POST /exec '{"session_id": "user-x", "cmd": "seq 100000; printf \"\\377\" >&2", "output_limit": 1000}'
is "much output: head and tail, and how much is missing" \
  "$(data 'data["stdout"].startswith ("1\n2\n"), data["stdout"].endswith ("99999\n100000\n"), len (data["stdout"]) <= 1000, data["stdout_truncated"], data["stdout_bytes"], data["truncated_by"], "bytes truncated" in data["stdout"], data["stderr"]')" \
  "(True, True, True, True, 588895, 'bytes', True, '�')"
box POST /exec '{"session_id": "user-x", "cmd": "cat; echo end"}'
is "there is no input to wait for" "$(data 'data["stdout"]')" "end"

# Its sandbox ends by itself.
box GET /sessions/user-x
sandbox=$(data 'data["backend_session_id"]')
coffer sandbox kill "$sandbox" >/dev/null 2>&1
box POST /exec '{"session_id": "user-x", "cmd": "ls | wc -l"}'
is "one whose sandbox has gone gets another" "$code $(data 'data["stdout"]')" "200 0"
box DELETE /sessions/user-x
is "a session can be ended" "$code $(data 'data["deleted"]')" "200 user-x"
box GET /sessions/user-x
is "and is not there" "$code $(fault)" "404 UNKNOWN_SESSION"
box POST /sessions '{"session_id": "p", "read_only_rootfs": true, "persistent": true}'
is "one can be made" "$code $(data 'data["session_id"], data["read_only_rootfs"], data["persistent"]')" \
  "200 ('p', True, True)"
box POST /sessions '{"session_id": "p", "persistent": true}'
is "which is the same again" "$code" 200
box POST /sessions '{"session_id": "q"}'
box POST /sessions '{"session_id": "r"}'
box POST /sessions '{"session_id": "s"}'
is "there are as many as may be" "$code $(fault) $(header retry-after)" "429 LIMIT 1"

# Processes that run on.
box POST /sessions/p/processes '{"command": "sh", "args": ["-c", "echo ready; echo err >&2; while read -r line; do echo \"got $line\"; done; exit 3"], "env": {"SECRET": "s3cret"}}'
is "a process is started" \
  "$code $(data 'data["process_id"], data["status"], data["attached"], data["env_keys"]')" \
  "200 ('default', 'running', False, ['SECRET'])"
curl -sSN --unix-socket "$socket" "http://localhost/api/v1/box/sessions/p/processes/default/attach" >"$T/lines" 2>/dev/null &
attached=$!
first () { [ "$(head -1 "$T/lines")" = '{"line":"ready"}' ]; }
ok "its output comes in lines, from the first" soon 15 first
box GET /sessions/p/processes/default/attach
is "one is attached at a time" "$code $(fault)" "409 BUSY"
api POST /api/v1/box/sessions/p/processes/default/stdin --data-binary '{"m": "ä"}'
is "a message is a line of its input" "$code" 200
second () { [ "$(sed -n 2p "$T/lines")" = '{"line":"got {\"m\": \"ä\"}"}' ]; }
ok "and is answered" soon 15 second
kill "$attached"; wait "$attached" 2>/dev/null
free () { box GET /sessions/p/processes/default; [ "$(data 'data["attached"]')" = False ]; }
ok "who has left is not attached" soon 15 free
api POST /api/v1/box/sessions/p/processes/default/stdin --data-binary 'while away'
curl -sSN --unix-socket "$socket" "http://localhost/api/v1/box/sessions/p/processes/default/attach" >"$T/more" 2>/dev/null &
attached=$!
away () { [ "$(head -1 "$T/more")" = '{"line":"got while away"}' ]; }
ok "the next one gets what came meanwhile" soon 15 away
kill "$attached"; wait "$attached" 2>/dev/null

# What is kept of a session may be long.
big=$(head -c 60000 /dev/zero | tr '\0' x)
ended () { box GET "/sessions/q/processes/$i"; [ "$(data 'data["status"]')" = exited ]; }
for i in 1 2 3 4 5; do
  box POST /sessions/q/processes "{\"command\": \"true\", \"args\": [\"$big\"], \"process_id\": \"$i\"}"
  ok "a process of many words" soon 15 ended
done
box POST /sessions/q/processes "{\"command\": \"true\", \"args\": [\"$big\", \"$big\"]}"
is "of too many" "$code $(fault)" "422 INVALID"

# The daemon is killed; the next one goes on with all of it.
ok "who has left is not attached" soon 15 free
kill -KILL "$server"; wait "$server" 2>/dev/null
serve_start
box GET /sessions/p
is "a session outlives a daemon that was killed" \
  "$code $(data 'data["persistent"], sorted (data["managed_processes"])')" "200 (True, ['default'])"
box GET /sessions/q
is "however much there is to know of it" "$code $(data 'len (data["managed_processes"])')" "200 5"
api POST /api/v1/box/sessions/p/processes/default/stdin --data-binary 'again'
logged () { api GET "/api/v1/box/sessions/p/processes/default/log"; tail -1 "$out" | grep -q '^got again$'; }
ok "and so does a process, with its input" soon 15 logged
is "its whole log is there" "$(head -1 "$out")" ready
api GET "/api/v1/box/sessions/p/processes/default/log?stream=stderr"
is "and that of its errors" "$(cat "$out")" err
box GET /sessions/p/processes/none
is "a process that is none" "$code $(fault)" "404 EXEC_UNKNOWN"
box POST /sessions/p/processes '{"command": "sleep", "args": ["600"], "process_id": "two"}'
box POST /sessions/p/processes '{"command": "sleep", "args": ["600"], "process_id": "three"}'
box POST /sessions/p/processes '{"command": "sleep", "args": ["600"], "process_id": "four"}'
is "not more than may be" "$code $(fault)" "429 LIMIT"
box POST /sessions/p/processes '{"command": "echo", "args": ["over"], "process_id": "two"}'
is "one takes the place of another of its name" "$code $(data 'data["command"]')" "200 echo"
over () { box GET /sessions/p/processes/two; [ "$(data 'data["status"], data["exit_code"]')" = "('exited', 0)" ]; }
ok "how it ended is told" soon 15 over
box GET /sessions/p/processes/two/attach
is "also to who attaches later" "$(cat "$out")" '{"line":"over"}
{"event":"exited","exit_code":0}'
box DELETE /sessions/p/processes/default
is "a process can be stopped" "$code" 200
box GET /sessions/p/processes/default
is "and is not there" "$code" 404
box GET /status
is "status counts" "$(data 'data["managed_processes"]')" 1
is "and knows of what went wrong" "$(data 'data["recent_error_count"] > 0')" True
box GET /errors
is "errors have time, type, message and tenant" \
  "$(data '"SESSION_CONFLICT" in [e["type"] for e in data], all (e["timestamp"] and e["message"] and e["tenant"] for e in data)')" \
  "(True, True)"
ok "no secret is anywhere" \
  test "$(grep -rl s3cret "$COFFER_HOME/state" "$T/serve.err" | wc -l)" = 0
for name in p q r 'user@x' 'user%20x' '%C3%BC%E2%98%83'; do box DELETE "/sessions/$name"; done
is "no sandbox is left" "$(sandboxes)" 0
serve_stop

sed -i 's/300s/1s/' "$COFFER_HOME/config/coffer.yaml"
serve_start
box POST /exec '{"session_id": "idle", "cmd": "true"}'
box POST /exec '{"session_id": "stays", "cmd": "true", "persistent": true}'
gone () { box GET /sessions; [ "$(data '[s["session_id"] for s in data]')" = "['stays']" ]; }
ok "who is not used goes, who is to stay does not" soon 15 gone
one () { [ "$(sandboxes)" = 1 ]; }
ok "with its sandbox" soon 15 one
box DELETE /sessions/stays
serve_stop
finish
