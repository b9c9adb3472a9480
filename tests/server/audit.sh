# SPDX-License-Identifier: Apache-2.0
# The audit log: who did what, in lines that nobody else reads.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3

log=$COFFER_HOME/state/audit.log
lines () { python3 - "$1" "$2" <<'END'
import json, sys
d = [json.loads (line) for line in open (sys.argv[1], encoding="utf-8")]
print (eval (sys.argv[2]))
END
}

serve_start || { ok "the daemon starts" false; finish; }
tcp GET /api/v1 -H 'Authorization: Bearer cft_nobody_secret'
id=$(header x-request-id)
api GET /api/v1
ok "it is there" soon 30 test -s "$log"
is "its owner alone reads it" "$(stat -c %a "$log")" 600
is "who was refused is in it" \
  "$(lines "$log" '[(l["event"], l["verdict"], l["status"]) for l in d if l["request_id"] == "'"$id"'"]')" \
  "[('request', 'denied', 401)]"
is "who only looks is not" "$(lines "$log" 'len (d)')" 1
is "no token is" "$(grep -c secret "$log")" 0

mv "$log" "$log.1"
kill -HUP "$server"
ok "after SIGHUP a new file is begun" soon 30 test -e "$log"
tcp GET /api/v1
ok "which what comes goes to" soon 30 test -s "$log"
is "and not to the old one" "$(lines "$log.1" 'len (d)')" 1
serve_stop

# -- whoever is refused over and over fills nothing, and each time is counted
cat >"$T/ask.py" <<'END'
import http.client, sys
port, number, path, token = int (sys.argv[1]), int (sys.argv[2]), *sys.argv[3:]
c = http.client.HTTPConnection ("127.0.0.1", port, timeout=60)
for i in range (number):
    c.request ("GET", path, headers={"X-Request-Id": str (i),
                                     "Authorization": "Bearer " + token})
    c.getresponse ().read ()
END
flood () { # NUMBER PATH TOKEN
  python3 "$T/ask.py" "${url##*:}" "$@"
}
rm -f "$log"
serve_start
flood 300 /api/v1 cft_nobody_secret
ok "of many refusals some are lines" test "$(wc -l <"$log")" -ge 16
ok "and most are not" test "$(wc -l <"$log")" -lt 100
serve_stop
is "but each is in their number" "$(lines "$log" 'sum (l.get ("count", 1) for l in d)')" 300
is "as what it was" \
  "$(lines "$log" 'set ((l["event"], l["status"], l["verdict"]) for l in d)')" \
  "{('request', 401, 'denied')}"
ok "with the time of the first" test "$(lines "$log" '[l["since"][:2] for l in d if "count" in l][0]')" = 20

# -- its size
SERVE_PROBE=1
printf 'serve: {audit: {size: 64KiB, keep: 2}}\n' | serve_config
token=$(coffer token create ci --rights run 2>"$err")
serve_start
flood 900 /t/run "$token"
serve_stop
files=$(cd "${log%/*}" && echo audit.log*)
is "it begins anew by itself, and keeps some" "$files" "audit.log audit.log.1 audit.log.2"
for f in $files; do
  ok "none is larger than that: $f" test "$(stat -c %s "${log%/*}/$f")" -le 65536
  is "its owner alone reads it: $f" "$(stat -c %a "${log%/*}/$f")" 600
done
cat "$log.2" "$log.1" "$log" >"$T/all"
is "no line between is lost" \
  "$(lines "$T/all" '[int (l["client_request_id"]) for l in d] == list (range (900 - len (d), 900)), len (d) > 200')" \
  "(True, True)"
printf 'serve: {audit: {size: 1KiB}}\n' | serve_config
run coffer serve --check
is "a size that is none" "$status" 2
printf '' | serve_config
SERVE_PROBE=

rm -f "$log" && ln -s "$T/elsewhere" "$log"
run coffer serve --listen none
ok "a link in its place is refused" test "$status" -ne 0
ok "and not followed" test ! -e "$T/elsewhere"
finish
