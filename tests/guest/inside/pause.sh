# SPDX-License-Identifier: Apache-2.0
# A sandbox that rests, by the freezer of control groups of version 2: it is the
# kernel that stops it, and its time goes on all the same.
# kernels: qemu long
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "${COFFER_SOURCE:?}/tests/guest/scope.sh"
roles both
needs python3

# The states of the groups below the scope that are for commands.
frozen () {
  find "$scope" -path '*commands/cgroup.events' -exec grep -h frozen {} + | tr '\n' ' '
}
dots () { coffer sandbox download "$1" dots - 2>/dev/null | wc -c; }

scope_new
run in_scope "$COFFER_BUILD/coffer" sandbox create
id=$(cat "$out"); remember "$id"
run in_scope "$COFFER_BUILD/coffer" sandbox exec -d "$id" -c 'while :; do echo . >>dots; sleep 0.01; done'
run in_scope "$COFFER_BUILD/coffer" sandbox exec --timeout 4s -d "$id" -c 'setsid sleep 700 & sleep 700'
timed=$(cat "$out")
moves () { [ "$(dots "$id")" -gt "$1" ]; }
soon 10 moves 1
is "it runs" "$(frozen)" "frozen 0 "
run coffer sandbox pause "$id"
is "pause: the kernel has frozen it" "$status $(frozen)" "0 frozen 1 "
before=$(dots "$id"); sleep 1
is "nothing moves" "$(dots "$id")" "$before"
like "and none of it was stopped by a signal" \
  "$(ps axo stat=,args= | grep -c '^T.*sleep')" '^0$'
run coffer sandbox exec "$id" -- true
like "no command is started" "$status" '^125$'
run coffer sandbox attach "$id" "$timed"
is "a timeout comes while it rests" "$status" 124
is "and ends all that is that command's" "$(ps axo args= | grep -c '^sleep 700')" 0
run coffer sandbox resume "$id"
is "resume: the kernel lets it go on" "$status $(frozen)" "0 frozen 0 "
ok "and it does" soon 10 moves "$before"
coffer sandbox pause "$id" >/dev/null
run coffer sandbox kill "$id"
is "a frozen one is killed" "$status $(frozen)" "0 "

run in_scope "$COFFER_BUILD/coffer" sandbox create --ttl 15s
id=$(cat "$out"); remember "$id"
run in_scope "$COFFER_BUILD/coffer" sandbox exec -d "$id" -- sleep 701
coffer sandbox pause "$id" >/dev/null
is "another one is frozen" "$(frozen)" "frozen 1 "
tries=0
while [ "$(ps axo args= | grep -c '^sleep 701')" != 0 ] && [ $tries -lt 400 ]; do tries=$((tries + 1)); sleep 0.1; done
is "its time to live ends it" "$(ps axo args= | grep -c '^sleep 701')" 0
run coffer sandbox info "$id"
is "and it is gone" "$status" 4
run coffer sandbox prune
scope_end
is "nothing of its groups stays" "$scope_left" ""
finish
