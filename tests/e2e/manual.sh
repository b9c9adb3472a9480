# SPDX-License-Identifier: Apache-2.0
# coffer(1) and the completions against the table: what --help knows is there,
# and nothing is there that --help does not know.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3

coffer help --json >"$T/table" || exit 1
coffer explain --json >"$T/codes" || exit 1

python3 - "$T/table" "$T/codes" "$COFFER_BUILD/core/man/coffer.1" >"$T/report" <<'PY'
import json, re, sys
table = json.load (open (sys.argv[1], encoding="utf-8"))
codes = json.load (open (sys.argv[2], encoding="utf-8"))
text = open (sys.argv[3], encoding="utf-8").read ()

def tell (name, wrong):
    print (("ok\t%s" if not wrong else "bad\t%s\t" + " ".join (sorted (wrong))) % name)

sections, name, twice = {}, None, set ()
for line in text.split ("\n"):
    m = re.match (r"\.Ss (.*)", line)
    if m:
        # "run Fl - Ar COMMAND": the words come before the first macro.
        name = re.split (r" (?:Ar|Fl|Op) ?", m[1])[0].strip ()
        twice |= {name} & set (sections)
        sections[name] = {"options": set (), "refers": []}
    elif line.startswith (".Sh"):
        name = None
    elif name:
        m = re.match (r"\.It (?:Fl (\S) , )?Fl -(\S+)(.*)", line)
        if m:
            sections[name]["options"].add ((m[1], m[2], " Ar " in m[3]))
        m = re.match (r"\.Sx (.*?) ?[,.]?$", line)
        if m:
            sections[name]["refers"].append (m[1])

def options (rows):
    return {(o["letter"], o["name"], o["argument"] is not None) for o in rows}

common = sections.pop ("Options of every command", {"options": set ()})
tell ("options of every command", {o[1] for o in options (table["options"]) ^ common["options"]})
for command in table["commands"]:
    section = sections.get (command["words"])
    if section is None:
        tell (command["words"], {"no-section"})
        continue
    written = set (section["options"])
    for other in section["refers"]:
        written |= sections.get (other, {"options": {(None, "no section " + other, False)}})["options"]
    tell (command["words"], {str (o[1]) for o in options (command["options"]) ^ written})
words = {c["words"] for c in table["commands"]}
tell ("no section of a command that is not there",
      {s for s in sections if not s[0].isupper ()} - words)
tell ("no section is there twice", twice)
listed = set (re.findall (r"^\.It (E\d{4})$", text, re.M))
tell ("every error code is listed", listed ^ {c["code"] for c in codes})
PY
while IFS='	' read -r verdict name wrong; do
  is "coffer(1): $name" "$verdict $wrong" "ok "
done <"$T/report"

if command -v mandoc >/dev/null 2>&1; then
  mandoc -T lint -W warning "$COFFER_BUILD/core/man/coffer.1" >"$out" 2>&1
  is "mandoc finds nothing wrong in coffer(1)" \
    "$(grep -v 'referenced manual not found' "$out")" ""
else
  skip "mandoc finds nothing wrong in coffer(1)" mandoc
fi

# Completions: every word and option of the table is offered, and no other.
completions=$COFFER_SOURCE/contrib/completions
for shell in bash zsh fish; do
  python3 "$COFFER_SOURCE/contrib/completions/generate.py" "$shell" \
    <"$T/table" >"$T/$shell"
  same "the completions for $shell are those of the table" \
    "$T/$shell" "$completions/coffer.$shell"
done

complete () { # WORDS… with the one to complete last
  bash -c '
. "$1/coffer.bash"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _coffer; echo "${COMPREPLY[@]}"' sh "$completions" "$@"
}
if command -v bash >/dev/null 2>&1; then
  PATH=$COFFER_BUILD:$PATH; export PATH
  is "bash completes a command" "$(complete coffer ver)" version
  is "of a group" "$(complete coffer sandbox ex)" "extend exec"
  is "an option of the command" "$(complete coffer run --tim)" --timeout
  is "after one that takes a value" "$(complete coffer sandbox --provider list create --tt)" --ttl
  is "and not one of another command" "$(complete coffer run --tt)" --tty
  is "a word of a closed list" "$(complete coffer --color al)" always
  is "a profile" "$(complete coffer run --profile offl)" offline-readonly
  is "a provider" "$(complete coffer provider doctor lin)" linux
  is "a code" "$(complete coffer explain E600)" "$(coffer explain \
    | grep -o '^E600[0-9]' | tr '\n' ' ' | sed 's/ $//')"
  is "files alone to a command inside" "$(cd "$COFFER_SOURCE" \
    && complete coffer run -- true READ)" README.md
  is "and no program where a value is due" "$(complete coffer run --mem l)" ""
else
  skip "bash completes" bash
fi

finish
