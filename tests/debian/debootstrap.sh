# SPDX-License-Identifier: Apache-2.0
# A template that debootstrap made: a whole system with its package manager, its
# users and its programs with raised rights, as a folder and as an archive.  Root
# makes the tree (tree.sh), once for each build folder; an ordinary user is given
# the archive.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3 dpkg-query
needs_sandbox

made=$COFFER_BUILD/debian root=$made/root
sh "$COFFER_SOURCE/tests/debian/tree.sh" "$made" >"$T/made" 2>&1 || {
  missing=$(sed -n 's/^missing: //p' "$T/made")
  [ -z "$missing" ] || skip_all "$missing"
  note "$(cat "$T/made")"
  is "debootstrap makes a tree" failed made
  finish
}
ok "debootstrap made a tree" test -x "$root/usr/bin/dpkg"

# What is known of it from outside.
packages=$(dpkg-query --admindir "$root/var/lib/dpkg" -W \
  -f '${db:Status-Abbrev}${Package} ${Version}\n')
raised=$(tar -tvf "$made/root.tar" | grep -c '^-[rwx-]*[sS]')
is "of many packages, and with programs that raise rights" \
  "$(($(printf '%s\n' "$packages" | wc -l) > 50)) $((raised > 5))" "1 1"

run coffer template add packed "$made/root.tar" --json
is "its archive is added, bits dropped and devices left out" \
  "$status $(json "$out" 'd["stripped"], d["left_out"] > 5')" "0 ($raised, True)"
digest=$(json "$out" 'd["digest"]')
run coffer template add debian "$root" --json
if [ "$(id -u)" -eq 0 ]; then
  is "its folder is the same tree" "$status $(json "$out" 'd["digest"]')" "0 $digest"
  names="debian packed" name=debian
else
  # A part of it is root's alone.
  like "its folder is refused by the name of what cannot be read" \
    "$status $(json "$out" 'd["error"]["code"], d["error"]["message"]')" \
    "^2 .'E4007', .*: etc/[^ ]*: Permission denied"
  names=packed name=packed
fi
kept=$COFFER_HOME/state/templates/$digest/root
is "it is kept once" "$(ls "$COFFER_HOME/state/templates" | grep -c '^[0-9a-f]*$')" 1

# ---- its package manager ------------------------------------------------------

run coffer run --template $name -- dpkg-query -W \
  -f '${db:Status-Abbrev}${Package} ${Version}\n'
is "dpkg knows every package inside" "$status $(cat "$out")" "0 $packages"
run coffer run --template $name -- dpkg -l
is "and lists them" "$(grep -c '^ii ' "$out")" "$(printf '%s\n' "$packages" | grep -c '^ii ')"
# The folder /root is closed to all but root, and a sandbox has no /sys.
run coffer run --template $name --timeout 120s -- dpkg --verify
is "every file is as its package has it" \
  "$(grep -v -E '^missing +/(root|sys)$' "$out" "$err")" ""
run coffer run --template $name -- sh -c 'apt-cache policy dpkg | sed -n 2p; apt-config shell a Dir::State; apt-mark showmanual >/dev/null && echo marks'
is "apt reads its files" "$status $(cat "$out")" "0   Installed: $(printf '%s\n' "$packages" | sed -n 's/^ii *dpkg //p')
a='var/lib/apt'
marks"
run coffer run --template $name -- sh -c 'echo x >>/var/lib/dpkg/status; dpkg --purge --force-all dash; apt-get -y remove dash'
like "nothing is installed or removed inside" "$status $(cat "$err")" "^[1-9].*(Read-only file system|Permission denied|superuser)"

# ---- its programs -------------------------------------------------------------

run coffer run --template $name -- /bin/bash -c '
  set -o pipefail
  . /etc/os-release; echo "$ID $VERSION_CODENAME"
  seq 5 | sort -rn | awk "{ s = s \$1 } END { print s }"
  perl -MPOSIX -e "print floor (42.5), chr (10)"
  mkdir d && echo café > "d/你好" && tar -c d | gzip | gzip -d | tar -t | tail -1
  readlink -f /bin/sh; type -P python3 cc'
