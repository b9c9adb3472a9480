# SPDX-License-Identifier: Apache-2.0
# coffer run: arguments of any kind reach the command as they are.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox

cat >"$T/show.py" <<'PY'
import hashlib, os, sys
with open ("/proc/self/cmdline", "rb") as f:
    args = f.read ().split (b"\0")[3:-1]
print (len (args), hashlib.sha256 (b"\0".join (args)).hexdigest ())
PY
cat >"$T/check.py" <<'PY'
import hashlib, os, subprocess, sys
coffer, script = sys.argv[1], sys.argv[2]
code = open (script).read ()
cases = {
    "an empty argument": [b"", b"x", b""],
    "newlines, quotes, a dollar and a backslash": [b"a\nb", b"'\"$HOME\\", b"\t"],
    "options of other programs": [b"--json", b"-w", b"--", b"-h"],
    "bytes that are no UTF-8": [b"\xff\xfe", b"\xc3", b"a\x80b"],
    "control characters": [bytes ([i]) for i in range (1, 32)],
    "unicode": ["/tmp/你好 世界/'q\".txt".encode (), "café\n☃\n".encode ()],
    "one of 100 KiB": [b"x" * 100 * 1024],
    "1 MiB in all": [b"%05d" % i + b"y" * 65531 for i in range (16)],
    "ten thousand": [b"%d" % i for i in range (10000)],
}
for name, args in cases.items ():
    want = "%d %s" % (len (args), hashlib.sha256 (b"\0".join (args)).hexdigest ())
    p = subprocess.run ([coffer, "run", "--", "python3", "-c", code] + args,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    got = p.stdout.decode ().strip ()
    print ("%s\t%s\t%s" % (name, "yes" if got == want else "no: %s %s" % (got, p.stderr[:200]), p.returncode))

# A command may be called by any name, even none.
p = subprocess.run ([coffer, "run", "--", ""], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
print ("an empty name of a program is 127\t%s\t%s" % (
    "yes" if b"E3001" in p.stderr and p.stderr.count (b"\n") == 2 else "no: %s" % p.stderr[:200],
    0 if p.returncode == 127 else p.returncode))
p = subprocess.run ([coffer, "run", "--", b"no\nsuch\x1b[31m\xff"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
print ("a hostile name of a program is escaped\t%s\t%s" % (
    "yes" if b"\x1b" not in p.stderr and p.stderr.count (b"\n") == 2 else "no: %s" % p.stderr[:200],
    0 if p.returncode == 127 else p.returncode))
# coffer itself, called with no arguments at all.
code = subprocess.run ([""], executable=coffer, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL).returncode
print ("coffer with an empty name of its own\tyes\t%d" % (0 if code == 2 else code))
PY
python3 "$T/check.py" "$COFFER_BUILD/coffer" "$T/show.py" >"$T/report" 2>"$err"
is "every case was run" "$(wc -l <"$T/report")" 12
while IFS='	' read -r name verdict code; do
  is "$name" "$verdict $code" "yes 0"
done <"$T/report"

finish
