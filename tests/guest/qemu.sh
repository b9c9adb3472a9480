#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# coffer on Debian's cloud kernel in QEMU: Landlock ABI 2, control groups of
# version 2.  Slow (every instruction is translated), but a real machine.
. "${COFFER_SOURCE:?}/tests/guest/boot.sh"

guest_kernel
guest_needs qemu-system-x86_64
guest_image
guest_disk

# The image is written by nobody: the lock that the other guest has of it would be
# taken for a writer's.
guest_boot qemu-system-x86_64 -accel tcg,thread=multi -cpu max -M q35 \
  -m 1536 -smp 2 -nodefaults -serial stdio -display none -no-reboot -nic none \
  -drive "file=$image,format=raw,if=none,id=d,snapshot=on,file.locking=off" \
  -device nvme,drive=d,serial=root \
  -drive "file=$disk,format=raw,if=none,id=e" \
  -device nvme,drive=e,serial=results \
  -kernel "$kernel" -append "console=ttyS0 panic=-1 quiet no_timer_check \
root=/dev/nvme0n1 rootfstype=ext4 rw init=/guest/init \
guest_kernel=qemu guest_results=/dev/nvme1n1 guest_scale=${CHECK_SCALE:-1} \
guest_only=${GUEST_ONLY:-*}"
guest_report
