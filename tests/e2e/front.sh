# SPDX-License-Identifier: Apache-2.0
# The small program that is called coffer: what it executes gets all that it was
# given, a sandbox is begun for a usual run alone, and nobody else's word for one
# that was is taken.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
real=$COFFER_BUILD/stage/libexec/coffer
[ -x "$real" ] || skip_all "a second C library (musl-gcc) when this was built"

# Where it lies below another root it executes what lies there: one that says
# what it sees.
small=$T/root$COFFER_BUILD/coffer
shown=$T/root$real
mkdir -p "${shown%/*}"
cp "$COFFER_BUILD/coffer" "$small"
cat >"$shown" <<'PY'
#!/usr/bin/python3
import json, os, signal, socket, struct, sys
def status (name):
    return [l.split ()[1] for l in open ("/proc/self/status") if l.startswith (name + ":")][0]
def links ():
    for fd in range (64):
        try:
            yield fd, os.readlink ("/proc/self/fd/%d" % fd)
        except OSError:
            pass
seen = {"descriptors": [fd for fd, link in links () if not link.startswith ("/proc/")]}
begun = os.environ.pop ("COFFER_BEGUN", None)
seen.update (argv=sys.argv[1:], env=dict (os.environ), cwd=os.getcwd (), umask=os.umask (0),
             ignored=status ("SigIgn"), blocked=status ("SigBlk"), begun=None)
