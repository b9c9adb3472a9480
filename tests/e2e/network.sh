# SPDX-License-Identifier: Apache-2.0
# What a sandbox can reach: an internet of its own namespaces, with names,
# servers and canaries; real clients and hostile ones inside.
if [ -z "${NETWORK_ZONE:-}" ]; then
  if [ "$(id -u)" -ne 0 ] || ! unshare -n -m true 2>/dev/null; then
    echo "1..0 # SKIP missing: the right to mount"
    exit 0
  fi
  NETWORK_ZONE=1; export NETWORK_ZONE
  exec unshare -n -m sh "$0" "$@"
fi
if [ -z "${E2E_REAPER:-}" ] && [ "$(id -u)" -eq 0 ]; then
  command -v ip >/dev/null || { echo "1..0 # SKIP missing: ip"; exit 0; }
  ip link set lo up
  for address in 93.184.216.34 93.184.216.35 10.9.9.9 169.254.169.254; do
    ip addr add "$address/32" dev lo || exit 1
  done
  ip -6 addr add 2606:2800:220::1/128 dev lo nodad 2>/dev/null
  echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start || exit 1
  mount -t tmpfs -o size=64k,mode=755 none /mnt || exit 1
  cat >/mnt/hosts <<HOSTS
127.0.0.1 localhost
93.184.216.34 www.example.test
93.184.216.35 other.example.test a.wild.example.test b.a.wild.example.test wild.example.test
10.9.9.9 private.example.test
127.0.0.1 evil.example.test
HOSTS
  printf 'nameserver 127.0.0.1\nsearch example.test\noptions timeout:1 attempts:1\n' >/mnt/resolv.conf
  printf 'hosts: files dns\n' >/mnt/nsswitch.conf
  for file in hosts resolv.conf nsswitch.conf; do
    mount --bind "/mnt/$file" "/etc/$file" || exit 1
  done
fi
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3 curl
needs_sandbox

mkdir "$T/in" "$T/log" && cp "$COFFER_SOURCE/tests/e2e/internet.py" "$T/in"
chmod -R a+rX "$T/in"
python3 "$T/in/internet.py" serve "$T/log" &
server=$!
soon 10 test -s "$T/log/ready" || { note "no servers"; exit 1; }
hits () { cat "$T/log/hits" 2>/dev/null; }
forget () { rm -f "$T/log/hits" "$T/log/asked"; }
in_case () { # OPTIONS… -- CASE…
  run coffer run -w "$T/in" "$@"
}
python=/usr/bin/python3
case_of () { echo "$python /workspace/internet.py $1"; }
www="--net allow --allow www.example.test:80"
six=; ip -6 addr show dev lo 2>/dev/null | grep -q 2606 && six=yes

# ---- without, and the whole of it
in_case -- $(case_of direct)
is "without --net there is nobody" "$(cat "$out")" "93.184.216.34 Network is unreachable
127.0.0.1 Connection refused
10.9.9.9 Network is unreachable
169.254.169.254 Network is unreachable"
run coffer run -- sh -c 'env | grep -ic proxy'
is "and no word of a proxy" "$(cat "$out")" 0
in_case $www -- $(case_of direct)
is "with a list there is nobody but the proxy" "$(cat "$out")" "93.184.216.34 Network is unreachable
127.0.0.1 Connection refused
10.9.9.9 Network is unreachable
169.254.169.254 Network is unreachable"
is "and nobody was reached" "$(hits)" ""

# Who asks for nothing keeps a place for ten seconds; looked at in the end, once.
idler=
if [ "$(id -u)" -eq 0 ]; then
  other=$(coffer sandbox create $www -w "$T/in") || exit 1
  remember "$other"
  coffer sandbox exec "$other" -- $(case_of "idle 200 14") >"$T/idle" 2>&1 &
  idler=$!
  soon 5 grep -q connected "$T/idle"
fi

