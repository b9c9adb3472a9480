# SPDX-License-Identifier: Apache-2.0
# Archives of providers that want out, want more than they say, or are two things
# at once: each is refused by what is wrong, nothing of it is kept, and nothing
# outside is touched.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both alike
needs python3
umask 022
without_conformance
echo 'accept: [network.none]' >>"$COFFER_HOME/config/coffer.yaml"
providers=$COFFER_HOME/providers

mkdir "$T/outer" "$T/parrot"; echo canary >"$T/outer/canary"
cp "$COFFER_BUILD/tests/e2e/modules/parrot.so" "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" "$T/parrot"
coffer seal "$T/parrot/parrot.yaml"
python3 - "$T" <<'PY'
import gzip, io, sys, tarfile, zlib
top = sys.argv[1]
D, S, L = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE

def entry (name, kind=tarfile.REGTYPE, link="", body=b"x", mode=0o644, **more):
    info = tarfile.TarInfo (name)
    info.type, info.linkname, info.mode = kind, link, mode
    info.size = len (body) if kind == tarfile.REGTYPE else 0
    for key, value in more.items ():
        setattr (info, key, value)
    return info, body

def tar (entries, **more):
    out = io.BytesIO ()
    with tarfile.open (fileobj=out, mode="w", format=tarfile.PAX_FORMAT, **more) as t:
        for info, body in entries:
            t.addfile (info, io.BytesIO (body))
    return out.getvalue ()

# A whole provider, so that only what comes besides can be a reason.
good = [entry ("p", D, mode=0o755)] + [
    entry ("p/" + name, body=open (f"{top}/parrot/{name}", "rb").read ())
    for name in ("parrot.yaml", "parrot.so")]
def pax (**headers):
    return entry ("p/pax", pax_headers=headers)
def raw (change, size=0):
    info = tarfile.TarInfo ("p/raw"); info.size = size
    header = bytearray (info.tobuf (tarfile.GNU_FORMAT))
    change (header)
    return bytes (header)
def summed (header):
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum (header)
def negative (header):
    header[124:136] = b"\xff" * 12; summed (header)
def huge (header):
    header[124:136] = b"\x80" + b"\0" * 3 + b"\x7f" + b"\xff" * 7; summed (header)
def octal (header):
    header[124:136] = b"777777777777"; summed (header)
def wrong (header):
    header[148:156] = b"000001\0 "

# GNU's own: 100 MiB, of which the last 512 bytes are there.
def holes (header):
    header[156:157] = b"S"
    header[386:410] = b"%011o\0%011o\0" % ((100 << 20) - 512, 512)
    header[483:495] = b"%011o\0" % (100 << 20); summed (header)
