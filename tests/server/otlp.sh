# SPDX-License-Identifier: Apache-2.0
# Spans over OTLP/HTTP: a collector gets them in both forms, again when it has
# refused them, and a daemon whose collector is not there does not wait for it.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3

sink_start () { # OUT STATUS…
  rm -f "$T/port"
  python3 "$COFFER_SOURCE/tests/server/sink.py" "$T/port" "$@" 2>"$T/sink.err" &
  sink=$!
  soon 30 test -s "$T/port"
  collector=http://127.0.0.1:$(cat "$T/port")
}
sink_stop () { kill "$sink"; wait "$sink" 2>/dev/null; }
spans () { python3 - "$1" "$2" <<'END'
import json, sys
got = [json.loads (line) for line in open (sys.argv[1], encoding="utf-8")]
d = [dict (span, at=g) for g in got for span in g["spans"] if g["status"] == 200]
print (eval (sys.argv[2]))
END
}
has () { [ -s "$1" ] && [ "$(spans "$1" "$2")" = "$3" ]; }
names='sorted (s["name"] for s in d)'
trace=4bf92f3577b34da6a3ce929d0e0e4736 parent=00f067aa0ba902b7
OTEL_BSP_SCHEDULE_DELAY=50; export OTEL_BSP_SCHEDULE_DELAY

printf '# who it is for\nx-mlflow-experiment-id: 42\nAuthorization: Bearer s3cret\n' >"$T/headers.txt"
chmod 600 "$T/headers.txt"
sink_start "$T/one" 503 200
OTEL_EXPORTER_OTLP_ENDPOINT=$collector OTEL_EXPORTER_OTLP_HEADERS='x-mlflow-experiment-id=42,x-y=a%20b'
export OTEL_EXPORTER_OTLP_ENDPOINT OTEL_EXPORTER_OTLP_HEADERS
serve_start || { ok "the daemon starts" false; finish; }
api GET /api/v1 -H "traceparent: 00-$trace-$parent-01"
id=$(header x-request-id)
ok "a span arrives, though it was refused at first" \
  soon 60 has "$T/one" "$names" "['GET /api/v1']"
is "the same was sent twice" \
  "$(spans "$T/one" '[(g["status"], len (g["spans"])) for g in got]')" "[(503, 1), (200, 1)]"
is "it joins the caller's trace" \
  "$(spans "$T/one" 'd[0]["trace"] + d[0]["parent"], d[0]["kind"]')" "('$trace$parent', 2)"
is "it names its request" \
  "$(spans "$T/one" 'd[0]["attributes"]["coffer.request_id"]')" "$id"
is "by OpenTelemetry's names" \
  "$(spans "$T/one" '[d[0]["attributes"][k] for k in ("http.request.method", "http.route", "http.response.status_code")]')" \
  "['GET', '/api/v1', 200]"
is "its time is now" \
  "$(spans "$T/one" '0 <= d[0]["end"] - d[0]["start"] < 60e9 and abs (d[0]["end"] / 1e9 - __import__ ("time").time ()) < 600')" True
is "the resource is coffer" "$(spans "$T/one" 'd[0]["resource"]["service.name"]')" coffer
is "as protobuf, with the headers" \
  "$(spans "$T/one" '[got[0]["type"], got[0]["path"], got[0]["headers"]["x-mlflow-experiment-id"], got[0]["headers"]["x-y"]]')" \
  "['application/x-protobuf', '/v1/traces', '42', 'a b']"
api GET /api/v1 -H "traceparent: 00-$trace-$parent-00"
api GET /api/v1 -H "traceparent: 00-$trace-short-01"
ok "a malformed context is none" soon 60 has "$T/one" \
  'sum (s["trace"] != "'$trace'" and s["parent"] == "" for s in d)' 1
is "who is not sampled is not sent" "$(spans "$T/one" 'len (d)')" 2
tells () { api GET /metrics; grep -q "^$1$" "$out"; }
ok "what was sent is counted" soon 60 tells 'coffer_otlp_spans_total{outcome="exported"} [2-9]'
exporter=$(pgrep -P "$server" -f coffer-otlp)
is "no secret is seen from outside" \
  "$(cat "/proc/$exporter/cmdline" "/proc/$exporter/environ" | tr '\0' '\n' | grep -c 'mlflow\|otlp')" 1
is "the exporter gains no privileges" \
  "$(awk '/^NoNewPrivs|^Seccomp:/ { print $2 }' "/proc/$exporter/status" | tr '\n' ' ')" "1 2 "
kill -KILL "$exporter"
ok "when it has ended that is told" soon 60 tells 'coffer_otlp_exporter_up 0'
again () { api GET /api/v1; tells 'coffer_otlp_exporter_up 1'; }
ok "and it is started again" soon 60 again
serve_stop
ok "what waits is sent before the end" \
  soon 60 has "$T/one" 'd[-1]["name"] in ("GET /metrics", "GET /api/v1")' True
unset OTEL_EXPORTER_OTLP_HEADERS OTEL_EXPORTER_OTLP_ENDPOINT
sink_stop

sink_start "$T/two" 200
mkdir -p "$COFFER_HOME/config"
cat >"$COFFER_HOME/config/coffer.yaml" <<END
serve:
  otlp: {endpoint: "$collector", protocol: http/json, headers_file: $T/headers.txt}
END
serve_start
api GET /nothing
ok "as JSON, too" soon 60 has "$T/two" "$names" "['GET none']"
is "with the headers of a file" \
  "$(spans "$T/two" '[got[0]["type"], got[0]["headers"]["x-mlflow-experiment-id"], got[0]["headers"]["Authorization"]]')" \
  "['application/json', '42', 'Bearer s3cret']"
serve_stop
sink_stop
chmod 622 "$T/headers.txt"
run coffer serve --listen none
ok "headers that others may write are refused" test "$status" -ne 0
rm "$COFFER_HOME/config/coffer.yaml"

# Nobody listens there any more: requests go on, spans are dropped at last.
OTEL_EXPORTER_OTLP_ENDPOINT=$collector; export OTEL_EXPORTER_OTLP_ENDPOINT
serve_start
seq 3000 | sed "s|.*|url = http://localhost/api/v1|" >"$T/many"
curl -sS --unix-socket "$socket" -K "$T/many" >/dev/null 2>"$err"
is "requests do not wait for a collector" "$?" 0
ok "what there is no room for is dropped and counted" \
  soon 60 tells 'coffer_otlp_spans_total{outcome="dropped"} [1-9][0-9]*'
serve_stop
is "and the daemon ends in order" "$status" 0

OTEL_EXPORTER_OTLP_PROTOCOL=grpc; export OTEL_EXPORTER_OTLP_PROTOCOL
run coffer serve --listen none
is "a protocol that is not spoken is refused" "$status" 2
like "by its name" "$(cat "$err")" 'grpc'
unset OTEL_EXPORTER_OTLP_PROTOCOL OTEL_EXPORTER_OTLP_ENDPOINT OTEL_BSP_SCHEDULE_DELAY
finish
