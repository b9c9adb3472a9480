#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs libFuzzer targets, as many at a time as there are processors:
#   sh run.sh RUNS TARGET...
# One line for each, PASS: or FAIL:; what a failing one said stands before it.
set -u
: "${COFFER_SOURCE:?}"
if [ "$1" != --one ]; then
  runs=$1
  shift
  printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 sh "$0" --one "$runs"
  exit
fi

runs=$2 target=$3
name=${target##*/fuzz-}
new=$(mktemp -d) || exit 1
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM
# What it finds is kept here, named by its hash.
ASAN_OPTIONS=detect_leaks=1:${ASAN_OPTIONS:-} "./$target" -runs="$runs" \
  -seed=1 -timeout=60 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
  -artifact_prefix="./$name-" "$new" "$COFFER_SOURCE/tests/fuzz/seeds/$name" \
  >"$new/.log" 2>&1 </dev/null && {
    echo "PASS: fuzz $name, $runs runs"
    exit 0
  }
tail -60 "$new/.log"
echo "FAIL: fuzz $name, $runs runs"
exit 1
