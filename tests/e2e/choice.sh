# SPDX-License-Identifier: Apache-2.0
# Which provider is taken: --provider, then the environment, then the
# configuration, then linux; a named one never falls back; host never comes from
# the environment.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox

taken () { json "$out" 'd["provider"] if "provider" in d else d["error"]["code"]'; }

run coffer run --json -- true
is "linux unless said" "$(taken)" linux
run env COFFER_PROVIDER=linux "$COFFER_BUILD/coffer" run --json -- true
is "COFFER_PROVIDER" "$(taken)" linux
run env COFFER_PROVIDER=none-such "$COFFER_BUILD/coffer" run --json -- true
is "COFFER_PROVIDER of what is not there: no falling back" "$status $(taken)" "125 E8001"
run env BOX_BACKEND=none-such "$COFFER_BUILD/coffer" run --json -- true
is "BOX_BACKEND is read too" "$status $(taken)" "125 E8001"
run env BOX_BACKEND=none-such COFFER_PROVIDER=linux "$COFFER_BUILD/coffer" run --json -- true
is "after COFFER_PROVIDER" "$(taken)" linux
run env COFFER_PROVIDER=none-such "$COFFER_BUILD/coffer" run --provider linux --json -- true
is "--provider goes before both" "$(taken)" linux
run coffer run --provider linx --json -- true
is "an unknown one: no falling back" "$status $(taken)" "125 E8001"
like "and the nearest is named" "$(cat "$out")" linux
run coffer run --provider '../x' --json -- true
is "what is no id at all" "$status $(taken)" "125 E6006"
for variable in COFFER_PROVIDER BOX_BACKEND; do
  run env $variable=host "$COFFER_BUILD/coffer" run --json -- true
  is "$variable=host is refused" "$status $(taken)" "125 E5001"
done

mkdir -p "$COFFER_HOME/config"
printf 'default_provider: none-such\n' >"$COFFER_HOME/config/coffer.yaml"
run coffer run --json -- true
is "the configuration's default" "$status $(taken)" "125 E8001"
run env COFFER_PROVIDER=linux "$COFFER_BUILD/coffer" run --json -- true
is "the environment goes before it" "$(taken)" linux

printf 'default_provider: host\n' >"$COFFER_HOME/config/coffer.yaml"
run coffer run -- echo hi
is "host by the configuration" "$status $(cat "$out")" "0 hi"
like "says at every run that it is no sandbox" "$(cat "$err")" '^coffer: warning: provider host is not a sandbox'
rm "$COFFER_HOME/config/coffer.yaml"
run coffer run --provider host -- sh -c 'id -u; exit 4'
is "host by --provider runs as the caller" "$status $(cat "$out")" "4 $(id -u)"
is "and says so in one line, beside what is not applied" \
  "$(grep -c 'is not a sandbox' "$err") $(wc -l <"$err")" "1 2"
if [ "$(id -u)" -eq 0 ]; then
  like "and warns root" "$(cat "$err")" 'you are root'
fi
run coffer run --provider host --net none -- true
like "what host cannot do is refused" "$status $(head -1 "$err")" '^125 coffer: E8010: '
run coffer run --provider host --mem 64M -- true
like "limits too" "$status $(head -1 "$err")" '^125 coffer: E8010: '

# What runs is the program's own code, where it has that, unless the operator
# holds the provider to a worker.
run coffer provider info linux --json
own=$(json "$out" 'd["built_in"]')
case $own in
  True) words='built in, of the same build' ;;
  *) words='its module is as it was sealed' ;;
esac
run coffer run --verbose -- true
like "linux is said to be built in, or not" "$(cat "$err")" "linux: $words"
mkdir -p "$COFFER_HOME/config/providers.d"
printf 'limits: {calls: 8}\n' >"$COFFER_HOME/config/providers.d/linux.yaml"
run coffer run --verbose -- true
like "one that a worker is to hold is loaded" "$(cat "$err")" \
  'linux: its module is as it was sealed'
run coffer provider info linux --json
is "and is not said to be built in" "$(json "$out" 'd["built_in"]')" False
printf 'enabled: false\n' >"$COFFER_HOME/config/providers.d/linux.yaml"
run coffer run -- true
like "one that is disabled runs nothing" "$status $(head -1 "$err")" '^125 coffer: E8'
rm "$COFFER_HOME/config/providers.d/linux.yaml"

finish
