# SPDX-License-Identifier: Apache-2.0
# Signatures by minisign(1): what counts is one of these bytes, by a key of
# trusted.d, with the comment that was signed.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3 minisign
roles both alike
umask 022
config=$COFFER_HOME/config parrot=$COFFER_HOME/providers/parrot
trusted=$config/trusted.d
mkdir -p "$parrot" "$trusted"
without_conformance
install -m 644 "$COFFER_BUILD/tests/e2e/modules/parrot.so" \
  "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" "$parrot"
coffer seal "$parrot/parrot.yaml"
for key in one two; do
  minisign -G -W -p "$T/$key.pub" -s "$T/$key.sec" >/dev/null || exit 1
done
cp "$T/one.pub" "$trusted/"
id=$(sed -n '1s/.* //p' "$T/one.pub")
manifest=$parrot/parrot.yaml signature=$parrot/parrot.yaml.minisig
sign () { # KEY [OPTION…]
  sign_key=$1; shift
  minisign -S -s "$T/$sign_key.sec" -m "$manifest" -x "$signature" "$@" \
    >/dev/null || note "minisign failed"
}
# receive KEYID: the receipt of what was signed by it; "": by nobody.
receive () {
  python3 - "$manifest" "$1" >"$parrot/receipt.json" <<'PY'
import hashlib, json, sys
r = {"receipt": 1, "id": "parrot", "trust": "signed" if sys.argv[2] else "local",
     "manifest_sha256": hashlib.sha256 (open (sys.argv[1], "rb").read ()).hexdigest ()}
if sys.argv[2]:
    r["signature"] = {"key_id": sys.argv[2], "comment": "x"}
json.dump (r, sys.stdout)
PY
}
# verdict WHAT STATUS PATTERN: of verify, by its line of trust.
verdict () {
  run coffer provider verify parrot
  is "$1: verify" "$status" "$2"
  like "$1: what it says" "$(grep ' trust ' "$out")" "$3"
}
refused () { # WHAT PATTERN
  verdict "$1" 1 "failed +trust .*$2"
  run coffer provider verify parrot --json
  is "$1: by its code" \
    "$(json "$out" '[c["code"] for c in d["providers"][0]["checks"] if c["check"] == "trust"]')" \
    "['E8025']"
}

receive ''
verdict "no signature" 0 'ok +trust +local$'
sign one -t 'café ☃'
receive "$id"
verdict "signed" 0 "ok +trust +signed: signed by $id, café ☃$"
run coffer call parrot probe
is "signed: a call is made" "$status" 0
printf 'require_signature: true\nrequire_conformance: false\n' >"$config/coffer.yaml"
run coffer call parrot probe
is "require_signature: a call is made too" "$status" 0
sign one
verdict "signed with minisign's own comment" 0 "signed by $id, timestamp:[0-9]+ file:parrot.yaml hashed"

# Nothing but a whole signature of these bytes counts.
cp "$signature" "$T/good"
sign one -l
refused "the old kind" 'old kind.*minisign -H'
sed '3s/hashed/hashes/' "$T/good" >"$signature"
refused "its comment was changed" 'not a signature of these bytes, or its comment'
sed '1s/signature/anything/' "$T/good" >"$signature"
verdict "the comment that nobody signs was changed" 0 'ok +trust'
head -2 "$T/good" >"$signature"
refused "cut off" 'no signature of minisign'
: >"$signature"
refused "empty" 'no signature of minisign'
head -c 3000 /dev/zero >"$signature"
refused "zeros" 'no signature of minisign'
head -c 100000 /dev/zero >"$signature"
refused "far too long" 'larger than'
python3 - "$T/good" "$signature" <<'PY'
import base64, sys
lines = open (sys.argv[1], "rb").read ().split (b"\n")
raw = bytearray (base64.b64decode (lines[1]))
raw[40] ^= 1
lines[1] = base64.b64encode (raw)
open (sys.argv[2], "wb").write (b"\n".join (lines))
PY
refused "one bit of it" 'not a signature of these bytes'
sign two
refused "by a key that nobody trusts" 'not there, or its key is not trusted'
like "by a key that nobody trusts: which is named" "$(cat "$err" "$out")" \
  "$(sed -n '1s/.* //p' "$T/two.pub")"
# Another key that claims the id of the trusted one.
python3 - "$T/two.pub" "$signature" "$id" "$T/forged.pub" <<'PY'
import base64, sys
id = bytes.fromhex (sys.argv[3].zfill (16))[::-1]
for name, out, line in ((sys.argv[2], sys.argv[2], 1), (sys.argv[1], sys.argv[4], 1)):
    lines = open (name, "rb").read ().split (b"\n")
    raw = bytearray (base64.b64decode (lines[line]))
    raw[2:10] = id
    lines[line] = base64.b64encode (raw)
    open (out, "wb").write (b"\n".join (lines))
