# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Archives, watched folders and snapshots of sandboxes, for each engine: after
# provider.sh.  Single operations are asked for by `coffer call`.

op () { run coffer call "$provider" "$@"; }
# One in the background, which is the child of a shell: its caller gives up.
give_up () { # PID
  # shellcheck disable=SC2046
  kill -TERM $(ps -o pid= --ppid "$1")
  wait "$1"
}

# Tars that no sane program writes, in $T/trees/bad.
tars_make () {
  mkdir -p "$T/trees/bad"
  python3 - "$T/trees/bad" <<'PY'
import io, sys, tarfile

def tar (name, *members):
    with tarfile.open (f"{sys.argv[1]}/{name}.tar", "w") as out:
        for path, kind, body in (("before", tarfile.REGTYPE, "x"),) + members:
            info = tarfile.TarInfo (path)
            info.type = kind
            if kind == tarfile.REGTYPE: info.size = len (body)
            else: info.linkname = body
            if path.startswith ("setuid"): info.mode = 0o4755
            out.addfile (info, io.BytesIO (body.encode ()))

FILE, LINK, HARD, NODE = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE
tar ("absolute", ("/tmp/escaped", FILE, "x"))
tar ("above", ("../escaped", FILE, "x"))
tar ("within-above", ("a/../../escaped", FILE, "x"))
tar ("link-out", ("l", LINK, "../../etc"))
tar ("link-absolute", ("l", LINK, "/etc"))
tar ("through-link", ("l", LINK, "before"), ("l/escaped", FILE, "x"))
tar ("hard-out", ("h", HARD, "/etc/passwd"))
tar ("hard-above", ("h", HARD, "../escaped"))
tar ("device", ("null", NODE, ""))
tar ("twice", ("a", FILE, "1"), ("a", FILE, "2"))
tar ("setuid", ("setuid", FILE, "x"))
tar ("deep", ("d/" * 200 + "f", FILE, "x"))
tar ("whole", ("a/b", FILE, "y" * 70000))
whole = open (f"{sys.argv[1]}/whole.tar", "rb").read ()
open (f"{sys.argv[1]}/cut.tar", "wb").write (whole[:40000])
open (f"{sys.argv[1]}/no-end.tar", "wb").write (whole[:71680 - 0x400])
open (f"{sys.argv[1]}/damaged.tar", "wb").write (b"zz" + whole[2:])
PY
  rm "$T/trees/bad/whole.tar"
  [ "$engine" != rootless ] || chown "$E2E_UID" "$T/trees"
}

