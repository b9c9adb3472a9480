# SPDX-License-Identifier: Apache-2.0
# coffer sandbox upload, download, ls: any size, any name, compared.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox

id=$(coffer sandbox create) || exit 1
remember "$id"
cd "$T" || exit 1

for size in 0 1 65535 65536 65537 10485760; do
  head -c $size /dev/urandom >blob
  run coffer sandbox upload "$id" blob "b$size"
  is "upload of $size bytes" "$status" 0
  like "says the hash" "$(cat "$out")" "sha256 $(sha256sum <blob | cut -d' ' -f1)"
  is "inside it has that hash" \
    "$(coffer sandbox exec "$id" -- sha256sum "b$size" | cut -d' ' -f1)" "$(sha256sum <blob | cut -d' ' -f1)"
  run coffer sandbox download "$id" "b$size" back
  is "download of $size bytes" "$status" 0
  same "gives the same bytes" back blob
  rm -f back
done

printf 'café\n☃\n' >body
for name in "你好 世界/'q\".txt" "a
b" "-rf" " space " "ünï" "$(printf 'bytes\377\200')" "deep/er/and/deeper"; do
  run coffer sandbox upload -p "$id" body -- "./$name"
  is "an odd name goes in: $(printf %s "$name" | tr '\n\377\200' '___')" "$status" 0
  run coffer sandbox download "$id" -- "./$name" -
  same "and comes out" "$out" body
done
run coffer sandbox exec "$id" -- cat "你好 世界/'q\".txt"
same "a command inside sees it" "$out" body

run coffer sandbox ls "$id" /
is "ls is sorted" "$(awk 'NR > 1 { print $5 }' "$out")" \
  "$(awk 'NR > 1 { print $5 }' "$out" | LC_ALL=C sort)"
run coffer sandbox ls "$id"
like "ls shows modes and sizes" "$(cat "$out")" '^-rw.* 65537 .* b65537$'
is "a hostile name takes one line" "$(grep -c 'a\\nb$' "$out")" 1
run coffer sandbox ls --json --depth 9 "$id"
is "ls --json --depth" "$(json "$out" '[f["kind"] for f in d if f["path"] == "deep/er/and/deeper"]')" "['file']"
is "ls --json: a name that is no text" \
  "$(json "$out" '[f["path"]["encoding"] for f in d if isinstance (f["path"], dict)]')" "['base64']"
is "ls --json: sizes" "$(json "$out" '[f["size_bytes"] for f in d if f["path"] == "b65537"]')" "[65537]"

printf 'café\n☃\n' | coffer sandbox upload "$id" - from-stdin >"$out" 2>"$err"
run coffer sandbox exec "$id" -- cat from-stdin
same "upload of standard input" "$out" body
run coffer sandbox upload --json "$id" body there
is "upload --json" "$(json "$out" '(d["size_bytes"], d["sha256"])')" "(10, '$(sha256sum <body | cut -d' ' -f1)')"
run coffer sandbox upload "$id" body
is "without a PATH the name is kept" "$(coffer sandbox exec "$id" -- cat body)" "$(cat body)"
run coffer sandbox upload --mode 750 "$id" body prog
is "--mode" "$(coffer sandbox exec "$id" -- stat -c %a prog)" 750
mkdir into
run coffer sandbox download "$id" body into
same "download into a folder" into/body body
run coffer sandbox download --json "$id" body x
is "download --json" "$(json "$out" '(d["size_bytes"], d["sha256"])')" "(10, '$(sha256sum <body | cut -d' ' -f1)')"

