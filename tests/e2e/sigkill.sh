# SPDX-License-Identifier: Apache-2.0
# SIGKILL of coffer at random moments: whatever it was doing, the lists of
# processes, mounts, control groups, files and records are afterwards what they
# were before.  60 times a provider, 1000 with CHECK_SCALE 17 or more.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both alike
needs python3

scale=${CHECK_SCALE:-1}
rounds=$((scale >= 17 ? 1000 : 60 * scale))

cat >"$T/storm.py" <<'PY'
import json, os, random, signal, subprocess, sys, time

coffer, provider, rounds, at_once, seed = (
    sys.argv[1], sys.argv[2], int (sys.argv[3]), int (sys.argv[4]), int (sys.argv[5]))
rng = random.Random (seed)
quiet = dict (stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
src = os.path.join (os.environ["TMPDIR"], "..", "upload")
with open (src, "wb") as f:
    f.write (os.urandom (200000))

def call (*args):
    return subprocess.run ([coffer, *args], stdout=subprocess.PIPE, timeout=60, **quiet)

def create ():
    out = call ("sandbox", "create", "--provider", provider).stdout.decode ().split ()
    return out[0] if out else None

def commands (durable):
    yield ["run", "--provider", provider, "--", "sh", "-c", "echo x"]
    yield ["run", "--provider", provider, "--", "sh", "-c", "sleep 0.2 & sleep 90"]
    yield ["sandbox", "list", "--json"]
    if durable:
        yield ["sandbox", "create", "--provider", provider]
        yield ["sandbox", "exec", durable, "--", "sh", "-c", "sleep 0.02"]
        yield ["sandbox", "exec", durable, "--", "sh", "-c", "(setsid sleep 60 &) ; sleep 0.05"]
        yield ["sandbox", "upload", durable, src, "file"]
        yield ["sandbox", "kill", durable]

durable = create ()
print ("# durable sandboxes: %s" % bool (durable), file=sys.stderr)
start = time.monotonic ()
call ("run", "--provider", provider, "--", "true")
took = time.monotonic () - start

done = 0
while done < rounds:
    batch = []
    for _ in range (min (at_once, rounds - done)):
        args = rng.choice (list (commands (durable)))
        batch.append ((subprocess.Popen ([coffer, *args], stdout=subprocess.DEVNULL, **quiet), args))
    # Early moments more often than late ones: there is more going on.
    time.sleep (rng.random () ** 2 * took * 2 * (1 + len (batch) / 4))
    for p, args in batch:
        p.send_signal (signal.SIGKILL)
    for p, args in batch:
        p.wait ()
        if durable and args[1] == "kill":
            durable = create ()
    done += len (batch)
print ("# %d rounds of %s, seed %d" % (done, provider, seed), file=sys.stderr)

# What the user would do: end what was made to last, and clear up.  All else
# must find its own end.
for row in json.loads (call ("sandbox", "list", "--json").stdout or b"[]"):
    if not row["ephemeral"]:
        call ("sandbox", "kill", row["id"])
call ("sandbox", "prune", "--yes")
sys.exit (0)
PY

# Files below COFFER_HOME; SQLite's own two come and go with who reads.
files () { (cd "$COFFER_HOME" && find . ! -name 'state.db-*' | sort); }
cgroups () { find /sys/fs/cgroup -type d -name '*sb-*' 2>/dev/null | sort; }
records () { coffer sandbox list --json 2>&1; }
rows () {
  python3 -c '
import os, sqlite3
db = sqlite3.connect (os.environ["COFFER_HOME"] + "/state/state.db")
print (db.execute ("SELECT count(*) FROM sandbox").fetchone ()[0])'
}
# Others that run at the same time have theirs, which come and go: what is left is
# there at every look.
no_new_cgroups () {
  cgroups | comm -13 "$T/cgroups" - >"$T/cgroups.now"
  [ ! -e "$T/cgroups.left" ] || comm -12 "$T/cgroups.left" "$T/cgroups.now" >"$T/cgroups.both"
  [ ! -e "$T/cgroups.both" ] || mv "$T/cgroups.both" "$T/cgroups.now"
  mv "$T/cgroups.now" "$T/cgroups.left"
  [ ! -s "$T/cgroups.left" ]
}
same_files () { files >"$T/files.now"; cmp -s "$T/files" "$T/files.now"; }

storm () { # provider rounds at-once
  run coffer run --provider "$1" -- true
  if [ "$status" -ne 0 ]; then
    case $(cat "$err") in
      *E2005*) skip "SIGKILL, provider $1" "a machine that can isolate"; return ;;
    esac
  fi
  is "provider $1 works" "$status" 0
  run coffer sandbox create --provider "$1"
  [ "$status" -ne 0 ] || coffer sandbox kill "$(head -1 "$out" | cut -d' ' -f1)" >/dev/null 2>&1
  coffer sandbox prune >/dev/null 2>&1
  soon 5 none_of_ours
  files >"$T/files"; cgroups >"$T/cgroups"; records >"$T/records"
  seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
  run python3 "$T/storm.py" "$COFFER_BUILD/coffer" "$1" "$2" "$3" "$seed"
  note "$(cat "$err")"
  is "$2 SIGKILLs, $3 at once, provider $1" "$status" 0
  ok "no process is left" soon 10 none_of_ours
  none_of_ours || note "$(ours)"
  is "no mount is left" "$(our_mounts)" ""
  rm -f "$T/cgroups.left"
  ok "no control group is left" soon 30 no_new_cgroups
  [ ! -s "$T/cgroups.left" ] || note "$(cat "$T/cgroups.left")"
  records >"$T/records.now"
  same "the list is as it was" "$T/records" "$T/records.now"
  is "no row is left" "$(rows)" 0
  ok "no file is left" soon 5 same_files
  same_files || note "$(diff "$T/files" "$T/files.now" | head -20)"
}

coffer run --provider host -- true 2>/dev/null
storm linux "$rounds" 1
storm linux 40 20
storm host "$rounds" 1
storm host 40 20

finish
