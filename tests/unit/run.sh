#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a cmocka program and repairs its TAP: cmocka writes a skipped test as
# "ok N # SKIP name", older ones with a "not" before it.  Here it becomes
# "ok N - name # SKIP missing: WHAT", with the reason the test printed before.
out=$("$@")
status=$?
printf '%s\n' "$out" | awk '
  /^# SKIP missing:/ { reason = substr ($0, 8); next }
  /^(not )?ok [0-9]+ # SKIP/ {
    sub (/^not /, "")
    print "ok " $2 " - " $5 " # SKIP " (reason ? reason : "without a reason")
    reason = ""
    next
  }
  { print }'
exit $status
