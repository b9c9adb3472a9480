# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Control groups of version 2 as `systemd-run --scope -p Delegate=yes` makes
# them: a group that belongs to whom the command runs as, for it alone.  Sourced
# by init.sh's jobs and by scenarios.
#
#   scope_enter NAME   moves this shell into a group of its own
#   scoped CMD…        runs a command in one of its own; what it leaves there,
#                      but for an empty leaf of the host's, is in $scope_left
#
# In the folder of all scopes, anyone may make one, which is what systemd does
# for them.
scopes=/sys/fs/cgroup/scopes
scope_number=0 scope_left=

scope_enter () {
  mkdir -p "$scopes/$1" && echo $$ >"$scopes/$1/cgroup.procs"
}

scoped () {
  scope_number=$((scope_number + 1))
  scope=$scopes/$$-$scope_number
  mkdir "$scope" || return 125
  scope_status=0
  sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' - "$scope" "$@" \
    || scope_status=$?
  rmdir "$scope/coffer-host" 2>/dev/null
  scope_left=$(find "$scope" -mindepth 1 -type d)
  rmdir "$scope" || scope_left="$scope_left $scope"
  return "$scope_status"
}
