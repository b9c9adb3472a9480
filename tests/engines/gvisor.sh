# SPDX-License-Identifier: Apache-2.0
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/engines/lib.sh"
. "$COFFER_SOURCE/tests/engines/hello.sh"
. "$COFFER_SOURCE/tests/engines/provider.sh"
. "$COFFER_SOURCE/tests/engines/trees.sh"
. "$COFFER_SOURCE/tests/e2e/kit-lib.sh"
needs python3
ok "gvisor: it comes up" engine_start gvisor
hello
provider_setup
list_all
list_kit 'exec.s*'

# Its engine has it as its usual runtime, and up to here nobody else has named it.
list_runtime () {
  file=$COFFER_HOME/config/providers.d/$provider.yaml
  for runtime in default runsc; do
    [ "$runtime" = default ] || sed -i "s/^config:/&\n  runtime: $runtime/" "$file"
    run coffer provider doctor "$provider" --json
    is "$engine: $runtime: it is found to be a kernel of its own" \
      "$(json "$out" '[f["state"] for f in d["facts"] if f["name"] == "host_kernel_shared"]')" \
      "['absent']"
    run coffer run -w "$T/shown" -- cat file
    is "$engine: $runtime: a folder is shown" "$status $(cat "$out")" "0 shown"
    id=$(coffer sandbox create 2>"$err")
    is "$engine: $runtime: its kernel has as many threads as it needs" \
      "$(pids_limit)" 4096
    coffer sandbox kill "$id" >"$out" 2>&1
  done
}
# What stands still there takes no signal: its end is not waited for in vain, and
# what is left of it after the scenario would be told of by engine_finish.
list_paused () {
  id=$(coffer sandbox create 2>"$err")
  run coffer sandbox pause "$id"
  began=$(date +%s)
  run coffer sandbox kill "$id"
  is "$engine: a paused sandbox is killed" "$status" 0
  ok "$engine: without waiting for the engine to give up" \
    test $(($(date +%s) - began)) -lt 8
}
pids_limit () {
  for container in $(engine_list | sed -n 's/^container \([^ ]*\).*/\1/p'); do
    api GET "/containers/$container/json" | json /dev/stdin 'd["HostConfig"]["PidsLimit"]'
  done
}
list_runtime
list_paused
engine_finish
