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

mode=--in-process
# shellcheck disable=SC2086
call () { run coffer call $mode host "$@"; }
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

# Waiting for a stream ends with a signal, also once the call is over.
mkfifo "$T/never"
sleep 60 >"$T/never" &
holder=$!
coffer call --in-process host exec_start sandbox=sb-call argv=sleep argv=60 \
  in="$T/never" out="$T/none" >"$out" 2>"$err" &
caller=$!
soon 5 grep -q exec_info "$out"
kill -TERM "$caller"
status=0
wait "$caller" || status=$?
kill "$holder"; wait "$holder" 2>/dev/null
is "a signal ends the wait for streams" "$status" 143

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

# In a worker the caller cannot tell the difference.
mode=
call file_read sandbox=sb-call path="$name" out="$T/copy2"
same "the same file through a worker" "$T/copy2" "$body"
call file_stat sandbox=sb-call path=missing
is "the same failure through a worker" "$status" 4

# An installed module says back what came through the channel.
without_conformance
mkdir -p "$COFFER_HOME/providers/parrot"
chmod go-w "$COFFER_HOME" "$COFFER_HOME/providers" \
  "$COFFER_HOME/providers/parrot"
install -m 644 "$COFFER_BUILD/tests/e2e/modules/parrot.so" \
  "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" "$COFFER_HOME/providers/parrot"
coffer seal "$COFFER_HOME/providers/parrot/parrot.yaml"
printf '{"trust":"local","manifest_sha256":"%s"}\n' \
  "$(sha256sum <"$COFFER_HOME/providers/parrot/parrot.yaml" | cut -c 1-64)" \
  >"$COFFER_HOME/providers/parrot/receipt.json"
chmod 644 "$COFFER_HOME/providers/parrot/receipt.json"

run coffer call parrot sandbox_create sandbox=sb-1 \
  spec.memory_bytes=18446744073709551615 spec.ttl_ms=9007199254740993 \
  "spec.workdir=$(printf '/tmp/\377')" "spec.metadata=path=/tmp/$name"
is "a u64 is exact at the other end" \
  "$(said sandbox_info 'r["native_id"], r["expires_ns"]')" \
  "('18446744073709551615', 9007199254740993)"
is "no descriptor is -1" "$(said sandbox_info 'r["created_ns"]')" -1
is "bytes that are not UTF-8 come back as they were" \
  "$(said sandbox_info 'r["workspace"]')" "{'b64': 'L3RtcC//'}"
is "and text as text" "$(said sandbox_info 'r["metadata"][0]')" \
  "path=/tmp/$name"

status=0
coffer call parrot exec_start sandbox=sb-1 argv=one argv='' argv="$name" \
  cwd=here in=- out="$T/words" err="$T/squawk" opts.background=1 \
  <"$body" >"$out" 2>"$err" || status=$?
is "three streams through the channel" "$status" 0
printf 'one\0\0%s\0' "$name" >"$T/want"
same "what the module wrote" "$T/words" "$T/want"
is "to each of them" "$(cat "$T/squawk")" squawk
is "and how much it read" \
  "$(said exec_info 'r["started_ns"], r["state"], r["background"]')" \
  "(10, 'here', True)"
run coffer call parrot exec_wait sandbox=s exec=5
is "numbers of each kind" \
  "$(said exec_exit 'r["code"], r["signal"], r["duration_us"]')" \
  "(-1, 9, '18446744073709551615')"
run coffer call parrot metrics sandbox=load
is "a real number" "$(said metric 'r["value"]')" 0.5
run coffer call parrot sandbox_info sandbox=x
like "the module's own message" "$(cat "$err")" 'nothing is ever made here'
run coffer call --in-process parrot probe
is "what coffer does not ship stays in a worker" "$status" 5

mode=--in-process
call sandbox_kill sandbox=sb-call
is "the sandbox is killed" "$status" 0
call sandbox_list
is "and gone" "$(cat "$out")" ""
finish
