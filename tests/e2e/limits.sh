# SPDX-License-Identifier: Apache-2.0
# Limits as a user meets them: what holds, what is said where it cannot hold, and
# a run that needs a control group on a login that has none.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs_sandbox

facts () { # FILE NAME: state of a fact
  json "$1" "[f['state'] for f in d['applied']['facts'] if f['name'] == '$2']"
}

# ---- what holds ------------------------------------------------------------

# Twice the limit, in a process that does not ask whether it got it.
hungry='x=$(head -c 134217728 /dev/zero | tr "\0" x); echo ${#x}'

run coffer run --json --mem 64M --pids 30 --cpus 0.5 -- sh -c "$hungry"
group=$(facts "$out" cgroup)
if [ "$group" = "['ok']" ]; then
  is "memory: the end is exact" \
    "$(json "$out" "[d['exit'][k] for k in ('oom', 'limits_hit')]")" \
    "[True, ['memory']]"
  is "memory, pids and cpu hold" \
    "$(facts "$out" limit.memory)$(facts "$out" limit.pids)$(facts "$out" limit.cpu)" \
    "['ok']['ok']['ok']"
  is "nothing is missing" "$(json "$out" "d['applied']['not_applied']")" "[]"
else
  # Without a group malloc fails, and nobody is killed.
  is "memory: it cannot be had" \
    "$(json "$out" "[d['exit'][k] for k in ('oom', 'limits_hit')]")$(grep -c 134217728 "$out")" \
    "[False, []]0"
  is "memory is told to be of each process" \
    "$(facts "$out" limit.memory)$(facts "$out" limit.cpu)" "['degraded']['off']"
  is "and is not applied" "$(json "$out" "d['applied']['not_applied']")" \
    "['limit.memory', 'limit.cpu']"
  run coffer run --mem 64M -- true
  is "without a group it runs all the same" "$status" 0
  like "with a warning" "$(cat "$err")" '^coffer: warning: not applied here: limit.memory'
  like "that says what helps" "$(cat "$err")" 'provider doctor linux'
fi

run coffer run --json --disk 1M -- sh -c 'head -c 3M /dev/zero >/tmp/x'
is "disk: ENOSPC inside, named outside" \
  "$(json "$out" "d['exit']['limits_hit']")$(grep -c 'No space left' "$out")" "['disk']1"

# ---- whose turn it is, and whose end ----------------------------------------

# What may take precedence of others, as far as this user may, and from there.
cat >"$T/first" <<'EOF'
nice=$(awk '{ print $19 }' /proc/$$/stat)
echo "$((nice < 0 ? 0 : nice)) 0 0 0"
exec "$COFFER_BUILD/coffer" run -- sh -c \
  'echo $(awk "{ print \$19, \$40, \$41 }" /proc/self/stat) $(cat /proc/self/oom_score_adj)'
EOF
cat >"$T/precede" <<'EOF'
renice -n -5 -p $$ >&2
{ echo -100 >/proc/self/oom_score_adj; } 2>/dev/null
chrt -f 5 true && exec chrt -f 5 sh "$@"
exec sh "$@"
EOF
COFFER_BUILD=$COFFER_BUILD run nice -n 3 sh "$T/precede" "$T/first"
is "a sandbox takes no precedence with it" "$(sed -n 2p "$out")" "$(sed -n 1p "$out")"

# ---- out of range ----------------------------------------------------------

for pair in '--mem 2M' '--mem 9E' '--disk 1K' '--pids 0' '--pids 4194305' \
            '--cpus 0' '--cpus 1025' '--mem 16777216T'; do
  # shellcheck disable=SC2086
  run coffer run $pair -- true
  is "$pair: refused" "$status $(grep -Ec '^coffer: E[0-9]+: ' "$err")" "125 1"
done

# ---- a disk limit and a folder of the host ---------------------------------

mkdir "$T/folder"
run coffer run -w "$T/folder:rw" -- true
if grep -q 'id-mapped' "$err"; then
  skip "a folder" "id-mapped mounts on the file system of /tmp"
