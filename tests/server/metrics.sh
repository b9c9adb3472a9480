# SPDX-License-Identifier: Apache-2.0
# GET /metrics: what Prometheus reads, and that it counts what happens.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3

value () { awk -v name="$1" 'index ($0, name " ") == 1 { print $NF }' "$out"; }

serve_start || { ok "the daemon starts" false; finish; }
api GET /api/v1
api GET /api/v1
api GET '/nothing?token=secret'
api DELETE /api/v1
api BREW /api/v1
tcp GET /metrics
is "without a token nobody reads it" "$code" 401
api GET /metrics
is "who may see, may" "$code" 200
is "the type is Prometheus'" "$(header content-type)" \
  "text/plain; version=0.0.4; charset=utf-8"
is "names, units and lines are well" \
  "$(python3 "$COFFER_SOURCE/tests/server/exposition.py" "$out")" ""
promtool=${COFFER_PROMTOOL:-promtool}
if command -v "$promtool" >/dev/null 2>&1; then
  is "promtool finds nothing" "$("$promtool" check metrics <"$out" 2>&1)" ""
else
  skip "promtool finds nothing" promtool
fi
is "requests are counted by route" \
  "$(value 'coffer_http_requests_total{method="GET",route="/api/v1",status="200"}')" 2
is "a path that is none is no label" \
  "$(value 'coffer_http_requests_total{method="GET",route="none",status="404"}')" 1
is "nor is a method" \
  "$(value 'coffer_http_requests_total{method="other",route="none",status="405"}')" 1
is "times are, too" \
  "$(value 'coffer_http_request_duration_seconds_count{method="GET",route="/api/v1"}')" 2
is "errors are counted by code" "$(value 'coffer_errors_total{code="E7003"}')" 1
is "what there is, is: sandboxes, commands, connections, runs" \
  "$(grep -cE '^coffer_(execs|http_connections|http_requests_in_flight|runs_running|runs_waiting|box_sessions) [0-9]+$' "$out")$(grep -c '^# TYPE coffer_sandboxes gauge' "$out")" 61
is "the build is named" \
  "$(value "coffer_build_info{version=\"$("$COFFER_BUILD/coffer" version --json >"$T/v" && json "$T/v" 'd["version"]')\"}")" 1
ok "descriptors are those that are open" \
  test "$(($(value process_open_fds) - $(serve_fds)))" -le 2
ok "memory is in bytes" test "$(value process_resident_memory_bytes)" -gt 1000000
ok "it knows when it began" \
  test "$(($(date +%s) - $(value process_start_time_seconds | cut -d. -f1)))" -le 600
is "nobody's query is in it" "$(grep -c secret "$out")" 0
api POST /api/v1/sandboxes -d '{"provider": "nobody-knows-it"}'
is "a provider that is none" "$code" 404
api GET /metrics
is "makes no series of its own" "$code $(grep -c nobody-knows-it "$out")" "200 0"
serve_stop

serve_start --log json
api GET '/api/v1?token=secret' -H 'X-Request-Id: my-id.1'
id=$(header x-request-id)
api GET /nothing -H 'X-Request-Id: not a word' -H 'Authorization: Bearer secret'
serve_stop
python3 - "$T/serve.err" "$id" >"$T/log" 2>&1 <<'END'
import json, sys
lines = [json.loads (line) for line in open (sys.argv[1], encoding="utf-8")]
mine = [l for l in lines if l.get ("request_id") == sys.argv[2]]
other = [l for l in lines if l.get ("status") == 404]
assert all (l["time"] and l["level"] and l["topic"] for l in lines)
assert len (mine) == 1 and len (other) == 1, (mine, other)
line = mine[0]
assert line["client_request_id"] == "my-id.1"
assert "client_request_id" not in other[0]
assert (line["method"], line["path"], line["status"]) == ("GET", "/api/v1", 200)
assert line["who"].startswith ("uid:") and line["tenant"], line
assert line["duration_ms"] >= 0 and line["bytes"] > 0
print ("well")
END
is "--log json: each line is an object, a request is one line" \
  "$(cat "$T/log")" well
is "and has no secrets" "$(grep -c secret "$T/serve.err")" 0
run coffer serve --log xml --listen none
is "another format is refused" "$status" 2
finish
