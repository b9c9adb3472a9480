# SPDX-License-Identifier: Apache-2.0
# Archives that want out: each is refused by the name of the entry, nothing of it
# is kept, and nothing outside is touched.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3

mkdir "$T/outer"; echo canary >"$T/outer/canary"
python3 - "$T" <<'PY'
import io, sys, tarfile
top = sys.argv[1]

def entry (name, kind=tarfile.REGTYPE, link="", body=b"x", mode=0o644, **more):
    info = tarfile.TarInfo (name)
    info.type, info.linkname, info.mode = kind, link, mode
    info.size = len (body) if kind == tarfile.REGTYPE else 0
    for key, value in more.items ():
        setattr (info, key, value)
    return info, body

def write (name, *entries):
    with tarfile.open (f"{top}/{name}.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        for info, body in entries:
            tar.addfile (info, io.BytesIO (body))

D, S, L = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
cases = {
    "absolute": ("is absolute", entry (f"{top}/outer/absolute")),
    "dotdot": ("component", entry ("../outer/dotdot")),
    "inner-dotdot": ("component", entry ("a/../../outer/x")),
    "link-up": ("leads out", entry ("up", S, "../outer")),
    "link-far-up": ("leads out", entry ("a/b/up", S, "../../../outer")),
    "through-link": ("no folder", entry ("l", S, f"{top}/outer"), entry ("l/through")),
    "folder-over-link": ("one place", entry ("l", S, f"{top}/outer"), entry ("l", D)),
    "file-over-link": ("twice", entry ("l", S, f"{top}/outer/canary"), entry ("l")),
    "file-twice": ("twice", entry ("f"), entry ("f")),
    "below-file": ("no folder", entry ("f"), entry ("f/g")),
    "hard-out": ("component", entry ("h", L, "../outer/canary")),
    "hard-absolute": ("is absolute", entry ("h", L, f"{top}/outer/canary")),
    "hard-to-link": ("no file of the archive", entry ("l", S, f"{top}/outer/canary"), entry ("h", L, "l")),
    "hard-nowhere": ("no file of the archive", entry ("h", L, "nowhere")),
    "device": ("neither a folder", entry ("null", tarfile.CHRTYPE, devmajor=1, devminor=3)),
    "block": ("neither a folder", entry ("etc/disk", tarfile.BLKTYPE, devmajor=8, devminor=0)),
    "fifo": ("neither a folder", entry ("pipe", tarfile.FIFOTYPE)),
    "deep": ("too many folders deep", entry ("/".join (["d"] * 80))),
    "long-name": ("longer than 255", entry ("n" * 300)),
    "etc-file": ("no folder", entry ("etc")),
    "etc-link": ("no folder", entry ("etc", S, "/usr")),
}
with open (f"{top}/cases", "w") as list:
    for name, (part, *entries) in cases.items ():
        write (name, *entries)
        print (name, part, sep="\t", file=list)
write ("good", entry ("dev/null", tarfile.CHRTYPE, devmajor=1, devminor=3),
       entry ("bin/su", mode=0o6777), entry ("./a//b/./c"), entry ("abs", S, "/etc/passwd"),
       entry ("a/rel", S, "../a/b"), entry ("h", L, "bin/su"), entry ("empty", body=b""))
write ("nothing")
write ("two", entry ("a"), entry ("b"), entry ("c"))
write ("big", entry ("big", body=b"\0" * 100000))
open (f"{top}/noise.tar", "wb").write (bytes (range (256)) * 64)
good = open (f"{top}/good.tar", "rb").read ()
open (f"{top}/cut.tar", "wb").write (good[:len (good) // 3])
# A header that says far more than there is.
info = tarfile.TarInfo ("huge"); info.size = 1 << 50
open (f"{top}/huge.tar", "wb").write (info.tobuf (tarfile.GNU_FORMAT) + bytes (1024))
PY

while IFS='	' read -r name part; do
  run coffer template add "$name" "$T/$name.tar"
  like "$name" "$status $(cat "$err")" "^2 coffer: E4007: .*$part"
done <"$T/cases"
for name in nothing noise cut huge; do
  run coffer template add "$name" "$T/$name.tar"
  like "$name" "$status $(cat "$err")" "^2 coffer: E4007: "
done
is "nothing outside was touched" "$(ls "$T/outer") $(cat "$T/outer/canary")" "canary canary"
is "nothing of them is kept" "$(ls -A "$COFFER_HOME/state/templates")" ""

run coffer template add good "$T/good.tar" --json
is "what is well is taken" "$status $(json "$out" 'd["left_out"], d["stripped"]')" "0 (1, 1)"
digest=$(json "$out" 'd["digest"]')
root=$COFFER_HOME/state/templates/$digest/root
is "devices of /dev are left out, bits dropped, names made plain" \
  "$(ls -A "$root/dev" 2>/dev/null; stat -c '%a %h' "$root/bin/su"; cat "$root/a/b/c"; readlink "$root/abs")" \
  "755 2
x/etc/passwd"
run coffer template remove good
is "and removed again" "$status" 0

# The caps, by the helper itself.
helper=$COFFER_BUILD/core/store/archive/coffer-archive
unpack () { # ARCHIVE CAP…
  archive=$1; shift
  rm -rf "$T/into"; mkdir "$T/into"
  ASAN_OPTIONS=detect_leaks=0 "$helper" unpack "$@" <"$archive" 3<"$T/into" 4>"$T/report" 2>"$err"
  status=$?
}
unpack "$T/two.tar" entries=2
is "too many entries" "$status $(json "$T/report" 'd["error"], d["entry"]')" "1 ('too many entries', 'c')"
# Folders that only the names of others tell of.
python3 - "$T/folders.tar" <<'END'
import sys, tarfile
with tarfile.open (sys.argv[1], "w") as tar:
    for name in "ab":
        tar.addfile (tarfile.TarInfo ("/".join ([name] + ["d"] * 20 + ["f"])))
END
unpack "$T/folders.tar" entries=43
is "folders count that no entry is of" "$status $(json "$T/report" 'd["error"], d["entry"][0]')" "1 ('too many entries', 'b')"
unpack "$T/folders.tar" entries=44
is "each of them once" "$status $(json "$T/report" 'd["files"]')" "0 2"
unpack "$T/big.tar" bytes=99999
is "too many bytes" "$status $(json "$T/report" 'd["error"]')" "1 all files together are too large"
unpack "$T/big.tar" file_bytes=99999
is "too large a file" "$status $(json "$T/report" 'd["error"]')" "1 the file is too large"
unpack "$T/big.tar" bytes=100000 file_bytes=100000 entries=1
is "just at the caps" "$status $(json "$T/report" 'd["bytes"]')" "0 100000"
# As on a kernel whose Landlock has no links from folder to folder.
rm -rf "$T/into"; mkdir "$T/into"
ASAN_OPTIONS=detect_leaks=0 python3 "$COFFER_SOURCE/tests/e2e/deny.py" linkat:EXDEV -- \
  "$helper" unpack <"$T/good.tar" 3<"$T/into" 4>"$T/report" 2>"$err"
is "a link that cannot be made is a copy" \
  "$? $(stat -c '%h %a' "$T/into/h") $(cat "$T/into/h") $(json "$T/report" 'd["digest"]')" "0 1 755 x $digest"
for cap in entries=0 entries=-1 entries=18446744073709551617 files=1; do
  unpack "$T/two.tar" "$cap"
  is "no cap: $cap" "$status $(json "$T/report" 'd["error"]')" "1 no such cap: $cap"
done
run "$helper"
is "nobody runs it by hand" "$status" 2

finish