list_archives () {
  tars_make
  run coffer sandbox exec "$id" -- sh -c 'mkdir -p t/d/e t/no in; cd t
    printf "caf\303\251\n\342\230\203\n" >"d/q\"é.txt"; ln -s ../d/e d/l
    chmod 750 d/e; chmod 640 d/q*; ln d/q* d/hard; head -c 3000000 /dev/urandom >big'
  op archive_export sandbox="$id" path=t out="$T/trees/tree.tar"
  is "$engine: a folder comes out as tar" "$status $(cat "$err")" "0 "
  op archive_import sandbox="$id" path=in in="$T/trees/tree.tar"
  is "$engine: and goes into another" "$status $(cat "$err")" "0 "
  run coffer sandbox exec "$id" -- sh -c 'for d in t in; do (cd $d
    find . -exec stat -c "%a %F %s %N" {} + | sort
    find . -type f -exec cksum {} + | sort) >$d.seen; done; cmp t.seen in.seen
    grep -c é t.seen; ls -A in'
  is "$engine: as it was, and nothing else" "$(tr '\n' ' ' <"$out")" "2 big d no "
  op archive_import sandbox="$id" path=in in="$T/trees/tree.tar"
  is "$engine: also over itself" "$status $(cat "$err")" "0 "
  for tar in "$T"/trees/bad/*.tar; do
    op archive_import sandbox="$id" path=t/no in="$tar"
    [ "$status" -ne 0 ] || echo "$tar was taken"
  done >"$T/taken"
  is "$engine: no tar that is not sane is taken" "$(cat "$T/taken")" ""
  run coffer sandbox exec "$id" -- sh -c 'ls -A t/no /tmp | grep -v :
    ls -d escaped t/escaped /escaped 2>/dev/null'
  is "$engine: and nothing of one is left" "$(cat "$out")" ""
  run coffer sandbox exec "$id" -- sh -c 'ln -s / root; ln -s /etc t/etc'
  op archive_export sandbox="$id" path=root/etc out="$T/trees/etc.tar"
  like "$engine: a link on the way is not followed out" "$status" '^[1-9]'
  op archive_import sandbox="$id" path=root/tmp in="$T/trees/tree.tar"
  like "$engine: nor in" "$status" '^[1-9]'
  op archive_export sandbox="$id" path=t out="$T/trees/linked.tar"
  is "$engine: a link in the folder is a link in the tar" \
    "$(tar -tvf "$T/trees/linked.tar" | sed -n 's/.* etc -> /etc /p')" "etc /etc"
}

# Who gives up in the middle of one leaves nothing.
list_archive_given_up () {
  mkfifo "$T/tar"
  coffer call "$provider" archive_import sandbox="$id" path=t/no in="$T/tar" \
    >"$T/given-up" 2>&1 &
  importing=$!
  exec 9>"$T/tar"
  head -c 1000000 "$T/trees/tree.tar" >&9
  soon 30 coffer sandbox exec "$id" -- sh -c 'ls -A t/no | grep -q coffer'
  give_up "$importing"
  exec 9>&-
  ok "$engine: an unpacking that is given up leaves nothing" \
    soon 30 coffer sandbox exec "$id" -- sh -c 'test -z "$(ls -A t/no)"'
}

# How many of the provider's own programs run inside.
programs () {
  coffer sandbox exec "$id" -- sh -c \
    'cat /proc/[0-9]*/cmdline | tr "\0" "\n" | grep -c "^/.coffer-inside"'
}
programs_are () { [ "$(programs)" = "$1" ]; }

list_watch () {
  run coffer sandbox exec "$id" -- mkdir watched
  before=$(programs)
  coffer call "$provider" file_watch sandbox="$id" path=watched \
    >"$T/watched" 2>"$T/watched.err" &
  watching=$!
  n=0
  until grep -qs '"kind":"created"' "$T/watched" || [ "$n" -ge 60 ]; do
    n=$((n + 1))
    coffer sandbox exec "$id" -- sh -c "echo x >'watched/é$n'" >"$out" 2>&1
    sleep 0.2
  done
  like "$engine: a file that was made is told" "$(cat "$T/watched")" \
    '"path":"é[0-9]*","kind":"created"'
  run coffer sandbox exec "$id" -- sh -c 'mv watched/é1 watched/moved
    rm watched/moved'
  ok "$engine: and one that was renamed and removed" soon 30 \
    grep -q '"path":"moved","kind":"removed"' "$T/watched"
  give_up "$watching"
  ok "$engine: until the caller gives up, and then no process is left inside" \
    soon 30 programs_are "$before"
}

# ---- snapshots -------------------------------------------------------------------

# What an engine has of ours beside sandboxes: images with our labels, carriers.
snapshot_things () { snapshot_things_unsorted | sort; }
snapshot_things_unsorted () {
  api GET '/images/json?all=1' | python3 -c '
import json, sys
for i in json.load (sys.stdin):
    if "coffer.snapshot" in (i["Labels"] or {}): print ("image", i["Id"][7:19], i["RepoTags"])'
  api GET '/containers/json?all=1' | python3 -c '
import json, sys
for c in json.load (sys.stdin):
    if "coffer.carrier" in c["Labels"]: print ("carrier", *c["Names"])'
}

snapshot_of () { # OP-ARGUMENT…: its id, of the record that was emitted
  op snapshot_create "$@"
  snap=$(sed -n 's/.*"snapshot":"\(snap-[0-9a-f]*\)".*/\1/p' "$out" | head -1)
}

