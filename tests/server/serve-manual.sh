# SPDX-License-Identifier: Apache-2.0
# coffer-serve(8) against the table of options.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3 curl
page=$COFFER_SOURCE/core/man/coffer-serve.8
coffer help --json >"$T/table"
json "$T/table" '"\n".join (sorted (o["name"] for c in d["commands"] if c["words"] == "serve" for o in c["options"]))' >"$T/options"
sed -n 's/^\.It Fl -\([a-z-]*\).*/\1/p' "$page" | sort >"$T/written"
same "every option has its entry, and no other" "$T/options" "$T/written"
# Its example of a token, at the port that is free here.
. "$COFFER_SOURCE/tests/server/lib.sh"
serve_start || ok "the daemon starts" false
sed -n '/^coffer token create ci/,/^\.Ed/p' "$page" | sed "/^\.Ed/d
  s|http://127.0.0.1:8000|$url|; s|^curl|curl -sS -o \"\$T/answer\" -w '%{http_code}'|" >"$T/example"
is "the example has its lines" "$(wc -l <"$T/example" | tr -d ' ')" 2
(cd "$T" && T=$T PATH=$COFFER_BUILD:$PATH sh ./example) >"$out" 2>"$err"
is "which work" "$(cat "$out")" 200
# And of a command's events; jq is for who reads the page.
jq () { python3 -c 'import json, sys; print (json.load (sys.stdin)[sys.argv[1]])' "${2#.}"; }
sed -n '/^api () {/,/^\.Ed/p' "$page" | sed "/^\.Ed/d; s|http://127.0.0.1:8000|$url|" >"$T/example"
(cd "$T" && . ./example) >"$T/lines" 2>"$err"
is "that of events has each event once, and all that was written" "$(python3 -c '
import json, sys
seen = [json.loads (line) for line in open (sys.argv[1]) if "seq" in line]
print ([e["seq"] for e in seen] == list (range (1, len (seen) + 1)),
       seen[-1]["event"], repr ("".join (e.get ("data", "") for e in seen)))' "$T/lines")" \
  "True exited '1\\n2\\n3\\n'"
serve_stop

if command -v mandoc >/dev/null 2>&1; then
  for page in coffer-serve.8 coffer.yaml.5; do
    is "mandoc finds nothing wrong in $page" \
      "$(mandoc -T lint -W warning "$COFFER_SOURCE/core/man/$page" 2>&1 | grep -v 'referenced manual not found')" ""
  done
else
  skip "mandoc finds nothing wrong" mandoc
fi
finish
