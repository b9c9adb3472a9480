#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures what is promised, side by side with what one would use instead, and
# prints "NAME VALUE" lines, then one JSON document in bench.json.
#   BENCH_RUNS=51        runs of each command (at least 50 for a verdict)
#   BENCH_ONLY=GLOB      measure these names only
# Exits 1 when a promise is not kept.  The machine should have nothing else to
# do: a line says how busy it was.
set -u
: "${COFFER_BUILD:?}" "${COFFER_SOURCE:?}"
runs=${BENCH_RUNS:-51}
only=${BENCH_ONLY:-*}
here=$COFFER_BUILD/tests/bench
coffer=$COFFER_BUILD/coffer
# What a run notes lies in the runtime folder, which is memory on a machine
# that boots with systemd (/run, $XDG_RUNTIME_DIR): so is it here.
memory=${TMPDIR:-/tmp}
if [ -w /dev/shm ] && [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then
  memory=/dev/shm
fi
COFFER_HOME=$(mktemp -d "$memory/coffer-bench.XXXXXX") || exit 2
chmod 700 "$COFFER_HOME"
export COFFER_HOME
lines=$COFFER_HOME/lines
: > "$lines"
trap 'rm -rf "$COFFER_HOME"' EXIT
trap 'exit 2' HUP INT TERM
unset COFFER_PROVIDER BOX_BACKEND
worst=0

# measure NAME PROMISE COMMAND…: runs it, shows and keeps its lines.
measure () {
  name=$1 promise=$2
  shift 2
  # shellcheck disable=SC2254
  case $name in $only) ;; *) return ;; esac
  status=0
  "$@" > "$COFFER_HOME/out" || status=$?
  cat "$COFFER_HOME/out"
  grep -v '^#' "$COFFER_HOME/out" >> "$lines"
  case $status in
    0) echo "# $name: kept ($promise)"; echo "${name}_kept 1" >> "$lines" ;;
    1) echo "# $name: NOT KEPT ($promise)"; echo "${name}_kept 0" >> "$lines"
       [ "$worst" -gt 1 ] || worst=1 ;;
    *) echo "# $name: could not be measured" ; worst=2 ;;
  esac
}

pairs () { "$here/pairs" -n "$runs" "$@"; }
# A machine has moments that last for a second or two: more than one of them.
runs_of () { "$here/pairs" -n "$((runs * 3))" "$@"; }

# Names in / that lead into /usr.
merged=
for d in lib lib64 lib32 libx32 bin sbin; do
  [ -L "/$d" ] && merged="$merged $d"
done

# The same view of the system that a run has, as arguments of "$@".
bwrap_command () {
  links=
  for d in $merged; do links="$links --symlink usr/$d /$d"; done
  # shellcheck disable=SC2086
  "$@" bwrap --unshare-all --die-with-parent --ro-bind /usr /usr \
    --ro-bind /etc /etc $links --proc /proc --dev /dev --tmpfs /tmp \
    --tmpfs /workspace --chdir /workspace -- /bin/true
}

nsjail_command () {
  set -- "$@" nsjail --really_quiet --mode o --bindmount_ro /usr \
    --bindmount_ro /etc --tmpfsmount /tmp --tmpfsmount /workspace
  for d in $merged; do set -- "$@" --symlink "/usr/$d:/$d"; done
  for d in null zero full random urandom tty; do
    set -- "$@" --bindmount "/dev/$d"
  done
  "$@" --cwd /workspace -- /bin/true
}

bwrap_true () {
  bwrap_command runs_of -r 0.9 run_vs_bwrap ::: "$coffer" run -- /bin/true :::
}

nsjail_true () {
  nsjail_command runs_of -r 1 run_vs_nsjail ::: "$coffer" run -- /bin/true :::
}

sandbox () {
  if command -v bwrap > /dev/null; then
    BENCH_RUNS=$runs bwrap_command "$here/bench-sandbox" "$here/floor-init"
  else
    BENCH_RUNS=$runs "$here/bench-sandbox" "$here/floor-init"
  fi
}

# A GiB of what does not compress, in memory as a sandbox's files are.
big=$COFFER_HOME/big
bytes=${BENCH_BYTES:-1073741824}
turns=${BENCH_BYTES_RUNS:-5}
big_make () { [ -s "$big" ] || head -c "$bytes" /dev/urandom > "$big"; }

stdout () {
  big_make
  "$here/pairs" -n "$turns" -r 1.053 stdout \
    ::: sh -c '"$0" run -v "$1:/data/big:ro" -- cat /data/big | cat > /dev/null' \
      "$coffer" "$big" \
    ::: sh -c 'cat "$0" | cat > /dev/null' "$big"
}

