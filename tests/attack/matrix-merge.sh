#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#   matrix-merge.sh MATRIX MEASURED
# Puts the rows that were measured in place of those of the table, and new ones
# at its end.
set -eu
[ "$(wc -l < "$2")" -gt 1 ] || { echo "matrix-merge: $2: no rows" >&2; exit 1; }
awk -F '\t' '
  NR == FNR && FNR == 1 { head = $0; next }
  NR == FNR { row[$1, $2, $3] = $0; order[++n] = $1 SUBSEP $2 SUBSEP $3; next }
  $1 == "case" { print head; next }
  ($1, $2, $3) in row { print row[$1, $2, $3]; delete row[$1, $2, $3]; next }
  { print }
  END { for (i = 1; i <= n; i++) if (order[i] in row) print row[order[i]] }' "$2" "$1" > "$1.new"
mv "$1.new" "$1"
