# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Real container engines for scenarios: each is started here, out of packages, in
# a network and a mount namespace of its own, with all that it keeps below $T.
# What it leaves of addresses, rules, mounts and files goes with those.
#
#   . "${COFFER_SOURCE:?}/tests/engines/lib.sh"     after tests/e2e/lib.sh
#   engine_start KIND     docker, gvisor (the same with runsc as its runtime),
#                         podman (as root, runc), rootless (an ordinary user's)
#   api METHOD PATH [CURL-ARGUMENT…]    one request to it: the body to stdout
#   image NAME            an image of busybox and nothing else; $image_changes
#   inside CMD…           in its namespaces
#   engine_kill           SIGKILL to the engine alone: containers go on
#   engine_again          and started anew over what it has kept
#   engine_finish         stops it, and a test that it had and left nothing;
#                         then `finish` of tests/e2e/lib.sh
#
# $socket is its socket, DOCKER_HOST names it, $engine is its kind; $engine_more are
# further options of dockerd.

E=$T/engine
socket=$E/engine.sock
holder='' engine_pid='' containerd_pid='' engine_more=''

# ---- its namespaces ----------------------------------------------------------

# A process that does nothing holds them, so that an engine can end and come back.
# Of the machine's /run, where engines and their shims meet by fixed names, nothing
# is shown, nor of /var/lib and /etc/docker, where they keep a cache of what they have
# pulled and a key under fixed names; what is in /etc of an ordinary user's is that user's alone.
holder_start () {
  unshare -n -m sh -c '
    ip link set lo up && mount -t tmpfs -o mode=755 none /run || exit 1
    mkdir /run/lock
    for folder in /var/lib /etc/docker; do
      [ ! -d "$folder" ] || mount -t tmpfs -o mode=755 none "$folder" || exit 1
    done
    for name in passwd group subuid subgid; do
      [ ! -e "$0/etc/$name" ] || mount --bind "$0/etc/$name" "/etc/$name" || exit 1
    done
    [ -z "$1" ] || { mkdir -p "$0/data"
      mount -t tmpfs -o mode=711,size=8g none "$0/data"; } || exit 1
    : >"$0/held"
    exec sleep 100000' "$E" "${engine_own:-}" >"$E/holder.log" 2>&1 &
  holder=$!
  soon 10 test -e "$E/held"
}

inside () { nsenter -t "$holder" -n -m -- "$@"; }
# With `exec`, so that the number of a process in the background is its own.
inside_exec () { exec nsenter -t "$holder" -n -m -- "$@"; }

# The disk of what the engine keeps, its own where a scenario has set engine_own
# before engine_start: with room for so much, '' for as much as before.
engine_full () { # KIB
  engine_used=$(inside df -k --output=used "$E/data" | tail -1)
  engine_size=8g
  [ -z "$1" ] || engine_size=$((engine_used + $1))k
  inside mount -o "remount,size=$engine_size" "$E/data"
}

# Ended by its number: TERM, half a minute, KILL.
ended () { ! kill -0 "$1" 2>/dev/null; }
end () { # PID
  [ -n "$1" ] || return 0
  kill "$1" 2>/dev/null
  soon 30 ended "$1" || kill -9 "$1" 2>/dev/null
  wait "$1" 2>/dev/null
  return 0
}

api () { # METHOD PATH [ARGUMENT…]
  api_method=$1 api_path=$2
  shift 2
  curl -sS --max-time 60 --unix-socket "$socket" -X "$api_method" "$@" \
    "http://engine/v1.41$api_path"
}

