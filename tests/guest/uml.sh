#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# coffer on user-mode-linux: a kernel without Landlock.  A program like any
# other, which needs ptrace; one processor.
. "${COFFER_SOURCE:?}/tests/guest/boot.sh"

guest_needs linux.uml
guest_image
guest_disk

# Its files are below HOME and its memory a file in TMPDIR.
HOME=$T TMPDIR=$T guest_boot linux.uml mem=1024M umid=guest uml_dir="$T/uml" \
  "ubd0=$T/changes,$image" "ubd1=$disk" root=/dev/ubda rootfstype=ext4 rw \
  con=null con0=fd:0,fd:1 quiet init=/guest/init \
  guest_kernel=uml guest_results=/dev/ubdb "guest_scale=${CHECK_SCALE:-1}" \
  "guest_only=${GUEST_ONLY:-*}"
guest_report