sparse = raw (holes, 512) + b"x" * 512
body = tar (good)
end = body.rstrip (b"\0")
whole = body[:(len (end) + 511) // 512 * 512]   # without the blocks of the end
cases = {
    # AR01
    "dotdot": ("component", tar (good + [entry ("../outer/x")])),
    "absolute": ("is absolute", tar (good + [entry (f"{top}/outer/x")])),
    "inner-dotdot": ("component", tar (good + [entry ("a/../../outer/x")])),
    "drive": ("backslash", tar (good + [entry ("C:\\x")])),
    "backslash": ("backslash", tar (good + [entry ("..\\x")])),
    # AR02
    "through-link": ("neither a folder", tar (good + [entry ("p/l", S, f"{top}/outer"), entry ("p/l/x")])),
    "link": ("neither a folder", tar (good + [entry ("p/l", S, "/")])),
    "link-module": ("neither a folder", tar (good[:2] + [entry ("p/parrot.so", S, f"{top}/parrot/parrot.so")])),
    "hard-absolute": ("neither a folder", tar (good + [entry ("p/h", L, f"{top}/outer/canary")])),
    "hard-to-own": ("neither a folder", tar (good + [entry ("p/h", L, "p/parrot.so")])),
    "device": ("neither a folder", tar (good + [entry ("dev/null", tarfile.CHRTYPE, devmajor=1, devminor=3)])),
    "fifo": ("neither a folder", tar (good + [entry ("p/f", tarfile.FIFOTYPE)])),
    # AR05
    "many": ("too many entries", tar (good + [entry (f"p/{i}", body=b"") for i in range (5000)])),
    "deep": ("too many folders deep", tar (good + [entry ("/".join (["d"] * 100000))])),
    "long": ("longer than 255", tar (good + [entry ("n" * 65536)])),
    "newline": ("control character", tar (good + [entry ("p/a\nb")])),
    "escape": ("control character", tar (good + [entry ("p/a\x1b[2Jb")])),
    # AR06
    "twice": ("twice", tar (good + [entry ("p/parrot.so", body=b"other")])),
    "file-then-folder": ("one place|folder", tar (good + [entry ("p/x"), entry ("p/x", D)])),
    "folder-then-file": ("twice", tar (good + [entry ("p/x", D), entry ("p/x")])),
    "below-file": ("no folder", tar (good + [entry ("p/parrot.so/x")])),
    "manifest-twice": ("twice", tar (good + [entry ("./p//parrot.yaml")])),
    # AR08
    "pax-path": ("component", tar (good + [pax (path="../outer/x")])),
    "pax-link": ("component|neither", tar (good + [entry ("p/l", S, "x", pax_headers={"linkpath": "/"})])),
    "pax-size": ("", tar (good + [pax (size="99999999999999999999")])),
    "negative": ("", whole + raw (negative) + bytes (1024)),
    "base-256": ("", whole + raw (huge) + bytes (1024)),
    "octal": ("", whole + raw (octal) + bytes (1024)),
    # AR09
    "checksum": ("", whole + raw (wrong) + bytes (1024)),
    "cut": ("", body[:len (whole) // 2]),
    "garbage": ("", body + b"garbage" * 200),
    "no-end": ("cut off", whole),
    "half-an-end": ("cut off", whole + bytes (512)),
    "end-and-more": ("behind its end", whole + bytes (512) + whole[:512] + bytes (1024)),
    "two-tars": ("behind its end", body + body),
    "other-tar": ("behind its end", body + tar ([entry ("q/x")])),
    "long-end": ("no end", body + bytes (2 << 20)),
    "holes": ("holes", whole + sparse + bytes (1024)),
    "noise": ("", bytes (range (256)) * 64),
}
with open (f"{top}/cases", "w") as list:
    for name, (part, text) in cases.items ():
        open (f"{top}/{name}.tar.gz", "wb").write (gzip.compress (text, 1))
        print (name, part or ".", sep="\t", file=list)
packed = gzip.compress (body, 1)
def more (name, text, part):
    open (f"{top}/{name}.tar.gz", "wb").write (text)
    print (name, part, sep="\t", file=open (f"{top}/cases", "a"))
more ("behind-gzip", packed + b"something else", "behind its end")
more ("gzip-cut", packed[:-9], ".")
more ("gzip-damaged", packed[:10] + b"\xff" * 64 + packed[74:], ".")
more ("gzip-nothing", gzip.compress (b""), ".")
more ("empty", b"", ".")
more ("zip", b"PK\3\4" + bytes (100), ".")
# AR04: 300 MiB of zeros, as they are declared and as they are there; a gzip stream
# may be made of many.
zeros = gzip.compress (bytes (1 << 20), 9)
info, _ = entry ("p/zeros"); info.size = 300 << 20
bomb = gzip.compress (whole + info.tobuf (tarfile.GNU_FORMAT), 1) + zeros * 300
more ("bomb", bomb, "too large")
info.size = 255 << 20; parts = gzip.compress (whole, 1)
for i in range (5):
    info.name = f"p/zeros{i}"
    parts += gzip.compress (info.tobuf (tarfile.GNU_FORMAT), 1) + zeros * 255
open (f"{top}/total.tar.gz", "wb").write (parts)
# Inside of an archive an archive is a file.
more ("nested", gzip.compress (tar ([entry ("p", D), entry ("p/inner.tar.gz", body=packed)])), "no provider's manifest")
more ("no-manifest", gzip.compress (tar ([entry ("p", D), entry ("p/x")])), "no provider's manifest")
more ("two-folders", gzip.compress (tar (good + [entry ("q/x")])), "no provider's manifest")
open (f"{top}/good.tar.gz", "wb").write (packed)
open (f"{top}/pax-global.tar.gz", "wb").write (
    gzip.compress (tar (good, pax_headers={"path": "../outer/x", "linkpath": "/"})))
PY

while IFS='	' read -r name part; do
  run coffer provider install "$T/$name.tar.gz" --yes
  like "$name" "$status $(cat "$err")" "^2 coffer: E(4007|6002): .*($part)"
done <"$T/cases"
# All files together; the caps are the program's arguments, these are smaller ones.
mkdir "$T/into"
ASAN_OPTIONS=detect_leaks=0 "$COFFER_BUILD/core/store/archive/coffer-archive" unpack-package \
  bytes=33554432 <"$T/total.tar.gz" 3<"$T/into" 4>"$T/report" 2>"$err"
is "all together are too much" "$? $(json "$T/report" 'd["error"]')" "1 all files together are too large"
rm -rf "$T/into"
is "nothing outside was touched" "$(ls "$T/outer") $(cat "$T/outer/canary")" "canary canary"
is "nothing of them is kept" "$(ls -A "$providers" 2>/dev/null)" ""
ls -a "$T" | grep -E '^(x|C:)' >"$T/strays"
is "nothing lies about" "$(cat "$T/strays")" ""

run coffer provider install "$T/good.tar.gz" --json
is "what is well is taken" "$status $(json "$out" 'd["id"]')" "0 parrot"
ok "and answers" coffer call parrot probe

coffer provider uninstall parrot >/dev/null

# A header for all entries has no say in their names.
run coffer provider install "$T/pax-global.tar.gz"
is "pax-global" "$status $(ls -A "$providers") $(ls -A "$providers/parrot" | tr '\n' ' ')$(ls "$T/outer")" \
  "0 parrot parrot.so parrot.yaml receipt.json canary"
coffer provider uninstall parrot >/dev/null

# A sandbox that lives on it is named; a provider that is disabled cannot say that
# it is gone.
cp -r "$T/parrot" "$T/durable"
sed -i 's/^capabilities: .*/capabilities: [exec, metrics, durable]/' "$T/durable/parrot.yaml"
coffer provider install "$T/durable" >/dev/null 2>&1
id=$(coffer sandbox create --provider parrot 2>/dev/null)
coffer provider disable parrot >/dev/null
run coffer provider uninstall parrot
like "a living sandbox is named" "$status $(cat "$err")" "coffer: E5003: parrot still has sandboxes: $id"
like "with how to go on" "$(cat "$err")" "sandbox kill ID ends one; --force"
run coffer provider uninstall parrot --json
is "also in JSON" "$status $(json "$out" 'd["error"]["code"], d["error"]["details"]["sandboxes"]')" \
  "1 ('E5003', ['$id'])"
is "and the provider is there" "$(ls -A "$providers")" parrot
run coffer provider uninstall parrot --force --json
is "--force leaves it" "$status $(json "$out" 'd["left_sandboxes"]')" "0 ['$id']"
run coffer sandbox kill "$id"
like "which only that provider can end" "$(cat "$err")" 'hint: install parrot again'
is "and is kept" "$status" 4
coffer provider install "$T/durable" >/dev/null 2>&1
coffer provider enable parrot >/dev/null
coffer sandbox list >/dev/null
run coffer provider uninstall parrot
is "uninstalled, as it is gone" "$status $(ls -A "$providers")" "0 "

finish
