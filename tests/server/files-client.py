# SPDX-License-Identifier: Apache-2.0
# Files of a sandbox over HTTP: files-client.py SANDBOX DAEMON-PID
import base64, hashlib, json, os, random, sys, threading
sys.path.insert (0, os.path.dirname (os.path.abspath (__file__)))
from client import *

box, daemon = sys.argv[1], sys.argv[2]
tap = Tap ()
F = API + box + "/files/"
body = "café\n☃\n".encode ()
name = '你好 世界/\'q".txt'


def put (path, data, query="", headers=()):
    status, r, text = request ("PUT", F + quote (path) + query, headers, data)
    return status, json.loads (text)


def get (path, headers=()):
    status, r, data = request ("GET", F + quote (path), headers)
    return status, data


def code (status_and_json):
    return status_and_json[0], status_and_json[1]["error"]["code"]


def names (path="."):
    status, r, text = request ("GET", F + quote (path) + "?op=list")
    out = []
    for e in json.loads (text)["entries"]:
        p = e["path"]
        out.append (base64.b64decode (p["data"]) if isinstance (p, dict) else p.encode ())
    return sorted (out)


def errors (method, path, data=None, headers=()):
    status, r, text = request (method, path, headers, data)
    try:
        return status, json.loads (text)["error"]["code"]
    except (ValueError, KeyError):
        return status, text[:200]


# -- written whole, read in parts
sha = hashlib.sha256 (body).hexdigest ()
tap.is_ ("folders that are missing are not made", code (put (name, body)), (404, "E4001"))
tap.is_ ("but where they are asked for", put (name, body, "?parents=1"),
         (200, {"path": name, "size_bytes": len (body), "sha256": sha}))
tap.is_ ("it reads back", get (name), (200, body))
status, r, text = request ("HEAD", F + quote (name))
tap.is_ ("HEAD says how much it is", (status, r.get ("Content-Length"), text),
         (200, str (len (body)), b""))
digits = b"0123456789"
put ("d", digits, "?mode=600")
for text, want in (("0-3", b"0123"), ("3-", b"3456789"), ("-2", b"89"), ("-99", digits),
                   ("8-99", b"89"), ("9-9", b"9")):
    status, r, data = request ("GET", F + "d", [("Range", "bytes=" + text)])
    first = digits.index (want)
    tap.is_ ("bytes=" + text, (status, data, r.get ("Content-Range"), r.get ("Content-Length")),
             (206, want, "bytes %d-%d/10" % (first, first + len (want) - 1), str (len (want))))
for text in ("10-", "99-100", "-0"):
    status, r, data = request ("GET", F + "d", [("Range", "bytes=" + text)])
    tap.is_ ("bytes=%s is no part of it" % text,
             (status, r.get ("Content-Range"), json.loads (data)["error"]["code"]),
             (416, "bytes */10", "E4010"))
for text in ("bytes=4-2", "bytes=x", "lines=1-2", "bytes=0-1,3-4", "bytes=-"):
    tap.is_ ("%s is answered whole" % text, get ("d", [("Range", text)]), (200, digits))
status, r, data = request ("HEAD", F + "d", [("Range", "bytes=2-4")])
tap.is_ ("HEAD of a part", (status, r.get ("Content-Length"), data), (206, "3", b""))
put ("empty", b"")
tap.is_ ("an empty file", get ("empty"), (200, b""))
tap.is_ ("no part of it", errors ("GET", F + "empty", headers=[("Range", "bytes=0-")]),
         (416, "E4010"))
tap.is_ ("a file whose size is said to be 0", get ("/proc/self/status")[0] in (200, 403), True)

# -- stat, modes
stat = json.loads (request ("GET", F + "d?op=stat")[2])
tap.is_ ("stat", (stat["path"][-1:], stat["kind"], stat["size_bytes"], stat["mode"]),
         ("d", "file", 10, 0o600))
put ("d", digits)
stat = json.loads (request ("GET", F + "d?op=stat")[2])
tap.is_ ("what replaces a file has its mode", stat["mode"], 0o600)
tap.is_ ("a mode beyond rwx", errors ("PUT", F + "x?mode=4755", b""), (400, BAD := "E7005"))
tap.is_ ("a mode that is none", errors ("PUT", F + "x?mode=9", b""), (400, BAD))
tap.is_ ("an op that is none", errors ("GET", F + "d?op=eat"), (400, BAD))
tap.is_ ("a flag that is none", errors ("PUT", F + "x?parents=perhaps", b""), (400, BAD))

# -- what is not what it should be changes nothing
tap.is_ ("a sha256 that fits", put ("d", digits, headers=[("X-Content-Sha256",
         hashlib.sha256 (digits).hexdigest ().upper ())])[0], 200)
tap.is_ ("one that does not", code (put ("d", b"other", headers=[("X-Content-Sha256", sha)])),
         (422, "E4009"))
