# SPDX-License-Identifier: Apache-2.0
# kernels: qemu
# Where no control group is to be had: limits of each process and a word of it,
# or a refusal where a group is required.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "${COFFER_SOURCE:?}/tests/guest/scope.sh"
needs python3
[ "$(id -u)" -eq 0 ] || skip_all "root"

mkdir -p "$COFFER_HOME/config/profiles"
printf 'profile: 1\nname: grouped\nsummary: with a group\nrequire: [cgroup]\nmemory: 64MiB\n' \
  >"$COFFER_HOME/config/profiles/grouped.yaml"
hog='head -c 200M /dev/zero | tail | wc -c'

# What every case ends with, for whoever PREFIX makes of us.
limited () { # WHAT PREFIX…
  what=$1
  shift
  "$@" coffer run --json --mem 64M --pids 20 -- sh -c "$hog" >"$out" 2>"$err"
  is "$what: each process is limited, which the facts and what is not applied say" \
    "$(json "$out" '("memory exhausted" in d["stderr"]["data"], d["stdout"]["data"],
      [f["state"] for f in d["applied"]["facts"] if f["name"] == "limit.memory"],
      "limit.memory" in d["applied"]["not_applied"])')" \
    "(True, '0\\n', ['degraded'], True)"
  "$@" coffer run --mem 64M -- true >"$out" 2>"$err"
  like "$what: and a warning, once" "$? $(grep -c . "$err") $(cat "$err")" "^0 [12] .*memory"
  "$@" coffer run --profile grouped -- echo ran >"$out" 2>"$err"
  is "$what: refused where it is required" "$? $(cat "$out")" "125 "
  like "$what: with the reason" "$(cat "$err")" "cgroup"
}

read_only () { unshare -m sh -c 'mount -o remount,bind,ro /sys/fs/cgroup && exec "$@"' - "$@"; }
hidden () { unshare -m sh -c 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"' - "$@"; }
# A group that others are in too, not handed over.
shared () {
  mkdir -p "$scopes/$$-shared"
  sh -c 'echo $$ >"$1/cgroup.procs"; shift; "$@"; exit $?' - "$scopes/$$-shared" "$@"
}
# A group that has no controllers to hand on.
bare () {
  mkdir -p "/sys/fs/cgroup/bare-$$/x"
  sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "/sys/fs/cgroup/bare-$$/x" "$@"
}
limited "read-only" read_only
limited "hidden" hidden
limited "shared with others" shared
limited "without controllers" bare
rmdir "$scopes/$$-shared" "/sys/fs/cgroup/bare-$$/x" "/sys/fs/cgroup/bare-$$"
is "no group is left" "$(find /sys/fs/cgroup -name "*$$*" -type d)" ""

# An ordinary user, who owns no group at all.
mkdir "$T/theirs"; chown "$E2E_UID" "$T/theirs"
theirs () { as_user env COFFER_HOME="$T/theirs" sh -c 'exec "$@"' - "$@"; }
theirs mkdir -p "$T/theirs/config/profiles"
cp "$COFFER_HOME/config/profiles/grouped.yaml" "$T/theirs/config/profiles/"
chown "$E2E_UID" "$T/theirs/config/profiles/grouped.yaml"
limited "an ordinary user" theirs
finish
