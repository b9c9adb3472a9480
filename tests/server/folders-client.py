# SPDX-License-Identifier: Apache-2.0
# Archives and watching over HTTP: folders-client.py SANDBOX [SANDBOX-TO-KILL]
import io, json, os, subprocess, sys, tarfile, threading, time
sys.path.insert (0, os.path.dirname (os.path.abspath (__file__)))
from client import *

box, doomed = sys.argv[1], sys.argv[2]
tap = Tap ()
F, A, W = (API + box + "/" + what + "/" for what in ("files", "archive", "watch"))
name = '你好 世界 \'q".txt'
body = "café\n☃\n".encode ()


def tar (*entries):
    out = io.BytesIO ()
    with tarfile.open (fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for entry in entries:
            path, data = entry[:2]
            info = tarfile.TarInfo (path)
            if data is not None:
                info.size = len (data)
                t.addfile (info, io.BytesIO (data))
            else:
                info.type, info.linkname = entry[2:]
                info.mode = 0o755
                t.addfile (info)
    return out.getvalue ()


def answer (status, data):
    try:
        return status, json.loads (data)["error"]["code"]
    except (ValueError, KeyError):
        return status, data[:100]


def put (path, data, headers=()):
    status, r, text = request ("PUT", A + quote (path), headers, data)
    return (status, "") if status == 200 else answer (status, text)


def names (path="."):
    status, r, text = request ("GET", F + quote (path) + "?op=list&depth=9")
    return sorted (e["path"] for e in json.loads (text)["entries"]) if status == 200 else status


# -- archives
request ("POST", F + "in?op=mkdir")
tap.is_ ("a tar is unpacked", put ("in", tar (("d", None, tarfile.DIRTYPE, ""), ("d/" + name, body),
                                              ("big", b"0123456789" * 300000))), (200, ""))
tap.is_ ("all of it is there", names ("in"), ["big", "d", "d/" + name])
tap.is_ ("as it was", request ("GET", F + quote ("in/d/" + name))[2], body)
status, r, data = request ("GET", A + "in/")
with tarfile.open (fileobj=io.BytesIO (data)) as t:
    found = {m.name.rstrip ("/"): t.extractfile (m).read () if m.isfile () else None for m in t}
    found.pop (".", None)
tap.is_ ("and comes out as tar", (status, r.get ("Content-Type"), sorted (
    (os.path.normpath (k), v == body if v and len (v) < 100 else v and len (v)) for k, v in found.items ())),
    (200, "application/x-tar", [("big", 3000000), ("d", None), ("d/" + name, True)]))
status, r, data = request ("HEAD", A + "in")
tap.is_ ("HEAD", (status, data), (200, b""))
request ("POST", F + "none?op=mkdir")
bad = {
    "an absolute name": tar (("ok", b"1"), ("/abs", b"2")),
    "a name upwards": tar (("ok", b"1"), ("../out", b"2")),
    "through a link": tar (("ok", b"1"), ("l", None, tarfile.SYMTYPE, "/tmp"), ("l/x", b"2")),
    "a device": tar (("ok", b"1"), ("null", None, tarfile.CHRTYPE, "")),
    "a name twice": tar (("ok", b"1"), ("ok", b"2")),
    "damage": bytearray (tar (("ok", b"1"), ("other", b"2"))),
    "no tar": b"this is no tar at all" * 100,
}
bad["damage"][1024 + 150] ^= 255
for what, data in bad.items ():
    tap.is_ ("refused: %s" % what, put ("none", bytes (data)), (422, "E4007"))
tap.is_ ("nothing of them is kept", names ("none"), [])
whole = tar (("ok", b"1"), ("other", b"x" * 100000))
s = begin ("PUT", A + "none", [("Content-Length", len (whole))])
s.sendall (whole[:1024])
s.close ()
s = begin ("PUT", A + "none", [("Transfer-Encoding", "chunked")])
s.sendall (b"%x\r\n" % len (whole) + whole)
s.close ()
# Each is over before the next is answered by the same sandbox's keeper; what
# would still come is waited for by looking twice.
time.sleep (0.5)
tap.is_ ("nor of one that was cut short", names ("none"), [])
tap.is_ ("out of no folder", answer (*request ("GET", A + "absent")[::2]), (404, "E4001"))
tap.is_ ("upwards", answer (*request ("GET", A + "../..")[::2]), (403, "E4003"))
done = []


def one (i):
    request ("POST", F + "many/%d?op=mkdir&parents=1" % i)
    if put ("many/%d" % i, tar (("f", b"%d" % i * 50000)))[0] == 200:
        with tarfile.open (fileobj=io.BytesIO (request ("GET", A + "many/%d" % i)[2])) as t:
            done.append (i if any (m.size == 50000 * len (str (i)) for m in t) else -1)


threads = [threading.Thread (target=one, args=(i,)) for i in range (12)]
[t.start () for t in threads]
[t.join () for t in threads]
tap.is_ ("twelve at once", sorted (done), list (range (12)))


# -- watching
def lines (r):
    rest = b""
    for piece in r.pieces ():
        rest += piece
        while b"\n" in rest:
            line, _, rest = rest.partition (b"\n")
            yield json.loads (line)


def watch (sandbox, path):
    s = begin ("GET", API + sandbox + "/watch/" + path)
    r = Reply (s)
    return s, r, lines (r)


request ("POST", F + "w?op=mkdir")
s, r, events = watch (box, "w")
tap.is_ ("a watch begins", (r.status, r.get ("Content-Type")), (200, "application/x-ndjson"))
# It may not be in force yet: it is tried until something is seen.
stop = threading.Event ()


def touch ():
    i = 0
    while not stop.wait (0.1):
        request ("PUT", F + quote ("w/" + name) + "?parents=1", (), b"%d" % i)
        i += 1


t = threading.Thread (target=touch)
t.start ()
first = next (events)
while first.get ("path") != name:
    first = next (events)
stop.set ()
t.join ()
tap.is_ ("a change is told", (first["path"], first["kind"] in ("created", "changed", "renamed")),
         (name, True))
request ("DELETE", F + quote ("w/" + name))
event = next (events)
while event["kind"] != "removed":
    event = next (events)
tap.is_ ("and a removal", event["path"], name)
s.close ()
many = [watch (box, "w")[0] for i in range (6)]
for s in many:
    s.close ()
tap.is_ ("who leaves is not waited for", names ("w"), [])
s, r, events = watch (doomed, "")
tap.is_ ("a watch of the whole workspace", r.status, 200)
tap.is_ ("no folder", answer (*request ("GET", W + "in/big")[::2]), (409, "E4002"))
tap.is_ ("not there", answer (*request ("GET", W + "absent")[::2]), (404, "E4001"))
killed = subprocess.run ([os.environ["COFFER"], "sandbox", "kill", doomed],
                         stdout=subprocess.DEVNULL).returncode
last = None
for last in events:
    pass
tap.is_ ("the end of its sandbox is the watch's", (killed, "error" in (last or {})), (0, True))
