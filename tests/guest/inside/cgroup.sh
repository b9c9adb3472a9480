# SPDX-License-Identifier: Apache-2.0
# kernels: qemu
# Control groups of version 2, handed over as systemd does: what they limit, as
# the kernel has it, and that nothing of them stays.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "${COFFER_SOURCE:?}/tests/guest/scope.sh"
roles both
needs python3

scoped coffer provider doctor linux --json >"$out" 2>"$err"
is "doctor finds one" \
  "$(json "$out" '[f["state"] for f in d["facts"] if f["name"] == "cgroup"]')" "['ok']"
is "and leaves nothing of its trial" "$scope_left" ""

# -- as the kernel has it -------------------------------------------------------
# Of each group of the scope that has processes: its files, and whether the
# command is in it.
cat >"$T/look.py" <<'PY'
import os, subprocess, sys
scope, coffer = sys.argv[1:3]
p = subprocess.Popen (["sh", "-c", 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"',
                       "-", scope, coffer, "run", "--mem", "96M", "--pids", "40", "--cpus",
                       "0.5", "-i", "--", "sh", "-c", "echo; read x"],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
p.stdout.readline ()
pids = [n for n in os.listdir ("/proc") if n.isdigit ()]
ours = []
for pid in pids:
    try:
        with open ("/proc/%s/cmdline" % pid) as f, open ("/proc/%s/cgroup" % pid) as g:
            if f.read ().startswith ("sh\0-c\0echo; read x"):
                ours.append ("/sys/fs/cgroup" + g.read ().strip ().split ("::")[1])
    except OSError:
        pass
values = {}
dir = ours[0] if len (ours) == 1 else scope
while len (dir) > len (scope):
    for name in ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max"):
        try:
            with open (dir + "/" + name) as f:
                value = f.read ().strip ()
            if value not in ("max", "max 100000") and name not in values:
                values[name] = value
        except OSError:
            pass
    dir = os.path.dirname (dir)
p.communicate (b"\n")
if values.get ("pids.max") in ("40", "41"):     # the init may be counted
    values["pids.max"] = "40"
print (len (ours), sorted (values.items ()), p.returncode)
PY
scope_new
run python3 "$T/look.py" "$scope" "$COFFER_BUILD/coffer"
scope_end
is "the command is in a group with its limits" "$(cat "$out")" \
  "1 [('cpu.max', '50000 100000'), ('memory.max', '100663296'), ('memory.oom.group', '1'), ('memory.swap.max', '0'), ('pids.max', '40')] 0"
is "which is gone afterwards" "$scope_left" ""

# -- memory -------------------------------------------------------------------
# tail keeps what has no end of a line.
hog='head -c 300M /dev/zero | tail | wc -c; echo survived'
scoped coffer run --json --mem 64M -- sh -c "sleep 60 & $hog" >"$out" 2>"$err"
is "more memory than there is ends all of it, and is told" \
  "$(json "$out" '(d["status"], d["exit"]["oom"], "memory" in d["exit"]["limits_hit"], d["stdout"]["data"])')" \
  "(137, True, True, '')"
like "begun in its group" \
  "$(json "$out" '[f["how"] for f in d["applied"]["facts"] if f["name"] == "cgroup"]')" \
  CLONE_INTO_CGROUP
is "and the group is gone" "$scope_left" ""
# Many that keep within a limit of each process, and not within that of all.
scoped coffer run --mem 64M -- sh -c '
  for i in 1 2 3 4 5 6 7 8; do
    head -c 24M /dev/zero | tail -c 24M | sleep 20 &
  done; wait; echo survived' >"$out" 2>"$err"
is "as do many with a little each" "$? $(cat "$out")" "137 "
like "which is said" "$(cat "$err")" "memory"
# Files in memory are counted.
scoped coffer run --mem 48M -- sh -c '
  head -c 200M /dev/zero >/tmp/f; echo survived' >"$out" 2>"$err"
is "and files in memory" "$? $(cat "$out")" "137 "

# -- processes ----------------------------------------------------------------
scoped coffer run --json --pids 12 -- sh -c '
  i=0; while [ $i -lt 30 ]; do sleep 30 & i=$((i + 1)); done; echo survived' >"$out" 2>"$err"
is "more processes than there may be: refused, and said" \
  "$(json "$out" '("pids" in d["exit"]["limits_hit"], "fork" in d["stderr"]["data"], d["stdout"]["data"])')" \
  "(True, True, '')"
is "and the group is gone" "$scope_left" ""

# -- ends ---------------------------------------------------------------------
scoped coffer run --timeout 2s --mem 64M -- sh -c '
  setsid sleep 61 & (setsid sh -c "trap \"\" TERM; (sleep 62 &) ; sleep 63" &)
  sh -c "kill -STOP \$\$" & sleep 64' >"$out" 2>"$err"
is "a timeout" "$?" 124
is "ends every descendant, and the group" "$scope_left" ""
ok "none runs on" soon 5 none_of_ours

# -- a lasting one ------------------------------------------------------------
scope_new
in_scope coffer sandbox create --mem 64M --pids 50 >"$out" 2>"$err"
id=$(cat "$out"); remember "$id"
like "create" "$id" '^sb-[0-9a-z]{26}$'
made=$scope
run coffer sandbox exec "$id" -c "$hog"
is "commands from elsewhere are held by its group" "$status" 137
run coffer sandbox exec "$id" -- echo here
is "which it survives" "$(cat "$out")" here
run coffer sandbox exec -d "$id" -c 'echo there >f; exec sleep 71'
ok "a command in the background" soon 10 coffer sandbox exec "$id" -- test -s f
run coffer sandbox exec --timeout 1s "$id" -- sh -c 'setsid sleep 72 & (setsid sleep 73 &); sleep 74'
is "a timeout of one command" "$status" 124
others () { ours | grep -cE 'sleep 7[234]'; }
survives () { [ "$(others)" -eq 0 ] && ours | grep -q 'sleep 71'; }
ok "ends what it started, and no other command" soon 5 survives
run coffer sandbox kill "$id"
is "kill" "$status" 0
ok "everything is gone" soon 5 none_of_ours
scope=$made
scope_end
is "and its group" "$scope_left" ""

# -- a host that was killed ---------------------------------------------------
scope_new
in_scope sh -c 'echo $$ >"$1"; exec coffer run --mem 64M -- sh -c \
  "setsid sleep 81 & sleep 82"' - "$T/pid" >/dev/null 2>&1 &
host=$!
running () { ours | grep -q 'sleep 82'; }
ok "a run is under way" soon 20 running
kill -9 "$(cat "$T/pid")"
wait "$host" 2>/dev/null
ok "SIGKILL of its host ends it" soon 10 none_of_ours
coffer sandbox prune --yes >"$out" 2>"$err"
scope_end
is "and the next one removes its group" "$scope_left" ""
finish
