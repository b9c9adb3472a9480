# SPDX-License-Identifier: Apache-2.0
# `coffer kit`: what it prints, keeps and compares.  What its cases find is
# tried on broken providers elsewhere.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both alike
needs python3
modules=$COFFER_BUILD/tests/e2e/modules
[ -e "$modules/example.so" ] || skip_all "the modules of tests (make check builds them)"

# -- a provider as its author has it: in a folder that nobody registered
box=$T/box; mkdir "$box"
cp "$modules/example.so" "$box/"
cp "$COFFER_SOURCE/sdk/template/example.yaml" "$T/example.yaml"
chmod go-w "$box" "$T/example.yaml"
coffer seal "$T/example.yaml" --dir "$box" --output "$box/example.yaml" || exit 1

run coffer kit "$box" --seed 12 --only 'life.create-*' --only load.opens
is "some cases of a folder: incomplete" "$status" 3
like "the seed is said" "$(cat "$out")" '^# coffer kit [0-9]+: example, seed 12$'
is "flat TAP" "$(grep -cE '^ok [0-9]+ - (life.create-|load.opens)' "$out")" \
  "$(sed -n 's/^1\.\.//p' "$out")"
like "the last line counts" "$(tail -1 "$out")" '^[0-9]+ passed, 0 failed, 0 skipped$'
grep '^ok' "$out" >"$T/first"
run coffer kit "$box/example.yaml" --seed 12 --only 'life.create-*' --only load.opens
grep '^ok' "$out" >"$T/second"
same "a manifest, and the same seed: the same order" "$T/first" "$T/second"
run coffer kit "$box" --in-process --only 'strain.leaks' --only load.opens
like "in-process: what needs a worker is skipped" "$(cat "$out")" \
  '^ok [12] - strain.leaks # SKIP it needs a worker'
is "and never conformant" "$status" 3
(cd "$T" && run coffer kit box --only load.opens; echo "$status") >"$T/status"
is "a folder by a name that could be an id" "$(cat "$T/status")" 3

# -- reports
run coffer kit "$box" --json --junit "$T/junit.xml"
is "all of it passes" "$(json "$out" '[c for c in d["cases"] if c["verdict"] not in ("passed", "waived")]')" "[]"
cp "$out" "$T/old.json"
want=conformant; [ "$(json "$out" '"sanitizers" in d')" = False ] || want=incomplete
is "its verdict" "$(json "$out" 'd["verdict"]') $status" \
  "$want $([ $want = conformant ] && echo 0 || echo 3)"
is "of these bytes" "$(json "$out" 'd["provider"]["module_sha256"]')" \
  "$(sha256sum "$box/example.so" | cut -d ' ' -f 1)"
is "and of this manifest" "$(json "$out" 'd["provider"]["manifest_sha256"]')" \
  "$(sha256sum "$box/example.yaml" | cut -d ' ' -f 1)"
is "JUnit has every case" "$(python3 - "$T/junit.xml" "$out" <<'PY'
import json, sys, xml.etree.ElementTree as tree
suite = tree.parse (sys.argv[1]).getroot ()
d = json.load (open (sys.argv[2], encoding="utf-8"))
print (sorted (c.get ("name") for c in suite) == sorted (c["id"] for c in d["cases"]),
       suite.get ("failures"), int (suite.get ("skipped")) == d["counts"]["waived"])
PY
)" "True 0 True"
schema=$COFFER_SOURCE/manifests/schema/kit-report.schema.json
# A python3 of the user's own may lack what the system's has.
validator=
for python in python3 /usr/bin/python3; do
  [ -n "$validator" ] || ! "$python" -c 'import jsonschema; jsonschema.Draft202012Validator' \
    2>/dev/null || validator=$python
done
valid () { # FILE
  "$validator" - "$schema" "$1" <<'PY'
import json, sys
import jsonschema
schema, d = (json.load (open (f, encoding="utf-8")) for f in sys.argv[1:])
try:
    jsonschema.validate (d, schema)
    print ("valid")
except jsonschema.ValidationError as e:
    print ("not valid:", e.message[:200])
PY
}
python3 - "$T/old.json" "$T/lie.json" "$T/reason.json" "$T/worse.json" <<'PY'
import copy, json, sys
d = json.load (open (sys.argv[1], encoding="utf-8"))
def write (path, change):
    new = copy.deepcopy (d); change (new)
    json.dump (new, open (path, "w", encoding="utf-8"))
