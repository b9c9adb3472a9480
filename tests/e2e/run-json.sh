# SPDX-License-Identifier: Apache-2.0
# coffer run --json: one document, whatever the command prints.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox

run coffer run --json -- sh -c 'printf "café\n☃\n"; printf "a\377" >&2; exit 3'
is "the exit status is the command's" "$status" 3
is "one line on stdout, nothing on stderr" "$(wc -l <"$out") $(wc -c <"$err")" "1 0"
is "the status" "$(json "$out" '(d["status"], d["exit"]["code"], d["exit"]["signal"])')" "(3, 3, 0)"
is "stdout as text" "$(json "$out" '(d["stdout"]["encoding"], d["stdout"]["data"], d["stdout"]["bytes"])')" \
  "('utf-8', 'café\\n☃\\n', 10)"
is "stderr as base64" "$(json "$out" '(d["stderr"]["encoding"], d["stderr"]["data"], d["stderr"]["bytes"])')" \
  "('base64', 'Yf8=', 2)"
is "provider and sandbox" "$(json "$out" '(d["provider"], d["sandbox"][:3])')" "('linux', 'sb-')"
is "the layers that were applied" "$(json "$out" 'len (d["applied"]["facts"]) > 3')" True

run coffer --json run -- sh -c 'head -c 5000000 /dev/zero | tr "\0" x; echo end'
is "long output: head and tail, and a count" \
  "$(json "$out" 'd["stdout"]["bytes"], d["stdout"]["omitted"]["bytes"] > 3000000, d["stdout"]["data"][-5:]')" \
  "(5000004, True, 'xend\\n')"
run coffer run --json --timeout 1s -- sleep 60
is "a timeout" "$status $(json "$out" '(d["status"], d["exit"]["timed_out"])')" "124 (124, True)"
run coffer run --json -- no-such-program
is "a program that is not there" "$status $(json "$out" '(d["status"], d["exit"]["failure_errno"])')" "127 (127, 2)"
run coffer run --json -- sh -c 'kill -9 $$'
is "a signal" "$status $(json "$out" '(d["status"], d["exit"]["code"], d["exit"]["signal"])')" "137 (137, -1, 9)"
cd "$T" && echo x >here.txt
run coffer run --json -- cat here.txt
is "the hint is in the document" "$(json "$out" 'd["hint"]')" "here.txt exists here but not inside: add -w ."
run coffer run --json --mem nonsense -- true
is "a refusal is a document too" "$status $(json "$out" 'd["error"]["code"]') $(wc -c <"$err")" "125 E6006 0"
run coffer run --json -t -- true
is "-t and --json do not go together" "$status $(json "$out" 'd["error"]["code"]')" "125 E6001"

finish