else
  is "a folder may be written to" "$status" 0
  run coffer run -w "$T/folder:rw" --disk 1M -- touch here
  is "a disk limit that cannot hold there is refused" "$status $(ls "$T/folder")" "125 "
  like "by name" "$(cat "$err")" '^coffer: E2005: .*quota.hard: nothing caps'
  like "with what helps" "$(cat "$err")" '--accept quota.hard'
  run coffer run -w "$T/folder:rw" --disk 1M --accept quota.hard -- touch here
  is "and goes when that is accepted" "$status $(ls "$T/folder")" "0 here"
  run coffer run -w "$T/folder" --disk 1M -- true
  is "read-only there is nothing to refuse" "$status" 0
fi

# ---- a workspace in a file -------------------------------------------------

devices () { grep -l "$T/work.img" /sys/block/loop*/loop/backing_file 2>/dev/null; }
no_devices () { [ -z "$(devices)" ]; }
: >"$T/work.img"; chmod 600 "$T/work.img"
if [ "$(id -u)" -ne 0 ]; then
  run coffer run -w "$T/work.img:rw" --disk 4M -- true
  like "a workspace in a file takes root" "$status $(cat "$err")" '^125 .*E2005: .*only root mounts'
elif [ ! -w /dev/loop-control ] || [ ! -x /usr/sbin/mke2fs ]; then
  skip "a workspace in a file" "loop devices"
else
  id=$(coffer sandbox create -w "$T/work.img:rw" --disk 4M) && remember "$id"
  run coffer sandbox exec "$id" -- sh -c 'echo kept >note; head -c 8M /dev/zero >big'
  like "a workspace in a file is full at its size" "$status $(cat "$err")" '^1 .*No space left'
  coffer sandbox kill "$id" >"$out"
  ok "its device goes with the sandbox" soon 5 no_devices
  "$COFFER_BUILD/coffer" run -w "$T/work.img:rw" -- sleep 61 >"$out" 2>&1 &
  host=$!
  one_device () { [ -n "$(devices)" ]; }
  ok "another run has it" soon 10 one_device
  run coffer run -w "$T/work.img:rw" -- true
  like "and no third one" "$status $(cat "$err")" '^125 .*E5003: .*in use by another'
  kill -9 "$host"; wait "$host" 2>/dev/null
  ok "it goes when the host is killed" soon 10 no_devices
  run coffer run -w "$T/work.img" -- cat note
  is "and what was written is there" "$status $(cat "$out")" "0 kept"
  ok "nothing is left of it" soon 5 no_devices
fi
rm "$T/work.img"

# ---- a group that is required ----------------------------------------------

mkdir -p "$COFFER_HOME/config/profiles"
cat >"$COFFER_HOME/config/profiles/grouped.yaml" <<'END'
profile: 1
name: grouped
summary: limits of a control group or none
network: none
require: [cgroup]
memory: 64MiB
pids: 30
END
chmod 700 "$COFFER_HOME/config" "$COFFER_HOME/config/profiles"
COFFER_SCOPE=1 run coffer run --profile grouped -- echo through
if [ "$group" = "['ok']" ]; then
  is "a required group is there" "$status $(cat "$out")" "0 through"
else
  is "a required group that is not there: refused" "$status $(cat "$out")" "125 "
  like "by name" "$(cat "$err")" '^coffer: E2005: .*require: cgroup: '
  like "with what helps" "$(cat "$err")" 'systemd-run --user --scope -p Delegate=yes'
fi

# ---- other machines: a tree that is read-only, a login without a group ------

private () { unshare --mount --propagation private "$@"; }
if [ "$(id -u)" -ne 0 ]; then
  finish
elif ! private true 2>/dev/null; then
  skip "other machines" "the right to mount"
  finish
fi

cat >"$T/readonly" <<'END'
grep -E ' cgroup2? ' /proc/self/mounts | while read -r _ at _; do
  mount -o remount,bind,ro "$at" || exit 1
done
exec "$@"
END
run private sh "$T/readonly" "$COFFER_BUILD/coffer" run --json --mem 64M -- echo through
is "a tree that is read-only: limits of processes" \
  "$status $(json "$out" "d['applied']['not_applied'], d['stdout']['data']")" \
  "0 (['limit.memory'], 'through\\n')"