def lie (new): new["verdict"] = "conformant"; new["mode"] = "in-process"
def reason (new): new["cases"][0]["verdict"] = "failed"; new["cases"][0].pop ("reason", None)
def worse (new):
    for c in new["cases"]:
        if c["id"] == "life.kill-twice": c["verdict"] = "failed"; c["reason"] = "it did \x1b[2J"
    new["verdict"] = "failed"; new["provider"]["version"] = "0.2.0"
write (sys.argv[2], lie); write (sys.argv[3], reason); write (sys.argv[4], worse)
PY
if [ -n "$validator" ]; then
  is "the report is valid by its schema" "$(valid "$T/old.json")" valid
  like "one that lies is not" "$(valid "$T/lie.json")" '^not valid'
  like "nor one without a reason" "$(valid "$T/reason.json")" '^not valid'
else
  skip "the report is valid by its schema" python3-jsonschema
fi

# -- comparing
run coffer kit --compare "$T/old.json" "$T/old.json"
is "a report and itself: nothing" "$status $(cat "$out")" "0 "
run coffer kit --compare "$T/old.json" "$T/worse.json"
is "something got worse" "$status" 1
like "which is named" "$(cat "$out")" '^worse life.kill-twice: passed -> failed: it did \\'
like "and what it is of" "$(cat "$out")" '^provider.version: 0.1.0 -> 0.2.0$'
run coffer kit --compare "$T/worse.json" "$T/old.json" --json
is "the other way round it got better" "$status $(json "$out" \
  '[(c["id"], c["change"]) for c in d["cases"]], d["worse"]')" \
  "0 ([('life.kill-twice', 'better')], False)"
run coffer kit --compare "$T/old.json" "$T/nothing"
is "a report that is not there" "$status" 4
run coffer kit --compare "$T/old.json"
is "one report is not enough" "$status" 2

# -- refusals
run coffer kit no-such-provider
is "an unknown provider" "$status" 4
run coffer kit "$box/example.so"
like "a module in place of its manifest" "$status $(cat "$err")" '^2 .*E6006: .* neither a manifest'
run coffer kit "$box" --only nothing.like-this
is "no case of that name" "$status" 2
run coffer kit "$box" --seed x
is "a seed is a number" "$status" 2
run coffer kit linux --record --yes
is "nothing is recorded of what coffer ships" "$status" 2
run coffer kit "$box" --record --yes
is "nor of what is not installed" "$status" 2
chmod go+w "$box/example.so"
run coffer kit "$box" --only load.opens
like "a module that others may write is not opened" "$status $(cat "$out" "$err")" '1 .*E6005|not ok'
chmod go-w "$box/example.so"

# -- recording
run coffer provider install --yes "$box"
is "installed" "$status" 0
run coffer sandbox create --provider example --accept network.none
like "not opened before the kit has tried it" "$status $(cat "$err")" 'E8008'
run coffer kit example --record
is "nobody is there to answer" "$status" 2
like "how many sandboxes is said first" "$(head -1 "$err")" 'about [0-9]+ sandboxes with example, .* takes about '
run coffer kit example --record --yes --only 'life.*'
is "only a whole run is kept" "$status" 2
mkdir -p "$COFFER_HOME/config/providers.d"
echo 'without: [exec.signal]' >"$COFFER_HOME/config/providers.d/example.yaml"
run coffer kit example --record --yes --json
is "what the operator gives up is waived, and said" "$(json "$out" \
  'd["without"], {c["verdict"] for c in d["cases"] if c["id"] == "exec.signal"}, [c["reason"] for c in d["cases"] if c["id"] == "exec.signal"]')" \
  "('exec.signal', {'waived'}, ['exec.signal is given up by the operator'])"
