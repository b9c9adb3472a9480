#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The reference of the contract is current: sdk/doc/operations.md is what
# `coffer contract --markdown` prints, and coffer-provider(3) has each
# operation, argument, record, field, capability and code of the table, and
# none that is not in it.
. "$COFFER_SOURCE/tests/build/tap.sh"
page=$COFFER_BUILD/core/man/coffer-provider.3

current () {
  "$COFFER_BUILD/coffer" contract --markdown > "$tmp/operations.md" || return 1
  diff -u "$COFFER_SOURCE/sdk/doc/operations.md" "$tmp/operations.md" || {
    echo "run: make update-operations"
    return 1
  }
}

# What the page has, section by section, one "SECTION HEAD ITEM" a line.
page_rows () {
  awk '
    /^\.Sh / { section = $2; head = "-"; next }
    /^\.Ss / { head = $NF; print section, head, "-"; next }
    /^\.It V/ || /^\.It D/ { print section, head, $3 }
  ' "$page" | grep -E '^(OPERATIONS|RECORDS|CAPABILITIES|CODES) ' | sort
}

table_rows () {
  "$COFFER_BUILD/coffer" contract --json | python3 -c '
import json, sys
table = json.load (sys.stdin)
for op in table["operations"]:
    print ("OPERATIONS", op["name"], "-")
    for field in op["args"] + op["opts"]:
        print ("OPERATIONS", op["name"], field["name"])
for record in table["records"]:
    print ("RECORDS", "coffer_" + record["name"], "-")
    for field in record["fields"]:
        print ("RECORDS", "coffer_" + record["name"], field["name"])
for capability in table["capabilities"]:
    print ("CAPABILITIES", "-", capability["word"])
for code in table["codes"]:
    print ("CODES", "-", "COFFER_" + code["name"])
' | sort
}

both_ways () {
  page_rows > "$tmp/page" && table_rows > "$tmp/table" || return 1
  [ "$(wc -l < "$tmp/table")" -gt 100 ] || { echo "no table"; return 1; }
  diff "$tmp/table" "$tmp/page"
}

# Each function that a module's author calls, and the two macros.
functions () {
  sed -n 's/^\(coffer_[a-z_]*\) (.*/\1/p' \
    "$COFFER_SOURCE/sdk/include/coffer/provider.h" | sort -u \
    | while read -r name; do
        grep -qE "^\.F[no] $name( |\$)" "$page" || echo "$name is missing"
      done
}

# The library's: the page has the functions of the headers, each a comment.
library () {
  for header in "$COFFER_SOURCE"/sdk/include/coffer/*.h; do
    case $header in */contract.h|*/provider.h) continue ;; esac
    sed -e ':a' -e 's|/\*.*\*/||' -e '/\/\*/{N;ba' -e '}' "$header" \
      | grep -v -E '^(typedef|#)' | grep -oE '\bcoffer_[a-z0-9_]+ \(' \
      | tr -d ' ('
  done | sort -u > "$tmp/declared"
  sed -n 's/^\.It Fn //p' \
    "$COFFER_SOURCE/core/man/coffer-provider-lib.3" | sort -u > "$tmp/listed"
  [ -s "$tmp/declared" ] || echo "no header was read"
  diff "$tmp/declared" "$tmp/listed"
}

lint () {
  mandoc -T lint -W warning "$page" \
    "$COFFER_SOURCE/core/man/coffer-provider-lib.3" | grep -v 'referenced manual not found'
}

plan 5
check "sdk/doc/operations.md is current" current
if command -v python3 >/dev/null 2>&1; then
  check "coffer-provider(3) has the table, and nothing else" both_ways
else
  skip "coffer-provider(3) has the table, and nothing else" python3
fi
check "coffer-provider(3) has each function of the header" silent functions
check "coffer-provider-lib(3) has each function of the library" silent library
if command -v mandoc >/dev/null 2>&1; then
  check "mandoc finds nothing wrong in coffer-provider(3)" silent lint
else
  skip "mandoc finds nothing wrong in coffer-provider(3)" mandoc
fi
finish
