#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#   matrix-merge.sh MATRIX MEASURED
# Puts the rows that were measured in place of those of the table.
set -eu
[ "$(wc -l < "$2")" -gt 1 ] || { echo "matrix-merge: $2: no rows" >&2; exit 1; }
awk -F '\t' '
  NR == FNR { if (FNR > 1) row[$1, $2] = $0; else head = $0; next }
  $1 == "case" { print head; next }
  ($1, $2) in row { print row[$1, $2]; delete row[$1, $2]; next }
  { print }
  END { for (key in row) print row[key] }' "$2" "$1" > "$1.new"
mv "$1.new" "$1"