answers () { curl -fsS --max-time 5 --unix-socket "$socket" http://engine/_ping; }

# ---- docker and gvisor --------------------------------------------------------

docker_needs () {
  needs unshare nsenter ip curl busybox dockerd containerd runc
  [ "$engine" != gvisor ] || needs runsc
}

# A containerd of our own first: one that dockerd starts itself dies with it, and
# containers with that.
docker_prepare () {
  parent=/coffer-engine-$$
  cat >"$E/containerd.toml" <<TOML
version = 2
root = "$E/containerd"
state = "$E/run/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "$E/containerd.sock"
TOML
  docker_default=runc
  [ "$engine" != gvisor ] || docker_default=runsc
  cat >"$E/docker.json" <<JSON
{"live-restore": true, "default-runtime": "$docker_default",
 "runtimes": {"runsc": {"path": "$(command -v runsc || echo /nowhere)",
   "runtimeArgs": ["--network=none"]}}}
JSON
  inside_exec containerd -c "$E/containerd.toml" >"$E/containerd.log" 2>&1 &
  containerd_pid=$!
  soon 30 test -S "$E/containerd.sock"
}

docker_launch () {
  rm -f "$E/docker.pid"
  # shellcheck disable=SC2086
  inside_exec dockerd --host "unix://$socket" --containerd "$E/containerd.sock" \
    --data-root "$E/data" --exec-root "$E/run/docker" \
    --pidfile "$E/docker.pid" --config-file "$E/docker.json" \
    --cgroup-parent "$parent" --iptables=false --bridge=none $engine_more \
    >>"$E/engine.log" 2>&1 &
  engine_pid=$!
}

# ---- podman -------------------------------------------------------------------

podman_needs () {
  needs unshare nsenter ip curl busybox podman conmon runc
  [ "$engine" != rootless ] || needs newuidmap setpriv
}

# The limits are what podman would raise and here may not; an exec that has ended
# keeps its conmon for the time that its exit can be asked for.
podman_prepare () {
  cat >"$E/containers.conf" <<CONF
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
netns = "none"
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
exit_command_delay = 2
CONF
  printf '[storage]\ndriver = "overlay"\ngraphroot = "%s"\nrunroot = "%s"\n' \
    "$E/data" "$E/run/podman" >"$E/storage.conf"
}

# A name and subordinate numbers, which only its namespace has.
rootless_prepare () {
  printf 'engine:x:%s:%s::%s:/bin/sh\n' "$E2E_UID" "$E2E_UID" "$E/home" \
    | cat /etc/passwd - >"$E/etc/passwd"
  printf 'engine:x:%s:\n' "$E2E_UID" | cat /etc/group - >"$E/etc/group"
  printf 'engine:%s:65536\n' $((1000000000 + E2E_UID * 65536 % 1000000000)) \
    | tee "$E/etc/subuid" >"$E/etc/subgid"
  mkdir -p "$E/home" "$E/xdg" "$E/run/podman" "$E/data"
  chmod 700 "$E/xdg" "$E/home"
  chown -R "$E2E_UID:$E2E_UID" "$E/home" "$E/xdg" "$E/run" "$E/data"
  chown "$E2E_UID:$E2E_UID" "$E"
}

podman_exec () {
  podman_as=
  [ "$engine" != rootless ] || podman_as="setpriv --reuid $E2E_UID
    --regid $E2E_UID --clear-groups --inh-caps=-all"
  # shellcheck disable=SC2086
  inside_exec $podman_as env -i PATH="$PATH" HOME="$E/home" TMPDIR="$E/run" \
    XDG_RUNTIME_DIR="$E/xdg" CONTAINERS_CONF="$E/containers.conf" \
    CONTAINERS_STORAGE_CONF="$E/storage.conf" podman "$@"
}

podman_launch () {
  rm -f "$socket"
  podman_exec system service --time=0 "unix://$socket" >>"$E/engine.log" 2>&1 &
  engine_pid=$!
}

# ---- any of them ---------------------------------------------------------------

engine_launch () {
  case $engine in
    docker|gvisor) docker_launch ;;
    *) podman_launch ;;
  esac
  soon 30 answers || { note "$(tail -20 "$E/engine.log")"; return 1; }
}

# Folders that engines make in trees of control groups, as they were before.
cgroups () {
  case $engine in
    docker|gvisor) cgroups_name="coffer-engine-$$" ;;
    rootless) return ;;         # it may make none
    *) cgroups_name='libpod*' ;;
  esac
  find /sys/fs/cgroup -mindepth 2 -maxdepth 3 -type d \
    \( -name "$cgroups_name" -o -path "*/$cgroups_name/*" \) 2>/dev/null | sort
}

