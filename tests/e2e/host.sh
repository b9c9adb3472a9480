# SPDX-License-Identifier: Apache-2.0
# The provider host: the caller's own account, said at every run; a workspace
# that is thrown away; and no promise that it cannot keep.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3

cd "$T" || exit 1
run coffer run --provider host -- sh -c 'pwd; echo x >f; id -u'
space=$(head -1 "$out")
is "a command runs as the caller" "$status $(tail -1 "$out")" "0 $(id -u)"
like "in a workspace below our home" "$space" "^$COFFER_HOME/run/host/sb-"
ok "which is gone afterwards" test ! -e "$space"
like "stderr says what it is not" "$(cat "$err")" '^coffer: warning: provider host is not a sandbox'
run coffer run --json --provider host -- true
is "the report has isolation: none" "$(json "$out" 'd["applied"]["isolation"]')" none
is "and lists what is not applied" "$(json "$out" '"network.none" in d["applied"]["not_applied"]')" True

refused () { # what ARGS
  what=$1; shift
  run coffer run --provider host "$@" -- true
  like "$what is refused" "$status $(head -1 "$err")" '^125 coffer: E8010: '
}
refused "--net none" --net none
refused "--mem" --mem 100M
refused "--pids" --pids 10
refused "--disk" --disk 10M
refused "--cpus" --cpus 1
refused "-w" -w .
refused "-v" -v /usr:/data:ro

start=$(date +%s)
run coffer run --provider host --timeout 1s -- sh -c 'sleep 61 & setsid sleep 62 & sleep 63'
is "a timeout" "$status $(($(date +%s) - start < 30))" "124 1"
ok "ends every descendant" soon 5 none_of_ours

run coffer sandbox create --provider host
id=$(cat "$out"); remember "$id"
is "create" "$status" 0
like "says it too" "$(cat "$err")" 'is not a sandbox'
run coffer sandbox info --json "$id"
is "info: isolation" "$(json "$out" '(d["provider"], d["isolation"])')" "('host', 'none')"
space=$(json "$out" 'd["workspace"]')
printf 'café\n☃\n' >body
run coffer sandbox upload -p "$id" body "你好 世界/'q\".txt"
is "upload" "$status" 0
same "puts the bytes into the workspace" "$space/你好 世界/'q\".txt" body
run coffer sandbox exec "$id" -- cat "你好 世界/'q\".txt"
same "exec sees them" "$out" body
run coffer sandbox exec "$id" -c 'sleep 71 & sleep 72 >/dev/null 2>&1 & exit 6'
is "exec passes the exit status on" "$status" 6
run coffer sandbox kill "$id"
is "kill" "$status $(cat "$out")" "0 $id killed"
ok "ends what was left running" soon 5 none_of_ours
ok "and removes the workspace" test ! -e "$space"
run coffer sandbox create --provider host --ttl 1s
remember "$(cat "$out")"
sleep 1
ok "a ttl ends it by itself" soon 5 none_of_ours

finish