tap.is_ ("one that is none", code (put ("d", b"other", headers=[("X-Content-Sha256", "abc")])),
         (400, BAD))
tap.is_ ("exclusive", code (put ("d", b"other", "?exclusive=1")), (409, "E4006"))
tap.is_ ("the file is as it was", get ("d"), (200, digits))
tap.is_ ("exclusive, of a new one", put ("new", b"n", "?exclusive=1")[0], 200)
tap.is_ ("which is there", get ("new"), (200, b"n"))

s = begin ("PUT", F + "d", [("Content-Length", 100000)])
s.sendall (b"x" * 50000)
s.close ()
s = begin ("PUT", F + "d", [("Transfer-Encoding", "chunked")])
s.sendall (b"5\r\nhello\r\n")
s.close ()
s = begin ("PUT", F + "other", [("Content-Length", 3)])
s.sendall (b"ab")
s.shutdown (1)
try:
    answer = Reply (s).status
except (Broken, ConnectionError):
    answer = "nothing"
tap.ok ("a body that is cut short is no success", answer == "nothing" or answer >= 400, answer)
s.close ()


def settled ():
    """No temporary file is left of those that were cut."""
    for i in range (600):
        if not [n for n in names () if n.startswith (b".coffer-")]:
            return True
        threading.Event ().wait (0.05)
    return names ()


tap.is_ ("nothing of them is left", settled (), True)
tap.is_ ("and the file is as it was", get ("d"), (200, digits))
tap.is_ ("nor is there another", get ("other")[0], 404)

# -- folders
tap.is_ ("mkdir", errors ("POST", F + "a/b?op=mkdir"), (404, "E4001"))
tap.is_ ("mkdir with parents", request ("POST", F + "a/b?op=mkdir&parents=1")[0], 200)
tap.is_ ("once more", errors ("POST", F + "a?op=mkdir"), (409, "E4006"))
put ("a/b/c", b"1")
status, r, text = request ("GET", F + "a?op=list&depth=3")
tap.is_ ("a list goes down", sorted (e["path"] for e in json.loads (text)["entries"]),
         ["b", "b/c"])
tap.is_ ("not below 1", errors ("GET", F + "a?op=list&depth=0"), (400, BAD))
tap.is_ ("rename", request ("POST", F + "a/b/c?op=rename", (), b'{"to": "a/e"}')[0], 200)
tap.is_ ("it moved", (get ("a/b/c")[0], get ("a/e")), (404, (200, b"1")))
tap.is_ ("rename without a name", errors ("POST", F + "a/e?op=rename", b"{}"), (400, BAD))
tap.is_ ("rename upwards", errors ("POST", F + "a/e?op=rename", b'{"to": "../../x"}'),
         (403, "E4003"))
tap.is_ ("a folder is no file", errors ("GET", F + "a"), (409, "E4002"))
tap.is_ ("and not removed as one", errors ("DELETE", F + "a")[0], 409)
tap.is_ ("but with all in it", request ("DELETE", F + "a?recursive=1")[0], 204)
tap.is_ ("it is gone", errors ("GET", F + "a?op=stat"), (404, "E4001"))
put ("away", b"")
tap.is_ ("remove by POST", json.loads (request ("POST", F + "away?op=remove")[2]), {"path": "away"})

# -- names of any bytes
hostile = [b"-rf", b"$(id)", b";rm", b"new\nline", b"*", "é".encode () * 127, b".hidden",
           b"con", "😀".encode (), b"\xff\xfe", b"back\\slash", b"%41", b"a+b", b"tab\t",
           "‮bidi".encode (), b"?query", b"#part", b"\x7f", b" ", b"n" * 255]
request ("POST", F + "odd?op=mkdir")
for n in hostile:
    request ("PUT", F + "odd/" + quote (n), (), n)
tap.is_ ("hostile names are listed as they are", names ("odd"), sorted (hostile))
tap.is_ ("and read", [n for n in hostile if get (b"odd/" + n) != (200, n)], [])
coded = json.dumps ({"to": {"encoding": "base64", "data": base64.b64encode (b"odd/\xfa").decode ()}}).encode ()
tap.is_ ("renamed to bytes", request ("POST", F + "odd/" + quote (b"\xff\xfe") + "?op=rename", (),
                                      coded)[0], 200)
tap.is_ ("which are there", get (b"odd/\xfa"), (200, b"\xff\xfe"))
hostile[hostile.index (b"\xff\xfe")] = b"\xfa"
tap.is_ ("and deleted", [n for n in hostile
                         if request ("DELETE", F + quote (b"odd/" + n))[0] != 204], [])
tap.is_ ("all of them", names ("odd"), [])
tap.is_ ("a name of 256 bytes", 400 <= errors ("PUT", F + "n" * 256, b"")[0] < 500, True)
tap.is_ ("a path of 5000 bytes", 400 <= errors ("PUT", F + "n/" * 2500 + "n", b"")[0] < 500, True)
tap.is_ ("a NUL", errors ("PUT", F + "a%00b", b""), (400, BAD))
tap.is_ ("half an escape", errors ("GET", F + "a%4"), (400, BAD))
tap.is_ ("nothing was cut at it", b"a" in names (), False)