# What is there from the turn before is removed first, on both sides: memory that
# has just been freed is had for less than other memory.
copied () { # upload|download
  big_make
  id=$("$coffer" sandbox create --disk "$((bytes * 5 / 2))" --ttl 10m) || return 2
  if [ "$1" = upload ]; then
    set -- upload "$big" /workspace/big
  else
    "$coffer" sandbox upload "$id" "$big" /workspace/big > /dev/null || return 2
    set -- download /workspace/big "$big.copy"
  fi
  status=0
  "$here/pairs" -n "$turns" -r 1.25 "$1" ::: sh -c \
    'if [ "$2" = upload ]; then "$0" sandbox exec "$1" -- rm -f "$4"; else rm -f "$4"; fi
     exec "$0" sandbox "$2" "$1" "$3" "$4"' "$coffer" "$id" "$@" ::: sh -c \
    'rm -f "$0.copy"; cp --reflink=never "$0" "$0.copy" && openssl dgst -sha256 "$0.copy" > /dev/null' \
    "$big" || status=$?
  "$coffer" sandbox kill "$id" > /dev/null
  rm -f "$big.copy"
  return "$status"
}

echo "# $(uname -sr), $(nproc) processors, load $(cut -d' ' -f1-3 /proc/loadavg), $runs runs, COFFER_HOME on $(stat -f -c %T "$COFFER_HOME")"
if command -v bwrap > /dev/null; then
  measure run_vs_bwrap 'a run takes at most 0.9 of the time' bwrap_true
else
  echo "# run_vs_bwrap: SKIP missing: bwrap"
fi
if command -v nsjail > /dev/null; then
  measure run_vs_nsjail 'a run takes less than one of nsjail' nsjail_true
else
  echo "# run_vs_nsjail: SKIP missing: nsjail"
fi
measure sandbox 'create, exec and kill in one process: at most 1.25 times the floor and half of bwrap' sandbox
measure idle '500 at once: 512 KiB each, given back; the last as fast as the first' \
  "$here/bench-idle"
measure warm 'code by an interpreter that stands ready: at most 0.45 of a bare one, 0.05 with arrays; of 8 at once the slowest in a hundred takes at most 3 times the middle' \
  "$here/bench-warm"
measure stdout 'output of a command, at least 0.95 of a plain pipe' stdout
if command -v openssl > /dev/null; then
  measure upload 'at least 0.8 of copying and hashing' copied upload
  measure download 'at least 0.8 of copying and hashing' copied download
else
  echo "# upload, download: SKIP missing: openssl"
fi
measure run_host 'no promise: the host provider' \
  pairs run_host ::: "$coffer" run --provider host -- /bin/true
measure start 'no promise: the start of coffer alone' \
  pairs start ::: "$coffer" version
measure verify 'all shipped modules in at most 20 ms' \
  pairs -m 20 verify ::: "$coffer" provider verify
measure run_memory 'coffer, worker and init in at most 16 MiB' \
  python3 "$COFFER_SOURCE/tests/bench/pss.py" run 16 \
  "$coffer" run -- /bin/sleep
id=$("$coffer" sandbox create --ttl 5m) &&
  measure exec_memory 'the same with the worker of a lasting sandbox' \
    python3 "$COFFER_SOURCE/tests/bench/pss.py" exec 16 \
    "$coffer" sandbox exec "$id" -- /bin/sleep
[ -z "$id" ] || "$coffer" sandbox kill "$id" > /dev/null
serve () { python3 "$COFFER_SOURCE/tests/bench/serve.py" "$1"; }
measure engine 'no more than 1.15 of curl for a life, 1.1 for a command; 0.8 of what docker exec moves' \
  sh "$COFFER_SOURCE/tests/engines/bench.sh"
measure execute '/execute in 0.45 of a bare python; at 8 clients p99 within 3 p50' serve execute
measure execute_data 'the same with numpy and pandas in 0.05 of it' serve execute_data
measure serve_exec 'commands by the daemon: 1000 a second, or half of fork and exec' serve exec
measure serve_events '256 MiB of events: 150 MB/s as lines, 300 as frames' serve events
measure serve_idle 'a daemon that does nothing in at most 20 MiB' serve idle
for program in ${BENCH_PROGRAMS:-}; do
  name=${program##*/bench-}
  measure "$name" 'see the program' "$COFFER_BUILD/$program"
done
awk 'BEGIN { printf "{" }
  { printf "%s\"%s\": ", (n++ ? ", " : ""), $1
    if (NF == 2) printf "%s", $2
    else { printf "["; for (i = 2; i <= NF; i++) printf "%s%s", (i > 2 ? ", " : ""), $i; printf "]" } }
  END { print "}" }' "$lines" > "$COFFER_BUILD/bench.json"
echo "# written: bench.json"
exit "$worst"