like "with the reason" \
  "$(json "$out" "[f['remedy'] for f in d['applied']['facts'] if f['name'] == 'cgroup']")" \
  'read-only here: a container needs /sys/fs/cgroup writable'
COFFER_SCOPE=1 run private sh "$T/readonly" "$COFFER_BUILD/coffer" run --profile grouped -- echo no
is "and refused where a group is required" "$status $(cat "$out")" "125 "
like "with the reason" "$(cat "$err")" '^coffer: E2005: .*read-only here'
run private sh "$T/readonly" "$COFFER_BUILD/coffer" provider doctor linux
like "doctor says so" "$(cat "$out")" '^  cgroup: .*read-only here'

# The fake is where systemd-run is, and root's; the user's manager is a file.
command -v setpriv >/dev/null 2>&1 || { skip "a scope" setpriv; finish; }
memory=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
[ -n "$memory" ] && [ -w "/sys/fs/cgroup/memory$memory" ] && [ -w /sys/fs/cgroup/pids ] \
  && [ -e /usr/bin/systemd-run ] && as_user test -x "$COFFER_BUILD/coffer" \
  || { skip "a scope" "a tree of version 1 for root, and systemd-run"; finish; }
user=$E2E_UID
groups="/sys/fs/cgroup/memory${memory%/}/coffer-scope-$$ /sys/fs/cgroup/pids/coffer-scope-$$"
for g in $groups; do
  mkdir "$g" && chown "$user" "$g" "$g/cgroup.procs" "$g/tasks"
done
cat >"$T/systemd-run" <<END
#!/bin/sh
echo "\$@" >>"$T/calls"
[ -e "$T/useless" ] || for g in $groups; do echo \$\$ >\$g/cgroup.procs || exit 1; done
while [ "\$1" != -- ]; do shift; done
shift
exec "\$@"
END
cat >"$T/login" <<END
mount -t tmpfs none /run && mkdir -p /run/systemd/system /run/user/$user/systemd \
  && : >/run/user/$user/systemd/private && chown -R $user /run/user/$user \
  && mount --bind "$T/systemd-run" /usr/bin/systemd-run || exit 1
exec setpriv --reuid $user --regid $user --clear-groups "\$@"
END
chmod 755 "$T/systemd-run"
: >"$T/calls"; chmod 666 "$T/calls"
chown -R "$user" "$COFFER_HOME" "$T/tmp"

run private sh "$T/login" "$COFFER_BUILD/coffer" run --profile grouped --json -- sh -c 'echo "$1"; exit 3' x 'two  words'
is "a login without a group gets one" "$status $(json "$out" "d['stdout']['data'].strip()")" \
  "3 two  words"
is "that holds" "$(facts "$out" limit.memory)$(facts "$out" limit.pids)" "['ok']['ok']"
is "by one scope that is delegated" "$(sed 's/ -- .*//' "$T/calls")" \
  "--user --scope --quiet --collect -p Delegate=yes"
: >"$T/calls"; : >"$T/useless"
run private sh "$T/login" "$COFFER_BUILD/coffer" run --profile grouped -- echo no
is "one that does not help is tried once" "$status $(cat "$out")$(wc -l <"$T/calls")" "125 1"
like "and what is missing is said" "$(cat "$err")" '^coffer: E2005: .*require: cgroup'
: >"$T/calls"
run private sh "$T/login" "$COFFER_BUILD/coffer" run --mem 64M -- echo fine
is "what needs no group asks for none" "$status $(cat "$out")$(wc -l <"$T/calls")" "0 fine0"
PATH=$T/evil:$PATH
mkdir "$T/evil" && cp "$T/systemd-run" "$T/evil/systemd-run" && rm "$T/useless"
chmod 777 "$T/systemd-run"
run private sh "$T/login" "$COFFER_BUILD/coffer" run --profile grouped -- echo no
is "one that others can write, or in PATH, is not run" \
  "$status $(cat "$out")$(wc -l <"$T/calls")" "125 0"
# shellcheck disable=SC2086
ok "the groups of the test are empty" rmdir $groups
chown -R 0 "$COFFER_HOME" "$T/tmp"

finish