list_snapshot () {
  run coffer sandbox create
  saved=$(cat "$out")
  run coffer sandbox exec "$saved" -- sh -c 'mkdir -p d/e; ln -s ../f d/l
    ln -s /bin/sh d/out; ln -s ../../etc d/e/up
    printf "caf\303\251\n\342\230\203\n" >"q\"é.txt"; chmod 750 d/e
    head -c 5000000 /dev/urandom >big; ln big d/hard; cksum <big'
  sum=$(cat "$out")
  coffer sandbox exec -d "$saved" -- sh -c 'n=0; while :; do n=$((n + 1)); echo $n >now
    mv now count; done' >"$out" 2>"$err"
  snapshot_of sandbox="$saved" name='café "☃"'
  like "$engine: a snapshot is made of a sandbox at work" "$status $snap" \
    '^0 snap-[0-9a-f]{32}$'
  first=$(coffer sandbox exec "$saved" -- cat count)
  coffer call "$provider" snapshot_create sandbox="$saved" name=beside \
    >"$T/beside" 2>&1 &
  beside=$!
  op snapshot_create sandbox="$saved" name=another
  wait "$beside"
  is "$engine: and two at once" "$? $status" "0 0"
  ok "$engine: and what ran in it runs on" soon 30 coffer sandbox exec "$saved" \
    -- sh -c "test \$(cat count) -gt $first"
  op snapshot_list
  like "$engine: it is listed with its name" "$(cat "$out")" \
    "\"snapshot\":\"$snap\",\"name\":\"café \\\\\"☃\\\\\"\""
  run coffer sandbox exec "$saved" -- sh -c 'rm -r d; echo later >new'
  run coffer sandbox create --template "$snap"
  restored=$(cat "$out")
  like "$engine: a sandbox is made of it" "$status $restored" '^0 sb-'
  run coffer sandbox exec "$restored" -- sh -c 'ls -A; cksum <big; cksum <d/hard
    readlink d/l; readlink d/out; readlink d/e/up; stat -c %a d/e; cat q*'
  is "$engine: with all files of that moment, and no process" \
    "$(sed '/^count$/d; /^now$/d' "$out")" "big
d
q\"é.txt
$sum
$sum
../f
/bin/sh
../../etc
750
café
☃"
  run coffer sandbox info "$restored"
  like "$engine: of the image that the first one had" "$(cat "$out")" \
    'box:1@sha256:'
}

# The pieces of a snapshot are changed under its name, as who has the engine may.
list_snapshot_spoilt () { # TAG
  api POST "/containers/create?name=forger" -f -H 'Content-Type: application/json' \
    -d "{\"Image\":\"$1\",\"Cmd\":[\"x\"]}" &&
    api GET "/containers/forger/archive?path=/coffer-snapshot" -f >"$T/pieces.tar" &&
    mkdir -p "$T/forged" && tar -C "$T/forged" -xf "$T/pieces.tar" &&
    chmod -R u+w "$T/forged" &&
    python3 -c '
import sys
with open (sys.argv[1], "r+b") as f:
    f.seek (700000); was = f.read (1); f.seek (700000); f.write (bytes ([was[0] ^ 1]))' \
      "$T/forged/coffer-snapshot/000000" &&
    tar -C "$T/forged" -cf "$T/forged.tar" coffer-snapshot &&
    api PUT "/containers/forger/archive?path=/" -f -T "$T/forged.tar" &&
    api POST "/commit?container=forger&repo=${1%:*}&tag=${1##*:}" -f \
      -H "Content-Type: application/json" -d "{}" &&
    api DELETE "/containers/forger?force=1"
}

