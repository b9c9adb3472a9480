# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# What scenarios share.  A scenario is a script that begins with
#
#   . "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
#
# and ends with `finish`.  It prints flat TAP, works in a folder of its own
# ($T, removed at the end), with a COFFER_HOME of its own, under a subreaper, so
# that `ours` lists exactly the processes that it started and that still run.
# `finish` adds a last test: nothing is left behind.
#
#   roles both [alike]    at the top: as root, the scenario is run once more as an
#                     ordinary user that owns nothing; `alike` where that runs no
#                     code that the first does not, or that others do not run.
#                     E2E_ROLES=one says that another build does the second,
#                     E2E_ROLES=alike that it does so for those
#   needs PROGRAM…    skip all of it when one is missing
#   run CMD…          run it: $status, and the files $out and $err
#   ok "what" CMD…    passes when the command succeeds
#   is "what" GOT WANT
#   like "what" TEXT PATTERN      an extended regular expression
#   same "what" FILE FILE
#   skip "what" "missing thing"
#   json FILE EXPR    prints a python expression over `d`, the document
#   without_conformance   what is installed counts unless said otherwise
#   soon SECONDS CMD…     wait until it succeeds
#   as_user CMD…      as an ordinary user, also when this is root

set -u
: "${COFFER_BUILD:?}"
e2e_script=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")

if [ -z "${E2E_REAPER:-}" ]; then
  [ -x "$COFFER_BUILD/tests/e2e/reaper" ] \
    || { echo "1..0 # SKIP missing: tests/e2e/reaper (make check builds it)"; exit 0; }
  exec "$COFFER_BUILD/tests/e2e/reaper" sh "$e2e_script" "$@"
fi

E2E_UID=$((61000 + $$ % 4000))
e2e_count=${E2E_BASE:-0}
e2e_role=one
LC_ALL=C.UTF-8; export LC_ALL
unset COFFER_PROVIDER BOX_BACKEND COFFER_LOG NO_COLOR || :

T=$(mktemp -d "${TMPDIR:-/tmp}/coffer-e2e.XXXXXX") || exit 1
chmod 755 "$T"
COFFER_HOME=$T/home; export COFFER_HOME
TMPDIR=$T/tmp; export TMPDIR
mkdir "$T/home" "$T/tmp" && chmod 700 "$T/home"
out=$T/out err=$T/err
status=0

e2e_leave () {
  cd / || :
  chmod -R u+rwx "$T" 2>/dev/null
  rm -rf "$T"
}
trap e2e_leave EXIT
trap 'exit 1' HUP INT TERM

coffer () { "$COFFER_BUILD/coffer" "$@"; }

run () {
  status=0
  "$@" >"$out" 2>"$err" </dev/null || status=$?
}

e2e_result () { # 0|1 what
  e2e_count=$((e2e_count + 1))
  if [ "$1" -eq 0 ]; then
    echo "ok $e2e_count - $2"
  else
    echo "not ok $e2e_count - $2"
  fi
}

# Diagnostics: every line a TAP comment.
note () { printf '%s\n' "$*" | sed 's/^/# /' | cut -c 1-400; }

ok () {
  e2e_what=$1; shift
  if "$@"; then e2e_result 0 "$e2e_what"; else
    e2e_result 1 "$e2e_what"; note "failed: $*"; fi
}

is () {
  if [ "$2" = "$3" ]; then e2e_result 0 "$1"; else
    e2e_result 1 "$1"; note "got:  $2"; note "want: $3"
    [ -s "$err" ] && note "stderr: $(head -c 600 "$err")"
  fi
}

like () {
  if printf '%s\n' "$2" | grep -Eq -- "$3"; then e2e_result 0 "$1"; else
    e2e_result 1 "$1"; note "got:  $2"; note "want a line like: $3"; fi
}

# Silence is no proof of what is not said.
unlike () {
  if [ -z "$2" ]; then
    e2e_result 1 "$1"; note "nothing was said at all"
  elif printf '%s\n' "$2" | grep -Eq -- "$3"; then
    e2e_result 1 "$1"; note "got:  $2"; note "but no line like: $3"
  else e2e_result 0 "$1"; fi
}

same () {
  if cmp -s "$2" "$3"; then e2e_result 0 "$1"; else
    e2e_result 1 "$1"; note "$(cmp "$2" "$3" 2>&1)"
    [ -s "$err" ] && note "stderr: $(head -c 600 "$err")"
  fi
}

skip () {
  e2e_count=$((e2e_count + 1))
  echo "ok $e2e_count - $1 # SKIP missing: $2"
}

skip_all () {
  if [ "${E2E_BASE:-0}" -gt 0 ]; then
    skip "as an ordinary user" "$1"
    echo "1..$e2e_count"
  else
    echo "1..0 # SKIP missing: $1"
  fi
  exit 0
}

needs () {
  for e2e_program; do
    command -v "$e2e_program" >/dev/null 2>&1 || skip_all "$e2e_program"
  done
}

roles () { # both [alike]
  case ${E2E_ROLES:-each}-${2:-} in
    one-*|alike-alike) ;;
    *) e2e_role=$1 ;;
  esac
}

