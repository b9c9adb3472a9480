# SPDX-License-Identifier: Apache-2.0
# Standard descriptors as a caller may leave them: closed, full, one that does
# not block, a reader that goes away.  What is reported as failed is not there.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3

for form in "0<&-" "1>&-" "2>&-" "0<&- 1>&-" "0<&- 2>&-" "1>&- 2>&-" \
            "0<&- 1>&- 2>&-"; do
  status=0
  eval "coffer --provider host run -- sh -c 'exit 7' </dev/null >/dev/null 2>/dev/null $form" \
    || status=$?
  is "run with $form" "$status" 7
done

for form in "" --json; do
  status=0
  # shellcheck disable=SC2086
  coffer --provider host sandbox create $form >/dev/full 2>"$err" || status=$?
  is "create $form on a full disk: exit status" "$status" 1
  like "create $form on a full disk: said" "$(tail -2 "$err")" "E9001: writing to standard output"
  run coffer sandbox list --json
  is "create $form on a full disk: nothing stays" "$(json "$out" 'len (d)')" 0
done

# Nothing may be written to a file: said, not died of.
for form in "run -- true" "--provider host run -- true" \
            "--provider host sandbox create" "sandbox list"; do
  # shellcheck disable=SC2086
  { (ulimit -f 0; exec "$COFFER_BUILD/coffer" $form) 2>&1 >/dev/null
    echo "status $?"; } | cat >"$err"
  like "$form where files cannot grow" "$(grep -E '^(coffer: E|status)' "$err" \
    | tr '\n' ' ')" '^(coffer: E.* status (1|125)|status 0) $'
done

cat >"$T/slow.py" <<'EOF'
import json, os, subprocess, sys, time
r, w = os.pipe ()
os.set_blocking (w, False)
p = subprocess.Popen ([sys.argv[1], "--provider", "host", "run", "--json", "--",
                       "head", "-c", "50000", "/dev/zero"], stdout=w,
                      stderr=subprocess.DEVNULL)
os.close (w)
time.sleep (0.5)
text = b""
while chunk := os.read (r, 65536):
    text += chunk
print (p.wait (), len (json.loads (text)["stdout"]["data"]))
EOF
run python3 "$T/slow.py" "$COFFER_BUILD/coffer"
is "a document through a pipe that does not block" "$(cat "$out")" "0 50000"

finish
