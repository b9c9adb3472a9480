# SPDX-License-Identifier: Apache-2.0
# provider doctor linux names what a machine lacks and what helps: each lack is
# made here for real, in namespaces or by a filter of system calls.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3 unshare
needs_sandbox

doctor () { coffer provider doctor linux --json "$@"; }
fact () { # NAME KEY
  json "$out" '[f.get ("'"$2"'") for f in d["facts"] if f["name"] == "'"$1"'"][0]'
}
lacks () { # what fact state value remedy COMMAND…
  what=$1 name=$2 state=$3 value=$4 remedy=$5; shift 5
  run "$@"
  want=0; [ "$state" != failed ] || want=1
  is "$what: exit status" "$status" "$want"
  is "$what: the fact" "$(fact "$name" state)" "$state"
  like "$what: what was found" "$(fact "$name" value)" "$value"
  like "$what: what helps" "$(fact "$name" remedy)" "$remedy"
}
deny () { python3 "$COFFER_SOURCE/tests/e2e/deny.py" "$@"; }
program=$COFFER_BUILD/coffer
profiles=$COFFER_HOME/config/profiles
mkdir -p "$profiles"
chmod 755 "$COFFER_HOME/config" "$profiles"

run doctor
is "well: exit status" "$status $(json "$out" 'd["ok"]')" "0 True"
is "well: nothing has failed" "$(json "$out" '[f["name"] for f in d["facts"] if f["state"] == "failed"]')" "[]"
is "every fact says how it was read" "$(json "$out" 'all (f.get ("how") for f in d["facts"])')" True
is "every lack has a remedy" \
  "$(json "$out" '[f["name"] for f in d["facts"] if f["state"] != "ok" and not f.get ("remedy")]')" "[]"
run coffer provider doctor linux
like "for people: a table" "$(cat "$out")" '^userns +ok .*'

# In a user namespace of ours the switch is ours to turn.
run unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces'
if [ "$status" -eq 0 ] && [ "$(id -u)" -eq 0 ]; then
  lacks "user namespaces switched off" userns failed "user.max_user_namespaces is 0" \
    "sysctl user.max_user_namespaces=" \
    unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' - \
    "$program" provider doctor linux --json
  is "what is gone with them is named" "$(json "$out" '"exec" in [f for f in d["facts"] if f["name"] == "userns"][0]["narrows"]')" True
  run unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"' - "$program" run -- true
  like "and a run says whom to ask" "$status $(cat "$err")" "^125 coffer: E2005: .*|provider doctor linux"

  # Settings that this kernel may not have, in a /proc/sys of ours.
  mkdir "$T/user"; chmod 1777 "$T/user"
  setting () { # NAME VALUE: doctor as an ordinary user who gets EPERM
    unshare -m sh -c 'mount -t tmpfs none /proc/sys/kernel \
        && echo "$2" >"/proc/sys/kernel/$1" && shift 2 && exec "$@"' - "$1" "$2" \
      python3 "$COFFER_SOURCE/tests/e2e/deny.py" clone:EPERM:0x10000000 -- \
      setpriv --reuid "$E2E_UID" --regid "$E2E_UID" --clear-groups \
      env COFFER_HOME="$T/user/home" "$program" provider doctor linux --json
  }
  if as_user test -x "$program"; then
    lacks "the restriction of Ubuntu 24.04" userns failed "AppArmor keeps them" \
      "contrib/apparmor/install" setting apparmor_restrict_unprivileged_userns 1
    lacks "the switch of Debian" userns failed "unprivileged_userns_clone is 0" \
      "sysctl kernel.unprivileged_userns_clone=1" setting unprivileged_userns_clone 0
  fi

  for masked in /proc/bus /proc/irq /proc/fs; do [ ! -d $masked ] || break; done
  lacks "/proc is masked, as in a container" proc failed "lies over parts of /proc" \
    "systempaths=unconfined" \
    unshare -m sh -c 'mount -t tmpfs none "$1" && shift && exec "$@"' - $masked \
    "$program" provider doctor linux --json
  # Of a mount namespace of ours alone: the flag is that of its mounts.
  frozen () {
    unshare -m sh -c 'awk "\$(NF-2) ~ /^cgroup2?$/ { print \$5 }" /proc/self/mountinfo \
      | while read -r at; do mount -o remount,bind,ro "$at" || exit 1; done
      exec "$@"' - "$program" "$@"
  }
  run doctor
  if [ "$(fact cgroup state)" = ok ]; then
    lacks "control groups are read-only, as in a container" cgroup absent \
      "limits are those of processes" "writable" frozen provider doctor linux --json
    run frozen run --mem 64M --json -- true
    is "limits are then each process's, and that is reported" "$(json "$out" \
      'd["status"], [f["state"] for f in d["applied"]["facts"] if f["name"] == "limit.memory"]')" "(0, ['degraded'])"
    printf 'profile: 1\nname: grouped\nsummary: s\nmemory: 64MiB\nrequire: [cgroup]\n' >"$profiles/grouped.yaml"
    run frozen run --profile grouped -- true
    like "and refused where a profile requires them" "$status $(cat "$err")" "^125 coffer: E2005: .*cgroup"
    run coffer run --profile grouped -- true
    is "which is well where they are writable" "$status" 0
  fi
  mkdir "$T/root"
  lacks "a chroot" userns failed "cannot be made" "chroot: entered by systemd-nspawn" \
    unshare -m sh -c 'mount --rbind / "$1" && exec chroot "$@"' - "$T/root" \
    "$program" provider doctor linux --json
  lacks "no loop devices" quota degraded "in memory alone" "modprobe loop" \
    unshare -m sh -c 'mkdir "$1" && mount --move /dev "$1" && mount -t tmpfs none /dev \
      && for d in null zero full random urandom tty pts; do
        [ -d "$1/$d" ] && mkdir /dev/$d || : >/dev/$d
        mount --rbind "$1/$d" /dev/$d; done
      shift && exec "$@"' - "$T/devices" "$program" provider doctor linux --json
