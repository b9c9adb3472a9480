#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first process of a guest.  Sets up what an init does, runs the jobs of
# jobs.sh and writes what they printed, a tar, to the second disk.  Anything
# that ends it ends the guest.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
HOME=/root LC_ALL=C.UTF-8
export PATH HOME LC_ALL

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
ln -sf /proc/self/fd /dev/fd
ip link set lo up
echo guest >/proc/sys/kernel/hostname

# Of Debian's kernel, what a machine would load by itself.
for module in loop quota_tree quota_v2; do
  [ ! -e "/guest/modules/$module.ko" ] || [ "$guest_kernel" != qemu ] \
    || insmod "/guest/modules/$module.ko"
done

# As a machine with systemd has it: every process in a group below the root,
# and the controllers handed on.
mount -t cgroup2 -o nsdelegate cgroup2 /sys/fs/cgroup
mkdir /sys/fs/cgroup/init
echo $$ >/sys/fs/cgroup/init/cgroup.procs
for controller in memory pids cpu io; do
  echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
done
# Where anyone may make groups, and move what is in one of them.
mkdir /sys/fs/cgroup/scopes
for controller in memory pids cpu io; do
  echo "+$controller" >/sys/fs/cgroup/scopes/cgroup.subtree_control
done
chmod 777 /sys/fs/cgroup/scopes
chmod 666 /sys/fs/cgroup/scopes/cgroup.procs

sh /guest/source/tests/guest/jobs.sh "$guest_kernel" "$guest_scale" \
  "$guest_only" </dev/null 2>&1
tar -C /results -cf "$guest_results" .
sync
echo "guest: powers off"
echo o >/proc/sysrq-trigger
sleep 10