# Podman's list of images fails when one of them goes meanwhile.
snapshot_tag () { # SNAPSHOT
  tag=$(api GET '/images/json' | python3 -c '
import json, sys
print (*[t for i in json.load (sys.stdin) for t in i["RepoTags"] or () if sys.argv[1] in t])' \
    "$1" 2>"$err") && [ -n "$tag" ]
}
list_snapshot_attacked () {
  ok "$engine: the image of a snapshot is found" soon 10 snapshot_tag "$snap"
  before=$(coffer sandbox list --json | python3 -c 'import json, sys; print (len (json.load (sys.stdin)))')
  list_snapshot_spoilt "$tag" >"$out" 2>"$err"
  is "$engine: pieces are made others" "$? $([ $? -eq 0 ] || cat "$out" "$err")" "0 "
  run coffer sandbox create --template "$snap"
  like "$engine: pieces that are others make no sandbox" \
    "$(sed "s/^/$status /" "$err")" '^[1-9].* not as it was made'
  is "$engine: and leave none" "$(coffer sandbox list --json | python3 -c \
    'import json, sys; print (len (json.load (sys.stdin)))')" "$before"
  for name in snap-00000000000000000000000000000000 ../.. box:1 ''; do
    op snapshot_delete snapshot="$name"
    [ "$status" -ne 0 ] || echo "($name)"
  done >"$T/deleted"
  is "$engine: what is no snapshot is not deleted" "$(cat "$T/deleted")" ""
}

# Neither of two hosts sees the other's.
list_snapshot_hosts () {
  snapshot_host=$T/snapshots
  provider_home "$snapshot_host"
  COFFER_HOME=$snapshot_host op snapshot_list
  is "$engine: another host lists none of ours" "$status $(cat "$out")" "0 "
  COFFER_HOME=$snapshot_host op snapshot_delete snapshot="$snap"
  like "$engine: nor deletes one" "$status $(cat "$err")" '^[1-9].*no such snapshot'
  COFFER_HOME=$snapshot_host run coffer sandbox create --template "$snap"
  like "$engine: nor makes anything of one" "$status" '^[1-9]'
}

# Whatever makes one is killed in the middle: what it began goes with the next look.
list_snapshot_half () {
  coffer call "$provider" snapshot_create sandbox="$saved" name=half \
    >"$T/half" 2>&1 &
  making=$!
  sleep 0.3
  give_up "$making"
  op snapshot_create sandbox="$saved" name=late --timeout 300ms
  coffer call "$provider" sandbox_create sandbox=sb-half spec.template_name="$snap" \
    >"$T/half" 2>&1 &
  making=$!
  sleep 0.4
  give_up "$making"
  # It may have been whole by then, and no list of coffer's has it.
  coffer call "$provider" sandbox_kill sandbox=sb-half >"$out" 2>&1
  op snapshot_create sandbox=sb-00000000000000000000000000
  like "$engine: of no sandbox there is none" "$status" '^[1-9]'
}

# What is unpacked is in no snapshot before it is whole: not when who unpacks it was
# ended in the middle, and then nobody's any more.
list_snapshot_left () {
  mkfifo "$T/left"
  coffer call "$provider" archive_import sandbox="$restored" path=d in="$T/left" \
    >"$T/given-up" 2>&1 &
  importing=$!
  exec 9>"$T/left"
  head -c 1000000 "$T/trees/tree.tar" >&9
  ok "$engine: an unpacking has begun" soon 30 coffer sandbox exec "$restored" -- \
    sh -c 'ls -A d | grep -q "^.coffer-"'
  run coffer sandbox exec "$restored" -- sh -c 'kill -9 -1'
  exec 9>&-
  wait "$importing"
  like "$engine: that was killed, which is said" "$? $(cat "$T/given-up")" '^[1-9]'
  run coffer sandbox exec "$restored" -- sh -c 'ls -A d | grep -c "^.coffer-"'
  is "$engine: and has left something" "$(cat "$out")" 1
  kept=$snap
  snapshot_of sandbox="$restored" name=left
  run coffer sandbox exec "$restored" -- find . -name '.coffer-*'
  is "$engine: which a snapshot takes away" "$(cat "$out" "$err")" ""
  run coffer sandbox create --template "$snap"
  other=$(cat "$out")
  run coffer sandbox exec "$other" -- sh -c 'find . -name ".coffer-*"; cksum <big'
  is "$engine: and has not" "$(cat "$out" "$err")" "$sum"
  run coffer sandbox kill "$other"
  snap=$kept
}

list_snapshot_paused () {
  run coffer sandbox pause "$restored"
  if [ "$status" -ne 0 ]; then
    like "$engine: no sandbox is paused here" "$(cat "$err")" 'pause'
    return
  fi
  before=$(snapshot_things)
  op snapshot_create sandbox="$restored" name=paused
  like "$engine: of a paused sandbox no snapshot is made, and that is said" \
    "$status $(cat "$err")" '^[1-9].*paused: resume it first'
  is "$engine: nor begun" "$(snapshot_things)" "$before"
  run coffer sandbox resume "$restored"
}

carriers () { snapshot_things | grep -q '^carrier'; }
containers () { api GET '/containers/json?all=1' | json_count; }

# One that is read stays until then, or whoever reads it has all of it before.
list_snapshot_deleted () {
  run coffer sandbox exec "$restored" -- sh -c \
    'head -c 80000000 /dev/urandom >large; cksum <large'
  sum=$(cat "$out")
  kept=$snap
  snapshot_of sandbox="$restored" name=large
  coffer sandbox create --template "$snap" >"$T/reading" 2>"$T/reading.err" &
  reading=$!
  ok "$engine: a snapshot is being read" soon 30 carriers
  op snapshot_delete snapshot="$snap"
  like "$engine: it is not deleted meanwhile" "$status $(cat "$err")" \
    '^[1-9].*just made of this snapshot'
  wait "$reading"
  run coffer sandbox exec "$(cat "$T/reading")" -- sh -c 'cksum <large'
  is "$engine: and read whole" "$(cat "$out" "$err")" "$sum"
  large=$snap
  snap=$kept
}

# An engine that is killed while one is made, and while one is read.
list_snapshot_crash () {
  coffer call "$provider" snapshot_create sandbox="$restored" name=crashed \
    >"$T/half" 2>&1 &
  making=$!
  sleep 0.5
  engine_kill
  wait "$making"
  like "$engine: a snapshot whose engine is killed fails" "$? $(cat "$T/half")" \
    '^[1-9]'
  ok "$engine: and comes back" engine_again
  op snapshot_list
  unlike "$engine: that snapshot is none" "$(cat "$out")" 'crashed'
  is "$engine: and nothing of it is left" \
    "$(snapshot_things | grep -v coffer-snapshot-)" ""
  coffer sandbox create --template "$large" >"$T/reading" 2>&1 &
  reading=$!
  soon 30 carriers
  engine_kill
  wait "$reading"
  like "$engine: so does a sandbox that is made of one" "$? $(cat "$T/reading")" \
    '^[1-9]'
  ok "$engine: it comes back again" engine_again
  run coffer sandbox prune
  engine_forgotten
  run coffer sandbox list --json
  is "$engine: as many containers as sandboxes" "$(containers)" \
    "$(json "$out" 'len (d)')"
}

# An engine whose disk is full: engine_full is for those that have one of their own.
list_snapshot_full () {
  [ -n "${engine_own:-}" ] || return 0
  saved=$(coffer sandbox create --template "$snap")
  run coffer sandbox exec "$saved" -- sh -c 'head -c 60000000 /dev/urandom >large'
  before=$(snapshot_things)
  engine_full 8192
  op snapshot_create sandbox="$saved" name=full
  like "$engine: a full disk of the engine's makes no snapshot, and that is said" \
    "$status $(cat "$err")" '^[1-9].*no space left'
  engine_full 0
  run coffer sandbox create --template "$snap"
  like "$engine: nor a sandbox of one" "$status $(cat "$err")" '^[1-9].*no space left'
  run coffer sandbox exec "$saved" -- echo lives
  like "$engine: what was there lives on" "$(cat "$out" "$err")" 'lives|no space left'
  engine_full ''
  op snapshot_list
  is "$engine: nothing is left of them" "$(snapshot_things)" "$before"
  run coffer sandbox list --json
  is "$engine: nor a container" "$(containers)" "$(json "$out" 'len (d)')"
  snapshot_of sandbox="$saved" name=roomy
  is "$engine: and with room there is one" "$status" 0
}

list_snapshots () {
  list_snapshot
  list_snapshot_hosts
  list_snapshot_half
  list_snapshot_left
  list_snapshot_paused
  list_snapshot_deleted
  list_snapshot_crash
  list_snapshot_full
  list_snapshot_attacked
  run coffer sandbox kill --all --yes
  engine_forgotten
  op snapshot_list
  sed -n 's/.*"snapshot":"\(snap-[0-9a-f]*\)".*/\1/p' "$out" | while read -r snap; do
    op snapshot_delete snapshot="$snap"
    [ "$status" -eq 0 ] || cat "$err"
  done >"$T/deleted"
  is "$engine: all snapshots are deleted" "$(cat "$T/deleted")" ""
  run coffer call "$provider" sandbox_list
  op snapshot_list
  is "$engine: nothing of them is left" "$(cat "$out") $(snapshot_things)" " "
}

list_trees () {
  list_archives
  list_archive_given_up
  list_watch
}
