# SPDX-License-Identifier: Apache-2.0
# Who is who in a sandbox: one user, who can become nobody else and make nothing
# another's; and whose what is shown is, inside and afterwards on the disk.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both alike
needs python3
needs_sandbox

# ---- one id --------------------------------------------------------------------

map='cat /proc/self/uid_map /proc/self/gid_map'
for n in 1 2; do
  run coffer sandbox create
  id=$(cat "$out"); remember "$id"
  coffer sandbox exec "$id" -c "$map" | awk '{ print $1, $2, $3 }' >"$T/map$n"
done
is "one user and one group are mapped" \
  "$(awk '{ print $1, $3 }' "$T/map1" "$T/map2" | sort -u)" "1000 1"
run sort -u "$T/map1" "$T/map2"
if [ "$(id -u)" -eq 0 ]; then
  is "of root's sandboxes each has its own outside, the same as user and group" \
    "$(wc -l <"$out") $(awk '$2 < 10000' "$out")" "2 "
else
  is "an ordinary user's are that user" "$(awk '{ print $2 }' "$out" | sort -u)" "$(id -u)"
fi
run coffer sandbox kill --all --yes

mkdir "$T/mine"
run coffer run -w "$T/mine:rw" -- python3 -c '
import ctypes, os
libc = ctypes.CDLL (None)
open ("f", "w").close ()
os.mkdir ("d")
tried = 0
for n in [*range (66000), *range (100000, 2**31, 65537 * 8), 2**31 - 1, 2**32 - 2]:
    if n == 1000:
        continue
    for call in (lambda: os.setresuid (n, -1, -1), lambda: os.setresuid (-1, n, -1),
                 lambda: os.setresgid (-1, n, -1), lambda: os.setgroups ([n]),
                 lambda: os.chown ("f", n, -1), lambda: os.chown ("d", -1, n)):
        tried += 1
        try:
            call ()
            print ("went to", n)
        except OSError:
            pass
    libc.setfsuid (n)
    libc.setfsgid (n)
    if libc.setfsuid (-1) != 1000 or libc.setfsgid (-1) != 1000:
        print ("works on files as", n)
print (tried > 396000, os.getresuid (), os.getresgid ())'
is "nobody inside becomes another, or makes anything another's" "$(cat "$out")" \
  "True (1000, 1000, 1000) (1000, 1000, 1000)"
is "what was made is its caller's outside" \
  "$(stat -c '%u:%g' "$T/mine/f" "$T/mine/d" | sort -u)" "$(id -u):$(id -g)"
run coffer run -- stat -c %u /usr/bin/env /etc/passwd /tmp
is "the machine's programs are nobody's" "$(tr '\n' ' ' <"$out")" "65534 1000 1000 "

# ---- a folder of several owners ---------------------------------------------------

if [ "$(id -u)" -eq 0 ]; then
  several=$T/several
  mkdir "$several"
  for name in own theirs secret shared; do echo "$name" >"$several/$name"; done
  chmod 600 "$several/own" "$several/secret"
  chmod 666 "$several/shared"
  chown 33:42 "$several/theirs"
  mkdir "$several/open.d" && chmod 777 "$several/open.d"
  chown 61301:61301 "$several/shared" "$several/open.d"
  chown 61300:61302 "$several" "$several/own"
  run coffer run -w "$several:rw" -- sh -c '
    stat -c "%n %u:%g" own theirs secret shared
    cat own theirs secret; echo more >>own; echo more >>theirs; echo more >>shared
    chown 1000 theirs; chmod 777 theirs shared; chown 33 own; echo new >new
    rm -f shared; mv theirs ours; ln shared hard; echo x >open.d/f
    mkdir new.d; touch new.d/f; chgrp 42 new.d'
  is "its owner is the user inside, and all others are nobody" "$(cat "$out")" \
    "own 1000:1000
theirs 65534:65534
secret 65534:65534
shared 65534:65534
own
theirs"
  # The kernel writes nothing whose owner it could not name there.
  is "what is others' stays as it is, whatever its mode, and what is made is the owner's" \
    "$(cd "$several" && stat -c '%n %u:%g %a' *; cat own theirs shared; ls open.d)" \
    "new 61300:61302 644
new.d 61300:61302 755
open.d 61301:61301 777
own 61300:61302 600
secret 0:0 600
shared 61301:61301 666
theirs 33:42 644
own
more
theirs
shared"
else
  run coffer run -v /etc:/shown:ro -- stat -c %u:%g /shown/passwd /shown
  is "what is root's is nobody's" "$(sort -u "$out")" "65534:65534"
fi

finish