# Where engines keep what they have when nobody tells them another place.
outside () {
  for folder in /var/lib/cni /var/lib/containers \
    /var/lib/containerd /var/lib/docker /etc/cni /etc/docker /etc/containers; do
    find "$folder" -maxdepth 2 2>/dev/null
  done | sort
}

engine_start () { # KIND
  engine=$1
  [ "$(id -u)" -eq 0 ] || skip_all root
  trap 'engine_stop; e2e_leave' EXIT
  mkdir -p "$E/run" "$E/etc"
  cgroups >"$T/cgroups"
  outside >"$T/outside"
  case $engine in
    docker|gvisor) docker_needs ;;
    *) podman_needs ;;
  esac
  [ "$engine" != rootless ] || rootless_prepare
  holder_start || { note "$(cat "$E/holder.log")"; return 1; }
  case $engine in
    docker|gvisor) docker_prepare ;;
    *) podman_prepare ;;
  esac
  DOCKER_HOST=unix://$socket
  export DOCKER_HOST
  engine_launch
}

# An ordinary user's is two processes, of which the first only waits.
engine_kill () {
  # shellcheck disable=SC2046
  kill -9 "$engine_pid" $(ps -o pid= --ppid "$engine_pid")
  wait "$engine_pid" 2>/dev/null
  engine_pid=
}
engine_again () { engine_launch; }

# An engine that is killed between its process for a container and its record of
# that forgets the process, which waits for ever for its start: Podman its conmon,
# Docker the shim of its containerd.  What a removal is about to end has its time.
engine_forgotten () {
  engine_unstored
  soon 10 no_forgotten && soon 10 no_forgotten_groups && return
  forgotten | while read -r pid id; do
    note "the engine has forgotten $id"
    # shellcheck disable=SC2046
    kill -9 "$pid" $(ps -o pid= --ppid "$pid") 2>/dev/null
    soon 10 ended "$pid"
  done
  soon 10 no_forgotten_groups
}

# Podman that is killed between its record of a container and that one's storage tells
# of no container at all, until this one is removed.
engine_unstored () {
  for engine_try in 1 2 3; do
    engine_bad=$(api GET '/containers/json?all=1' \
      | sed -n 's/.*container from store[^0-9a-f]*\([0-9a-f]\{64\}\).*/\1/p' | head -1)
    [ -n "$engine_bad" ] || return 0
    note "the engine has lost the storage of $engine_bad"
    api DELETE "/containers/$engine_bad?force=1" >/dev/null
  done
}

# PID CONTAINER of those that it no longer tells of.
forgotten () {
  ours | sed -n -e 's/^ *\([0-9]*\) .*conmon .* -c \([0-9a-f]*\) .*/\1 \2/p' \
    -e 's/^ *\([0-9]*\) .*containerd-shim.* -id \([0-9a-f]*\) .*/\1 \2/p' \
    | while read -r pid id; do
      api GET "/containers/$id/json" -f >/dev/null 2>&1 || echo "$pid $id"
    done
}
no_forgotten () { [ -z "$(forgotten)" ]; }

# Nor does it know of that one's control groups, which may be there before any
# process is.
no_forgotten_groups () {
  cgroups | comm -13 "$T/cgroups" - \
    | grep -E '/(libpod_parent/libpod-|coffer-engine-[0-9]+/)[0-9a-f]' | sort -r | (
    left=0
    while read -r folder; do
      id=$(echo "$folder" | grep -oE '[0-9a-f]{64}' | head -1)
      api GET "/containers/$id/json" -f >/dev/null 2>&1 && continue
      rmdir "$folder" 2>/dev/null || left=1
    done
    [ "$left" -eq 0 ])
}

