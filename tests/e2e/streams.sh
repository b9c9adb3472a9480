# SPDX-License-Identifier: Apache-2.0
# A command's streams and its end as a shell pipeline would have them: signals
# to coffer, readers that go away, input that ends, many at once.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox

# Signals to coffer itself end the sandbox; the status is 128 and the number.
for pair in INT:130 TERM:143 HUP:129 QUIT:131; do
  python3 - "$COFFER_BUILD/coffer" "SIG${pair%:*}" >"$out" 2>"$err" <<'PY'
import signal, subprocess, sys
p = subprocess.Popen ([sys.argv[1], "run", "--", "sh", "-c", "(setsid sleep 50 &); echo up; sleep 50"],
                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
assert p.stdout.readline () == b"up\n"
p.send_signal (getattr (signal, sys.argv[2]))
print (p.wait (30))
PY
  is "SIG${pair%:*} to coffer" "$(cat "$out")" "${pair#*:}"
  ok "and all that ran inside is gone" soon 5 none_of_ours
done

# nohup: what the caller ignores stays ignored.
sh -c 'trap "" HUP; exec "$0" run -- sh -c "echo up; sleep 0.5; echo through"' \
  "$COFFER_BUILD/coffer" >"$out" 2>"$err" &
pid=$!
soon 10 grep -q up "$out"
kill -HUP $pid
wait $pid
is "an ignored SIGHUP changes nothing" "$? $(tail -1 "$out")" "0 through"

# A reader that goes away.
is "run … | head" "$(coffer run -- sh -c 'while :; do echo y; done' 2>&1 | head -2 | tr '\n' ' ')" "y y "
python3 - "$COFFER_BUILD/coffer" >"$out" 2>"$err" <<'PY'
import subprocess, sys
p = subprocess.Popen ([sys.argv[1], "run", "--", "sh", "-c", "exec cat /dev/zero"],
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
p.stdout.read (1000)
p.stdout.close ()
print (p.wait (60), p.stderr.read ())
PY
is "the writer gets SIGPIPE, and nothing is said" "$(cat "$out")" "141 b''"
{ coffer run -- sh -c 'trap "" PIPE; while echo y; do :; done 2>/dev/null; exit 5' 2>"$err"
  echo $? >"$T/status"; } | head -1 >/dev/null
is "a writer that ignores SIGPIPE sees the error" "$(cat "$T/status")" 5
ok "nothing runs on" soon 5 none_of_ours

# Output that cannot be written is no success.
run sh -c '"$0" run -- echo lost >/dev/full' "$COFFER_BUILD/coffer"
like "a full disk" "$status $(head -1 "$err")" '^125 coffer: E9001: '

# Exact bytes in both directions at once, more than any pipe holds.
head -c 3000000 /dev/urandom >"$T/bytes"
coffer run -i -- cat <"$T/bytes" >"$T/back" 2>"$err"
same "3 MB through cat" "$T/bytes" "$T/back"
cat "$T/bytes" | coffer run -i -- sh -c 'cat; cat </dev/null' 2>"$err" | cat >"$T/back"
same "and from pipe to pipe" "$T/bytes" "$T/back"
coffer run -i -- sh -c 'head -c 10 | wc -c' <"$T/bytes" >"$out" 2>"$err"
is "input that is not read does not hold it up" "$? $(cat "$out")" "0 10"
(printf early; sleep 0.3; printf late) | coffer run -i -- cat >"$out" 2>"$err"
is "input that comes late" "$(cat "$out")" earlylate
run coffer run -- sh -c 'cat; echo end'
is "without -i there is none" "$(cat "$out")" end
run coffer run -- sh -c 'exec 1>&- 2>&-; sleep 0.2; exit 6'
is "closed streams are not its end" "$status" 6

# Without records: held by its lifeline alone, and said.  It needs no state.
mkdir -p "$T/other/run" && chmod 700 "$T/other" "$T/other/run" && echo x | tee "$T/other/state" >"$T/other/run/runs"
run env COFFER_HOME="$T/other" "$COFFER_BUILD/coffer" run -- echo still
is "no state folder" "$status $(cat "$out")" "0 still"
like "is said" "$(cat "$err")" 'going on without records'
run env COFFER_HOME="$T/other" "$COFFER_BUILD/coffer" sandbox create
like "and is not enough for one that lasts" "$(head -1 "$err")" '^coffer: E(2011|6005): '
mkdir "$T/damaged" "$T/damaged/state" && chmod -R 700 "$T/damaged"
head -c 9000 /dev/urandom >"$T/damaged/state/state.db"
run env COFFER_HOME="$T/damaged" "$COFFER_BUILD/coffer" run -- echo still
is "damaged records" "$status $(cat "$out")" "0 still"
run env COFFER_HOME="$T/damaged" "$COFFER_BUILD/coffer" sandbox list
like "are refused by name where they count" "$status $(head -1 "$err")" '^1 coffer: E2011: .*/state\.db: '
mkdir "$T/newer" && chmod 700 "$T/newer"
COFFER_HOME="$T/newer" coffer sandbox list >/dev/null 2>&1
python3 -c 'import sqlite3, sys
db = sqlite3.connect (sys.argv[1]); db.execute ("PRAGMA user_version = 7"); db.commit ()' "$T/newer/state/state.db"
run env COFFER_HOME="$T/newer" "$COFFER_BUILD/coffer" sandbox list
like "records of a newer coffer" "$status $(head -1 "$err")" '^1 coffer: E2011: .*newer coffer'

# As they come, not at the end.
python3 - "$COFFER_BUILD/coffer" >"$out" 2>"$err" <<'PY'
import subprocess, sys
p = subprocess.Popen ([sys.argv[1], "run", "-i", "--", "sh", "-c", "while read x; do echo $x; done"],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
for word in (b"one\n", b"two\n", b"three\n"):
    p.stdin.write (word)
    p.stdin.flush ()
    assert p.stdout.readline () == word
p.stdin.close ()
print (p.wait (60))
PY
is "a dialogue, line by line" "$(cat "$out")" 0

# What it leaves running holds the pipe: a moment, and then its end.
start=$(date +%s)
run coffer run -- sh -c '(sleep 40) & echo done'
is "a process that holds the pipe" "$status $(cat "$out")" "0 done"
ok "does not hold coffer" test $(($(date +%s) - start)) -lt 30
ok "and is gone" soon 5 none_of_ours

# Twenty at once, each with its own output, and twenty in one sandbox.
python3 - "$COFFER_BUILD/coffer" >"$out" 2>"$err" <<'PY'
import subprocess, sys
coffer = sys.argv[1]
def all_of (command):
    ps = [subprocess.Popen (command (i), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            stdin=subprocess.DEVNULL) for i in range (20)]
    good = 0
    for i, p in enumerate (ps):
        o, e = p.communicate (timeout=60)
        if p.returncode == i and o == b"%d\n" % i:
            good += 1
        else:
            print (i, p.returncode, o, e, file=sys.stderr)
    return good
script = "echo %d; exit %d"
print (all_of (lambda i: [coffer, "run", "--", "sh", "-c", script % (i, i)]))
made = subprocess.run ([coffer, "sandbox", "create"], stdout=subprocess.PIPE).stdout.decode ().strip ()
print (all_of (lambda i: [coffer, "sandbox", "exec", made, "--", "sh", "-c", script % (i, i)]))
ps = [subprocess.Popen ([coffer, "sandbox", "create"], stdout=subprocess.PIPE, stderr=sys.stderr)
      for i in range (20)]
ids = {p.communicate (timeout=60)[0].decode ().strip () for p in ps}
print (len (ids))
ps = [subprocess.Popen ([coffer, "sandbox", "kill", id], stdout=subprocess.DEVNULL, stderr=sys.stderr)
      for id in ids | {made}]
print (sum (p.wait (60) for p in ps))
PY
is "20 runs at once, 20 commands in one sandbox, 20 made and killed" "$(tr '\n' ' ' <"$out")" "20 20 20 0 "
is "and nothing is listed" "$(coffer sandbox list --json)" "[]"

finish
