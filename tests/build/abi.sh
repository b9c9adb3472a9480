#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The contract against the one that was released, by abidiff: what is appended
# passes, everything else is refused.  A suppression of abidiff's that lets
# appends pass lets every other change of the same record pass with them, so its
# report is read instead.  Headers that were changed on purpose show that each
# kind of change is seen.
#
# `abi.sh update` writes the baseline of this contract: for a new minor, or
# while the major is 0.
. "$COFFER_SOURCE/tests/build/tap.sh"
contract=$COFFER_SOURCE/sdk/include/coffer/contract.h
version=$(sed -n 's/^#define COFFER_CONTRACT_M[AJORIN]* //p' "$contract" \
  | paste -sd.)
baseline=$COFFER_SOURCE/tests/abi/baseline-$version-$(uname -m).abi

# shape HEADERS NAME: the module whose debug information has every type.  By
# gcc, whose words for types the baseline has.
shape () {
  gcc -std=gnu11 -g -O0 -fPIC -shared -fvisibility=hidden -Werror -I "$1" \
    -ffile-prefix-map="$COFFER_SOURCE/=" -o "$tmp/$2.so" \
    "$COFFER_SOURCE/tests/abi/shape.c"
}
dump () {
  abidw --no-corpus-path --no-comp-dir-path --no-show-locs \
    --out-file "$2" "$tmp/$1.so"
}

# What of a report is no append, line by line.
judge () {
  awk '
    /^$/ || /^(Leaf changes|Changed leaf types|Removed\/Changed\/Added) / { next }
    /^.(struct|enum) coffer_[a-z_]*. changed:$/ { size = -1; part = ""; next }
    /^  type size changed from [0-9]+ to [0-9]+ \(in bits\)$/ { size = $5; next }
    /^  type size hasn.t changed$/ { next }
    /^  [0-9]+ (data member|enumerator) insertions?:$/ { part = $2; next }
    part == "data" && /^    .*, at offset [0-9]+ \(in bits\)/ {
      match ($0, /at offset [0-9]+/)
      if (size >= 0 && substr ($0, RSTART + 10, RLENGTH - 10) + 0 >= size) next
    }
    part == "enumerator" && /^    .coffer_[a-z_]*::[A-Za-z_]*. value / { next }
    { part = ""; print }' "$1"
}

# compare OLD NEW: nothing when NEW only appends.
compare () {
  abidiff --leaf-changes-only --no-added-syms "$1" "$2" > "$tmp/report" 2>&1
  status=$?
  [ $((status & 3)) -eq 0 ] || { echo "abidiff: $status"; cat "$tmp/report"; }
  [ $((status & 8)) -eq 0 ] || { echo "something was removed"; cat "$tmp/report"; }
  judge "$tmp/report"
}

if [ "${1:-}" = update ]; then
  shape "$COFFER_SOURCE/sdk/include" now && dump now "$baseline"
  exit
fi

plan 15
for tool in abidiff abidw gcc; do
  command -v "$tool" >/dev/null 2>&1 || missing=$tool
done
[ -e "$baseline" ] || missing="an ABI baseline of $(uname -m)"
if [ -n "${missing:-}" ]; then
  while [ "$tap_n" -lt "$tap_plan" ]; do
    skip "the contract keeps its shape" "$missing"
  done
  finish
fi

check "the headers make the module of shapes" \
  shape "$COFFER_SOURCE/sdk/include" now
check "nothing of contract $version has moved" \
  silent compare "$baseline" "$tmp/now.so"

# changed FROM TO...: a copy of the headers with each FROM, which is there
# once, replaced; compared with the true ones.
dump now "$tmp/now.abi"
changed () {
  rm -rf "$tmp/changed"
  mkdir "$tmp/changed"
  cp -r "$COFFER_SOURCE/sdk/include/coffer" "$tmp/changed"
  python3 - "$tmp/changed/coffer/contract.h" "$@" <<'PY' || return 1
import sys
name, *pairs = sys.argv[1:]
text = open (name).read ()
for old, new in zip (pairs[::2], pairs[1::2]):
    assert text.count (old) == 1, old
    text = text.replace (old, new)
open (name, "w").write (text)
PY
  shape "$tmp/changed" changed || return 1
  compare "$tmp/now.abi" "$tmp/changed.so"
}
refused () {
  said=$(changed "$@") || { echo "$said"; return 1; }
  [ -n "$said" ]
}
allowed () { silent changed "$@"; }

last='FIELD (strv, narrows, 1, "capability words that this takes away here")'
more='FIELD (u64, more, 1, "")'
check "allowed: a field at the end" allowed "$last" "$last $more"
op='COFFER_OPTS_NONE, "delete; NOT_FOUND when there is none")'
check "allowed: an operation at the end" allowed "$op" \
  "$op OP (63, snapshot_more, 1, \"snapshot\", , COFFER_OPTS_NONE, \"\")"
rec='"a helper or data file of a provider")'
check "allowed: a record at the end" allowed "$rec" \
  "$rec REC (14, other_port, 1, COFFER_FIELDS_port, \"\")"
code='unknown, "a fault of the provider itself")'
check "allowed: a code at the end" allowed "$code" \
  "$code CODE (15, ODD, no, \"\")"
value='FIELD (text, value, 1, "what was found, for people")'
check "refused: a field before the end" refused "$value" "$value $more"
state='FIELD (text, state, 1, "ok, absent, off, degraded or failed")'
check "refused: two fields in another order" refused \
  "$state" "FIELD (text, value, 1, \"\")" "$value" "FIELD (text, state, 1, \"\")"
check "refused: another width" refused \
  'FIELD (u64, memory_bytes, 1,' 'FIELD (u32, memory_bytes, 1,'
check "refused: another type of the same width, beside an append" refused \
  "$value" 'FIELD (u64, value, 1, "")' "$last" "$last $more"
check "refused: a field taken out" refused "$value" ''
check "refused: a slot taken out" refused \
  "$(grep -o 'OP (50, metrics, .*")' "$contract")" ''
check "refused: another argument" refused \
  'ARG (u32, port, "1 to 65535"), COFFER_OPTS_NONE, "emit port")' \
  'ARG (u64, port, ""), COFFER_OPTS_NONE, "")'
check "refused: another id of an operation" refused \
  'OP (50, metrics,' 'OP (51, metrics,'
check "refused: another number of a code" refused 'CODE (13, IO,' 'CODE (16, IO,'
finish
