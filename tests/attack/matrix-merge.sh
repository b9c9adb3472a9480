#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#   matrix-merge.sh MATRIX MEASURED
# Puts the rows of one user that were measured in place of those of the table.
set -eu
user=$(awk -F '\t' 'NR == 2 { print $2 }' "$2")
[ -n "$user" ] || { echo "matrix-merge: $2: no rows" >&2; exit 1; }
{
  cat "$2"
  awk -F '\t' -v user="$user" '$1 != "case" && $2 != user' "$1"
} > "$1.new"
mv "$1.new" "$1"
