# SPDX-License-Identifier: Apache-2.0
# What the docker provider costs beside the same calls made by curl and beside the
# engine's own client, over one engine that is started for it.  Prints "NAME VALUE"
# lines; 1: slower than it may be, 2: it could not be measured.
#   BENCH_RUNS=51
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/engines/lib.sh"
. "$COFFER_SOURCE/tests/engines/provider.sh"
if [ "$(id -u)" -ne 0 ] || ! command -v dockerd >/dev/null; then
  echo "# missing: root, or docker.io"
  exit 2
fi
runs=${BENCH_RUNS:-51}
worst=0
pairs () {
  "$COFFER_BUILD/tests/bench/pairs" "$@"
  bench_status=$?
  [ "$bench_status" -le "$worst" ] || worst=$bench_status
}

{ engine_start docker && provider_setup; } >&2 || exit 2

cat >"$T/ask" <<'SH'
call () { curl -fsS --unix-socket "$SOCKET" -H 'Content-Type: application/json' -X "$@"; }
id_of () { sed 's/.*"Id": *"\([^"]*\)".*/\1/'; }
ask_exec () {
  exec=$(call POST "http://e/v1.41/containers/$1/exec" -d \
    '{"Cmd": ["true"], "AttachStdout": true, "AttachStderr": true}' | id_of)
  call POST "http://e/v1.41/exec/$exec/start" -d '{}'
  call GET "http://e/v1.41/exec/$exec/json" | grep -q '"ExitCode":0'
}
SH
cat >"$T/cycle" <<'SH'
. "$ASK"
box=$(call POST http://e/v1.41/containers/create -d \
  '{"Image": "box:1", "Cmd": ["sleep", "1000"], "HostConfig": {"NetworkMode": "none"}}' \
  | id_of)
call POST "http://e/v1.41/containers/$box/start"
ask_exec "$box"
call DELETE "http://e/v1.41/containers/$box?force=1"
SH
printf '. "$ASK"\nask_exec "$1"\n' >"$T/exec"
ASK=$T/ask SOCKET=$socket
export ASK SOCKET

id=$(coffer sandbox create)
box=$(api GET '/containers/json' | python3 -c \
  'import json, sys; print (json.load (sys.stdin)[0]["Id"])')
pairs -n "$runs" -r 1.15 engine_cycle ::: "$COFFER_BUILD/coffer" run -- /bin/true \
  ::: sh "$T/cycle"
pairs -n "$runs" -r 1.1 engine_exec ::: \
  "$COFFER_BUILD/coffer" sandbox exec "$id" -- /bin/true ::: sh "$T/exec" "$box"
# 1 GiB, five times each in turns, of which the best counts: what a machine does
# besides makes it slower only.
python3 - "$COFFER_BUILD/coffer" "$id" "$box" <<'PY' || worst=1
import subprocess, sys, time
size = 1 << 30
coffer, id, box = sys.argv[1:]
head = ["head", "-c", str (size), "/dev/zero"]
best = {}
for turn in range (5):
    for name, argv in (("", [coffer, "sandbox", "exec", id, "--"] + head),
                       ("_other", ["docker", "exec", box] + head)):
        began = time.monotonic ()
        with subprocess.Popen (argv, stdout=subprocess.PIPE) as process:
            while process.stdout.read1 (1 << 20):
                pass
        took = time.monotonic () - began
        best[name] = min (best.get (name, took), took)
for name, took in best.items ():
    print (f"engine_gigabyte{name}_mb_s {size / took / 1e6:.1f}")
ratio = best["_other"] / best[""]
print (f"engine_gigabyte_ratio {ratio:.3f}", flush=True)
sys.exit (ratio < 0.8)
PY
list_parallel >"$T/parallel"
grep -q '^ok' "$T/parallel" && echo "engine_parallel_failures 0" || worst=1
coffer sandbox kill "$id" >/dev/null
engine_stop
exit "$worst"
