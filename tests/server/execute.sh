# SPDX-License-Identifier: Apache-2.0
# The service that runs Python code: its replies, bodies that do not fit, and code
# that means no good (corpus.py), judged from outside.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
roles both
needs curl python3
needs_sandbox
[ -x /usr/bin/python3 ] || skip_all "/usr/bin/python3"

COFFER_TEST_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export COFFER_TEST_SECRET
serve_start || { ok "the daemon starts" false; finish; }

run python3 "$COFFER_SOURCE/contrib/verify-execute" "$url"
is "the six calls of contrib/verify-execute" "$status" 0
is "each has a tick" "$(grep -c '^✓' "$out")" 6
[ "$status" -eq 0 ] || note "$(cat "$out")"
run python3 "$COFFER_SOURCE/contrib/verify-execute" "$url/nowhere"
is "which finds what is not as it must be" \
  "$status $(grep -c '^✗' "$out")" "1 6"

# post BODY [CURL OPTION…]
post () {
  printf '%s' "$1" >"$T/body"; shift
  tcp POST /execute -H 'Content-Type: application/json' \
    --data-binary "@$T/body" "$@"
}
answer () { json "$out" "$1"; }

tcp GET /profile
is "the profile" "$code $(answer 'd["name"], len (d["allowed_imports"])')" \
  "200 ('minimal', 16)"
tcp GET '/profile?name=data-science'
is "another one" "$code $(answer '"numpy" in d["allowed_imports"]')" "200 True"
tcp GET '/profile?name=default'
is "one that is none for Python" "$code" 422

post '{"code":"print(1)","timeout":5}'
is "what clients read" \
  "$code $(answer 'd["stdout"], d["stderr"], d["exit_code"], d["timed_out"]')" \
  "200 ('1\\n', '', 0, False)"
is "and what we add" "$(answer 'sorted (d)')" \
"['artifacts', 'cpu_ms', 'duration_ms', 'error', 'exit_code', 'layers_applied', \
'limits_hit', 'oom', 'profile', 'result', 'signal', 'stderr', 'stdout', \
'timed_out', 'truncated']"
post '{"code":"1/0"}'
is "an error of the code is a success of the service" \
  "$code $(answer 'd["exit_code"], d["error"]')" \
  "200 (1, 'ZeroDivisionError: division by zero')"
# What stands ready is seen, where anything does.
warm () { # NAME
  awk -v name="coffer_warm_$1{provider=\"linux\",profile=\"minimal\"}" \
    'index ($0, name " ") == 1 { print $NF }' "$out"
}
coffer provider info linux --json >"$T/linux"
if [ "$(json "$T/linux" '"exec.warm" in d["capabilities"]')" = True ]; then
  api GET /metrics
  is "an interpreter stands ready, the first" "$(warm interpreters) $(warm replaced_total)" "1 0"
  ok "copies of it are counted" test "$(warm copies_total)" -ge 1
  ok "its memory, too, and its share of that" test "$(warm memory_bytes)" -gt 1000000 \
    -a "$(warm memory_bytes)" -le "$(warm resident_memory_bytes)"
  is "as Prometheus reads it" \
    "$(python3 "$COFFER_SOURCE/tests/server/exposition.py" "$out")" ""
  copies=$(warm copies_total)
  post '{"code":"print(1)"}'
  api GET /metrics
  ok "one more run is a copy more" test "$(warm copies_total)" -gt "$copies"
else
  api GET /metrics
  is "nothing stands ready, and nothing is said of it" "$(grep -c coffer_warm_ "$out")" 0
fi
post '{"code":"x = 1\nimport os\neval(x)"}'
is "refused code" "$code $(answer 'd["error"], [v[:7] for v in d["violations"]]')" \
  "400 ('Code validation failed', ['Line 2:', 'Line 3:'])"
post '{"code":"def f(:"}'
is "code without syntax" "$code $(answer 'd["violations"][0][:7]')" "400 Line 1:"
post '{"code":" \n\t"}'
is "no code" "$code $(answer 'd')" "400 {'error': 'No code provided'}"
post '{"code":"open(\"a/b.txt\").read() + open(\"c\").read()","files":[{"path":"a/b.txt","content":"café"},{"path":"c","data":"4piDIQ=="}]}'
is "files go in" "$code $(answer 'd["result"]')" "200 'café☃!'"
post '{"code":"print(2)","profile":"data-science"}'
is "the body names a profile" "$code $(answer 'd["profile"]')" \
  "200 data-science"

# What fits and what does not: the status, a tab, the body.
cat >"$T/bodies" <<'END'
400	null
400	[]
400	{"code":"1"} x
400	{'code':'1'}
400	{"code":"1",}
400	{"code":"1","timeout":NaN}
400	{"code":"1","timeout":Infinity}
400	{"code":"1","timeout":1e999}
400	{"code":"\ud800"}
400	{"code":"a\u0000b"}
400	{"code":"1","code":"2"}
422	{}
422	{"code":1}
422	{"code":null}
422	{"code":[]}
422	{"code":"1","timeout":"2"}
422	{"code":"1","timeout":true}
422	{"code":"1","timeout":0}
422	{"code":"1","timeout":-0}
422	{"code":"1","timeout":-1}
422	{"code":"1","timeout":30.0001}
422	{"code":"1","profile":1}
422	{"code":"1","profile":"nothing"}
422	{"code":"1","profile":"default"}
422	{"code":"1","files":{}}
422	{"code":"1","files":[1]}
422	{"code":"1","files":[{"path":"../a","content":""}]}
422	{"code":"1","files":[{"path":"/a","content":""}]}
422	{"code":"1","files":[{"path":"a","data":"%"}]}
200	{"code":"1","timeout":2.0000001,"__proto__":{},"unknown":[1]}
END
python3 - "$url" "$T/bodies" >"$T/statuses" 2>"$err" <<'END'
import http.client, sys, urllib.parse
place = urllib.parse.urlsplit (sys.argv[1])
for line in open (sys.argv[2], "rb"):
    body = line.rstrip (b"\n").split (b"\t")[1]
    connection = http.client.HTTPConnection (place.hostname, place.port)
    connection.request ("POST", "/execute", body,
                        {"Content-Type": "application/json"})
    print (connection.getresponse ().status)
    connection.close ()
