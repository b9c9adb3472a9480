#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What an author has when a module does not do what it should: every frame in
# the log, with nothing secret in it, and a worker that waits for gdb.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3 sha256sum

folder=$COFFER_HOME/providers/parrot
mkdir -p "$folder"
chmod 755 "$COFFER_HOME/providers" "$folder"
install -m 644 "$COFFER_BUILD/tests/e2e/modules/parrot.so" \
  "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" "$folder"
sed -i 's|^config:|&\n  pin: {type: secret, env: PARROT_PIN}|' \
  "$folder/parrot.yaml"
coffer seal "$folder/parrot.yaml"
printf '{"trust":"local","manifest_sha256":"%s"}\n' \
  "$(sha256sum <"$folder/parrot.yaml" | cut -c 1-64)" >"$folder/receipt.json"
chmod 644 "$folder/receipt.json"
without_conformance

# -- frames ----
PARROT_TOKEN=tok-$$-needle PARROT_PIN=77$$
export PARROT_TOKEN PARROT_PIN
COFFER_LOG=debug:channel; export COFFER_LOG
run coffer call parrot sandbox_create sandbox=sb-1 spec.env="KEY=hunter$$" \
  spec.metadata="note=$PARROT_TOKEN"
is "a call is made" "$status" 0
for frame in '-> {"kind":"start"' '<- {.*"kind":"ready"' \
  '-> {"kind":"call".*"op":"sandbox_create"' '<- {"kind":"emit"' \
  '<- {"kind":"done"'; do
  ok "its log has: $frame" grep -qE "parrot $(printf '%s' "$frame" \
    | sed 's/[{]/\\{/g')" "$err"
done
like "the names of an environment are in it" "$(cat "$err")" '"KEY=\[hidden\]"'
is "and no value, nor a secret of any length" \
  "$(grep -cE "hunter$$|$PARROT_TOKEN|=77$$" "$err")" 0
unset COFFER_LOG
run coffer call parrot probe
is "without being asked nothing of it is logged" \
  "$(grep -c 'channel:' "$err")" 0

# -- gdb ----
if ! command -v gdb >/dev/null 2>&1; then
  skip "a worker waits for gdb" gdb
  finish
  exit
fi
sleep 30 & traced=$!
gdb -q -batch -p "$traced" >"$T/trial" 2>&1
kill "$traced"
if grep -qE 'ptrace: |Could not attach' "$T/trial" \
  && [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null)" != 1 ]; then
  skip "a worker waits for gdb" "the right to trace"
  finish
  exit
fi
COFFER_WORKER_HOLD=parrot coffer call parrot probe --timeout 60s \
  >"$out" 2>"$err" &
call=$!
waiting () { grep -q 'waits for a debugger' "$err"; }
ok "a worker says that it waits" soon 10 waiting
pid=$(sed -n 's/.*gdb -p \([0-9]*\).*/\1/p' "$err")
timeout 60 gdb -q -nx -batch -p "$pid" -ex 'set breakpoint pending on' \
  -ex 'break parrot_probe' -ex continue -ex 'backtrace 2' -ex detach \
  >"$T/gdb" 2>&1
ok "gdb stops in an operation of the module" \
  grep -qE '^#0 .*parrot_probe' "$T/gdb"
status=0
wait "$call" || status=$?
is "and the call goes on to its end" "$status" 0
COFFER_WORKER_HOLD=host run coffer call parrot probe
is "another provider's worker does not wait" "$status" 0
finish