fi
lacks "a container's filter" userns failed "Operation not permitted" "seccomp=unconfined" \
  deny clone:EPERM:0x10000000 unshare:EPERM:0x10000000 -- "$program" provider doctor linux --json
# Namespaces can be made there, and no sandbox: a run and the doctor say the same.
for call in mount open_tree mount_setattr move_mount pivot_root; do
  lacks "a filter of $call" userns failed "cannot be used: $call: Operation not permitted" \
    "seccomp=unconfined" deny $call:EPERM -- "$program" provider doctor linux --json
  run deny $call:EPERM -- "$program" run -- echo ran
  like "a filter of $call: a run is refused, and says whom to ask" "$status $(cat "$out")$(cat "$err")" \
    "^125 coffer: E2005: .*|Operation not permitted.*provider doctor linux"
done
lacks "no Landlock" landlock absent "not implemented" "lsm= list" \
  deny landlock_create_ruleset:ENOSYS -- "$program" provider doctor linux --json
is "which alone is no failure" "$(json "$out" 'd["ok"]')" True
lacks "an old kernel" mounts failed "mount_setattr is not there" "5.12" \
  deny mount_setattr:ENOSYS -- "$program" provider doctor linux --json

# What is not there is refused where it is required, and only there.
printf 'profile: 1\nname: held\nsummary: s\nrequire: [landlock]\n' >"$profiles/held.yaml"
run deny landlock_create_ruleset:ENOSYS -- "$program" run --profile held -- true
like "a profile that requires Landlock is refused without" "$status $(cat "$err")" "^125 coffer: E2005: .*landlock"
run deny landlock_create_ruleset:ENOSYS -- "$program" run --json -- true
is "another run goes on, and reports it" \
  "$(json "$out" 'd["status"], [f["state"] for f in d["applied"]["facts"] if f["name"] == "landlock"]')" "(0, ['absent'])"

if [ "$(id -u)" -ne 0 ]; then
  run doctor
  is "an ordinary user: said" "$(fact privileges state) $(fact quota state)" "degraded degraded"
  if [ "$(fact cgroup state)" != ok ]; then
    like "no control group: what helps" "$(fact cgroup remedy)" "systemd-run --user --scope|control group"
    is "and what is gone" "$(json "$out" '"limit.memory" in [f for f in d["facts"] if f["name"] == "cgroup"][0]["narrows"]')" True
  fi
fi

# A run's network namespace is made with its init or by it, by one call or another,
# or there is no sandbox: never is it the machine's.
machine=$(readlink /proc/self/ns/net | tr '[]' '..')
for calls in setns:EPERM unshare:EPERM:0x40000000 unshare:EPERM; do
  run deny "$calls" -- "$program" run -- readlink /proc/self/ns/net
  like "no $calls: another call makes it" "$status $(cat "$out")" '^0 net:'
  unlike "and it is not the machine's" "$(cat "$out")" "$machine"
done
run deny setns:EPERM unshare:EPERM:0x40000000 -- "$program" run -- readlink /proc/self/ns/net
like "none to be made with it, nor by it" "$status $(head -1 "$err" "$out" | tr '\n' ' ')" \
  '^125 .*coffer: E2005: .*network|^0 .*net:'
unlike "is none of the machine's, either" "$status $(cat "$out")" "$machine"

finish
