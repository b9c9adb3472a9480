# SPDX-License-Identifier: Apache-2.0
# coffer sandbox port: a server inside, reached from here in each way.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox

run coffer sandbox create
id=$(cat "$out"); remember "$id"
cat >"$T/server.py" <<'PY'
import socketserver, sys
class Echo (socketserver.BaseRequestHandler):
  def handle (self):
    while True:
      b = self.request.recv (65536)
      if not b: break
      self.request.sendall (b.upper ())
    self.request.sendall (b"end\n")
socketserver.ThreadingTCPServer.request_queue_size = 64
s = socketserver.ThreadingTCPServer (("127.0.0.1", 8080), Echo)
print ("ready", flush=True)
s.serve_forever ()
PY
coffer sandbox upload "$id" "$T/server.py" server.py >/dev/null 2>&1
exec_id=$(coffer sandbox exec -d "$id" -- python3 server.py)

# Until it listens.
answers () { printf x | coffer sandbox port "$id" 8080 --stdio >"$T/answer"; }
soon 5 answers
is "--stdio: there and back, with both ends" "$(cat "$T/answer")" "Xend"
head -c 3000000 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$T/big"
coffer sandbox port --stdio "$id" 8080 <"$T/big" >"$T/back"
tr 'a-z' 'A-Z' <"$T/big" >"$T/want"; echo end >>"$T/want"
same "--stdio: megabytes" "$T/back" "$T/want"
run coffer sandbox port --stdio "$id" 8081
like "nobody listens there" "$status $(cat "$err")" '^1 coffer: E7002: .*8081'

# A client of many connections: prints OK when each got its own answer.
cat >"$T/client.py" <<'PY'
import socket, sys, threading
where, n = sys.argv[1], int (sys.argv[2])
def connect ():
  if "/" in where:
    s = socket.socket (socket.AF_UNIX); s.connect (where); return s
  host, port = where.rsplit (":", 1)
  return socket.create_connection ((host, int (port)))
good = []
def one (i):
  s = connect (); s.settimeout (60)
  body = (b"line %d\n" % i) * 2000
  threading.Thread (target=lambda: (s.sendall (body), s.shutdown (socket.SHUT_WR))).start ()
  got = b""
  while True:
    b = s.recv (65536)
    if not b: break
    got += b
  good.append (got == body.upper () + b"end\n")
ts = [threading.Thread (target=one, args=(i,)) for i in range (n)]
[t.start () for t in ts]; [t.join () for t in ts]
print ("OK" if good == [True] * n else "bad: %r" % good)
PY
forward () { # options: the address, once it is there
  rm -f "$T/where"
  "$COFFER_BUILD/coffer" sandbox port "$id" "$@" >"$T/where" 2>"$T/forward.err" &
  forwarder=$!
  soon 5 test -s "$T/where"
}
forward 8080 --listen 0
like "a free port of the loopback" "$(cat "$T/where")" '^127\.0\.0\.1:[0-9]+$'
is "forty connections at once" "$(timeout 60 python3 "$T/client.py" "$(cat "$T/where")" 40)" OK
# One that does nothing holds nobody up.
python3 -c 'import socket, sys, time
h, p = sys.argv[1].split (":"); s = socket.create_connection ((h, int (p))); time.sleep (60)' "$(cat "$T/where")" &
idle=$!
is "beside one that says nothing" "$(timeout 60 python3 "$T/client.py" "$(cat "$T/where")" 2)" OK
kill $idle; wait $idle 2>/dev/null
kill -TERM $forwarder; status=0; wait $forwarder || status=$?
is "a signal is its end, and success" "$status $(cat "$T/forward.err")" "0 "

# A server that takes one connection and no more: whoever comes when its queue is
# full is not answered, and holds nobody up.  Nothing that was begun has failed by
# then, which a sandbox that does not answer does at last.
cat >"$T/deaf.py" <<'PY'
import socket, time
s = socket.socket (); s.bind (("127.0.0.1", 8082)); s.listen (0)
c, _ = s.accept ()
while True:
  b = c.recv (65536)
  if not b: break
  c.sendall (b.upper ())