END
paste "$T/statuses" "$T/bodies" >"$T/judged"
while IFS='	' read -r got want body; do
  is "$want: $(printf '%.50s' "$body")" "$got" "$want"
done <"$T/judged"
is "each body was answered" "$(wc -l <"$T/statuses")" "$(wc -l <"$T/bodies")"
post '{"code":"1","timeout":"2"}'
is "a field that does not fit is named" "$(answer 'd["detail"][0]["loc"]')" \
  "['body', 'timeout']"
python3 -c 'print ("[" * 100000)' >"$T/deep"
tcp POST /execute -H 'Content-Type: application/json' --data-binary "@$T/deep"
is "a body that is nested deep" "$code" 400
printf '{"code":"\377"}' >"$T/bytes"
tcp POST /execute -H 'Content-Type: application/json' --data-binary "@$T/bytes"
is "a body that is no UTF-8" "$code" 400
post '{"code":"1"}' -H 'E2b-Sandbox-Id: x' -H 'E2b-Sandbox-Port: 49999'
is "the interpreter of another service is not served" "$code" 404

# What the interpreter alone decides is the same for every user: once is enough.
cases=. least=55
[ "${E2E_BASE:-0}" -eq 0 ] \
  || cases='^(plain|FS|NE|KS|CR|PR|LL|ME|PY09|OU10|OU12)' least=20
python3 "$COFFER_SOURCE/tests/server/corpus.py" "$url" "$cases" \
  >"$T/corpus" 2>"$err"
while IFS='	' read -r verdict what why; do
  case $verdict in
    OK) ok "$what" true ;;
    SKIP) skip "$what" "$why" ;;
    *) ok "$what" false; note "$why" ;;
  esac
done <"$T/corpus"
ok "the corpus came to its end" test "$(wc -l <"$T/corpus")" -ge $least

parallel=60
[ "${CHECK_SCALE:-1}" -le 1 ] || parallel=200
python3 - "$url" $parallel >"$out" 2>"$err" <<'END'
import concurrent.futures, os, sys
sys.dont_write_bytecode = True
sys.path.insert (0, os.path.join (os.environ["COFFER_SOURCE"], "tests/server"))
import corpus
run = corpus.run_http (sys.argv[1])
count = int (sys.argv[2])
def one (n):
    status, reply = run ("print(%d)\n%d" % (n, n * n), timeout=30)
    return (status == 200 and reply["stdout"] == "%d\n" % n
            and reply["result"] == str (n * n))
with concurrent.futures.ThreadPoolExecutor (count) as pool:
    print (sum (pool.map (one, range (count))))
END
is "many at once get their own replies" "$(cat "$out")" $parallel
tcp GET /healthz
is "and it is well" "$code $(answer 'd')" "200 {'status': 'ok'}"
# Those for the next runs are made ahead; what ran is ended after its reply.
few_stay () { [ "$(ls "$COFFER_HOME/run/runs" 2>/dev/null | wc -l)" -le 8 ]; }
ok "no sandbox stays but the few that stand ready" soon 30 few_stay
like "and an interpreter" "$(ours | grep coffer_[w]arm)" '^ *[0-9]+ .*python3'

serve_stop
is "it ends in order" "$status" 0
is "and so do they" "$(ls "$COFFER_HOME/run/runs" 2>/dev/null)" ""
is "and it" "$(ours | grep coffer_[w]arm)" ""
# Without namespaces, where the operator has said that a container is around.
mkdir -p "$COFFER_HOME/config"
cat >"$COFFER_HOME/config/coffer.yaml" <<'END'
serve:
  execute: {isolation: {layer5: container}}
END
chmod -R go-w "$COFFER_HOME/config"
if [ "$(id -u)" -ne 0 ]; then
  run coffer serve --check
  is "only root may do without namespaces" "$status" 2
  like "which is said" "$(cat "$err")" 'layer5: container wants a daemon of root'
else
  serve_start || ok "the daemon starts" false
  post '{"code":"open(\"out/a\", \"w\").write(\"x\")"}'
  is "a container as the fifth layer is named in each reply" \
    "$code $(answer 'd["layers_applied"], len (d["artifacts"])')" \
    "200 (['ast', 'import', 'landlock', 'seccomp', 'container'], 1)"
  python3 "$COFFER_SOURCE/tests/server/corpus.py" "$url" \
    'PY09|PY37|FS28|FS32|LL02|CR01|PR18|NE12|OU10|OU12' >"$T/contained" 2>"$err"
  is "what means no good is held as well" \
    "$(grep -v '^OK' "$T/contained" | head -5)" ""
  ok "each of it was tried" test "$(wc -l <"$T/contained")" -ge 15
  ps -u 65521 -o pid= >"$out"
  is "nobody of its user is left" "$(cat "$out")" ""
  is "and no folder" "$(find "$COFFER_HOME/run" -name 'python.*')" ""
  serve_stop
fi
rm "$COFFER_HOME/config/coffer.yaml"

unlike "no variable of the daemon was in a reply or a log" \
  "$(cat "$T/corpus" "$T/serve.err" "$T/serve.out")" "$COFFER_TEST_SECRET"

finish
