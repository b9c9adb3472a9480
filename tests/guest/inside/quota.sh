# SPDX-License-Identifier: Apache-2.0
# kernels: qemu
# Hard quotas of what lasts: a folder with a project quota, on a file system that
# keeps them, and a workspace in a file.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "${COFFER_SOURCE:?}/tests/guest/scope.sh"
# Without kmod: finit_module.
load='import ctypes, os, sys
ctypes.CDLL (None).syscall (313, os.open (sys.argv[1], os.O_RDONLY), b"", 0)'
for module in loop quota_tree quota_v2; do
  file=$(find /guest/modules -name "$module.ko" 2>/dev/null | head -1)
  [ -z "$file" ] || python3 -c "$load" "$file"
done
[ -e /dev/loop-control ] || skip_all "the kernel module loop"

# -- a workspace in a file ------------------------------------------------------
: >"$T/work.img"; chmod 600 "$T/work.img"
run coffer run --json -w "$T/work.img:rw" --disk 8M -- sh -c 'echo kept >note; cat /dev/zero >big'
is "an image is a cap" \
  "$(json "$out" "d['exit']['limits_hit']")$(fact "$out" quota.hard | cut -c 1-2)" "['disk']ok"
run coffer run -w "$T/work.img" -- cat note
is "and lasts" "$status $(cat "$out")" "0 kept"
free_again () { ! losetup -a | grep -q work.img; }
ok "its device is free again" soon 5 free_again

# -- a project quota ------------------------------------------------------------
truncate -s 64M "$T/disk.img"
mke2fs -q -F -t ext4 -O quota,project -E quotatype=prjquota "$T/disk.img" >"$out" 2>&1
mkdir "$T/disk"
if ! mount -o loop,prjquota "$T/disk.img" "$T/disk" 2>"$err"; then
  skip "project quotas" "a file system with project quotas"
  finish
fi
mkdir "$T/disk/work" "$T/disk/work/below" "$T/disk/plain"
head -c 100000 /dev/zero >"$T/disk/work/old"
echo x >"$T/disk/work/below/older"
ln -s /etc/passwd "$T/disk/work/link"; mkfifo "$T/disk/work/pipe"
chown -R 1234 "$T/disk/work" "$T/disk/plain"

run coffer run --json -w "$T/disk/work:rw" --disk 4M -- sh -c '
  cat /dev/zero >big; cat /dev/zero >>old; cat /dev/zero >below/more; echo end'
is "a folder with a project quota is capped" \
  "$(json "$out" "d['stdout']['data'], d['exit']['limits_hit'], d['applied']['not_applied']")" \
  "('end\\n', ['disk'], [])"
like "as its facts say" "$(fact "$out" quota.hard)" '^ok '
used=$(du -sk "$T/disk/work" | cut -f 1)
ok "with what was there and what was made, in all ($used KiB)" \
  test "$used" -le 4200 -a "$used" -gt 3500
rm "$T/disk/work/big" "$T/disk/work/below/more"
run coffer run -w "$T/disk/work:rw" --disk 4M -- sh -c 'echo again >again'
is "there is room again" "$status $(cat "$T/disk/work/again")" "0 again"

# From inside the project stays as it is.
run coffer run -w "$T/disk/work:rw" --disk 4M -- sh -c '
  chattr -p 0 again; chattr -P .; chattr -p 0 .; cat /dev/zero >big'
ok "nothing inside takes it away" \
  test "$(du -sk "$T/disk/work" | cut -f 1)" -le 4200
rm -f "$T/disk/work/big"

run coffer run -w "$T/disk/work:rw" --disk 4M -- sh -c '
  i=0; while [ $i -lt 200 ]; do echo >f$i || exit 9; i=$((i+1)); done'
is "without a count of inodes there is none" "$status" 0
rm -f "$T/disk/work"/f*

cat >"$T/hard.yaml" <<'END'
profile: 1
name: hard
summary: all that is written is capped
disk: 8MiB
inodes: 64
require: [quota.hard]
END
mkdir -p "$COFFER_HOME/config/profiles"; cp "$T/hard.yaml" "$COFFER_HOME/config/profiles/"
chmod -R go-w "$COFFER_HOME/config"
run coffer run --json --profile hard -w "$T/disk/plain:rw" -- sh -c '
  i=0; while touch f$i; do i=$((i+1)); done 2>/dev/null; echo $i'
is "inodes are capped too" "$(json "$out" "d['exit']['limits_hit']")" "['inodes']"
ok "at that many" test "$(find "$T/disk/plain" | wc -l)" -le 64
run coffer run --profile hard -w "$T/disk/plain:rw" -- true
is "what a profile requires is there" "$status" 0
mkdir "$T/folder"
run coffer run --profile hard -w "$T/folder:rw" -- touch no
is "and refused where it is not" "$status$(ls "$T/folder")" 125
like "by name" "$(cat "$err")" 'E2005: .*quota.hard.*prjquota'

ok "nothing holds it" umount "$T/disk"
finish
