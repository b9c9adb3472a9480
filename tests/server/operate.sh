# SPDX-License-Identifier: Apache-2.0
# The daemon in its operator's hands: its configuration, SIGHUP, its log, what a
# service manager gives it, and its end.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3
SERVE_PROBE=1
says () { grep -q -- "$1" "$T/serve.err"; }

# -- what is wrong is said with its place
refused () { # WHAT TEXT PATTERN
  printf '%s\n' "$2" | serve_config
  run coffer serve --check
  is "refused: $1" "$status" 2
  like "with its place: $1" "$(cat "$err")" "coffer.yaml:[0-9]+:[0-9]+: .*$3"
}
refused "a key that is none" 'serve: {lissten: []}' 'did you mean "listen"'
refused "no section" 'serve: here' 'map'
refused "a limit that is none" 'serve: {limits: {body: 1}}' 'body must be from'
refused "a limit in quotes" 'serve: {limits: {runs: "2"}}' 'runs must be from'
refused "a user that nobody knows" 'serve: {socket: {users: [{name: no-such-user-}]}}' 'there is no user'
refused "a right that is none" 'serve: {socket: {users: [{name: "1", rights: all}]}}' 'rights must be'
refused "no name" 'serve: {socket: {groups: [{rights: run}]}}' 'name is missing'
refused "a relative socket" 'serve: {socket: {path: here}}' 'absolute'
refused "a relative root" 'serve: {allowed_roots: [here]}' 'absolute'
printf 'serve: {listen: [localhost:80]}\n' | serve_config
run coffer serve --check
is "a name to listen on" "$status" 2
like "with how it is written" "$(cat "$err")" '127.0.0.1:8000'
for profile in no-such default; do
  printf 'serve: {execute: {profile: %s}}\n' "$profile" | serve_config
  run coffer serve --check
  is "code with the profile $profile" "$status" 2
  like "which is said" "$(cat "$err")" "serve.execute.profile: .*$profile"
done
printf 'serve: {allow_hosts: ["a b"]}\n' | serve_config
run coffer serve --check
is "a host that is none" "$status" 2
printf 'default_provider: linux\n' | serve_config
run coffer serve --check --json
is "a file without the section is valid" "$status $(cat "$out")" '0 {"ok":true}'
printf 'serve: {limits: {body: 8KiB}}\n' | serve_config
ok "and one with it is the other commands' too" coffer provider list
chmod 666 "$COFFER_HOME/config/coffer.yaml"
run coffer serve --check
is "one that others may write is not" "$status" 5
chmod 600 "$COFFER_HOME/config/coffer.yaml"

# -- SIGHUP
serve_start
head -c 8000 /dev/zero >"$T/body"
tcp POST /t/text --data-binary "@$T/body"
is "the limit of the file holds" "$code" 200
printf 'serve: {limits: {body: 4KiB}}\n' | serve_config
kill -HUP "$server"
ok "SIGHUP reads it again" soon 5 says 'was read again'
tcp POST /t/text --data-binary "@$T/body"
is "and the new limit holds" "$code" 413
printf 'serve: {limits: {body: 4Kib, what: 1}}\n' | serve_config
kill -HUP "$server"
ok "a wrong one is said" soon 5 says 'before still holds: .*coffer.yaml:1:'
tcp POST /t/text --data-binary "@$T/body"
is "and the old one holds" "$code" 413
printf 'serve: {limits: {body: 16KiB}}\n' | serve_config
kill -HUP "$server"
larger () { tcp POST /t/text --data-binary "@$T/body"; [ "$code" = 200 ]; }
ok "until it is right" soon 5 larger

# -- draining
peers
peer open busy "${url#http://}"
peer send busy 'GET /t/sleep?ms=1500 HTTP/1.1\r\nHost: localhost\r\n\r\n'
begun () { tcp GET /t/log; grep -q 'sleep begins' "$out"; }
soon 5 begun
peer open idle "${url#http://}"
peer send idle 'GET /t/log HTTP/1.1\r\nHost: localhost\r\n\r\n'
peer status idle
kill -TERM "$server"
peer closed idle
is "SIGTERM ends connections that wait" "$said" closed
run curl -sS -m 5 "$url/t/log"
is "and takes no new ones" "$status" 7
peer status busy
is "while what is at work comes to its end" "$said" 204
wait "$server"
is "and then the daemon" "$?" 0

