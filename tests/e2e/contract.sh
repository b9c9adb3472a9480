#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `coffer contract`: the table for people and for programs, and what a wrong
# question gets.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3

run coffer contract
is "the list succeeds" "$status" 0
like "it has an operation with its id and capability" "$(cat "$out")" \
  '^20 +exec_start +exec '
like "and one that every provider has" "$(cat "$out")" '^3 +probe +- '

run coffer contract exec_start
like "an argument of one operation" "$(cat "$out")" '^cwd +str '
like "an option of it, as call takes it" "$(cat "$out")" \
  '^opts.timeout_ms +u64 '
run coffer contract sandbox_create
like "a field of a record argument" "$(cat "$out")" '^spec.memory_bytes +u64 '
run coffer contract close
is "an operation without arguments" "$(cat "$out")" \
  "close: end the instance and free it"

run coffer contract --json
is "the whole as JSON" "$(json "$out" '(
  d["major"], d["minor"], len (d["operations"]) > 30,
   [o["capability"] for o in d["operations"] if o["name"] == "file_read"],
   len (d["codes"]), "mounts.bind" in [c["word"] for c in d["capabilities"]],
   [f["type"] for r in d["records"] if r["name"] == "stream"
      for f in r["fields"]])')" "(0, 1, True, ['files'], 15, True, ['fd'])"
run coffer contract --json exec_start
is "one operation as JSON" "$(json "$out" '(
  d["id"], [a["name"] for a in d["args"] if a.get ("optional")])')" \
  "(20, ['argv', 'env', 'cwd'])"

run coffer contract --markdown
is "the reference succeeds" "$status" 0
like "and has a table" "$(cat "$out")" '^\| `argv` \| strv \|'

run coffer contract exec_strt
is "an unknown operation is not found" "$status" 4
like "with the nearest name" "$(cat "$err")" 'did you mean exec_start'
run coffer contract --markdown exec_start
is "the reference of one operation is refused" "$status" 2
run coffer contract --markdown --json
is "and so are two forms at once" "$status" 2
finish
