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

rm -f "$log" && ln -s "$T/elsewhere" "$log"
run coffer serve --listen none
ok "a link in its place is refused" test "$status" -ne 0
ok "and not followed" test ! -e "$T/elsewhere"
finish