json () {
  python3 -c '
import json, sys
d = json.load (open (sys.argv[1], encoding="utf-8"))
print (eval (sys.argv[2]))' "$1" "$2"
}

# For providers of the test that nobody has judged.
without_conformance () {
  mkdir -p "$COFFER_HOME/config"
  printf 'require_conformance: false\n' >"$COFFER_HOME/config/coffer.yaml"
  chmod go-w "$COFFER_HOME/config" "$COFFER_HOME/config/coffer.yaml"
}

as_user () {
  if [ "$(id -u)" -eq 0 ]; then
    setpriv --reuid "$E2E_UID" --regid "$E2E_UID" --clear-groups \
      --inh-caps=-all --bounding-set=-all --no-new-privs "$@"
  else
    "$@"
  fi
}

# Only a machine that cannot isolate (E2005) is a reason to skip; a coffer that
# cannot is a failure.
needs_sandbox () {
  e2e_reason=$(coffer run -- /bin/true 2>&1) && return
  case $e2e_reason in
    *E2005*) skip_all "a machine that can isolate: $(printf '%s' "$e2e_reason" | head -1)" ;;
  esac
  e2e_result 1 "a sandbox can be made"
  note "$e2e_reason"
  echo "1..$e2e_count"
  exit 0
}

# Waits until a command succeeds.  SECONDS are enough where nothing else is done;
# elsewhere it has half a minute, and what would come about by itself takes longer.
soon () { # SECONDS CMD…
  e2e_until=$(($(date +%s) + ($1 > 30 ? $1 : 30))); shift
  until "$@" >/dev/null 2>&1; do
    [ "$(date +%s)" -lt "$e2e_until" ] || return 1
    sleep 0.05
  done
}

# Processes below the reaper, but for this shell and what lists them.
ours () {
  ps -e -o pid=,ppid=,stat=,args= | awk -v root="$E2E_REAPER" -v me=$$ '
    { parent[$1] = $2; state[$1] = $3; line[$1] = $0
      args = $0; sub (/^ *[0-9]+ +[0-9]+ +[^ ]+ +/, "", args); what[$1] = args }
    END {
      for (p in parent) {
        below = 0
        for (q = p; q in parent && q > 1; q = parent[q])
          if (parent[q] == root) below = 1
        if (below && state[p] !~ /^Z/ && what[p] != what[me] \
            && what[p] !~ /^ps -e -o pid=/ && what[p] !~ /^awk -v root=/)
          print line[p]
      }
    }'
}
none_of_ours () { [ -z "$(ours)" ]; }

# Mounts of the host that name our folder.
our_mounts () { grep -F "$T" /proc/self/mountinfo; }

# Control groups that belong to sandboxes of ours, by the ids that were seen.
our_cgroups () {
  find /sys/fs/cgroup -type d -name '*sb-*' 2>/dev/null \
    | grep -F -f "$T/ids" 2>/dev/null
}
remember () { printf '%s\n' "$1" >>"$T/ids"; }

finish () {
  cd "$T" || exit 1
  e2e_left=0
  : >>"$T/ids"
  soon 5 none_of_ours || { e2e_left=1; note "processes left: $(ours)"; }
  [ -z "$(our_mounts)" ] || { e2e_left=1; note "mounts left: $(our_mounts)"; }
  if [ -s "$T/ids" ] && [ -n "$(our_cgroups)" ]; then
    e2e_left=1; note "cgroups left: $(our_cgroups)"
  fi
  if [ -e "$COFFER_HOME/state/state.db" ]; then
    e2e_rows=$(coffer sandbox list --json 2>&1)
    [ "$e2e_rows" = "[]" ] || { e2e_left=1; note "records left: $e2e_rows"; }
  fi
  # What a coffer that was killed left is the next one's to clear away.
  e2e_boxes=$(find "$COFFER_HOME/run" -name 'sb-*' 2>/dev/null)
  [ -z "$e2e_boxes" ] || { e2e_left=1; note "runtime folders left: $e2e_boxes"; }
  [ -z "$(ls -A "$T/tmp")" ] \
    || { e2e_left=1; note "temporary files left: $(ls -A "$T/tmp")"; }
  e2e_result $e2e_left "nothing is left behind: processes, mounts, cgroups, records, files"
  if [ "$e2e_role" = both ] && [ "$(id -u)" -eq 0 ]; then
    e2e_missing=
    command -v setpriv >/dev/null 2>&1 || e2e_missing=setpriv
    [ -n "$e2e_missing" ] || as_user test -x "$COFFER_BUILD/coffer" \
      || e2e_missing="a build folder that an ordinary user can reach"
    if [ -n "$e2e_missing" ]; then
      skip "as an ordinary user" "$e2e_missing"
      echo "1..$e2e_count"
      exit 0
    fi
    E2E_BASE=$e2e_count; export E2E_BASE
    TMPDIR=/tmp; E2E_REAPER=; export TMPDIR E2E_REAPER
    e2e_leave
    trap - EXIT
    cd / && as_user sh "$e2e_script"
    exit $?
  fi
  echo "1..$e2e_count"
  exit 0
}
