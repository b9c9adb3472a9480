# SPDX-License-Identifier: Apache-2.0
# `coffer provider default`, `enable` and `disable`: what is chosen, where it is
# written, and that nothing else of the operator's files changes.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3
roles both
config=$COFFER_HOME/config
umask 077

run coffer provider default
is "without a file it is linux" "$status $(cat "$out")" "0 linux (builtin)"
run coffer provider default --json
is "as JSON" "$(cat "$out" | tr -d ' ')" '{"id":"linux","source":"builtin"}'
run coffer provider default host
is "chosen: the file is made" "$status $(cat "$out")" "0 host (user)"
is "with that one line" "$(cat "$config/coffer.yaml")" "default_provider: host"
is "and for others to read" "$(stat -c %a "$config/coffer.yaml")" 644
run coffer provider list
like "list marks it" "$(cat "$out")" '^host \* '
like "list names the kind" "$(cat "$out")" 'linux .* packaged +namespaces '
run coffer provider list --json
is "list --json too" \
  "$(json "$out" '[(p["id"], p["kind"]) for p in d["providers"] if p["default"]]')" \
  "[('host', 'none')]"

printf '# ours, café ☃\naccept: [limit.memory]\ndefault_provider: "host" # for now\n# end' \
  >"$config/coffer.yaml"
chmod 600 "$config/coffer.yaml"
run coffer provider default linux
is "chosen: all else stays as it was written" "$(cat "$config/coffer.yaml")" \
  "$(printf '# ours, café ☃\naccept: [limit.memory]\ndefault_provider: linux # for now\n# end')"
is "the mode too" "$(stat -c %a "$config/coffer.yaml")" 600
run coffer provider default linux --json
is "once more" "$status $(json "$out" 'd["source"]')" "0 user"

cp "$config/coffer.yaml" "$T/kept"
run coffer provider default linx
like "an unknown one is refused" "$status $(cat "$err")" '^4 .*E8001: '
same "and nothing written" "$config/coffer.yaml" "$T/kept"
chmod 666 "$config/coffer.yaml"
run coffer provider default host
like "a file that others may write to is refused" "$status $(cat "$err")" '^5 .*E6005: '
rm "$config/coffer.yaml" && ln -s "$T/kept" "$config/coffer.yaml"
run coffer provider default host
like "a link as well" "$status $(cat "$err")" '^5 .*E6005: '
rm "$config/coffer.yaml"
printf 'default_provider: [host]\n' >"$config/coffer.yaml"
run coffer provider default host
like "what is no single value is refused with its place" "$status $(cat "$err")" \
  '^2 .*E6003: .*coffer.yaml:1:19: '
printf '# nothing yet\n' >"$config/coffer.yaml"
run coffer provider default
is "a file of comments says nothing" "$status $(cat "$out")" "0 linux (builtin)"

# -- enable, disable
run coffer provider disable host
is "disable" "$status $(cat "$out")" "0 host is disabled"
is "disable: the file is made" "$(cat "$config/providers.d/host.yaml")" "enabled: false"
run coffer provider disable host --json
is "disable: once more" "$status $(json "$out" '(d["state"], d["changed"])')" \
  "0 ('disabled', False)"
run coffer run --provider host -- true
like "disabled: it is refused" "$status $(cat "$err")" '^125 .*E8002: '
like "disabled: and what helps is named" "$(cat "$err")" 'coffer provider enable host'
run coffer provider default host
like "disabled: nor can it be the default" "$status $(cat "$err")" '^5 .*E8002: '
printf '# careful\nenabled: false  # until May\nlimits: {calls: 4}\n' \
  >"$config/providers.d/host.yaml"
run coffer provider enable host --json
is "enable" "$status $(json "$out" '(d["id"], d["state"], d["changed"])')" \
  "0 ('host', 'enabled', True)"
is "enable: all else stays" "$(cat "$config/providers.d/host.yaml")" \
  "$(printf '# careful\nenabled: true  # until May\nlimits: {calls: 4}')"
run coffer provider enable host
is "enable: once more" "$status $(cat "$out")" "0 host is enabled already"
run coffer run --provider host -- true
is "enabled: it is taken" "$status" 0
run coffer provider disable linux
like "disable: of the default that is said" "$(cat "$err")" 'warning: linux is the default'
for command in enable disable; do
  run coffer provider $command hots
  like "$command: an unknown one" "$status $(cat "$err")" '^4 .*E8001: '
  run coffer provider $command
  is "$command: of nobody" "$status" 2
done
printf 'limits: [\n' >"$config/providers.d/host.yaml"
run coffer provider enable host
like "enable: a broken one is refused by what is wrong" "$status $(cat "$err")" \
  '^2 .*E6003: .*host.yaml:'
finish
