# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What tests of the daemon share, after tests/e2e/lib.sh:
#
#   serve_start [OPTION…]   starts `coffer serve` on a free port and waits for it:
#                           $server (pid), $socket, $url; its output is $T/serve.out
#                           and $T/serve.err.  With SERVE_PROBE=1 it is the daemon
#                           with the surface of tests/server/probe.c
#   serve_stop              SIGTERM, and $status is how it ended
#   serve_config            coffer.yaml from standard input
#   api METHOD PATH [CURL OPTION…]   over the unix socket: the body in $out, the
#                           headers in $T/headers, $code
#   tcp METHOD PATH [CURL OPTION…]   over TCP
#   header NAME             of the last reply
#   client PROGRAM [ARG…]   a program of python beside this one, which goes on
#                           counting (client.py)
#   code_of                 the error code in $out
#   peers                   starts tests/server/peer.py; peer LINE asks it, the
#                           answer is $said

serve_command () {
  if [ -n "${SERVE_PROBE:-}" ]; then
    set -- "$COFFER_BUILD/tests/server/probe-serve" "$@"
  else
    set -- "${serve_program:-$COFFER_BUILD/coffer}" serve "$@"
  fi
  exec "$@"
}

serve_start () {
  : >"$T/serve.out"
  serve_command --json --listen 127.0.0.1:0 "$@" >"$T/serve.out" \
    2>"$T/serve.err" </dev/null 8>&- 9<&- &
  server=$!
  soon 10 serve_said || { note "the daemon: $(cat "$T/serve.err")"; return 1; }
  head -1 "$T/serve.out" | grep -q '"socket"' || return 1
  socket=$(json_first "$T/serve.out" 'd["socket"]')
  url=http://$(json_first "$T/serve.out" '(d["listen"] or [""])[0]')
}
serve_said () { [ -s "$T/serve.out" ] || ! kill -0 "$server" 2>/dev/null; }
json_first () { head -1 "$1" >"$T/first"; json "$T/first" "$2"; }

serve_stop () {
  kill -TERM "$server"
  status=0
  wait "$server" || status=$?
}

serve_config () {
  mkdir -p "$COFFER_HOME/config"
  cat >"$COFFER_HOME/config/coffer.yaml"
  chmod go-w "$COFFER_HOME/config" "$COFFER_HOME/config/coffer.yaml"
}

api () {
  api_method=$1 api_path=$2; shift 2
  code=$(curl -sS -m 60 --unix-socket "$socket" -X "$api_method" -D "$T/headers" \
    -o "$out" -w '%{http_code}' "$@" "http://localhost$api_path" 2>"$err")
}
tcp () {
  api_method=$1 api_path=$2; shift 2
  code=$(curl -sS -m 60 -X "$api_method" -D "$T/headers" -o "$out" \
    -w '%{http_code}' "$@" "$url$api_path" 2>"$err")
}
header () {
  sed -n "s/^$1: *//Ip" "$T/headers" | tr -d '\r'
}
code_of () { json "$out" 'd["error"]["code"]'; }

# How many descriptors and threads the daemon has.
serve_fds () { ls "/proc/$server/fd" | wc -l; }
serve_threads () { ls "/proc/$server/task" | wc -l; }

client () {
  client_program=$1; shift
  echo "$e2e_count" >"$T/count"
  SOCKET=$socket COUNT_FILE=$T/count COFFER=${serve_program:-$COFFER_BUILD/coffer} \
    timeout 300 python3 "$COFFER_SOURCE/tests/server/$client_program" "$@" \
    </dev/null 2>"$T/client.err"
  client_status=$?
  e2e_count=$(cat "$T/count")
  [ "$client_status" -eq 0 ] && return
  e2e_result 1 "$client_program comes to its end"
  note "$(tail -5 "$T/client.err")"
}

peers () {
  mkfifo "$T/ask" "$T/answer"
  python3 "$COFFER_SOURCE/tests/server/peer.py" <"$T/ask" >"$T/answer" &
  peers_pid=$!
  exec 8>"$T/ask" 9<"$T/answer"
}
peer () {
  printf '%s\n' "$*" >&8
  IFS= read -r said <&9
}
peers_end () { exec 8>&- 9<&-; wait "$peers_pid"; }
