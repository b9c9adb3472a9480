#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `make check-long` runs, with counts that CHECK_SCALE multiplies:
#   sh long.sh MAKE
#
#   check    every test of `make check`: soaks of 1000 SIGKILLs, of commands
#   guests   tests/guest, with the scenarios that are too long for each change
#   races    dispatch, workers and the daemon under the thread sanitizer, in
#            races/
#   clock    the daemon under faults, and how soon it answers meanwhile
#   fuzz     each fuzz target under libFuzzer and ASan, and the daemon under
#            ASan, in a build in fuzzing/
#
# LONG_PARTS names fewer of them.  Prints what failed, what was skipped, how
# long each part took, and last `N passed, N failed, N skipped`.  Installs
# nothing: a part that lacks something is skipped by name.
set -u
: "${COFFER_BUILD:?}" "${COFFER_SOURCE:?}"
make=$1
# A make of ours, with all processors, not a part of the one that runs this.
unset MAKEFLAGS MFLAGS MAKELEVEL GNUMAKEFLAGS
logs=$COFFER_BUILD/long
passed=0 failed=0 skipped=0
mkdir -p "$logs" && cd "$COFFER_BUILD" || exit 1

# PART COMMAND...: the results are the lines of its log; without any, or with a
# status that none explains, the part itself failed.
part () {
  part=$1 log=$logs/$1.log start=$(date +%s)
  shift
  case " ${LONG_PARTS:-check clock guests races fuzz} " in *" $part "*) ;; *) return ;; esac
  echo "check-long: $part"
  status=0
  "$@" >"$log" 2>&1 </dev/null || status=$?
  grep -aE '^(PASS|FAIL|ERROR|SKIP|XPASS): ' "$log" >"$log.results" \
    || echo "FAIL: $part ran (exit $status)" >"$log.results"
  if [ "$status" -ne 0 ] && ! grep -qE '^(FAIL|ERROR|XPASS)' "$log.results"
  then
    echo "FAIL: $part (exit $status)" >>"$log.results"
  fi
  grep -vE '^PASS' "$log.results" | sed "s/^/  $part: /"
  ok=$(grep -c '^PASS' "$log.results")
  no=$(grep -cE '^(FAIL|ERROR|XPASS)' "$log.results")
  not=$(grep -c '^SKIP' "$log.results")
  passed=$((passed + ok)) failed=$((failed + no)) skipped=$((skipped + not))
  [ "$no" -eq 0 ] || tail -15 "$log" | sed 's/^/  | /'
  echo "  $part: $ok passed, $no failed, $not skipped in" \
    "$(($(date +%s) - start)) s ($log)"
}

fuzz () {
  for program in clang; do
    command -v "$program" >/dev/null 2>&1 || {
      echo "SKIP: fuzz # SKIP missing: $program"
      return
    }
  done
  mkdir -p fuzzing && cd fuzzing || return 1
  [ -f Makefile ] || "$COFFER_SOURCE/configure" -q CC=clang --enable-fuzzing \
    --enable-sanitizers=address,undefined CFLAGS='-O1 -g' || return 1
  "$make" -j"$(nproc)" check-fuzz && "$make" -j"$(nproc)" \
    && "$make" check TESTS=tests/server/fuzz.py
}

# With nothing else to do: what is promised by the clock.
clock () {
  FAULTS_CLOCK=1 "$make" check TESTS=tests/server/faults.py
}

# A race in the test's own process ends it; one in a worker ends the worker.
races () {
  unit=tests/unit
  mkdir -p races && cd races || return 1
  [ -f Makefile ] || "$COFFER_SOURCE/configure" -q \
    --enable-sanitizers=thread CFLAGS='-O1 -g' || return 1
  "$make" -j"$(nproc)" && CHECK_SCALE=1 STORM_SECONDS=60 \
    TSAN_OPTIONS=halt_on_error=1 "$make" check TESTS="$unit/test-dispatch $unit/test-worker $unit/test-rights \
      $unit/test-hostile tests/server/storm.py"
}

part check "$make" -k -j"$(nproc)" check
part clock clock
part guests "$make" -k -j"$(nproc)" check-guests
part races races
part fuzz fuzz
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