PY
coffer sandbox upload "$id" "$T/deaf.py" deaf.py >/dev/null 2>&1
coffer sandbox exec -d "$id" -- python3 deaf.py >/dev/null
forward 8082 --listen 0
cat >"$T/held.py" <<'PY'
import os, socket, sys, time
host, port = sys.argv[1].split (":")
def connect ():
  s = socket.create_connection ((host, int (port))); s.settimeout (60); return s
def echo (s, b):
  s.sendall (b); return s.recv (100)
end = time.time () + 60
while True:
  try:
    one = connect ()
    if echo (one, b"a") == b"A": break
  except OSError: pass
  if time.time () > end: sys.exit ("nobody answers")
  time.sleep (0.1)
said = os.path.getsize (sys.argv[2])
others = [connect () for i in range (8)]
got = [echo (one, b"line %d" % i) for i in range (20)]
print (got == [b"LINE %d" % i for i in range (20)], os.path.getsize (sys.argv[2]) - said)
PY
is "one that is not answered holds nobody up" \
  "$(timeout 100 python3 "$T/held.py" "$(cat "$T/where")" "$T/forward.err" 2>&1)" "True 0"
kill -TERM $forwarder; status=0; wait $forwarder || status=$?
is "and a signal is its end too" "$status" 0

mkdir "$T/你好 世界"
forward 8080 --listen "$T/你好 世界/'q\".sock"
is "a socket with a name" "$(cat "$T/where")" "$T/你好 世界/'q\".sock"
is "that only its owner opens" "$(stat -c '%a %F' "$T/你好 世界/"*)" "600 socket"
is "and it forwards" "$(timeout 60 python3 "$T/client.py" "$T/你好 世界/'q\".sock" 3)" OK
run coffer sandbox port "$id" 8080 --listen "$T/你好 世界/'q\".sock"
like "one that is there is not taken" "$status $(cat "$err")" '^1 coffer: E9001: listening'
ok "and left alone" test -S "$T/你好 世界/'q\".sock"
kill -TERM $forwarder; wait $forwarder
is "it is gone afterwards" "$(find "$T/你好 世界" -type s | wc -l)" 0

forward 8081 --listen 0
python3 -c 'import socket, sys
h, p = sys.argv[1].split (":"); s = socket.create_connection ((h, int (p))); s.settimeout (60); sys.exit (s.recv (1) != b"")' "$(cat "$T/where")"
is "a port where nobody listens: the connection ends" "$?" 0
like "and why is said" "$(cat "$T/forward.err")" 'nothing in the sandbox listens on port 8081'
kill -0 $forwarder; is "the next one may find somebody" "$?" 0
coffer sandbox kill "$id" >/dev/null
python3 -c 'import socket, sys
h, p = sys.argv[1].split (":"); socket.create_connection ((h, int (p)))' "$(cat "$T/where")"
status=0; wait $forwarder || status=$?
is "with the sandbox it ends" "$status" 4

run coffer sandbox create
id=$(cat "$out"); remember "$id"
for bad in 0 65536 -1 x 80x; do
  run coffer sandbox port "$id" -- "$bad"
  like "port $bad" "$status $(cat "$err")" '^2 coffer: E6006: .*(port)'
done
for bad in 80x 256.0.0.1:80 '[::1:80' host:80 :80 1.2.3.4:; do
  run coffer sandbox port "$id" 8080 --listen "$bad"
  like "--listen $bad" "$status $(cat "$err")" '^2 coffer: E6006: --listen'
done
run coffer sandbox port "$id" 8080 --stdio --listen 0
is "one or the other" "$status" 2
"$COFFER_BUILD/coffer" sandbox port --json "$id" 8080 --listen 0 >"$out" 2>"$err" &
forwarder=$!
soon 5 test -s "$out"
is "--json: one line, when it can be used" \
  "$(json "$out" '(d["sandbox"], d["port"], d["address"][:10], d["forwarded"])')" "('$id', 8080, '127.0.0.1:', True)"
kill -TERM $forwarder; wait $forwarder
coffer sandbox kill "$id" >/dev/null
finish
