# SPDX-License-Identifier: Apache-2.0
# What a wrong command line gets: one line with a code, a hint, a status, and
# what --json makes of it; and that a full disk is not silence.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both alike
needs python3

refused () { # what status code pattern CMD…
  what=$1 want=$2 code=$3 pattern=$4; shift 4
  run "$@"
  is "$what: exit status" "$status" "$want"
  is "$what: nothing on stdout" "$(cat "$out")" ""
  like "$what: the code" "$(head -1 "$err")" "^coffer: $code: .*$pattern"
  is "$what: one line and a hint" "$(wc -l <"$err") $(grep -c '^  hint: ' "$err")" "2 1"
}

refused "no command" 2 E6001 "a command is needed" coffer
refused "unknown command" 2 E6001 "unknown command verson" coffer verson
like "unknown command: the nearest" "$(cat "$err")" "did you mean coffer version"
refused "unknown option" 2 E6001 "unknown option --jsno" coffer version --jsno
like "unknown option: the nearest" "$(cat "$err")" "did you mean --json"
refused "a shorter name of an option" 2 E6001 "unknown option --js" coffer version --js
like "a longer or shorter name: the one that begins alike" "$(cat "$err")" "did you mean --json"
refused "a command without its group" 2 E6001 "unknown command doctor" coffer doctor
like "a command without its group: the whole" "$(cat "$err")" "did you mean coffer provider doctor"
refused "unknown letter" 2 E6001 "unknown option -Z" coffer version -Z
refused "value missing" 2 E6001 "needs a value" coffer version --color
refused "value too many" 2 E6001 "takes no value" coffer version --json=1
refused "argument too many" 2 E6001 "unexpected argument x" coffer explain E8006 x
refused "bad colour" 2 E6001 "auto, always or never" coffer version --color blue
refused "unknown code" 4 E6007 "no error code is called E1" coffer explain E1
refused "bytes from the command line are escaped" 2 E6001 'unknown command .*x1b' \
  coffer "$(printf '\033[31mred')"
refused "a daemon that is not there" 2 E6006 "no daemon" coffer version --host unix:/x

run coffer --json explan
is "--json: exit status" "$status" 2
is "--json: the code" "$(json "$out" 'd["error"]["code"]')" E6001
is "--json: a hint" "$(json "$out" 'd["error"]["hint"]')" "did you mean coffer explain?"
is "--json: nothing on stderr" "$(cat "$err")" ""
run coffer verson --json
is "--json after the mistake: the code" "$(json "$out" 'd["error"]["code"]')" E6001

for command in "" $(coffer help --json | python3 -c '
import json, sys
for c in json.load (sys.stdin)["commands"]: print (c["words"].replace (" ", "/"))'); do
  words=$(printf %s "$command" | tr / ' ')
  # shellcheck disable=SC2086
  run coffer $words --help
  is "coffer $words --help: exit status" "$status" 0
  like "coffer $words --help: usage" "$(head -1 "$out")" "^usage: coffer $words"
  cat "$out" >>"$T/helps"
done
is "help fits a terminal of 80 columns" "$(python3 -c '
import sys
for line in open (sys.argv[1], encoding="utf-8"):
    if len (line) > 81: print (line, end="")' "$T/helps")" ""

run coffer help verson
is "help on nothing: exit status and code" "$status $(cut -d : -f 2 "$err" | head -1)" "2  E6001"
run coffer run --profile no-such -- true
like "a profile that is not there is refused" "$status $(head -1 "$err")" \
  '^125 coffer: E2001: profile: there is no profile no-such on this host'
like "and where they are listed is said" "$(cat "$err")" "coffer profile list"
run coffer run --provider host --mem 64M -- true
like "a hint names the provider" "$(cat "$err")" "hint: .*provider info host "
run coffer run --net host -- true
like "the network of the host is had with a profile that lists it" "$status $(cat "$err")" \
  "^125 coffer: E2012: network: .*|profile network-extended"
run coffer sandbox info no/such
like "an error names the sandbox" "$(cat "$err")" "E2009: no sandbox no/such"
id=sb-00000000000000000000000000
run coffer sandbox kill --provider no-such $id $id
is "kill goes on after one that failed" "$status $(grep -c E8001 "$err")" "4 2"

run coffer explain
is "explain: every code has a line" "$(grep -c '^E[1-9]' "$out")" \
  "$(grep -c '^E (' "$COFFER_SOURCE/core/base/errors.def")"
run coffer explain 8006
like "explain: a number is enough" "$(cat "$out")" "E8006: integrity mismatch"
run coffer explain --json E8006
is "explain --json" "$(json "$out" 'd["code"]')" E8006
run coffer version
like "version" "$(cat "$out")" '^coffer [0-9]+\.[0-9]+\.[0-9]+ \(contract [0-9]+\.[0-9]+\)$'
run coffer --version
like "--version" "$status $(cat "$out")" '^0 coffer [0-9]'
run coffer version --json
is "version --json" "$(json "$out" 'sorted (d)')" "['contract', 'sanitizers', 'version']"

for form in version "version --json" help explain; do
  status=0
  # shellcheck disable=SC2086
  coffer $form >/dev/full 2>"$err" || status=$?
  is "$form on a full disk: exit status" "$status" 1
  like "$form on a full disk: said" "$(cat "$err")" "E9001: writing to standard output"
done
status=0
coffer version >&- 2>"$err" || status=$?
is "without a stdout: no file of ours is written into" "$status" 0
# The runtime of a sanitizer waits for descriptors that it cannot have.
run coffer version --json
[ "$(json "$out" 'd["sanitizers"]')" = None ] || finish
status=0
(ulimit -n 3; exec "$COFFER_BUILD/coffer" version) <&- >"$out" 2>"$err" || status=$?
is "without descriptors: exit status" "$status" 125
like "without descriptors: said" "$(cat "$err")" "^coffer: E9001: open /dev/null: Too many"

finish
