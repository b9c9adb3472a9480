#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The reference provider, operation by operation: what the conformance kit is
# tested on is first tried without it.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3 tar
roles both alike
coffer () { "$COFFER_BUILD/tests/mutants/coffer" "$@"; }
call () { run coffer call reference "$@"; }
said () { # RECORD EXPRESSION, of the only one of its kind
  python3 -c '
import json, sys
rows = [json.loads (line) for line in open (sys.argv[1], encoding="utf-8")]
r, = [row[sys.argv[2]] for row in rows if sys.argv[2] in row]
print (eval (sys.argv[3]))' "$out" "$1" "$2"
}
box=$COFFER_HOME/run/reference/sb-1/workspace
name='你好 世界 '\''q".txt'

# -- life
call sandbox_create sandbox=sb-1 spec.metadata=a=b spec.env=INSIDE=yes \
  spec.ttl_ms=600000
is "a sandbox is made" "$status" 0
pid=$(said sandbox_info 'r["native_id"]')
call sandbox_create sandbox=sb-1
is "a second time it is the same one" "$(said sandbox_info 'r["native_id"]')" \
  "$pid"
before=$(said sandbox_info 'r["expires_ns"]')
call sandbox_extend sandbox=sb-1 ttl_ms=1200000
is "its end can be moved" \
  "$(said sandbox_info "r['expires_ns'] > $before + 500 * 10**9")" True
call sandbox_create sandbox=sb-1x spec.memory_bytes=1000000
is "what cannot be given is refused" "$status" 2
call sandbox_list
is "and makes nothing" "$(said sandbox_info 'r["sandbox"], r["metadata"]')" \
  "('sb-1', ['a=b'])"
call sandbox_create sandbox=../x
is "an id is no path" "$status" 2

# -- commands; each `call` has a worker of its own, so all of it is found again
printf 'café\n☃\n' >"$T/body"
status=0
coffer call reference exec_start sandbox=sb-1 argv=sh argv=-c \
  argv='cat; echo "$1" "$INSIDE" >&2; exit 7' argv=sh argv="$name" in=- out=- \
  err="$T/err2" <"$T/body" >"$out" 2>"$err" || status=$?
is "a command is started with three streams" "$status" 0
same "its input comes back" "$out" "$T/body"
is "its arguments and environment too" "$(cat "$T/err2")" "$name yes"
call exec_wait sandbox=sb-1 exec=x1
is "its exit code is known to another worker" \
  "$(said exec_exit 'r["exec"], r.get ("code"), r.get ("signal")')" \
  "('x1', 7, None)"
call exec_start sandbox=sb-1 argv=no-such-program
call exec_wait sandbox=sb-1 exec=x2
like "a program that is none is said" "$(cat "$out")" '"failure":.*No such file'
# A shell may reap the one and the other before it is killed itself, and then
# they are not in the count.
long=$((100000 + $$))
call exec_start sandbox=sb-1 argv=sh argv=-c argv="sleep $long & sleep $long" \
  opts.timeout_ms=1500
call exec_wait sandbox=sb-1 exec=x3
is "a timeout kills the command and what it started" \
  "$(said exec_exit 'r["timed_out"], r["signal"], r["killed"] <= 2') $(pgrep -c -f \
    "^sleep $long")" "(True, 9, True) 0"
call exec_start sandbox=sb-1 opts.background=1 argv=sh \
  argv=-c argv='echo early; read x; echo late; echo odd >&2'
call exec_start sandbox=sb-1 opts.background=1 argv=sh argv=-c \
  argv='trap "echo caught; exit 3" USR1; echo ready; while :; do sleep 0.05; done'
is "one in the background says so" \
  "$(said exec_info 'r["exec"], r["background"]')" "('x5', True)"
soon 5 grep -q ready "$box/../exec/5/out"
call exec_signal sandbox=sb-1 exec=x5 signal=10
is "it gets a signal" "$status" 0
call exec_attach sandbox=sb-1 exec=x5 out="$T/kept" err="$T/kept-err"
is "what it wrote is kept" "$(cat "$T/kept")" "$(printf 'ready\ncaught')"
call exec_wait sandbox=sb-1 exec=x5
is "and how it ended" "$(said exec_exit 'r["code"]')" 3
call exec_signal sandbox=sb-1 exec=x5 signal=10
like "one that has ended gets none" "$(cat "$err")" 'has ended'
call exec_attach sandbox=sb-1 exec=x4 out="$T/kept" err="$T/kept-err"
is "both streams are kept, apart" "$(cat "$T/kept" "$T/kept-err")" \
  "$(printf 'early\nlate\nodd')"
call exec_list sandbox=sb-1
is "all of them are listed" "$(grep -c exited "$out")" 5
run coffer sandbox create --provider reference --json
id=$(json "$out" 'd["id"]')
run python3 "$COFFER_SOURCE/tests/e2e/type.py" '[("ready", (20, 50))]' \
  "$COFFER_BUILD/tests/mutants/coffer" sandbox exec -t "$id" -- \
  sh -c 'stty size; trap "stty size; exit 5" WINCH; echo ready;
    while :; do sleep 0.1; done'
