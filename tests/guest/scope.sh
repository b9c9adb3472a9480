# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Control groups of version 2 as `systemd-run --scope -p Delegate=yes` makes
# them: a group that belongs to whom the command runs as, marked as handed over.
# Sourced by the jobs of jobs.sh and by scenarios.
#
#   scope_new          makes one: $scope
#   in_scope CMD…      runs a command in it; nothing but it is there
#   scope_end          removes it; what sandboxes left is in $scope_left
#   scoped CMD…        the three together
#   fact FILE NAME     state and value of a fact in the JSON of a run
#
# In the folder of all scopes anyone may make one, for which elsewhere they ask
# systemd.
scopes=/sys/fs/cgroup/scopes
scope_number=0 scope_left=

scope_new () {
  scope_number=$((scope_number + 1))
  scope=$scopes/$$-$scope_number
  mkdir "$scope" && setfattr -n user.delegate -v 1 "$scope"
}

# For jobs.sh: one that this shell is in, of another user's.
scope_named () { # NAME UID
  scope=$scopes/$1
  mkdir "$scope" && setfattr -n user.delegate -v 1 "$scope" \
    && chown "$2" "$scope" "$scope/cgroup.procs" \
      "$scope/cgroup.subtree_control" "$scope/cgroup.threads"
}
in_scope_from_here () { echo $$ >"$scope/cgroup.procs"; }

in_scope () {
  sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' - "$scope" "$@"
}

# The leaf of the host's own may stay.
scope_end () {
  rmdir "$scope/coffer-host" 2>/dev/null
  scope_left=$(find "$scope" -mindepth 1 -type d)
  find "$scope" -depth -type d -exec rmdir {} \; 2>/dev/null
  [ ! -d "$scope" ] || scope_left="$scope_left $scope"
}

scoped () {
  scope_new || return 125
  scope_status=0
  in_scope "$@" || scope_status=$?
  scope_end
  return "$scope_status"
}

fact () {
  json "$1" 'next ((" ".join ((f["state"], f["value"])) for f in d["applied"]["facts"] if f["name"] == "'"$2"'"), "none")'
}
