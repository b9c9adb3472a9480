. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "${COFFER_SOURCE:?}/tests/guest/scope.sh"
for o in "--pids 12" "--mem 64M" "--mem 64M --pids 12" "--mem 64M --pids 12 --cpus 1"; do
scoped coffer run --json $o -- true >"$out" 2>"$err"
note "$o"
note "$(json "$out" '[f for f in d["applied"]["facts"] if f["name"] == "cgroup" ]')" 
note "$(cat $err)"
done
finish