if begun:
    pid, fd, helper = map (int, begun.split ())
    if os.environ.get ("DIE"):
        os.kill (os.getpid (), signal.SIGKILL)
    channel = socket.socket (fileno=fd)
    channel.settimeout (60)
    packet, rights, _, _ = channel.recvmsg (4096, 4096)
    if not packet:
        json.dump ({"begun": []}, open (os.environ["SEEN"], "w"))
        sys.exit (0)
    fds = struct.unpack ("%di" % (len (rights[0][2]) // 4), rights[0][2])
    init, = struct.unpack_from ("i", packet, 64)
    comm = open ("/proc/%d/comm" % init).read ().strip ()
    control = socket.socket (fileno=fds[0])
    control.settimeout (60)
    hello = control.recv (4096)
    os.waitpid (helper, 0)
    control.close ()
    os.waitpid (init, 0)
    seen["begun"] = [pid == os.getpid (), len (fds), comm, len (hello) > 0]
    seen["descriptors"].remove (fd)
json.dump (seen, open (os.environ["SEEN"], "w"))
PY
chmod 755 "$shown"
SEEN=$T/seen; export SEEN

see () { # COMMAND…
  rm -f "$SEEN"
  run "$@"
  [ -e "$SEEN" ] || echo '{"begun": "nothing was executed"}' >"$SEEN"
}
none () { # WHAT COMMAND…
  none_what=$1; shift
  see "$@"
  is "nothing is begun: $none_what" "$(json "$SEEN" 'd["begun"]')" None
}
# A usual run where nobody has made a sandbox yet: it may be refused.
see "$small" run -- true
is "where there is no runtime folder none is made, and nothing begun" \
  "$(ls -A "$COFFER_HOME") $(json "$SEEN" 'd["begun"]')" " []"
mkdir -p "$COFFER_HOME/run/linux"
chmod 700 "$COFFER_HOME/run" "$COFFER_HOME/run/linux"
see "$small" run -- true
is "a usual run: its first process is there, and ends with its connection" \
  "$(json "$SEEN" 'd["begun"]')" "[True, 1, 'coffer-init', True]"

none "--version" "$small" --version
none "sandbox list" "$small" sandbox list
none "run alone" "$small" run
for option in --net=host --mem=1G --python=x --provider=host -h; do
  none "run $option" "$small" run "$option" 1 -- true
done
none "another provider is chosen" env COFFER_PROVIDER=docker "$small" run -- true
# shellcheck disable=SC2016
for form in "0<&-" "2>&-"; do
  none "$form" sh -c "exec \"\$0\" run -- true $form" "$small"
done

# The same process in all but the program.
cat >"$T/same.py" <<'PY'
import json, os, signal, subprocess, sys
args = ["run", "-w", "/tmp/你好 世界/'q\".txt", "--", "café\n☃\n", "", "--net"]
def given ():
    os.umask (0o27)
    os.chdir ("/")
    signal.signal (signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask (signal.SIG_BLOCK, [signal.SIGUSR2])
    os.dup2 (0, 40, inheritable=True)
def seen (program):
    subprocess.run ([program, *args], stdin=subprocess.DEVNULL, timeout=120, check=True,
                    preexec_fn=given, close_fds=False, env={**os.environ, "ODD": "a=b\nc"})
    return json.load (open (os.environ["SEEN"]))
a, b = seen (sys.argv[1]), seen (sys.argv[2])
print (a.pop ("begun") is not None, b.pop ("begun"), [k for k in b if a[k] != b[k]], len (b))
PY
run python3 "$T/same.py" "$small" "$shown"
is "arguments, environment, folder, umask, signals and descriptors are the same" \
  "$(cat "$out" "$err")" "True None [] 7"

for i in 1 2 3 4; do
  run env DIE=1 "$small" run -- true
done
is "a program that is killed at once" "$status" 137
ok "leaves nothing running" soon 30 none_of_ours

rm "$shown"
run "$small" version
is "without one below its root it executes the one that it was built with" \
  "$status $(cat "$out")" "0 $(coffer version)"

# -- the other side ----------------------------------------------------------
needs_sandbox
cat >"$T/forge.py" <<'PY'
import array, ctypes, os, signal, socket, sys
how, real = sys.argv[1:3]
def variable (*words):
    os.environ["COFFER_BEGUN"] = " ".join (map (str, words))
def inherited (fd):
    os.set_inheritable (fd, True)
    return fd
def child (ended):
    pid = os.fork ()
    if pid == 0:
        if not ended:
            signal.pause ()
        os._exit (0)
    return pid
a, b = socket.socketpair (socket.AF_UNIX, socket.SOCK_SEQPACKET)
helper = os.getppid ()          # is no helper, and must not be ended
if how in ("ended", "garbage", "forged", "many", "untold"):
    before = child (how != "untold")
    helper = child (how in ("ended", "untold"))
    if how == "untold":         # what it has begun is its maker's child
        after = child (False)
        call = 220 if os.uname ().machine == "aarch64" else 56
        flags = 0x30000000 | signal.SIGCHLD     # users and processes of its own
        if ctypes.CDLL (None).syscall (call, ctypes.c_long (flags), 0, 0, 0, 0) == 0:
            os._exit (0)
if how == "words":
    variable ("x", "-1", "9" * 30)
elif how == "long":
    os.environ["COFFER_BEGUN"] = "7" * 100000
elif how == "of another process":
    variable (os.getpid () + 1, inherited (a.fileno ()), helper)
elif how == "a file":
    variable (os.getpid (), inherited (os.open ("/dev/null", os.O_RDWR)), helper)
elif how == "output":
    variable (os.getpid (), 1, helper)
elif how == "no descriptor":
    variable (os.getpid (), 1000, helper)
elif how == "a stream":
    c, d = socket.socketpair ()
    variable (os.getpid (), inherited (c.fileno ()), helper)
else:
    variable (os.getpid (), inherited (a.fileno ()), helper)
if how in ("a parent", "garbage"):
    b.send (b"x" * 100)
elif how in ("forged", "many"):
    fds = array.array ("i", [a.fileno ()] * (12 if how == "many" else 1))
    b.sendmsg ([os.urandom (int (sys.argv[3]))],
               [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
b.close ()
if how == "untold":
    print (before, after, flush=True)
    os.execv (real, ["coffer", "run", "--", "sh", "-c", "echo up; sleep 300"])
os.execv (real, ["coffer", "run", "--", "sh", "-c",
                 "env | grep -c BEGUN; ls /proc/self/fd | wc -l; exit 7"])
PY
for how in words long "of another process" "a file" output "no descriptor" "a stream" \
    "a parent" ended garbage forged many; do
  run timeout 100 python3 "$T/forge.py" "$how" "$real" 112
  is "a word that is not true: $how" "$status $(tr '\n' ' ' <"$out")$(cat "$err")" "7 0 4 "
done
# A helper that was killed before it told of what it had begun: that is waited for,
# and no other child, be it older or younger.
python3 "$T/forge.py" untold "$real" 112 >"$T/untold" 2>&1 &
untold=$!
soon 30 grep -q up "$T/untold"
is "of what was begun and not told no process is left" \
  "$(ps -o stat= --ppid "$untold" | grep -c Z)" 0
read -r before after <"$T/untold"
is "and none else is ended" \
  "$(ps -o ppid= -o stat= -p "$before,$after" | awk '$2 !~ /^Z/ { print $1 }' | uniq -c | xargs)" \
  "2 $untold"
kill "$before" "$after" "$untold"; wait "$untold"
run timeout 100 "$COFFER_BUILD/coffer" run -- sh -c \
  'env | grep -c BEGUN; ls /proc/self/fd | wc -l; exit 7'
is "one that is: the command sees nothing of it" "$status $(tr '\n' ' ' <"$out")" "7 0 4 "

if command -v strace >/dev/null && strace -f -o "$T/trace" true 2>/dev/null; then
  run strace -f -qq -o "$T/trace" -e trace=clone,clone3 "$COFFER_BUILD/coffer" run -- true
  is "and what was begun is what is used" \
    "$status $(grep -c 'NEWUSER' "$T/trace") $(grep -c 'PARENT|.*NEWUSER' "$T/trace")" "0 1 1"
else
  skip "and what was begun is what is used" "the right to trace"
fi
finish