is "a command can have a terminal, which can change its size" \
  "$(grep -v ready "$out")" "$(printf '37 100\n20 50\nstatus 5 restored True')"
run coffer sandbox kill "$id"
run coffer run --provider reference -- sh -c 'echo one; exit 4'
is "run has the exit status of its command" "$status $(cat "$out")" "4 one"

# -- files
call file_write sandbox=sb-1 path="d/$name" in="$T/body" opts.parents=1
is "a file is written" "$(said file_stat 'r["moved_bytes"]')" 10
same "into the workspace" "$box/d/$name" "$T/body"
call file_read sandbox=sb-1 path="$box/d/$name" out="$T/copy"
same "and read, also by its own path" "$T/copy" "$T/body"
call file_read sandbox=sb-1 path=/etc/passwd out="$T/copy"
is "nothing else is" "$status" 5
call file_read sandbox=sb-1 path=../../sb-1/metadata out="$T/copy"
is "by no way" "$status" 2
ln -s /etc "$box/link"
call file_list sandbox=sb-1 path=link
is "nor through a link" "$status" 5
"$COFFER_BUILD/tests/mutants/coffer" call reference file_watch sandbox=sb-1 \
  path=d >"$T/seen" 2>&1 &
watcher=$!
ok "what changes is told" soon 5 sh -c "touch '$box/d/new'; rm '$box/d/new'
  grep -q '\"path\":\"new\",\"kind\":\"created\"' '$T/seen'"
kill -TERM "$watcher"; wait "$watcher" 2>/dev/null

# -- archives
mkdir -p "$box/tree/empty" "$box/tree/$(printf '%0150d' 1)"
printf x >"$box/tree/$(printf '%0150d' 1)/$name"
ln -s empty "$box/tree/inside"
chmod 751 "$box/tree/empty"
call archive_export sandbox=sb-1 path=tree out="$T/tree.tar"
mkdir "$T/unpacked" && tar -xf "$T/tree.tar" -C "$T/unpacked"
ok "tar unpacks what is exported" diff -r "$box/tree" "$T/unpacked"
is "with its modes" "$(stat -c %a "$T/unpacked/empty")" 751
mkdir "$box/again"
echo old >"$box/again/kept"
call archive_import sandbox=sb-1 path=again in="$T/tree.tar"
is "and so it is imported" "$status" 0
rm "$box/again/kept"
ok "to the same tree" diff -r "$box/tree" "$box/again"
tar --format=pax -cf "$T/host.tar" -C "$T/unpacked" .
mkdir "$box/host"
call archive_import sandbox=sb-1 path=host in="$T/host.tar"
ok "what tar packs is imported" diff -r "$box/tree" "$box/host"
refused () { # what, tar in $T/bad.tar
  rm -rf "$box/bad"; mkdir "$box/bad"
  call archive_import sandbox=sb-1 path=bad in="$T/bad.tar"
  is "refused, with nothing of it left: $1" "$status $(ls -A "$box/bad")" "2 "
}
python3 - "$T" <<'END'
import io, sys, tarfile
def write (name, *members):
    with tarfile.open (sys.argv[1] + "/" + name, "w") as tar:
        for path, kind, link in members:
            info = tarfile.TarInfo (path)
            info.type, info.linkname = kind, link
            info.size = 1 if kind == tarfile.REGTYPE else 0
            tar.addfile (info, io.BytesIO (b"x"))
F, S, H, D = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
write ("up.tar", ("good", F, ""), ("../bad", F, ""))
write ("absolute.tar", ("good", F, ""), ("/tmp/bad", F, ""))
write ("middle.tar", ("good", F, ""), ("a/../../bad", F, ""))
write ("link.tar", ("l", S, "/tmp"), ("l/bad", F, ""))
write ("through.tar", ("d", D, ""), ("l", S, "d"), ("l/bad", F, ""))
write ("out.tar", ("d", D, ""), ("d/l", S, "../../x"))
write ("inside.tar", ("good", F, ""), ("h", H, "good"))
write ("hard.tar", ("good", F, ""), ("h", H, "../serve.py"))
write ("gone.tar", ("good", F, ""), ("h", H, "nothing"))
write ("twice.tar", ("good", F, ""), ("good", F, ""))
write ("both.tar", ("good", F, ""), ("good", D, ""))
write ("fifo.tar", ("good", F, ""), ("p", tarfile.FIFOTYPE, ""))
data = open (sys.argv[1] + "/both.tar", "rb").read ()
open (sys.argv[1] + "/cut.tar", "wb").write (data[:1024])
open (sys.argv[1] + "/short.tar", "wb").write (data[:700])
open (sys.argv[1] + "/sum.tar", "wb").write (b"X" + data[1:])
open (sys.argv[1] + "/more.tar", "wb").write (data + data)
END
for bad in up absolute middle link through out hard gone twice both fifo cut \
  short sum more; do
  cp "$T/$bad.tar" "$T/bad.tar"
  refused "$bad"
