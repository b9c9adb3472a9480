# SPDX-License-Identifier: Apache-2.0
# Flat TAP for the scenarios of this folder, which look at the tree and at what
# was built.  Sourced; needs COFFER_SOURCE and COFFER_BUILD.
#   plan 3; check "what holds" COMMAND...; skip "what" "needs"; finish
# check prints what COMMAND wrote, as diagnostics, when it fails.

tap_n=0
tap_failed=0
tmp=$(mktemp -d "${TMPDIR:-/tmp}/coffer-build-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

plan () { echo "1..$1"; tap_plan=$1; }

check () {
  tap_n=$((tap_n + 1)); tap_name=$1; shift
  if "$@" >"$tmp/tap.out" 2>&1; then
    echo "ok $tap_n - $tap_name"
  else
    echo "not ok $tap_n - $tap_name"
    sed 's/^/# /' "$tmp/tap.out" | tail -40
    tap_failed=1
  fi
}

skip () {
  tap_n=$((tap_n + 1))
  echo "ok $tap_n - $1 # SKIP missing: $2"
}

# A command that must print nothing.
silent () {
  silent_out=$("$@" 2>&1) || :
  [ -z "$silent_out" ] || { printf '%s\n' "$silent_out"; return 1; }
}

finish () {
  [ "$tap_n" -eq "$tap_plan" ] || echo "# planned $tap_plan, ran $tap_n"
  exit "$tap_failed"
}