# -- no way out
for path in ("../../x", "a/../../x", "%2e%2e/%2e%2e/x", "..%2fx", "/../x", "..", "a/.."):
    tap.is_ ("out by %s" % path, errors ("PUT", F + path, b"out"), (403, "E4003"))
tap.is_ ("an absolute path is one inside", errors ("PUT", F + "/etc/escaped", b"out")[0] in (403, 404),
         True)
tap.is_ ("which is not the host's", os.path.exists ("/etc/escaped"), False)
tap.is_ ("of the workspace by its name", (put ("/workspace/w", b"w")[0], get ("w")), (200, (200, b"w")))
tap.is_ ("the same, escaped", request ("GET", F + "%2Fworkspace%2Fw")[2], b"w")
tap.is_ ("dots and slashes", (request ("PUT", F + "./s//./t?parents=1", (), b"t")[0],
                              get ("s/t")), (200, (200, b"t")))
tap.is_ ("no name at all", errors ("PUT", F, b"")[0], 409)
inside (box, "sh", "-c", "ln -s /etc/passwd link; ln -s /etc dir; ln -s ../../../../etc/hostname up;"
        "mkfifo pipe; python3 -c 'import socket; socket.socket (1).bind (\"socket\")'; "
        "truncate -s 1G sparse; printf end | dd of=sparse bs=1 seek=1073741821 conv=notrunc")
for path in ("link", "up", "dir/passwd", "pipe", "socket"):
    status, data = get (path)
    tap.is_ ("%s is not followed" % path, (400 <= status < 500, b"root:" in data), (True, False))
tap.is_ ("nothing goes through a link", errors ("PUT", F + "dir/escaped", b"out"), (403, "E4003"))
stat = json.loads (request ("GET", F + "link?op=stat")[2])
tap.is_ ("but it is seen", (stat["kind"], stat["target"]), ("symlink", "/etc/passwd"))
tap.is_ ("and removed itself", (request ("DELETE", F + "link")[0], os.path.exists ("/etc/passwd")),
         (204, True))

# -- large and slow
G = 1 << 30


def peak ():
    for line in open ("/proc/%s/status" % daemon):
        if line.startswith ("VmHWM"):
            return int (line.split ()[1]) * 1024


before = peak ()
status, r, data = request ("GET", F + "sparse", [("Range", "bytes=%d-" % (G - 5))])
tap.is_ ("the end of 1 GiB", (status, data), (206, b"\0\0end"))
idle = []
for i in range (8):
    s = begin ("GET", F + "sparse")
    Reply (s)
    idle.append (s)
s = begin ("GET", F + "sparse")
r = Reply (s)
total, last = 0, b""
for piece in r.pieces ():
    total += len (piece)
    last = piece
tap.is_ ("all of it, beside eight who do not read", (r.status, total, last[-3:]), (200, G, b"end"))
tap.ok ("in little memory", peak () - before < 64 << 20, peak () - before)
for s in idle:
    s.close ()

# -- many at once
good = []


def one (i):
    data = random.Random (i).randbytes (300000 + i)
    path = "many/%d" % i
    if put (path, data, "?parents=1")[0] == 200 and get (path) == (200, data):
        good.append (i)


threads = [threading.Thread (target=one, args=(i,)) for i in range (24)]
[t.start () for t in threads]
[t.join () for t in threads]
tap.is_ ("twenty-four at once", sorted (good), list (range (24)))
inside (box, "sh", "-c", "mkdir lots; cd lots; seq 10001 | xargs touch")
tap.is_ ("more than a document holds", errors ("GET", F + "lots?op=list"), (429, "E5002"))
status, r, text = request ("GET", F + "lots?op=list", [("Accept", "application/x-ndjson")])
tap.is_ ("but lines", (status, r.get ("Content-Type"),
                       sorted (int (json.loads (l)["path"]) for l in text.splitlines ())),
         (200, "application/x-ndjson", list (range (1, 10002))))

# -- what there is not
tap.is_ ("no such file", errors ("GET", F + "nothing"), (404, "E4001"))
tap.is_ ("no such sandbox", errors ("GET", API + "sb-" + "0" * 26 + "/files/d"), (404, "E2009"))
for bad in ("..%2Fx", "a%2Fb", "x" * 300, "-x", ".x", "%E2%98%83"):
    tap.is_ ("no sandbox %s" % bad[:20], errors ("GET", API + bad + "/files/d")[0] in (400, 404), True)
tap.is_ ("another method", errors ("PATCH", F + "d")[0], 405)
tap.is_ ("no such folder to watch", errors ("GET", API + box + "/watch/nothing"), (404, "E4001"))
tap.is_ ("nor to have as tar", errors ("GET", API + box + "/archive/nothing"), (404, "E4001"))