refused () { # what status code CMD…
  what=$1 want=$2 code=$3; shift 3
  run "$@"
  like "$what" "$status $(head -1 "$err")" "^$want coffer: $code: "
}
refused "download of what is not there" 4 E4001 coffer sandbox download "$id" nothing out1
is "leaves no file" "$(ls out1* .out1* 2>/dev/null)" ""
refused "download of a folder" 1 E4002 coffer sandbox download "$id" deep out2
refused "upload of a folder" 1 E4002 coffer sandbox upload "$id" into
refused "upload of what is not there" 4 E9004 coffer sandbox upload "$id" nothing x
refused "upload of stdin without a name" 2 E6001 coffer sandbox upload "$id" -
refused "upload into a folder that is not there" 4 E4001 coffer sandbox upload "$id" body away/body
is "the message names the target, not a temporary file" "$(grep -c 'away/body: ' "$err") $(grep -c 'away/\.coffer' "$err")" "1 0"
refused "upload with a bad mode" 2 E6006 coffer sandbox upload --mode 999 "$id" body
refused "a path with dots" '[25]' 'E[46][0-9]*' coffer sandbox upload "$id" body ../x
refused "ls of a file that is not there" 4 E4001 coffer sandbox ls "$id" nothing
refused "upload to a sandbox that is not there" 4 E2009 coffer sandbox upload sb-00000000000000000000000000 body
mkfifo silent
refused "upload of a fifo that nobody writes to ends in time" 1 E8022 \
  timeout 60 "$COFFER_BUILD/coffer" sandbox upload --timeout 500ms "$id" silent x
printf 'café\n☃\n' >silent & writer=$!
run coffer sandbox upload --timeout 60s "$id" silent spoken
wait "$writer"
is "upload of a fifo" "$status $(coffer sandbox exec "$id" -- cat spoken)" "0 $(cat body)"
run coffer sandbox upload "$id" body /etc/body
is "what cannot be there leaves nothing to speak of" "$status $(wc -l <"$err")" "5 2"

# Seconds of reading, of which the file is there for one tenth.
truncate -s 8G large
"$COFFER_BUILD/coffer" sandbox upload --timeout 120s "$id" large large >"$out" 2>"$err" & upload=$!
reads () { # is it past the file's beginning?
  for fd in "/proc/$upload/fd"/*; do
    [ "$(readlink "$fd")" != "$T/large" ] \
      || ! grep -q 'pos:.*[1-9]' "/proc/$upload/fdinfo/${fd##*/}" || return 0
  done
  return 1
}
soon 5 reads
truncate -s 1 large
status=0; wait "$upload" || status=$?
like "a file that is cut while it is sent is no success" "$status $(cat "$err")" "^1 coffer: E4004: .*shorter"
is "nor there" "$(coffer sandbox exec "$id" -- sh -c 'ls -A | grep -c large')" 0
coffer sandbox exec "$id" -c 'ln -s /etc/passwd link; mkfifo pipe'
refused "download through a link" '[15]' 'E400[23]' coffer sandbox download "$id" link out3
refused "download of a fifo does not hang" 1 E4002 timeout 60 "$COFFER_BUILD/coffer" sandbox download "$id" pipe out4
status=0; coffer sandbox download "$id" b10485760 - >/dev/full 2>"$err" || status=$?
is "download to a full disk fails" "$((status != 0))" 1

# What is mounted inside is in use, for who removes and renames from outside too.
mkdir shown; chmod 777 shown; echo kept >shown/kept
shown=$(coffer sandbox create -v "$T/shown:/workspace/in/shown:rw" \
  -v "$T/body:/workspace/in/file") || exit 1
remember "$shown"
for path in in/shown in/file . /workspace; do
  refused "nobody removes $path" 1 E5003 coffer call linux file_remove \
    sandbox="$shown" path="$path" opts.recursive=1
  refused "nor renames it" 1 E5003 coffer call linux file_rename \
    sandbox="$shown" from="$path" to=elsewhere
done
refused "nor renames a file over one" 1 E5003 coffer call linux file_rename \
  sandbox="$shown" from=in to=/workspace
refused "nor takes it with the folder above" 1 E5003 coffer call linux \
  file_remove sandbox="$shown" path=in opts.recursive=1
is "it is shown as before" "$(coffer sandbox exec "$shown" -- \
  cat in/shown/kept in/file | head -1)" kept

coffer sandbox kill "$shown" >/dev/null
coffer sandbox kill "$id" >/dev/null
finish
