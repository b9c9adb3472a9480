# SPDX-License-Identifier: Apache-2.0
# coffer run: what of the caller's files is visible, and what is said when it is
# not.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs_sandbox

dir="$T/你好 世界"; name="'q\".txt"
mkdir "$dir"; printf 'café\n☃\n' >"$dir/$name"
cd "$dir" || exit 1

run coffer run -- ls -A /workspace
is "without -w the workspace is empty" "$status $(cat "$out")" "0 "
run coffer run -- sh -c 'echo x >new && cat new'
is "and can be written" "$status $(cat "$out")" "0 x"
is "which reaches nothing here" "$(ls -A)" "$name"
run coffer run -- ls "$T"
is "nothing of the caller's is visible" "$(cat "$out")" ""

run coffer run -w . -- cat "$name"
same "-w . shows this folder, odd names included" "$out" "$dir/$name"
run coffer run -w "$dir" -- cat "/workspace/$name"
same "-w takes a path" "$out" "$dir/$name"
run coffer run -w . -- sh -c 'echo x >new'
is "it is read-only" "$((status != 0))" 1
like "as the kernel says" "$(cat "$err")" '[Rr]ead-only|[Pp]ermission'
run coffer run -w . -- sh -c "rm -f ./*; echo x >>\"\$1\"; chmod 777 \"\$1\"" sh "$name"
is "in every way" "$(ls -A) $(cat "$name")" "$name café
☃"

run coffer run -w .:rw -- sh -c 'echo made >new && mkdir -p a/b && echo deep >a/b/c'
if grep -q 'id-mapped\|idmap' "$err"; then
  skip ":rw lets it be written" "id-mapped mounts of $(stat -f -c %T .)"
else
  is ":rw lets it be written" "$status $(cat new 2>&1) $(cat a/b/c 2>&1)" "0 made deep"
  is "as the caller's own files" "$(stat -c %u new)" "$(id -u)"
fi

mkdir "$T/data" "$T/a:b"; echo one >"$T/data/f"; echo two >"$T/a:b/f"; echo single >"$T/file"
run coffer run -v "$T/data:/data:ro" -v "$T/a:b:/colon:ro" -v "$T/file:/opt/f.txt:ro" -- \
  cat /data/f /colon/f /opt/f.txt
is "-v shows folders and files" "$(cat "$out")" "one
two
single"
run coffer run -v "$T/data:/data:ro" -- sh -c 'echo x >/data/f'
is "-v …:ro cannot be written" "$((status != 0)) $(cat "$T/data/f")" "1 one"

echo 'print(1)' >script.py
run coffer run -- cat script.py
is "a file that is only here fails" "$((status != 0))" 1
like "and the message says what to add" "$(cat "$err")" 'script.py exists here but not inside: add -w \.'
run coffer run -- cat "$T/data/f"
like "with -v for another folder" "$(cat "$err")" "$T/data/f exists here but not inside: add -v $T/data/f:$T/data/f:ro"
run coffer run -w . -- sh -c 'exit 3' sh script.py
is "no hint where it is inside" "$status $(cat "$err")" "3 "
for folder in /etc /tmp; do
  run coffer run -- ls "$folder" /no-such
  unlike "no hint on $folder, which is inside too" "$status $(cat "$err")" \
    "exists here but not inside"
done
run coffer run -- ./script.py
like "a program by path too" "$status $(cat "$err")" 'script.py exists here but not inside'
# Without a control group the one process is its init.
run coffer run --pids 1 -- cat script.py
case $(cat "$err") in
  *E3001*) want="125 0 1" ;;
  *) want="1 1 0" ;;
esac
is "but none where no process could be made" \
  "$status $(grep -c 'exists here' "$err") $(grep -c 'hint: .*--pids gives more' "$err")" "$want"

refused () { # what pattern ARGS
  what=$1 pattern=$2; shift 2
  run coffer run "$@" -- true
  is "$what: refused" "$status" 125
  like "$what: said" "$(head -1 "$err")" "^coffer: E[0-9]{4}: .*$pattern"
}
refused "-w of nothing" "No such file" -w ./none
refused "-w of a file" "is not a folder" -w "./$name"
# An image that is being made has no mark yet; who makes it has it locked.
echo begun >"$T/begun"
run flock "$T/begun" "$COFFER_BUILD/coffer" run -w "$T/begun:rw" -- true
like "-w of an image that is being made: it is in use" "$status $(head -1 "$err")" \
  '^125 coffer: E5003: .*in use by another|^125 .*only root mounts'
refused "-v without a target" "is not SRC:DST" -v /usr
refused "-v with a relative target" "is not SRC:DST" -v /usr:data
refused "-v of a device" "neither a folder nor" -v /dev/null:/x
refused "-w twice" "given twice" -w . -w /usr
refused "-v onto the root" "" -v "/usr:/"
refused "-v onto a path with dots" "" -v "/usr:/a/../b"
refused "a relative --workdir" "absolute" --workdir tmp

# The caller's other processes are there, and could be written to.
for folder in /proc /proc/self/task /sys /sys/kernel; do
  refused "-v of $folder" "is the kernel's" -v "$folder:/data"
done
refused "-w of one" "is the kernel's" -w /proc/sys
refused "-v of a file there" "is the kernel's" -v /proc/self/oom_score_adj:/data

# Sockets of other sandboxes lie there.
ours='which leads to other sandboxes'
ln -s "$COFFER_HOME/run" "$T/data/link"
refused "-w of the runtime folder" "$ours" -w "$COFFER_HOME/run"
refused "-v of what holds it, read-only" "$ours" -v "$COFFER_HOME:/data:ro"
refused "-v of what holds that" "$ours" -v "$T:/data"
refused "-v of a folder in it" "$ours" -v "$COFFER_HOME/run/linux:/data:ro"
refused "-v of a link to it" "$ours" -v "$T/data/link:/data:ro"
like "with the way out" "$(cat "$err")" 'hint: show a smaller folder, or set COFFER_HOME'
run coffer run -w "$T/data" -- ls /workspace
is "what lies beside it is shown" "$status $(cat "$out")" "0 f
link"

finish
