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

list_trees () {
  list_archives
  list_archive_given_up
  list_watch
}
