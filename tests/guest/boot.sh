# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What boots a guest and reports what its jobs said, as flat TAP.
#
#   guest_needs PROGRAM…   skips all of it when one is missing
#   guest_kernel           $kernel: Debian's cloud kernel, from the folder
#                          COFFER_GUEST_KERNEL, or guest/kernel of the build
#                          (kernel.sh fetches it), or /boot
#   guest_image            $image: the root file system, made when it is old
#   guest_disk             $disk: what the results are written to
#   guest_boot CMD…        runs it, with a deadline
#   guest_report           prints the results; the last line is the plan
#
# GUEST_ONLY=GLOB narrows which jobs run, for the work on one of them;
# GUEST_KEEP=FILE keeps what the guest said on its console.
set -u
: "${COFFER_BUILD:?}" "${COFFER_SOURCE:?}"
guest_patience=1100
[ "${CHECK_SCALE:-1}" -lt 10 ] || guest_patience=3000
guest_count=0

T=$(mktemp -d "${TMPDIR:-/tmp}/coffer-guest-XXXXXX") || exit 1
guest_pid=
guest_leave () {
  [ -z "$guest_pid" ] || kill "$guest_pid" 2>/dev/null
  rm -rf "$T"
}
trap guest_leave EXIT
trap 'exit 1' HUP INT TERM

guest_skip () { echo "1..0 # SKIP missing: $1"; exit 0; }

guest_needs () {
  [ "$(uname -m)" = x86_64 ] || guest_skip "a guest for $(uname -m)"
  for guest_program; do
    command -v "$guest_program" >/dev/null 2>&1 || guest_skip "$guest_program"
  done
}

guest_kernel () {
  for kernel in "${COFFER_GUEST_KERNEL:-/nonexistent}"/boot/vmlinuz-* \
      "$COFFER_BUILD"/guest/kernel/boot/vmlinuz-* \
      /boot/vmlinuz-*-cloud-amd64; do
    [ -r "$kernel" ] || continue
    GUEST_MODULES=${kernel%/boot/*}/lib/modules; export GUEST_MODULES
    return
  done
  guest_skip "Debian's cloud kernel (sh tests/guest/kernel.sh fetches it)"
}

guest_image () {
  image=$COFFER_BUILD/guest/root.ext4
  guest_status=0
  sh "$COFFER_SOURCE/tests/guest/image.sh" "$image" >"$T/image" 2>&1 \
    || guest_status=$?
  case $guest_status in
    0) ;;
    77) guest_skip "$(sed -n 's/^missing: //p' "$T/image")" ;;
    *)
      sed 's/^/# /' "$T/image"
      echo "not ok 1 - the root file system is made"
      echo "1..1"
      exit 0 ;;
  esac
}

guest_disk () {
  disk=$T/results.raw
  truncate -s 16M "$disk"
}

guest_boot () {
  guest_status=0
  timeout -k 10 "$guest_patience" "$@" </dev/null >"$T/console" 2>&1 &
  guest_pid=$!
  wait "$guest_pid" || guest_status=$?
  guest_pid=
  tr -d '\r' <"$T/console" | sed -n 's/^.*guest: /# guest: /p'
}

guest_result () { # 0|1 WHAT
  guest_count=$((guest_count + 1))
  if [ "$1" -eq 0 ]; then
    echo "ok $guest_count - $2"
  else
    echo "not ok $guest_count - $2"
  fi
}

# The lines of one job, numbered on, with its name before each.
guest_job () { # NAME STATUS-FILE TAP LOG
  awk -v job="$1" -v status="$(cat "$2" 2>/dev/null)" -v n="$guest_count" '
    function result(ok, what) { n++; print ok " " n " - " job ": " what }
    /^(not )?ok [0-9]+/ {
      verdict = /^not/ ? "not ok" : "ok"
      sub (/^(not )?ok [0-9]+ *(- )?/, ""); result(verdict, $0); count++
      next
    }
    /^1\.\.0 # SKIP/ { sub (/^1\.\.0 /, ""); result("ok", $0); planned = 1; next }
    /^1\.\.[0-9]+/ { sub (/^1\.\./, ""); planned = 1; plan = $0 + 0; next }
    /^#/ { print; next }
    END {
      if (status != "0") result("not ok", "ended with status " status)
      else if (!planned || plan != count)
        result("not ok", "said " count + 0 " of " plan + 0 " results")
    }' "$3"
  sed 's/^/#   | /' "$4" | tail -20
}

guest_report () {
  [ -z "${GUEST_KEEP:-}" ] || cp "$T/console" "$GUEST_KEEP"
  mkdir "$T/results"
  guest_unpacked=0
  tar -C "$T/results" -xf "$disk" >"$T/tar" 2>&1 || guest_unpacked=1
  if [ "$guest_unpacked" -ne 0 ] || ! grep -q 'guest: powers off' "$T/console"
  then
    guest_result 1 "the guest ran to its end (status $guest_status)"
    tail -40 "$T/console" | tr -d '\r' | sed 's/^/# console: /'
  else
    guest_result 0 "the guest ran to its end"
  fi
  for guest_file in "$T"/results/*.tap; do
    [ -e "$guest_file" ] || break
    guest_base=${guest_file%.tap}
    guest_job "$(basename "$guest_base")" "$guest_base.status" "$guest_file" \
      "$guest_base.log" >"$T/lines"
    cat "$T/lines"
    guest_count=$((guest_count + $(grep -cE '^(not )?ok ' "$T/lines")))
  done
  [ "$guest_count" -gt 1 ] || guest_result 1 "a job ran"
  echo "1..$guest_count"
}
