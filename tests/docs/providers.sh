# SPDX-License-Identifier: Apache-2.0
# The table of providers in the manual: of a run that was conformant, with every word
# of the contract, and with what manifests claim, no more and no less.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3
table=$COFFER_SOURCE/core/man/providers.tsv

row () { awk -F '\t' -v key="$1" '$1 == key' "$table"; }
is "each run was conformant" "$(row verdict | cut -f 2- | tr '\t' '\n' | sort -u)" \
  conformant
for run in linux host docker podman rootless; do
  row run | tr '\t' '\n' | grep -qx "$run" || echo "$run"
done >"$T/lacking"
is "with linux, host and the engines among them" "$(cat "$T/lacking")" ""
sed -n 's/^  CAP ([A-Z_]*, "\([^"]*\)".*/\1/p' \
  "$COFFER_SOURCE/sdk/include/coffer/contract.h" >"$T/words"
ok "the contract has words" test -s "$T/words"
sed '/^#/d; 1,/^waived/d' "$table" | cut -f 1 >"$T/rows"
same "there is a line for each" "$T/rows" "$T/words"
column=1
for provider in $(row provider | cut -f 2-); do
  column=$((column + 1))
  run=$(row run | cut -f $column)
  sed '/^#/d; 1,/^waived/d' "$table" | awk -F '\t' -v n=$column '$n != "no" { print $1 }' \
    | sort >"$T/seen"
  sed -n '/^capabilities:/,/^[a-z]*:/p' "$COFFER_SOURCE/manifests/$provider.yaml" \
    | grep -oE '[a-z]+(\.[a-z]+)*' | grep -xFf "$T/words" | sort >"$T/claimed"
  same "$run: what was seen is what $provider claims" "$T/seen" "$T/claimed"
done
for word in $(cat "$T/words"); do
  grep -q "^\.It $word Ta " "$COFFER_BUILD/core/man/coffer-providers.7" || echo "$word"
done >"$T/missing"
is "coffer-providers(7) has them all" "$(cat "$T/missing")" ""
if command -v mandoc >/dev/null 2>&1; then
  is "mandoc finds nothing wrong in it" "$(mandoc -T lint -W warning \
    "$COFFER_BUILD/core/man/coffer-providers.7" \
    | grep -v 'referenced manual not found')" ""
else
  skip "mandoc finds nothing wrong in it" mandoc
fi
finish
