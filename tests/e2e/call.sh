#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `coffer call`: single operations of a provider by the contract's table, with
# the caller's files only behind pipes.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3
roles both
name='你好 世界/'\''q".txt'
body=$T/body
printf 'café\n☃\n' >"$body"

call () { run coffer call --in-process host "$@"; }
# What the one record of a name says: RECORD EXPRESSION.
said () {
  python3 -c '
import json, sys
rows = [json.loads (line) for line in open (sys.argv[1], encoding="utf-8")]
r, = [row[sys.argv[2]] for row in rows if sys.argv[2] in row]
print (eval (sys.argv[3]))' "$out" "$1" "$2"
}

call probe
is "probe succeeds" "$status" 0
like "and emits facts, one a line" "$(head -1 "$out")" '^\{"fact":\{"name":'

call sandbox_create sandbox=sb-call spec.metadata=a=b spec.metadata='c=☃'
is "a sandbox is made" "$status" 0
is "with the vector that was given by a repeated key" \
  "$(said sandbox_info 'r["metadata"]')" "['a=b', 'c=☃']"

call file_write sandbox=sb-call path="$name" in="$body" opts.parents=1
is "a file goes in through a pipe" "$status" 0
is "all of it" "$(said file_stat 'r["moved_bytes"]')" 10
call file_read sandbox=sb-call path="$name" out="$T/copy"
same "and comes out into a file" "$T/copy" "$body"
run coffer call --in-process host file_read sandbox=sb-call path="$name" \
  opts.offset_bytes=5 out=-
is "or to standard output, alone" "$(cat "$out")" "$(tail -c 5 "$body")"
like "with the records on standard error" "$(cat "$err")" '^\{"file_stat"'

# The end of the input is the end of the command's.
status=0
coffer call --in-process host exec_start sandbox=sb-call argv=sh argv=-c \
  argv='cat; echo err >&2' in=- out=- err="$T/err2" \
  <"$body" >"$out" 2>"$err" || status=$?
is "a command is started with three streams" "$status" 0
same "its output is passed on to the end" "$out" "$body"
is "and its errors" "$(cat "$T/err2")" err

call exec_start sandbox=sb-call argv=true opts.timeout_ms=5s
is "a time may have a suffix" "$status" 0

call file_stat sandbox=sb-call path=missing
is "NOT_FOUND is exit status 4" "$status" 4
call file_stat path=x
is "an argument that must be given" "$status" 2
like "is named" "$(cat "$err")" 'E6006: sandbox: must be given'
call file_stat sandbx=sb-call
like "a wrong key gets the nearest" "$(cat "$err")" 'did you mean "sandbox"'
call file_read sandbox=sb-call path=x out="$T/no/such/folder"
is "a file that cannot be opened" "$status" 1
call exec_start sandbox=sb-call argv=true opts.rows=4294967296
is "a number out of range" "$status" 2
call sandbox_create sandbox=sb-x 'spec={"mounts":[{"target":5}]}'
like "a wrong type in a record is named by its path" "$(cat "$err")" \
  'spec\.mounts\[0\]\.target'
call snapshot_list
is "what the provider does not claim" "$status" 2
like "is said by its capability" "$(cat "$err")" 'E8010'
call open
is "open is no operation to call" "$status" 2
run coffer call --in-process nobody probe
is "an unknown provider" "$status" 4

call sandbox_kill sandbox=sb-call
is "the sandbox is killed" "$status" 0
call sandbox_list
is "and gone" "$(cat "$out")" ""
finish