image () { # NAME
  if [ ! -e "$E/busybox.tar" ]; then
    mkdir -p "$E/image/bin" "$E/image/tmp" "$E/image/etc" "$E/image/root"
    chmod 1777 "$E/image/tmp"
    cp "$(command -v busybox)" "$E/image/bin/busybox"
    for name in $(busybox --list | grep -vx busybox); do
      ln -s busybox "$E/image/bin/$name"
    done
    # What is asked of images, and busybox has not.
    for program in $(ldd "$(command -v cksum)" | grep -o '/[^ ]*') \
      "$(command -v cksum)"; do
      cp -L --parents "$program" "$E/image"
    done
    echo root:x:0:0::/root:/bin/sh >"$E/image/etc/passwd"
    tar -C "$E/image" --numeric-owner --owner=0 --group=0 \
      -cf "$E/busybox.tar" .
    rm -rf "$E/image"
  fi
  # One of the two reads the tag in `tag`, the other in `repo`.
  case $engine in
    docker|gvisor) image_query="repo=${1%:*}&tag=${1##*:}" ;;
    *) image_query="repo=$1" ;;
  esac
  image_query=$image_query${image_changes:+&$image_changes}
  api POST "/images/create?fromSrc=-&$image_query" -f \
    -H 'Content-Type: application/x-tar' -T "$E/busybox.tar" >"$out" 2>"$err"
}

# ---- what is left ----------------------------------------------------------------

# What the engine itself still has: everything in it was ours to remove.
engine_list () {
  answers >/dev/null || return
  api GET '/containers/json?all=1' | python3 -c '
import json, sys
for c in json.load (sys.stdin): print ("container", c["Id"][:12], *c["Names"], c["State"])'
  api GET /volumes | python3 -c '
import json, sys
for v in json.load (sys.stdin)["Volumes"] or []: print ("volume", v["Name"])'
  api GET /networks | python3 -c '
import json, sys
for n in json.load (sys.stdin):
    if n["Name"] not in ("none", "host", "bridge", "podman"): print ("network", n["Name"])'
}

# Everything goes, whatever a scenario that failed has left.
engine_clear () {
  for id in $(engine_list 2>/dev/null | sed -n 's/^container \([^ ]*\).*/\1/p'); do
    api DELETE "/containers/$id?force=1&v=1" >/dev/null 2>&1
  done
}

engine_stop () {
  [ -n "$holder" ] || return 0
  engine_children=
  [ -z "$engine_pid" ] || {
    engine_clear
    [ "$engine" != rootless ] || engine_children=$(ps -o pid= --ppid "$engine_pid")
  }
  end "$engine_pid"
  for pid in $engine_children; do
    end "$pid"
  done
  end "$containerd_pid"
  # The process that keeps an ordinary user's namespaces for later commands.
  for pid in $(ours | awk '$0 ~ /catatonit|podman pause/ { print $1 }'); do
    end "$pid"
  done
  end "$holder"
  holder='' engine_pid='' containerd_pid=''
  cgroups | comm -13 "$T/cgroups" - | sort -r | while read -r folder; do
    rmdir "$folder" 2>/dev/null
  done
  return 0
}

engine_conmons () { ours | grep -E '[c]onmon|[c]ontainerd-shim' ; }
no_conmons () { [ -z "$(engine_conmons)" ]; }
engine_finish () {
  is "$engine: no container, volume or network is left in it" \
    "$(engine_list 2>&1)" ""
  ok "$engine: no process of a container is left" soon 30 no_conmons
  no_conmons || note "$(engine_conmons)"
  is "$engine: no control group of a container is left" \
    "$(cgroups | comm -13 "$T/cgroups" - | grep -v '/conmon$' | grep -E '/(coffer-engine-[0-9]*|libpod_parent)/')" ""
  engine_stop
  is "$engine: it leaves no control group" \
    "$(cgroups | comm -13 "$T/cgroups" -)" ""
  trap e2e_leave EXIT
  ok "$engine: nothing below its folder is in use" rm -rf "$E"
  outside >"$T/outside-now"
  is "$engine: it leaves no file elsewhere" \
    "$(comm -13 "$T/outside" "$T/outside-now")" ""
  finish
}
