# SPDX-License-Identifier: Apache-2.0
# Landlock as this kernel has it: ABI 2 in Debian's 6.1, none in
# user-mode-linux.  What is there is reported and holds; what is not is said, and
# refused where it is required.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "${COFFER_SOURCE:?}/tests/guest/scope.sh"
roles both
needs python3

run coffer provider doctor linux --json
doctor=$(json "$out" '[(f["state"], f["value"], bool (f.get ("remedy"))) for f in d["facts"] if f["name"] == "landlock"]')
is "the provider works" "$(json "$out" 'd["ok"]')" True
run coffer run --json -- true
is "a sandbox is made" "$status" 0
case $GUEST_KERNEL in
  qemu)
    like "doctor: the ABI of this kernel" "$doctor" "'ok', 'ABI 2\b.*False"
    like "and a run: what it has of it" "$(fact "$out" landlock)" "^ok ABI 2\b.*: files" ;;
  uml)
    like "doctor: none, and what to do" "$doctor" "'absent', .*True"
    like "and a run" "$(fact "$out" landlock)" "^absent " ;;
esac

# A profile that requires it.
mkdir -p "$COFFER_HOME/config/profiles"
printf 'profile: 1\nname: locked\nsummary: with Landlock\nrequire: [landlock]\n' \
  >"$COFFER_HOME/config/profiles/locked.yaml"
chmod -R go-w "$COFFER_HOME/config"
mkdir "$T/w"
[ "$(id -u)" -ne 0 ] || chmod 777 "$T/w"
run coffer run --profile locked -w "$T/w:rw" -- sh -c ': >ran'
case $GUEST_KERNEL in
  qemu)
    is "where it is required and there" "$status" 0
    ok "the command runs" test -e "$T/w/ran" ;;
  uml)
    is "where it is required and not there" "$status" 125
    like "the message names it, and what to do" "$(cat "$err")" 'landlock.*lsm='
    ok "and the command does not run" test ! -e "$T/w/ran" ;;
esac

# A provider whose rights Landlock holds, and what an operator can say.
without_conformance
mkdir -p "$COFFER_HOME/providers/parrot" "$COFFER_HOME/config/providers.d"
chmod -R go-w "$COFFER_HOME"
install -m 644 "$COFFER_BUILD/tests/e2e/modules/parrot.so" \
  "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" "$COFFER_HOME/providers/parrot"
coffer seal "$COFFER_HOME/providers/parrot/parrot.yaml"
printf '{"trust":"local","manifest_sha256":"%s"}\n' \
  "$(sha256sum <"$COFFER_HOME/providers/parrot/parrot.yaml" | cut -c 1-64)" \
  >"$COFFER_HOME/providers/parrot/receipt.json"
chmod 644 "$COFFER_HOME/providers/parrot/receipt.json"
run coffer call parrot probe
case $GUEST_KERNEL in
  qemu)
    is "a provider's rights are held" "$status" 0 ;;
  uml)
    like "a provider whose rights nothing holds is refused" "$status $(cat "$err")" \
      '^[1-9][0-9]* coffer: E[0-9]{4}: .*[Ll]andlock'
    like "with what an operator can do" "$(cat "$err")" 'allow_degraded' ;;
esac
printf 'worker: {allow_degraded: true}\n' >"$COFFER_HOME/config/providers.d/parrot.yaml"
chmod 600 "$COFFER_HOME/config/providers.d/parrot.yaml"
run coffer call parrot probe
is "which then works" "$status" 0
# More than a frame holds goes in memory that cannot be executed, which this
# kernel does not make.
word=$(head -c 100000 /dev/zero | tr '\0' x)
run coffer call parrot exec_start sandbox=sb-1 argv="$word" argv="$word" \
  cwd=here in=- out="$T/words" err="$T/squawk"
is "large arguments reach it" "$status $(wc -c <"$T/words")" "0 200002"
run coffer call parrot sandbox_create sandbox=sb-1 spec.metadata="$word"
is "and large answers come back" "$status $(($(wc -c <"$out") > 100000))" "0 1"
finish
