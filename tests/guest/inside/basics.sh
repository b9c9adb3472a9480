# SPDX-License-Identifier: Apache-2.0
# What every kernel gives: one command, a lasting sandbox, and no trace of them.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3

run coffer run -- sh -c 'printf "café\n☃\n"; echo e >&2; exit 9'
printf 'café\n☃\n' >"$T/want"
is "a command's exit status" "$status" 9
same "its output" "$out" "$T/want"
is "its other output" "$(cat "$err")" e
run coffer run -- sh -c 'kill -9 $$'
is "a signal is 128 and its number" "$status" 137
run coffer run -- no-such-program
is "a program that is not there is 127" "$status" 127

# -- what it is inside --------------------------------------------------------
run coffer run -- sh -c 'id -u; id -g; grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status'
is "an ordinary user without rights, inside" "$(tr -d '\t' <"$out" | sort -u | tr '\n' ' ')" \
  "1000 CapAmb:0000000000000000 CapBnd:0000000000000000 CapEff:0000000000000000 CapInh:0000000000000000 CapPrm:0000000000000000 NoNewPrivs:1 Seccomp:2 "
cat >"$T/outside.py" <<'PY'
import os, subprocess, sys
# The uid that the kernel gives the command, seen from outside.
p = subprocess.Popen ([sys.argv[1], "run", "-i", "--", "sh", "-c", "echo x; read x"],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
p.stdout.readline ()
uids = set ()
for pid in filter (str.isdigit, os.listdir ("/proc")):
    try:
        with open ("/proc/%s/cmdline" % pid) as f:
            line = f.read ()
        if line == "sh\0-c\0echo x; read x\0":
            uids.add (os.stat ("/proc/%s" % pid).st_uid)
    except OSError:
        pass
p.communicate (b"\n")
print (len (uids), 0 in uids, uids <= {0, os.getuid ()})
PY
run python3 "$T/outside.py" "$COFFER_BUILD/coffer"
if [ "$(id -u)" -eq 0 ]; then
  is "and outside: neither root nor the caller" "$(cat "$out")" "1 False False"
else
  # A process that is not dumpable belongs to root in /proc.
  like "and outside: nobody but the caller" "$(cat "$out")" "^1 (False|True) True$"
fi
run coffer run -- python3 -c '
import socket
names = [n for _, n in socket.if_nameindex ()]
try:
    socket.create_connection (("192.0.2.1", 80), 2)
    print (names, "connected")
except OSError as e:
    print (names, e.strerror)'
is "no network" "$(cat "$out")" "['lo'] Network is unreachable"
run coffer run -- sh -c '
  cat /etc/shadow || echo 1; mount -t tmpfs x /tmp || echo 2
  unshare -U true || echo 3; (: >/usr/x) || echo 4'
is "nothing of the host is opened, nothing mounted, no namespace made" \
  "$(tr '\n' ' ' <"$out")" "1 2 3 4 "

# -- its end ------------------------------------------------------------------
run coffer run --timeout 2s -- sh -c '
  sleep 61 & setsid sleep 62 & (setsid sh -c "trap \"\" TERM; (sleep 63 &) ; sleep 64" &)
  sleep 65'
is "a timeout is 124" "$status" 124
ok "and ends every descendant" soon 5 none_of_ours

# -- files --------------------------------------------------------------------
mkdir "$T/你好 世界"
printf 'café\n☃\n' >"$T/你好 世界/'q\".txt"
run coffer run -w "$T/你好 世界" -- sh -c 'cat *; : >new'
same "-w shows a folder" "$out" "$T/want"
ok "read-only" test ! -e "$T/你好 世界/new"
run coffer run -w "$T/你好 世界:rw" -- sh -c ': >new'
ok "-w :rw lets it write" test -e "$T/你好 世界/new"
is "and what it made is the caller's" "$(stat -c %u "$T/你好 世界/new")" "$(id -u)"

# -- a lasting one ------------------------------------------------------------
run coffer sandbox create
id=$(cat "$out"); remember "$id"
like "create" "$status $id" '^0 sb-[0-9a-z]{26}$'
run coffer sandbox exec "$id" -c 'echo kept >f; (setsid sleep 66 &); echo $HOME'
is "exec" "$status $(cat "$out")" "0 /workspace"
run coffer sandbox exec "$id" -- cat f
is "what one command wrote the next one reads" "$(cat "$out")" kept
run coffer sandbox exec --timeout 1s "$id" -- sh -c 'setsid sleep 67 & sleep 68'
is "exec --timeout" "$status" 124
head -c 300000 /dev/urandom >"$T/up"
run coffer sandbox upload "$id" "$T/up" file
is "upload" "$status" 0
run coffer sandbox download "$id" file "$T/down"
same "download" "$T/up" "$T/down"
run coffer sandbox kill "$id"
is "kill" "$status" 0
ok "and nothing of it runs on" soon 5 none_of_ours

# -- a host that was killed ---------------------------------------------------
"$COFFER_BUILD/coffer" run -- sh -c 'setsid sleep 69 & sleep 70' >/dev/null 2>&1 &
host=$!
running () { ours | grep -q 'sleep 70'; }
ok "a run is under way" soon 20 running
kill -9 "$host"
wait "$host" 2>/dev/null
ok "SIGKILL of its host ends it" soon 10 none_of_ours
run coffer sandbox prune --yes
run coffer sandbox list --json
is "and the next one clears up after it" "$(cat "$out")" "[]"
finish
