# SPDX-License-Identifier: Apache-2.0
# --json of every command: each line of stdout is a document, success or not, and
# an error is on stdout and not on stderr.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both alike
needs python3
needs_sandbox

id=$(coffer sandbox create --json | tee "$out" | python3 -c 'import json, sys; print (json.load (sys.stdin)["id"])')
remember "$id"
is "sandbox create --json" "$(json "$out" '(d["state"], d["provider"], d["expires_ns"] > d["created_ns"])')" \
  "('running', 'linux', True)"
printf 'café\n☃\n' >"$T/body"

# Every key of a success is in the manual's section on JSON, and the other way
# round: keys that are seen are gathered, and compared at the end.
: >"$T/documents"
keep_document () {
  grep -v '^{"error"' "$out" >>"$T/documents" || :
}

check () { # status CMD…
  want=$1; shift
  run coffer --json "$@"
  like "coffer --json $*: exit status" "$status" "^($want)$"
  is "coffer --json $*: documents" "$(python3 - "$out" <<'PY'
import json, sys
with open (sys.argv[1], "rb") as f: lines = f.read ().split (b"\n")
def unique (pairs):
    keys = [k for k, v in pairs]
    assert len (keys) == len (set (keys)), keys
    return dict (pairs)
try:
    for line in lines[:-1]: json.loads (line.decode ("utf-8"), object_pairs_hook=unique)
    print ("good" if lines[:-1] and not lines[-1] else "none")
except Exception as e: print (repr (e))
PY
)" good
  case " $* " in
    " call "*|" contract "*|" help "*|" provider info "*) ;;  # of their own
    *) keep_document ;;
  esac
  if [ "$status" -ne 0 ] && grep -q '^{"error"' "$out"; then
    is "coffer --json $*: the error has its parts" \
      "$(json "$out" 'sorted (d["error"]) == ["code", "details", "hint", "message", "name", "retryable"]')" True
    is "coffer --json $*: nothing on stderr" "$(cat "$err")" ""
  fi
}

# As little as each command takes, and too little for those that want more.
for words in $(coffer help --json | python3 -c '
import json, sys
for c in json.load (sys.stdin)["commands"]:
  if c["words"] not in ("sandbox create", "serve"): print (c["words"].replace (" ", "/"))'); do
  # shellcheck disable=SC2046
  check '0|1|2|4|125' $(printf %s "$words" | tr / ' ')
done
for words in list "info $id" "connect $id" "extend $id 2h" "ls $id" prune \
  "upload $id $T/body f" "download $id f $T/back" "exec $id -- true"; do
  # shellcheck disable=SC2086
  check 0 sandbox $words
done
check 3 sandbox exec "$id" -c 'exit 3'
check 4 sandbox download "$id" nothing "$T/x"
check 125 sandbox exec "$id"
check 125 sandbox shell "$id"
check 2 sandbox download "$id" f -
check 0 sandbox kill "$id" sb-00000000000000000000000000
is "kill of two: a line each" "$(wc -l <"$out")" 2
check 4 sandbox info "$(printf 'a\377')"
check 0 provider verify linux
check 0 explain E2009
check 0 run -- head -c 3000000 /dev/zero
is "every key that was printed is in coffer(1)" "$(python3 - "$T/documents" \
  "$COFFER_BUILD/core/man/coffer.1" <<'PY'
import json, re, sys
text = open (sys.argv[2], encoding="utf-8").read ()
text = text[text.index (".Sh JSON"):text.index (".Sh ENVIRONMENT")]
known = set (re.findall (r"[a-z][a-z0-9_]+", " ".join (
    re.findall (r"^\.(?:Va|Pq Va) (.*)$", text, re.M))))
seen = set ()
def walk (v, depth):
    if isinstance (v, dict):
        for k, x in v.items ():
            seen.add (k)
            if k not in ("applied", "spec", "contract"): walk (x, depth + 1)
    elif isinstance (v, list):
        for x in v: walk (x, depth)
for line in open (sys.argv[1], encoding="utf-8"): walk (json.loads (line), 0)
print (len (seen) > 40, *sorted (seen - known))
PY
)" True

finish