# ---- clients
run coffer run $www -- sh -c 'curl -sS -m 5 http://WWW.Example.TEST./a'
like "curl by HTTP, while another proxy is full of who say nothing" "$(cat "$out")" '"server": "www", "head": "GET /a HTTP/1.1.*Host: www.example.test'
run coffer run $www -- sh -c 'curl -sSp http://www.example.test/b'
like "curl by CONNECT" "$(cat "$out")" '"server": "www", "head": "GET /b HTTP/1.1'
run coffer run $www -- sh -c 'curl -sS --socks5-hostname 127.0.0.1:3128 http://www.example.test/c'
like "curl by SOCKS 5" "$(cat "$out")" '"server": "www", "head": "GET /c HTTP/1.1'
run coffer run $www -- $python -c 'import urllib.request as u; print (u.urlopen ("http://www.example.test/d").read ())'
like "python by the environment" "$(cat "$out")" '"server": "www", "head": "GET /d HTTP/1.1'
run coffer run $www -e http_proxy= -e HTTP_PROXY= -e all_proxy= -e ALL_PROXY= -- curl -sS -m 3 http://www.example.test/
is "variables of the caller go over those of the proxy" "$status $(cat "$out")" "6 "
run coffer run $www -- sh -c 'head -c 3000000 /dev/zero | curl -sS -H "Transfer-Encoding: chunked" -H "Expect:" -H "Proxy-Authorization: secret" -T - http://www.example.test/e; head -c 3000000 /dev/zero | sha256sum'
like "a body in chunks arrives whole" "$(cat "$out")" "\"body\": \"$(head -c 3000000 /dev/zero | sha256sum | cut -d' ' -f1)\", \"size\": 3000000"
unlike "and what is for the proxy does not" "$(cat "$out")" secret
if [ -n "$six" ]; then
  run coffer run --net allow --allow '[2606:2800:220::1]:80' --allow six.example.test:80 -- sh -c 'curl -gsS "http://[2606:2800:220::1]/"; curl -sS http://six.example.test/'
  is "addresses of version 6, by name and as listed" "$(grep -o '"server": "six"' "$out" | wc -l)" 2
else
  skip "addresses of version 6" "an IPv6 loopback"
fi
forget

# ---- names and addresses
in_case --net allow --allow '*.wild.example.test:80' --allow www.example.test:8080 -- $(case_of names) a.wild.example.test b.a.wild.example.test wild.example.test www.example.test:8080 www.example.test
is "labels and ports are compared whole" "$(sed "s, of .*,," "$out")" "a.wild.example.test 200 other
b.a.wild.example.test 200 other
wild.example.test 403 coffer: wild.example.test:80 is not in the list
www.example.test:8080 200 www8080
www.example.test 403 coffer: www.example.test:80 is not in the list"
run coffer run --net allow -- curl -sS http://www.example.test/
like "an empty list is nothing" "$(cat "$out")" '^coffer: www.example.test:80 is not in the list'
forget
in_case --net allow --allow evil.example.test:81 --allow private.example.test:80 --allow meta.example.test:80 \
  --allow mapped.example.test:81 --allow nat.example.test:80 --allow localhost:81 --allow two.example.test:80 --allow none.example.test:80 \
  -- $(case_of names) evil.example.test:81 private.example.test meta.example.test mapped.example.test:81 nat.example.test localhost:81 none.example.test two.example.test
is "a name leads to public addresses alone" "$(sed 's/coffer: .* leads to an* \([a-z-]*\) .*/\1/; s/coffer: .* cannot/cannot/' "$out")" "evil.example.test:81 403 loopback
private.example.test 403 private
meta.example.test 403 metadata
mapped.example.test:81 403 loopback
nat.example.test 403 translated
localhost:81 403 loopback
none.example.test 502 cannot be resolved
two.example.test 200 www"
is "and of servers only that one was reached" "$(hits)" "www GET / HTTP/1.1"
unlike "a name is looked up as it is" "$(cat "$T/log/asked")" 'test.example.test'
forget
in_case --net allow --allow 127.0.0.1:81 --allow 10.9.9.9:80 --allow 169.254.169.254:80 -- $(case_of names) 127.0.0.1:81 10.9.9.9 169.254.169.254 127.0.0.1 private.example.test
is "an address that is listed is reached, by that address" "$(cut -c 1-47 "$out")" "127.0.0.1:81 200 loopback
10.9.9.9 200 private
169.254.169.254 200 metadata
127.0.0.1 403 coffer: 127.0.0.1:80 is not in th
private.example.test 403 coffer: private.exampl"
forget
in_case --net allow --allow rebind.example.test:80 -- $(case_of names) rebind.example.test
is "one name, one question, one connection" "$(cat "$out") $(grep -c 'rebind.* 1$' "$T/log/asked") $(hits)" "rebind.example.test 200 www 1 www GET / HTTP/1.1"
in_case --net allow --allow rebind.example.test:80 -- $(case_of names) rebind.example.test
like "and what it leads to later is judged anew" "$(cat "$out")" '403 .*loopback'
forget