printf 'serve: {limits: {drain_time: 60s}}\n' | serve_config
serve_start
peer open busy "${url#http://}"
peer send busy 'GET /t/sleep HTTP/1.1\r\nHost: localhost\r\n\r\n'
soon 5 begun
kill -TERM "$server"
sleep 0.3
kill -TERM "$server"
peer status busy
is "a second SIGTERM cancels what is at work" "$said" 499
wait "$server"
is "and ends in order" "$?" 0
printf 'serve: {limits: {drain_time: 200ms}}\n' | serve_config
serve_start
peer open busy "${url#http://}"
peer send busy 'GET /t/sleep HTTP/1.1\r\nHost: localhost\r\n\r\n'
soon 5 begun
serve_stop
is "and so does the time to drain" "$status" 0
peers_end

# -- the log
printf 'serve: {log: json}\n' | serve_config
serve_start
tcp GET /t/log
serve_stop
grep '"http"' "$T/serve.err" | head -1 >"$T/line"
is "the log as JSON" "$(json "$T/line" '[d[k] for k in ("level", "topic", "method", "path", "status")], "time" in d')" \
  "(['info', 'http', 'GET', '/t/log', 200], True)"

# -- a service manager
python3 - "$COFFER_BUILD/tests/server/probe-serve" "$T" >"$T/report" <<'PY'
import os, signal, socket, subprocess, sys, urllib.request
program, folder = sys.argv[1:]
notify = socket.socket (socket.AF_UNIX, socket.SOCK_DGRAM)
notify.bind (folder + "/notify")
notify.settimeout (60)
web = socket.socket ()
web.bind (("127.0.0.1", 0))
web.listen (5)
def handed (fd, more):
    script = 'exec 3<&%d; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" %s' % (fd, more)
    return ["sh", "-c", script, program]
p = subprocess.Popen (handed (web.fileno (), "--json"),
                      pass_fds=[web.fileno ()], stdout=subprocess.PIPE,
                      env=dict (os.environ, NOTIFY_SOCKET=folder + "/notify"))
def tell (what, good):
    print (("ok" if good else "bad") + "\t" + what, flush=True)
port = web.getsockname ()[1]
web.close ()
tell ("readiness is told", notify.recv (1000) == b"READY=1")
reply = urllib.request.urlopen ("http://127.0.0.1:%d/t/log" % port, timeout=60)
tell ("a socket that was handed over is served", reply.status == 200)
tell ("and no other", p.stdout.readline () == b'{"socket":null,"listen":["127.0.0.1:%d"]}\n' % port)
p.send_signal (signal.SIGHUP)
said = notify.recv (1000)
tell ("reloading is told", said.startswith (b"RELOADING=1\nMONOTONIC_USEC="))
tell ("and that it is over", notify.recv (1000) == b"READY=1")
p.terminate ()
tell ("and the end", notify.recv (1000) == b"STOPPING=1")
tell ("which comes", p.wait (60) == 0)
plain = socket.socket ()
p = subprocess.run (handed (plain.fileno (), ""), pass_fds=[plain.fileno ()],
                    stderr=subprocess.PIPE)
tell ("a descriptor that does not listen is refused", p.returncode == 2 and b"E6003" in p.stderr)
PY
while IFS='	' read -r verdict what; do is "$what" "$verdict" ok; done <"$T/report"
is "all of it was tried" "$(wc -l <"$T/report" | tr -d ' ')" 8
rm -f "$T/notify"

# -- credentials
coffer token create cred >"$T/token" 2>/dev/null
mkdir "$T/credentials"; mv "$COFFER_HOME/state/tokens.json" "$T/credentials"
CREDENTIALS_DIRECTORY=$T/credentials; export CREDENTIALS_DIRECTORY
serve_start
tcp GET /t/run -H "Authorization: Bearer $(cat "$T/token")"
is "tokens among a service's credentials count" "$code" 200
serve_stop
finish
