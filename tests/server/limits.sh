# SPDX-License-Identifier: Apache-2.0
# What the daemon does around a handler: bodies, streams, deadlines, clients that
# are slow or leave, its queue, its limits; by the surface of probe.c.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3
SERVE_PROBE=1

serve_config <<'Y'
serve:
  limits: {header_time: 700ms, body_time: 900ms, idle_time: 1500ms, body: 4KiB,
           upload: 8MiB, connections: 400, runs: 2, queue: 2, request_time: 10m,
           queue_time: 10m}
Y
serve_start || { ok "the daemon starts" false; finish; }
peers
where=${url#http://}
noted () { tcp GET /t/log; grep -c -- "$1" "$out"; }
noted_is () { [ "$(noted "$1")" -eq "$2" ]; }

# -- what a handler gets
tcp GET '/t/echo/a%20b%C3%A9?q=x%2Fy+z&n=9'
is "a parameter and the query, decoded" \
  "$(json "$out" 'd["param"], d["query"], d["number"]')" "('a bé', 'x/y z', 9)"
tcp GET '/t/echo/a%2Fb'
is "no parameter has a slash in it" "$code $(code_of)" "400 E7005"
tcp GET '/t/rest/a%2Fb/c%00'
is "nor a NUL" "$code $(code_of)" "400 E7005"
tcp GET '/t/rest/a%2Fb/../c' --path-as-is
is "the rest of a path may, and is left as it is" "$(json "$out" 'd["param"]')" \
  a/b/../c
tcp GET '/t/echo/x?n=101'
is "a number beyond its bounds" "$code $(code_of)" "400 E7005"
tcp POST /t/echo -d '{"a": [1, "é"]}'
is "a JSON body" "$(json "$out" 'd["body"]')" "{'a': [1, 'é']}"
tcp POST /t/echo
is "an empty one is an empty object" "$code $(json "$out" 'd["body"]')" "200 {}"
for body in '[1]' '{"a":1,"a":2}' '{"a"' '{} x'; do
  tcp POST /t/echo -d "$body"
  is "refused as a body: $body" "$code $(code_of)" "400 E7005"
done
printf 'caf\303\251\n\342\230\203\n\000x' >"$T/bytes"
tcp POST /t/text --data-binary "@$T/bytes"
same "a body of bytes" "$T/bytes" "$out"
tcp GET /t/header
is "no handler can smuggle a header in" "$code $(code_of)" "500 E9003"

# -- the sizes
head -c 4096 /dev/zero >"$T/most"
tcp POST /t/text --data-binary "@$T/most"
is "a body as large as it may be" "$code $(wc -c <"$out" | tr -d ' ')" "200 4096"
printf x >>"$T/most"
tcp POST /t/text --data-binary "@$T/most"
is "and one byte more" "$code $(code_of)" "413 E7006"
tcp POST /t/text --data-binary "@$T/most" -H 'Transfer-Encoding: chunked'
is "in chunks too" "$code $(code_of)" "413 E7006"
head -c 3000000 /dev/urandom >"$T/large"
tcp PUT /t/count --data-binary "@$T/large"
is "a streamed body" "$code $(json "$out" 'd["bytes"]')" "200 3000000"
tcp PUT '/t/count?slow=1' --data-binary "@$T/large"
is "whose handler is slow" "$code $(json "$out" 'd["bytes"]')" "200 3000000"
tcp PUT '/t/count?fail=1' --data-binary "@$T/large" -H 'Expect:'
is "whose handler gives up" "$code $(code_of)" "507 E4005"
head -c 9000000 /dev/zero >"$T/huge"
tcp PUT /t/count --data-binary "@$T/huge"
is "beyond what a stream may have" "$code $(code_of)" "413 E7006"
tcp PUT /t/count --data-binary "@$T/huge" -H 'Transfer-Encoding: chunked' -H 'Expect:'
is "in chunks too, after what fits" "$code $(code_of)" "413 E7006"
peer open cut "$where"
peer send cut 'PUT /t/count HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc'
peer close cut
ok "a body that was cut is not taken as whole" soon 5 noted_is "a body was cut" 2

# -- bodies whose end is in doubt
n=0
for headers in 'Content-Length: 0\r\nContent-Length: 5' 'Content-Length: 5\r\nContent-Length: 5' \
  'Content-Length: 5\r\nTransfer-Encoding: chunked' 'Transfer-Encoding: gzip, chunked' \
  'Content-Length : 5' 'Host: localhost'; do
  peer open doubt "$where"
  peer send doubt 'POST /t/text HTTP/1.1\r\nHost: localhost\r\n'"$headers"'\r\n\r\nabcde'
  peer status doubt
  answered=$said
  peer closed doubt
  n=$((n + 1))
  is "headers that leave a doubt of the body's end, $n" "$answered $said" "400 closed"
done

# -- replies
tcp GET '/t/flow?bytes=1000000'
is "a reply that is made while it is sent" "$code $(wc -c <"$out" | tr -d ' ')" \
  "200 1000000"
tcp GET '/t/flow?bytes=1000&cut=1'
ok "one that breaks is no success" test "$(head -c 20 "$err" | grep -c 'curl: (18)')" = 1
tcp GET '/t/file?offset=3&size=5'
is "a part of a file" "$(cat "$out")" 34567
tcp GET '/t/file?offset=8&size=5'
ok "a file that is too short is no success" grep -q 'curl: (18)' "$err"
peer open up "$where"
peer send up 'GET /t/upgrade HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\nearly'
peer status up
is "another protocol" "$said" 101
peer recv up 5
is "what was sent already is not lost" "$said" "'EARLY'"
peer send up 'later'
peer recv up 5
is "and both sides talk" "$said" "'LATER'"
peer close up
ok "until one ends" soon 5 noted_is "the other protocol ended" 1

# -- the slow
peer open slow "$where"
peer send slow 'GET /t/log HTTP/1.1\r\nHost: localhost\r\nX-Slow: '
peer drip slow 100
is "headers byte by byte end at their deadline" "$said" closed
peer open silent "$where"
peer closed silent
is "a connection that says nothing does" "$said" closed
peer open body "$where"
peer send body 'POST /t/text HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n'
peer open body "$where"
peer send body 'POST /t/text HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000\r\n\r\n'
peer drip body 100
is "a body byte by byte does" "$said" closed
peer open idle "$where"
peer send idle 'GET /t/log HTTP/1.1\r\nHost: localhost\r\n\r\n'
peer status idle
peer closed idle
is "a connection between requests does" "$said" closed

# -- the vanished
for how in close half reset; do
  begun=$(noted "sleep begins") cancelled=$(noted "sleep was cancelled")
  peer open gone "$where"
  peer send gone 'GET /t/sleep HTTP/1.1\r\nHost: localhost\r\n\r\n'
  soon 5 noted_is "sleep begins" $((begun + 1))
  peer $how gone
  ok "a client that leaves cancels its request: $how" \
    soon 5 noted_is "sleep was cancelled" $((cancelled + 1))
done
freed=$(noted "a stream was freed")
peer open gone "$where"
peer send gone 'GET /t/flow HTTP/1.1\r\nHost: localhost\r\n\r\n'
peer recv gone 30
peer close gone
ok "and its stream" soon 5 noted_is "a stream was cancelled" 1
ok "which is freed" soon 5 noted_is "a stream was freed" $((freed + 1))

# -- the queue: two run, two wait, a fifth is told to come again
begun=$(noted "sleep begins")
queue_is () { # RUNNING WAITING
  tcp GET /t/queue
  [ "$(json "$out" 'd["running"], d["waiting"]')" = "($1, $2)" ]
}
turn () { curl -sS -m 300 "$url/t/turn?ms=300000" -o /dev/null & }
turn; turn1=$!; turn; turn2=$!
soon 5 queue_is 2 0
turn; turn3=$!; turn; turn4=$!
ok "two run and two wait" soon 5 queue_is 2 2
tcp GET '/t/turn?ms=1'
is "a full queue refuses" "$code" 429
is "and says when to come again" "$(header retry-after) $(code_of)" "1 E5002"
is "only two run" "$(noted "sleep begins")" $((begun + 2))
kill "$turn1" "$turn2"
ok "who leaves makes room" soon 5 queue_is 2 0
is "for those that waited" "$(noted "sleep begins")" $((begun + 4))
kill "$turn3" "$turn4"
ok "who leave it in turn" soon 5 queue_is 0 0
wait "$turn1" "$turn2" "$turn3" "$turn4"

# -- many
serve_stop
is "it ends in order" "$status" 0
is "nothing went wrong inside" "$(grep -E ': error:|Sanitizer|runtime error' "$T/serve.err")" ""
printf 'serve: {limits: {header_time: 60s, connections: 1000}}\n' | serve_config
serve_start || ok "it starts again" false
where=${url#http://}
baseline () { [ "$(serve_threads)" -le "$threads" ] && [ "$(serve_fds)" -le "$fds" ]; }
fds=$(serve_fds) threads=$(serve_threads)
peer many 1000 "$where"
is "a thousand connect" "$said" ok
peer send 0 'GET /t/log HTTP/1.1\r\nHost: localhost\r\n\r\n'
peer status 0
is "within three quarters of the limit they are served" "$said" 200
peer status 999
is "beyond it they are turned away" "$said" 503
api GET /t/log
is "and the unix socket still answers" "$code" 200
peer close-all
ok "descriptors and threads are as before" soon 10 baseline

# -- no descriptors left
if command -v prlimit >/dev/null 2>&1; then
  used () { awk '{ print $14 + $15 }' "/proc/$server/stat"; }
  before=$(used)
  prlimit --pid "$server" --nofile=40:
  peer many 60 "$where"
  sleep 1
  peer close-all
  again () { tcp GET /t/log; [ "$code" = 200 ]; }
  ok "after descriptors ran out it serves again" soon 10 again
  ok "and did not spin meanwhile" test $(($(used) - before)) -lt 50
else
  skip "descriptors run out" prlimit
fi

peers_end
serve_stop
is "it ends in order again" "$status" 0
finish