note "$(json "$out" '[c for c in d["cases"] if c["verdict"] == "failed"]')"
if [ "$want" = conformant ]; then
  is "recorded" "$status" 0
  run coffer run --provider example --accept network.none -- echo opened
  is "and opened from then on" "$(cat "$out")" opened
  rm "$COFFER_HOME/config/providers.d/example.yaml"
  run coffer run --provider example --accept network.none -- echo opened
  like "not for a claim that was not tried" "$(cat "$err")" \
    'E8008.*did without claims which it has now'
  echo 'without: [exec.signal]' >"$COFFER_HOME/config/providers.d/example.yaml"
  echo >>"$COFFER_HOME/providers/example/conformance.json"
  run coffer run --provider example --accept network.none -- echo opened
  like "not with another report" "$(cat "$err")" 'E8008.*not the one that was recorded'
else
  is "recorded, as incomplete" "$status" 3
fi

# -- the list of cases, and the manual
run coffer kit --list --json
json "$out" '"\n".join (sorted (c["id"] for c in d))' >"$T/ids"
is "each case has an id of its own" "$(uniq -d "$T/ids")" ""
is "and says what it proves" "$(json "$out" '[c["id"] for c in d if len (c["proves"]) < 20 or not c["proves"].endswith (".")]')" "[]"
sed -n 's/^\.It Cm \([a-z]*\.[a-z0-9-]*\).*/\1/p' "$COFFER_BUILD/core/man/coffer-kit.1" \
  | sort >"$T/manual"
same "coffer-kit(1) has an entry for each" "$T/ids" "$T/manual"
python3 - "$COFFER_BUILD/core/man/coffer-kit.1" >"$T/written" <<'PY'
import re, sys
text = open (sys.argv[1], encoding="utf-8").read ()
print ("\n".join (sorted (set (re.findall (r"^\.It Fl -(\S+)", text, re.M)))))
PY
coffer help --json >"$T/table"
json "$T/table" '"\n".join (sorted (o["name"] for c in d["commands"] if c["words"] == "kit" for o in c["options"]))' >"$T/options"
same "and for each option" "$T/options" "$T/written"
if command -v mandoc >/dev/null 2>&1; then
  is "mandoc finds nothing wrong in it" "$(mandoc -T lint -W warning \
    "$COFFER_BUILD/core/man/coffer-kit.1" | grep -v 'referenced manual not found')" ""
else
  skip "mandoc finds nothing wrong in it" mandoc
fi

# -- folders: of a run that is interrupted, and of one that is killed
held () { # PID: the folders that it holds
  for fd in /proc/"$1"/fd/*; do readlink "$fd"; done 2>/dev/null \
    | grep -E '/(run/kit|tmp/coffer-kit)[.]'
}
begin () { # a run, whose folders are in $T/held when it is under way
  : >"$out"                     # what is there is of the run before
  "$COFFER_BUILD/coffer" kit "$box" --only 'exec.*' >"$out" 2>"$err" &
  kit=$!
  ok "$1: a run is under way" soon 20 grep -q '^ok' "$out"
  held "$kit" >"$T/held"
  is "$1: it has two folders" "$(sed 's/.*\(run.kit\|tmp.coffer-kit\)[.].*/\1/' "$T/held" \
    | sort | tr '\n' ' ')" "run/kit tmp/coffer-kit "
}
left () { while read -r folder; do [ ! -e "$folder" ] || echo "$folder"; done <"$T/held"; }
begin SIGTERM
kill -TERM "$kit"; status=0; wait "$kit" || status=$?
is "SIGTERM: it says so" "$status $(grep -c '^Bail out' "$out")" "143 1"
is "SIGTERM: they are gone" "$(left)" ""
begin SIGKILL
tmp_held=$(grep /tmp "$T/held") && mkdir "$tmp_held/of-a-case"
kill -KILL "$kit"; wait "$kit" 2>/dev/null
is "SIGKILL: they are left" "$(left | wc -l)" 2
# Its case dies with it, a moment later.
ok "SIGKILL: nobody holds them" soon 20 sh -c \
  'while read -r folder; do flock -n "$folder" true || exit 1; done' <"$T/held"
run coffer kit "$box" --only load.opens
is "SIGKILL: the next run removes them" "$status $(left)" "3 "

is "its folders are gone" "$(find "$COFFER_HOME/run" -name 'kit.*' 2>/dev/null)" ""
finish