# ---- hostile ones
in_case $www -- $(case_of raw)
is "what is malformed is 400, what is not listed 403" "$(cat "$out")" "nul in the name: 400
nul in a URL: 400
lf alone: 400
cr alone: 400
Host of another: 400
two Hosts: 400
two lengths: 400
length and chunks: 400
negative length: 400
headers of 20000 bytes: 431
no http at all: 400
origin form: 400
user in a URL: 400
percent sign: 400
another port: 403
its address: 403
as a number: 400
loopback: 403
loopback, short: 400
loopback, mapped: 403
loopback of six: 403
link-local with a zone: 400
localhost: 403
a longer name: 403
a shorter name: 403
a name of 300 bytes: 400
the proxy itself: 403"
is "and no server heard of it" "$(hits)" ""
in_case $www -- $(case_of cuts)
is "requests in pieces, and nothing after them" "$(cat "$out")" "5 -1 2cf24dba
5 -1 2cf24dba
5 -1 2cf24dba
5 -1 2cf24dba
5 -1 2cf24dba
5 -1 2cf24dba
3"
unlike "the second request of a connection goes nowhere" "$(hits)" 'other'
in_case $www --allow www.example.test:1 --allow no.example.test:80 -- $(case_of socks5)
is "SOCKS 5" "$(cat "$out")" "listed 0 True
another name 2
nul 8
255 bytes 8
address 2
bind 7
unknown 4
refused 5
password 05ff
at once True"
in_case --net allow --allow www.example.test:7 --allow www.example.test:19 -- $(case_of big)
is "32 MiB each way, and one end at a time" "$(cat "$out")" "True
True"
in_case --net allow --allow www.example.test:9 -- $(case_of early)
is "an early answer arrives" "$(cat "$out")" 413
forget

# ---- what is said of it
run coffer run --json $www -- sh -c 'curl -sS http://other.example.test/; curl -sS http://other.example.test/; curl -sS http://www.example.test/'
is "denials are facts" "$(json "$out" '[(f["name"], f["state"], f["value"]) for f in d["exit"]["facts"]]')" \
  "[('network.denied', 'off', 'other.example.test:80 (not in the list, 2 times)')]"
is "an address is told from its port" "$(coffer run --json $www -- curl -sS "http://[2001:db8::1]:81/" | python3 -c 'import json,sys; print([f["value"] for f in json.load(sys.stdin)["exit"]["facts"]])')" \
  "['[2001:db8::1]:81 (not in the list)']"
is "the network and its proxy are facts" "$(json "$out" '[(f["name"], f["value"]) for f in d["applied"]["facts"] if f["name"] == "network"]')" \
  "[('network', 'a list of 1, through 127.0.0.1:3128')]"
like "with what confines it" "$(json "$out" '[f["value"] for f in d["applied"]["facts"] if f["name"] == "proxy"]')" \
  'no capabilities, no_new_privs, seccomp'
run coffer run $www -- curl -sS -o /dev/null http://other.example.test/
like "people are told at the end" "$(cat "$err")" '^coffer: network: refused other.example.test:80 \(not in the list\)'
in_case --json $www -- $(case_of many)
is "a hundred of them have an end" "$(json "$out" '(len (d["exit"]["facts"]), d["exit"]["facts"][-1]["value"])')" "(65, 'others (not in the list, 36 times)')"

# ---- refusals
for entry in 127.1:80 bücher.example:80 '*:80' 'a..b:80' '[::1%lo]:80' '*.10.0.0.1:80'; do
  run coffer run --net allow --allow "$entry" -- true
  like "$entry is no entry of a list" "$status $(cat "$err")" '^125 coffer: E.*allow'
done

# ---- the process
proxies () { ours | awk '$4 == "coffer-proxy" && $2 != proxy { print $1; proxy = $1 }'; }
no_proxies () { [ -z "$(proxies)" ]; }
idle_pid=$(proxies)
id=$(coffer sandbox create $www) || exit 1
remember "$id"
pid=$(proxies | grep -vxF "$idle_pid")
is "one proxy for a sandbox" "$(echo "$pid" | wc -w)" 1
like "no new privileges" "$(cat "/proc/$pid/status")" '^NoNewPrivs:.1$'
like "a filter" "$(cat "/proc/$pid/status")" '^Seccomp:.2$'
is "no capabilities" "$(grep -cE '^Cap(Prm|Eff|Inh|Amb):.0+$' "/proc/$pid/status")" 4
unlike "nobody's root" "$(cat "/proc/$pid/status")" '^[UG]id:.*[^0-9]0([^0-9]|$)'
is "no groups of root's" "$(awk '/^Groups:/ && $2 == 0 && NF > 1' "/proc/$pid/status")" ""
if [ "$(id -u)" -eq 0 ]; then
  is "an environment of nothing" "$(tr '\0' '\n' <"/proc/$pid/environ" | wc -c)" 0
  is "descriptors for what it is about" "$(ls "/proc/$pid/fd" | tr '\n' ' ')" "0 1 2 3 4 5 "
else
  ok "its memory is nobody's to read" test ! -r "/proc/$pid/mem"