done
mkdir "$box/inside"
call archive_import sandbox=sb-1 path=inside in="$T/inside.tar"
is "a hard link to what came before has its bytes" \
  "$status $(ls "$box/inside" | tr '\n' ' ')$(cat "$box/inside/h")" "0 good h x"
mkdir "$box/bad/good"
tar -cf "$T/bad.tar" -C "$T" body --transform 's/body/aaa/' tree.tar \
  --transform 's/tree.tar/good/'
call archive_import sandbox=sb-1 path=bad in="$T/bad.tar"
is "what is in the way undoes all of it" "$status $(ls -A "$box/bad")" "1 good"

# -- pause, ports, metrics
cat >"$T/serve.py" <<'END'
import socket
s = socket.socket ()
s.bind (("127.0.0.1", 0))
s.listen ()
print (s.getsockname ()[1], flush=True)
while True:
    c, _ = s.accept ()
    c.sendall (b"got " + c.recv (64).upper ())
    c.close ()
END
call file_write sandbox=sb-1 path=serve.py in="$T/serve.py"
call exec_start sandbox=sb-1 opts.background=1 argv=python3 argv=serve.py
soon 5 test -s "$box/../exec/6/out"
port=$(cat "$box/../exec/6/out")
call port_resolve sandbox=sb-1 port="$port"
is "a port of it has an address" "$(said port 'r["address"]')" "127.0.0.1:$port"
call sandbox_create sandbox=sb-2
call port_dial sandbox=sb-2 port="$port"
is "another sandbox does not have it" "$status" 1
printf hello | coffer call reference port_dial sandbox=sb-1 port="$port" \
  >"$out" 2>"$err"
like "a connection is given" "$(cat "$out" "$err")" '"stream"'
call sandbox_pause sandbox=sb-1
call sandbox_info sandbox=sb-1
is "a sandbox is paused" "$(said sandbox_info 'r["state"]')" paused
worker=$(pgrep -f "^python3 serve.py" | head -1)
like "and nothing of it runs" "$(cat "/proc/$worker/stat")" '\) T '
call exec_start sandbox=sb-1 argv=true
like "nothing is started meanwhile" "$(cat "$err")" 'paused'
call sandbox_resume sandbox=sb-1
like "it goes on" "$(cat "/proc/$worker/stat")" '\) [SRD] '
call exec_start sandbox=sb-1 argv=sh argv=-c \
  argv='i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done' out="$T/none"
call metrics sandbox=sb-1
ok "what it uses is measured" python3 -c '
import json, sys
m = {r["metric"]["name"]: r["metric"]["value"]
     for r in map (json.loads, open (sys.argv[1]))}
assert m["cpu_seconds_total"] > 0.05 and m["memory_bytes"] > 1e6, m
assert m["processes"] == 1, m' "$out"

# -- snapshots
call snapshot_create sandbox=sb-1 name=first
snap=$(said snapshot 'r["snapshot"]')
is "a snapshot is made" "$(said snapshot 'r["name"], r["size_bytes"] > 20')" \
  "('first', True)"
rm -rf "$box/tree"
call snapshot_list
is "and listed" "$(said snapshot 'r["snapshot"]')" "$snap"
call sandbox_create sandbox=sb-3 spec.template_name="$snap"
ok "a new sandbox begins with it" \
  diff -r "$box/../../sb-3/workspace/tree" "$box/again"
call snapshot_delete snapshot="$snap"
is "it is deleted" "$status" 0
call snapshot_delete snapshot="$snap"
is "and gone" "$status" 4

# -- credentials
export REFERENCE_TOKEN=wrong-9f8e7d6c5b4a
run coffer call reference sandbox_list
is "a wrong token opens nothing" "$status" 5
like "with its code" "$(cat "$err")" '^coffer: E1001'
unlike "and without being repeated" "$(cat "$out" "$err")" '9f8e7d'
REFERENCE_TOKEN=right-12345678
run coffer call reference sandbox_list
is "the right one does" "$status" 0
unset REFERENCE_TOKEN

# -- the end
for sandbox in sb-1 sb-2 sb-3; do
  call sandbox_kill sandbox=$sandbox
  [ "$status" = 0 ] || is "$sandbox is killed" "$status" 0
done
is "one that is killed has no processes when that returns" "$(ours)" ""
call sandbox_create sandbox=sb-4 spec.ttl_ms=300
call exec_start sandbox=sb-4 argv=sleep argv=60 out="$T/none" 2>/dev/null
gone () { [ ! -e "$COFFER_HOME/run/reference/$1" ]; }
ok "the ttl ends one" soon 5 gone sb-4
none_ours () { [ -z "$(ours)" ]; }
ok "and its processes" soon 5 none_ours
call sandbox_kill sandbox=sb-1
is "to kill it again finds none, which a host calls success" "$status" 4
call sandbox_info sandbox=sb-1
is "and it is not found" "$status" 4
is "nor is there a folder" "$(ls -A "$COFFER_HOME/run/reference")" ""
finish