is "they run, of the tree alone" "$(cat "$out")" "$(. /etc/os-release; echo "$ID $VERSION_CODENAME")
54321
42
$(LC_ALL=C tar -c -C "$T" --no-recursion --transform 's|.*|d/你好|' out | tar -t)
/usr/bin/dash"

# ---- who is who ---------------------------------------------------------------

# Owners are dropped: what root keeps is nobody's inside, what an ordinary user
# keeps is that user's, and none can be given to another.
run coffer run --template $name -- sh -c '
  cut -d: -f1,3 /etc/passwd | tr "\n" " "; getent passwd 1000 | cut -d: -f1
  cat /proc/self/uid_map /proc/self/gid_map | awk "{ print \$1, \$3 }" | sort -u
  find /usr /etc /home /srv -printf "%U:%G\n" 2>/dev/null | sort -u
  find / -xdev -perm /6000 2>/dev/null | wc -l
  touch mine && chown 33 mine; chgrp 42 mine
  su -c id </dev/null; newgrp root </dev/null; setpriv --reuid 0 id
  stat -c %u:%g mine'
[ "$(id -u)" -eq 0 ] && owners="1000:1000
65534:65534" || owners=1000:1000
is "inside is one user, and no file is another's that it could become" "$(cat "$out")" \
  "root:0 user:1000 nobody:65534 user
1000 1
$owners
0
1000:1000"
# The tree of whoever keeps it says the same on the disk, whatever the archive said.
is "nor is one on the disk" "$(find "$kept" -printf '%U:%G\n' | sort -u)" "$(id -u):$(id -g)"
is "which the archive had" "$(($(tar --numeric-owner -tvf "$made/root.tar" | awk '{ print $2 }' | sort -u | wc -l) > 2))" 1

# ---- two at once ----------------------------------------------------------------

run coffer sandbox create --template $name
one=$(cat "$out"); remember "$one"
run coffer sandbox create --template packed
other=$(cat "$out"); remember "$other"
before=$(find "$kept" -printf '%p %i %s %m %T@ %C@\n' | sort | sha256sum)
where='stat -c "%d %i" /usr/bin/dpkg /var/lib/dpkg/status /etc/os-release'
coffer sandbox exec "$one" -c "$where; dpkg -l | grep -c ^ii" >"$T/one" 2>&1 &
first=$!
coffer sandbox exec "$other" -c "$where; dpkg -l | grep -c ^ii" >"$T/other" 2>&1
wait "$first"
same "two at once read the same files" "$T/one" "$T/other"
is "which are those that are kept" "$(cut -d ' ' -f 2 "$T/one" | head -3)" \
  "$(stat -c %i "$kept/usr/bin/dpkg" "$kept/var/lib/dpkg/status" "$kept/etc/os-release")"
run coffer sandbox exec "$one" -c '
  for f in /etc/os-release /usr/bin/dpkg /var/lib/dpkg/status /var/mail/x /root/x; do
    echo x >>"$f"; rm -f "$f"; chmod 777 "$f"; mv "$f" "$f.x"; ln "$f" /tmp/x
  done 2>/dev/null; mount -o remount,rw / 2>/dev/null; echo tried; echo mine >/tmp/f; echo mine >f'
is "one tries all it can" "$status $(cat "$out")" "0 tried"
is "nothing of it has changed" "$(find "$kept" -printf '%p %i %s %m %T@ %C@\n' | sort | sha256sum)" "$before"
run coffer sandbox exec "$other" -c 'head -c 4 /usr/bin/dpkg | tail -c 3; echo; ls /tmp /var/tmp .; dpkg -s dash | grep Status'
is "and the other sees none of it" "$(cat "$out")" "ELF
.:

/tmp:

/var/tmp:
Status: install ok installed"
run coffer template remove $name
like "in use it is not removed" "$status $(cat "$err")" "^1 coffer: E5003: .* in use by"
run coffer sandbox kill "$one" "$other"
for name in $names; do
  run coffer template remove "$name"
  is "$name is removed" "$status" 0
done
is "with its tree" "$(ls -A "$COFFER_HOME/state/templates")" ""

finish