fi
run coffer sandbox exec "$id" -- curl -sS http://www.example.test/
like "it serves commands of a sandbox that lives on" "$(cat "$out")" '"server": "www"'
run coffer sandbox exec --json "$id" -- curl -sS http://other.example.test/
is "and a later process finds what it refused" "$(json "$out" '[f["value"] for f in d["exit"]["facts"]]')" "['other.example.test:80 (not in the list)']"
run coffer sandbox exec --json "$id" -- true
is "which is told of the command that ran then" "$(json "$out" 'd["exit"]["facts"]')" "[]"

# ---- ends, in any order
init_of () { coffer sandbox info --json "$1" | python3 -c 'import json, sys; print (json.load (sys.stdin)["native_id"].split (":")[1])'; }
kill -9 "$pid"
run coffer sandbox exec "$id" -- curl -sS -m 5 http://www.example.test/
is "without its proxy a sandbox lives, and reaches nothing" "$status $(coffer sandbox exec "$id" -- echo alive)" "7 alive"
coffer sandbox kill "$id" >/dev/null
id=$(coffer sandbox create $www) || exit 1
remember "$id"
before=$(proxies | wc -l)
kill -9 "$(init_of "$id")"
gone_one () { [ "$(proxies | wc -l)" -lt "$before" ]; }
ok "a proxy ends with its init" soon 3 gone_one
coffer sandbox kill "$id" >/dev/null
before=$(proxies | wc -l)
"$COFFER_BUILD/coffer" run $www -- sleep 60 &
host=$!
more () { [ "$(proxies | wc -l)" -gt "$before" ]; }
same_again () { [ "$(proxies | wc -l)" -eq "$before" ]; }
ok "a run has one" soon 5 more
kill -9 "$host"
ok "and it ends with its host" soon 3 same_again
wait "$host" 2>/dev/null

# ---- steps that fail
if command -v strace >/dev/null && strace -f -o "$T/trace" true 2>/dev/null; then
  # LeakSanitizer is a tracer too.  What starts a program asks for limits before
  # its main: libc once, AddressSanitizer more often, and it ends the program when
  # it has no answer.  The first call after those is coffer's or its proxy's.
  ASAN_OPTIONS=detect_leaks=0 strace -f -qq -o "$T/trace" -e trace=prlimit64 \
    "$COFFER_BUILD/coffer" version >/dev/null
  limits=$(($(awk '/prlimit64/ { n[$1]++ } END { for (p in n) if (n[p] > most) most = n[p]; print most + 0 }' "$T/trace") + 1))
  wrong='' before=$(proxies | wc -l)
  for step in memfd_create:ENOMEM:2 pipe2:EMFILE:3 clone:EAGAIN:2 ftruncate:EIO:1 \
    bind:EADDRINUSE:1 "prlimit64:EPERM:$limits" capset:EPERM:1 \
    landlock_restrict_self:E2BIG:1 prctl:EINVAL:4 accept4:EMFILE:1; do
    call=${step%%:*} n=${step##*:} error=${step#*:}
    run env ASAN_OPTIONS=detect_leaks=0 timeout 20 strace -f -qq -o "$T/trace" -e "trace=$call" \
      -e "inject=$call:error=${error%:*}:when=$n" \
      "$COFFER_BUILD/coffer" run $www -- sh -c 'curl -s -m 3 -o /dev/null http://other.example.test/; echo through'
    grep -q INJECTED "$T/trace" || wrong="$wrong $step: nothing failed;"
    case $status-$(cat "$out")-$(grep -c '^coffer: E' "$err") in
      0-through-0|125--1) ;;
      *) wrong="$wrong $step: $status $(head -1 "$err");" ;;
    esac
  done
  is "a step that fails is named, and nothing of it is left" "$wrong$(soon 3 same_again || proxies)" ""
else
  skip "a step that fails" "the right to trace"
fi

# ---- the machine's network
run coffer run --net host -- true
like "the machine's network is not for everybody" "$status $(cat "$err")" '^[0-9]+ coffer: E.*network: host'
run coffer run --profile network-extended --net host -- curl -sS http://127.0.0.1:81/
like "with the profile for it the loopback is reached" "$(cat "$out")" '"server": "loopback"'
like "and that is said" "$(cat "$err")" 'on the loopback too'
run coffer run --profile network-extended --net host -- curl -sS http://www.example.test/
like "by the machine's names" "$(cat "$out")" '"server": "www"'

if [ -n "$idler" ]; then
  wait "$idler"
  like "who says nothing in ten seconds makes room" "$(cat "$T/idle")" "^403 200"
  coffer sandbox kill "$other" >/dev/null
fi
ok "no proxy is left" soon 3 no_proxies
kill "$server"; wait "$server" 2>/dev/null
finish