PY
refused "by another key of the same id" 'not a signature of these bytes'
cp "$T/good" "$signature"
receive 0000000000000000
refused "by another key than was recorded" 'another key signed it'
receive "$id"
verdict "and as it was" 0 'ok +trust'
ln -sf "$T/good" "$signature"
verdict "a link is refused" 1 'failed +trust .*minisig'
rm "$signature"
refused "the signature is gone" 'not there'
receive ''
refused "demanded, and there is none" 'no signature by a key'
run coffer call parrot probe
like "demanded, and there is none: a call is refused" "$status $(cat "$err")" '^5 .*E8025: '

# The manifest.
cp "$T/good" "$signature"
sed -i 's/^summary: .*/summary: "another one"/' "$manifest"
receive "$id"
refused "another manifest" 'not a signature of these bytes'

# The keys are the operator's.
coffer seal "$manifest" && sign one && receive "$id"
mv "$trusted/one.pub" "$T/away.pub"
run coffer call parrot probe
like "a key that was taken away counts no more" "$status $(cat "$err")" '^5 .*E8025: .*not in trusted.d any more'
install -m 666 "$T/one.pub" "$trusted/one.pub" && chmod 666 "$trusted/one.pub"
run coffer call parrot probe
like "a key that others can write is refused" "$status $(cat "$err")" '^5 .*E6005: .*one.pub'
chmod 644 "$trusted/one.pub"
echo garbage >"$trusted/other.pub"
run coffer call parrot probe
like "a file that is no key is named" "$status $(cat "$err")" '^2 .*E6003: .*other.pub'
rm "$trusted/other.pub"
cp "$T/forged.pub" "$trusted/forged.pub"
echo "for people" >"$trusted/README"
verdict "of two keys with one id the right one counts" 0 "ok +trust .*$id"
chmod 777 "$trusted"
verdict "a folder that others can write is refused" 1 'failed +trust .*trusted.d'
chmod 755 "$trusted"
run coffer provider doctor parrot
is "doctor is content" "$status" 0

# What is installed is verified first, with a report that came along.
rm "$trusted/forged.pub"
mkdir "$T/source" && cp "$parrot/parrot.so" "$manifest" "$T/source" || exit 1
python3 - "$T/source" <<'PY'
import hashlib, json, os, sys
def of (name):
    return hashlib.sha256 (open (os.path.join (sys.argv[1], name), "rb").read ()).hexdigest ()
d = json.loads (os.popen ("\"$COFFER_BUILD/coffer\" contract --json").read ())
json.dump ({"report": 1, "verdict": "conformant", "kit": "0.1.0", "mode": "worker",
            "partial": False, "time": "2026-11-30T12:00:00Z",
            "provider": {"id": "parrot", "version": "1", "manifest_sha256": of ("parrot.yaml"),
                         "module_sha256": of ("parrot.so")},
            "contract": {"major": d["major"], "minor": d["minor"]}},
           open (os.path.join (sys.argv[1], "conformance.json"), "w"))
PY
printf 'require_signature: true\n' >"$config/coffer.yaml"
report=$T/source/conformance.json
sign_at () { # KEY FILE
  minisign -S -s "$T/$1.sec" -m "$2" -x "$2.minisig" >/dev/null || note "minisign failed"
}
install_it () { run coffer provider install --yes --force --json "$T/source"; }
recorded () {
  json "$out" '(d["receipt"]["trust"], d["receipt"].get ("signature", {}).get ("key_id"),
    d["receipt"].get ("conformance", {}).get ("verdict"))'
}
install_it
like "install: unsigned, where a signature is demanded" "$status $(cat "$out")" '^5 .*E8025'
run coffer provider verify parrot
is "install: and what was there is there" "$status" 0
sign_at one "$T/source/parrot.yaml"
install_it
is "install: signed" "$status $(recorded)" "0 ('signed', '$id', None)"
run coffer call parrot probe
like "a report that nobody signed is none" "$status $(cat "$err")" '^1 .*E8008: .*no report'
sign_at two "$report"
install_it
is "nor is one that a stranger signed" "$status $(recorded)" "0 ('signed', '$id', None)"
cp "$T/two.pub" "$trusted/"
minisign -G -W -f -p "$trusted/three.pub" -s "$T/three.sec" >/dev/null
sign_at three "$report"
rm "$trusted/two.pub"
install_it
is "nor one that another key than the manifest's signed" "$status $(recorded)" \
  "0 ('signed', '$id', None)"
sign_at one "$report"
install_it
is "one by the manifest's key is" "$status $(recorded)" "0 ('signed', '$id', 'conformant')"
run coffer call parrot probe
is "and a call is made" "$status" 0
sed -i 's/conformant/conformant /' "$report"
install_it
like "a report that was changed is refused" "$status $(cat "$out")" '^5 .*E8025.*conformance.json'
run coffer call parrot probe
is "and what was installed is there still" "$status" 0
sed -i 's/conformant /failed/' "$report" && sign_at one "$report"
install_it
run coffer call parrot probe
like "one that says failed" "$status $(cat "$err")" '^1 .*E8008: .*failed'
sed -i 's/"failed"/"conformant"/; s/"module_sha256": "...../"module_sha256": "00000/' "$report"
sign_at one "$report"
install_it
run coffer call parrot probe
like "one of other bytes" "$status $(cat "$err")" '^1 .*E8008: .*another module'
finish
