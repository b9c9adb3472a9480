# SPDX-License-Identifier: Apache-2.0
# coffer run: bytes, streams, standard input, exit statuses, timeouts.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox

# -- bytes ------------------------------------------------------------------
run coffer run -- printf 'café\n☃\n'
printf 'café\n☃\n' >"$T/want"
is "a command runs: exit status" "$status" 0
same "stdout has exactly its bytes" "$out" "$T/want"
is "stderr has nothing of ours" "$(cat "$err")" ""

run coffer run -- sh -c 'printf "a\0b\377\n"; printf "e\200" >&2'
printf 'a\0b\377\n' >"$T/want"; printf 'e\200' >"$T/want.err"
same "bytes that are no text: stdout" "$out" "$T/want"
same "bytes that are no text: stderr apart" "$err" "$T/want.err"

run coffer run --
is "without a command it says what is needed" "$status $(head -1 "$err")" \
  '125 coffer: E6001: coffer run needs -- COMMAND [ARGUMENT…]'

run coffer run -- sh -c 'head -c 3000000 /dev/zero | tr "\0" x; echo end >&2'
is "3 MB come whole" "$(wc -c <"$out") $(cat "$err")" "3000000 end"

# -- as it comes ------------------------------------------------------------
# Each side waits for the other's line: what is held back would never end.
python3 - "$COFFER_BUILD/coffer" >"$out" 2>"$err" <<'PY'
import signal, subprocess, sys
signal.alarm (60)
p = subprocess.Popen ([sys.argv[1], "run", "-i", "--", "sh", "-c",
                       "echo one; read x; echo $x >&2; read y; echo $y"],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
def ask (stream, text):
    line = stream.readline ().decode ().strip ()
    p.stdin.write (text); p.stdin.flush ()
    return line
print (ask (p.stdout, b"two\n"), ask (p.stderr, b"three\n"), p.stdout.readline ().decode ().strip (), p.wait ())
PY
is "output is passed on as it comes, and input too" "$(cat "$out")" "one two three 0"

# -- standard input ---------------------------------------------------------
status=0; printf 'café\n☃\n' | coffer run -i -- cat >"$out" 2>"$err" || status=$?
printf 'café\n☃\n' >"$T/want"
same "-i gives standard input" "$out" "$T/want"
echo unseen | coffer run -- cat >"$out" 2>"$err"
is "without -i a command reads nothing" "$(cat "$out")" ""
head -c 2000000 /dev/urandom >"$T/blob"
coffer run -i -- cat <"$T/blob" >"$out" 2>"$err"
same "2 MB go through -i and come back" "$out" "$T/blob"
status=0; yes | timeout 60 "$COFFER_BUILD/coffer" run -i -- head -n 1 >"$out" 2>"$err" || status=$?
is "-i with more than is read does not hang" "$status $(cat "$out")" "0 y"

# A reader that is gone ends the command as in a shell.
{ timeout 60 "$COFFER_BUILD/coffer" run -- sh -c 'while :; do echo y; done' 2>"$err"
  echo $? >"$T/ended"; } | head -n 1 >"$out"
is "a reader that is gone ends the run" "$(cat "$out" "$T/ended")" "$(printf 'y\n141')"

# -- exit statuses ----------------------------------------------------------
for code in 0 1 2 77 255; do
  run coffer run -- sh -c "exit $code"
  is "exit $code is passed on" "$status" "$code"
done
run coffer run -- sh -c 'kill -9 $$'
is "a signal is 128 and its number" "$status" 137
run coffer run -- no-such-program
is "a program that is not there is 127" "$status" 127
like "and is named with its code" "$(cat "$err")" '^coffer: E3001: no-such-program: '
like "with what to do" "$(cat "$err")" '^  hint: check that the program'
run coffer run -- /etc/passwd
is "a file that is no program is 126" "$status" 126
like "with what makes it one" "$(cat "$err")" '^  hint: .*chmod .x.*python3 /etc/passwd'
printf 'print(1)\n' >"$T/bare.py"
(cd "$T" && "$COFFER_BUILD/coffer" run -- bare.py) >"$out" 2>"$err" </dev/null
like "a file is not looked for on PATH: what runs it is named" "$(cat "$err")" \
  '^  hint: bare.py is a file here .*-w . -- python3 bare.py'
mkdir "$T/bin"; printf '#!/bin/sh\necho here\n' >"$T/bin/only-here"; chmod 755 "$T/bin/only-here"
status=0; PATH=$T/bin:$PATH "$COFFER_BUILD/coffer" run -- only-here >"$out" 2>"$err" </dev/null || status=$?
is "a program that is only outside is 127" "$status" 127
like "and the message says where it is" "$(cat "$err")" "$T/bin/only-here"

# -- timeouts ---------------------------------------------------------------
start=$(date +%s)
run coffer run --timeout 1s -- sh -c 'sleep 61 & sleep 62 & setsid sleep 63 & sleep 64'
is "a timeout is 124" "$status" 124
like "and says so with its code" "$(cat "$err")" '^coffer: E3003: timed out after 1s'
is "it came in time" "$(($(date +%s) - start < 30))" 1
ok "every descendant is gone" soon 3 none_of_ours
run coffer run --timeout 1s -- sh -c 'trap "" TERM INT HUP; while :; do sleep 1; done'
is "ignoring signals does not help against it" "$status" 124

# A command that ends while a child of its holds the pipe is over all the same.
start=$(date +%s)
run coffer run -- sh -c 'sleep 60 & echo done'
is "a child left behind does not hold the run" "$status $(cat "$out") $(($(date +%s) - start < 30))" "0 done 1"

# -- signals to coffer ------------------------------------------------------
"$COFFER_BUILD/coffer" run -- sh -c 'echo up; sleep 60' >"$out" 2>"$err" &
pid=$!
soon 5 grep -q up "$out"
kill -INT $pid 2>/dev/null; kill -TERM $pid; status=0; wait $pid || status=$?
like "SIGTERM ends it: 128 and the signal" "$status" '^(130|143)$'
ok "nothing of it runs on" soon 3 none_of_ours
"$COFFER_BUILD/coffer" run -- sh -c 'echo up; sleep 60' >"$out" 2>"$err" &
pid=$!
soon 5 grep -q up "$out"
kill -KILL $pid; wait $pid 2>/dev/null
ok "SIGKILL of coffer ends the sandbox too" soon 5 none_of_ours

# -- signals inside ---------------------------------------------------------
run sh -c 'trap "" PIPE INT QUIT TERM USR1; exec "$1" run -- grep SigIgn /proc/self/status' \
  sh "$COFFER_BUILD/coffer"
like "no signal is ignored inside, whatever is here" "$(cat "$out")" 'SigIgn:.0000000000000000$'
run coffer run -- grep SigBlk /proc/self/status
like "and none blocked" "$(cat "$out")" 'SigBlk:.0000000000000000$'

# -- no place to write ------------------------------------------------------
if [ "$(id -u)" -ne 0 ]; then
  mkdir -p "$T/half/state" "$T/half/run/linux" "$T/half/run/runs" && chmod -R 700 "$T/half" &&
    chmod 500 "$T/half/state" "$T/half/run/runs"
  COFFER_HOME=$T/half run coffer run -- echo held
  is "without a folder that can be written, run goes on" "$status $(cat "$out")" "0 held"
  like "and says so" "$(cat "$err")" 'without records'
fi

# -- what the kernel takes down when run is over -----------------------------
# Where there may be only a few namespaces of mounts at once, none may stay.
if [ "$(id -u)" -eq 0 ]; then
  status=0
  python3 - "$COFFER_BUILD/coffer" >"$out" 2>"$err" <<'PY' || status=$?
import ctypes, os, subprocess, sys, time
made, mapped = os.pipe (), os.pipe ()
pid = os.fork ()
if pid == 0:
    if ctypes.CDLL (None).unshare (0x10000000) != 0:
        os._exit (3)
    os.write (made[1], b"x")
    os.read (mapped[0], 1)
    with open ("/proc/sys/user/max_mnt_namespaces", "w") as limit:
        limit.write ("12")
    runs, tries = 0, 0
    while runs < 24 and tries < 300:
        if subprocess.call ([sys.argv[1], "run", "--", "true"]) == 0:
            runs += 1
        else:
            tries += 1
            time.sleep (0.1)
    os._exit (runs < 24)
os.read (made[0], 1)
for name in "uid_map", "gid_map":
    with open (f"/proc/{pid}/{name}", "w") as ids:
        ids.write ("0 0 4294967295")
os.write (mapped[1], b"x")
sys.exit (os.waitstatus_to_exitcode (os.waitpid (pid, 0)[1]))
PY
  is "of 24 sandboxes in a row no namespace of mounts stays" "$status" 0
fi

run coffer run --workdir /no/such -- true
like "a working folder that is not there is named" "$status $(head -1 "$err")" \
  '^12[67] coffer: E3001: true: .*working folder.*--workdir /no/such'
is "and the program is not blamed" "$(grep -c 'on PATH inside' "$err")" 0

finish
