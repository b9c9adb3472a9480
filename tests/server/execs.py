# SPDX-License-Identifier: Apache-2.0
"""Commands through the daemon: awaited and in the background, what they are
given and what they write, from any number on."""

import base64
import hashlib
import json
import os
import random
import signal
import socket
import struct
import threading
import time

import daemon as d

FRAMES = "application/x-coffer-frames"

d.needs_sandbox ()
server = d.Daemon ().start ()
BOX = server.request ("POST", "/api/v1/sandboxes", {"ttl": "1h"}).json ()["id"]
BASE = "/api/v1/sandboxes/%s/execs" % BOX
rng = random.Random (5)


def ask (method, path="", body=None, **kw):
    return server.request (method, BASE + path, body, **kw)


def run (body, **kw):
    return ask ("POST", "?wait=1", body, **kw)


def begin (body):
    r = ask ("POST", "", body)
    assert r.status == 201, r
    return r.json ()["exec"]


def refused (what, reply, status, code, *words):
    text = reply.body.decode ("utf-8", "replace")
    d.ok (what, reply.status == status and reply.code () == code
          and all (w in text for w in words), repr (reply))


def events (exec, query="", **kw):
    r = ask ("GET", "/%s/events%s" % (exec, query), keep=False, **kw)
    return [json.loads (line) for line in r.body.splitlines ()]


def output (lines, stream="stdout"):
    out = b""
    for e in lines:
        if e["event"] == "output" and e["stream"] == stream:
            out += (e["data"].encode () if e["encoding"] == "utf-8"
                    else base64.b64decode (e["data"]))
    return out


def frames (data):
    at = 0
    while at < len (data):
        size, kind, stream, _, seq, when = struct.unpack_from (
            "<IBBHQq", data, at)
        yield kind, stream, seq, data[at + 24:at + 24 + size]
        at += 24 + size


def ended (exec):
    return d.soon (lambda: (lambda i: i if i["state"] != "running" else None) (
        ask ("GET", "/" + exec, keep=False).json ()))


# ---- awaited ---------------------------------------------------------------

r = run ({"argv": ["/bin/sh", "-c", "echo out; echo err >&2; exit 7"]})
d.ok ("one is awaited", r.status == 200, repr (r))
got = r.json ()
d.equal ("with its end", (got["status"], got["exit"]["code"]), (7, 7))
d.equal ("and both streams", (got["stdout"]["data"], got["stderr"]["data"]),
         ("out\n", "err\n"))
command = json.loads (server.coffer (
    "sandbox", "exec", BOX, "--json", "--", "/bin/true").stdout)
d.equal ("as the command line prints it", sorted (got), sorted (command))
d.equal ("and its exit too", sorted (got["exit"]), sorted (command["exit"]))
d.equal ("a string is for a shell",
         run ({"command": "echo $((6*7))"}).json ()["stdout"]["data"], "42\n")
got = run ({"argv": ["/no/such"]}).json ()
d.equal ("what is not there is 127",
         (got["status"], got["exit"]["failure_errno"]), (127, 2))
d.equal ("a signal is told",
         run ({"command": "kill -9 $$"}).json ()["exit"]["signal"], 9)
got = run ({"argv": ["sleep", "60"], "timeout_ms": 200}).json ()
d.equal ("a timeout is 124", (got["status"], got["exit"]["timed_out"]),
         (124, True))
got = run ({"argv": ["cat"], "stdin": "café\n☃\n"}).json ()
d.equal ("it is given its input", got["stdout"]["data"], "café\n☃\n")
blob = bytes (range (256)) * 1000
got = run ({"argv": ["cat"], "stdin": {
    "encoding": "base64", "data": base64.b64encode (blob).decode ()}}).json ()
d.ok ("bytes too, more than a pipe holds",
      got["stdout"]["encoding"] == "base64"
      and base64.b64decode (got["stdout"]["data"]) == blob,
      got["stdout"]["bytes"])
got = run ({"command": "head -c 5000000 /dev/zero | tr '\\0' x"}).json ()
d.ok ("of much the head and the tail",
      got["stdout"]["bytes"] == 5000000
      and len (got["stdout"]["data"]) + got["stdout"]["omitted"]["bytes"]
      == 5000000, got["stdout"].get ("omitted"))
got = run ({"command": "exec >&- 2>&-; sleep 0.3; exit 5"}).json ()
d.equal ("one that closes its streams is awaited all the same",
         got["status"], 5)
got = run ({"command": "sleep 600 & echo left; exit 6"}).json ()
d.equal ("what it leaves behind holds nobody up",
         (got["status"], got["stdout"]["data"]), (6, "left\n"))
run ({"command": "kill %1 2>&-; pkill sleep"})
d.equal ("variables and folders",
         run ({"command": "echo $A; pwd", "env": {"A": "x y"},
               "workdir": "/tmp"}).json ()["stdout"]["data"], "x y\n/tmp\n")
for what, body, word in (
        ("no command", {}, "argv"),
        ("two", {"argv": ["x"], "command": "y"}, "command"),
        ("a field that is not known", {"argv": ["x"], "cmd": 1}, "cmd"),
        ("an argument that is none", {"argv": [1]}, "argv"),
        ("an open input", {"argv": ["cat"], "stdin": True}, "stdin"),
        ("a terminal", {"argv": ["cat"], "tty": True}, "tty"),
        ("both ways", {"argv": ["cat"], "background": True}, "background"),
        ("a size without a terminal", {"argv": ["cat"], "rows": 3}, "rows")):
    refused ("refused: " + what, run (body), 422, "E2001", word)
refused ("an id that is none", server.request (
    "POST", "/api/v1/sandboxes/%s/execs?wait=1" % ("sb-" + "0" * 26),
    {"argv": ["/bin/true"]}), 404, "E2009")

# A client that leaves takes its command with it.
s = server.raw ()
body = json.dumps ({"command": "trap 'echo ended >>/tmp/left; exit' TERM;"
                    " echo ready >/tmp/ready; while :; do sleep 0.05; done"})
s.sendall (("POST %s?wait=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
            "%d\r\n\r\n%s" % (BASE, len (body), body)).encode ())
d.soon (lambda: run ({"command": "cat /tmp/ready"}).json ()["status"] == 0)
s.close ()
d.ok ("a client that leaves takes its command with it", d.soon (
    lambda: run ({"command": "cat /tmp/left"}).json ()["status"] == 0))

many = []


def one_of_many (i):
    many.append (run ({"command": "sleep 0.4; echo %d" % i}, keep=False)
                 .json ()["stdout"]["data"])


threads = [threading.Thread (target=one_of_many, args=(i,))
           for i in range (100)]
for t in threads:
    t.start ()
quick = run ({"argv": ["/bin/true"]}).json ()["status"]
for t in threads:
    t.join ()
d.equal ("a hundred at once, and one more", (quick, sorted (many)),
         (0, sorted ("%d\n" % i for i in range (100))))

# ---- in the background -----------------------------------------------------

r = ask ("POST", "", {"command": "echo a; sleep 0.1; echo b >&2; exit 3"})
e = r.json ()["exec"]
d.ok ("one is started", r.status == 201 and r.json ()["state"] == "running"
      and r.header ("Location") == BASE + "/" + e, repr (r))
lines = events (e)
d.equal ("its events", [(x["seq"], x["event"], x.get ("stream"),
                         x.get ("data")) for x in lines],
         [(1, "output", "stdout", "a\n"), (2, "output", "stderr", "b\n"),
          (3, "exited", None, None)])
d.equal ("the last has the end", (lines[-1]["status"],
                                  lines[-1]["exit"]["code"]), (3, 3))
d.equal ("the same again afterwards", events (e), lines)
d.equal ("from a number on", events (e, "?from=2"), lines[1:])
d.equal ("and beyond the last", events (e, "?from=9"), [])
info = ask ("GET", "/" + e).json ()
d.equal ("it is known how it ended",
         (info["state"], info["status"], info["stdout"]["bytes"]),
         ("exited", 3, 2))
d.ok ("it is listed", e in [x["exec"] for x in ask ("GET").json ()["execs"]])
d.equal ("its bytes alone", (ask ("GET", "/%s/stdout" % e).body,
                             ask ("GET", "/%s/stderr" % e).body),
         (b"a\n", b"b\n"))
r = ask ("POST", "", {"argv": ["/no/such"]})
d.equal ("one that cannot be started says so at once",
         (r.status, r.json ()["status"]), (201, 127))
for path in ("", "/events", "/stdout", "/stdin/close"):
    refused ("an id that is none: " + path,
             ask ("POST" if "stdin" in path else "GET", "/e999" + path), 404,
             "E3002")
refused ("a path instead of an id", ask ("GET", "/..%2f..%2fx/events"), 400,
         "E7005")

e = begin ({"command": "printf 0123456789"})
ended (e)
for what, header, want in (("a part", "bytes=2-4", (206, b"234")),
                           ("from a place on", "bytes=7-", (206, b"789")),
                           ("the last of it", "bytes=-3", (206, b"789")),
                           ("more than there is", "bytes=8-99", (206, b"89")),
                           ("nothing of it", "bytes=10-", (416, b"")),
                           ("no range", "lines=1-", (200, b"0123456789"))):
    r = ask ("GET", "/%s/stdout" % e, headers={"Range": header})
    d.equal ("of its bytes " + what, (r.status, r.body), want)

# ---- what it is given ------------------------------------------------------

e = begin ({"argv": ["cat"], "stdin": True})
r = ask ("POST", "/%s/stdin" % e, b"one\n")
d.equal ("it is written to", (r.status, r.json ()["bytes"]), (200, 4))
ask ("POST", "/%s/stdin" % e, blob)
d.equal ("and ended", ask ("POST", "/%s/stdin/close" % e).status, 200)
d.equal ("all of it arrives", output (events (e)), b"one\n" + blob)
refused ("afterwards there is nobody", ask ("POST", "/%s/stdin" % e, b"x"),
         409, "E2003")
e = begin ({"argv": ["cat"], "stdin": "given at once"})
d.equal ("an input that is known before", output (events (e)),
         b"given at once")
e = begin ({"argv": ["cat"]})
d.equal ("none is the end at once", output (events (e)), b"")
e = begin ({"argv": ["sleep", "60"]})
r = ask ("POST", "/%s/signal" % e, {"signal": "TERM"})
d.equal ("a signal", (r.status, r.json ()["signal"]), (200, 15))
d.equal ("ends it", ended (e)["exit"]["signal"], 15)
refused ("a signal that is none", ask ("POST", "/%s/signal" % e,
                                       {"signal": "HELLO"}), 422, "E2001")
refused ("to what has ended", ask ("POST", "/%s/signal" % e, {"signal": 9}),
         409, "E2003")
e = begin ({"command": "stty size; read x; stty size; exit 2", "tty": True,
            "rows": 30, "columns": 100})
d.soon (lambda: ask ("GET", "/" + e).json ()["stdout"]["bytes"] > 0)
r = ask ("POST", "/%s/resize" % e, {"rows": 11, "columns": 22})
d.equal ("a terminal has another size", r.status, 200)
ask ("POST", "/%s/stdin" % e, b"\n")
lines = events (e)
d.ok ("as the command sees", output (lines).startswith (b"30 100\r\n")
      and output (lines).endswith (b"11 22\r\n")
      and lines[-1]["status"] == 2, lines)
refused ("a size that is none", ask ("POST", "/%s/resize" % e,
                                     {"rows": 0, "columns": 1}), 422, "E6006")
e = begin ({"argv": ["cat"], "tty": True})
ask ("POST", "/%s/stdin" % e, b"hi\n")
ask ("POST", "/%s/stdin/close" % e)
d.equal ("the end of a terminal's input ends it", ended (e)["status"], 0)

# ---- text and bytes --------------------------------------------------------

e = begin ({"command": "printf 'caf\\303'; sleep 0.01; printf '\\251\\n';"
            " printf '\\377\\000'"})
lines = events (e)
d.equal ("all bytes arrive", output (lines), "café\n".encode () + b"\xff\0")
text = "café\n☃\n\"\\\t\x01你好\u2028" * 20000
e = begin ({"argv": ["cat"], "stdin": True})
ask ("POST", "/%s/stdin" % e, text.encode ())
ask ("POST", "/%s/stdin/close" % e)
lines = events (e)
d.ok ("text stays text", output (lines) == text.encode ()
      and all (x["encoding"] == "utf-8" for x in lines
               if x["event"] == "output"),
      [x for x in lines if x.get ("encoding") == "base64"][:2])
got = list (frames (ask ("GET", "/%s/events" % e, keep=False,
                         headers={"Accept": FRAMES}).body))
d.ok ("as frames", b"".join (f[3] for f in got if f[0] == 1) == text.encode ()
      and [f[2] for f in got] == list (range (1, len (got) + 1))
      and json.loads (got[-1][3])["status"] == 0)

# ---- leaving and coming back -----------------------------------------------


class Follower:
    """Reads events in either form, and leaves whenever it likes."""

    def __init__ (self, exec, seq, as_frames):
        self.socket = server.raw ()
        self.as_frames = as_frames
        self.socket.sendall ((
            "GET %s/%s/events?from=%d HTTP/1.0\r\nHost: localhost\r\n"
            "Accept: %s\r\n\r\n" % (BASE, exec, seq, FRAMES if as_frames
                                    else "application/x-ndjson")).encode ())
        self.file = self.socket.makefile ("rb")
        while self.file.readline () not in (b"\r\n", b""):
            pass

    def next (self):
        """(seq, kind, bytes), or None."""
        if self.as_frames:
            head = self.file.read (24)
            if len (head) < 24:
                return None
            size, kind, _, _, seq, _ = struct.unpack ("<IBBHQq", head)
            return seq, kind, self.file.read (size)
        line = self.file.readline ()
        if not line.endswith (b"\n"):
            return None
        e = json.loads (line)
        return (e["seq"], {"output": 1, "dropped": 2, "exited": 3}[e["event"]],
                output ([e]))

    def close (self):
        self.file.close ()
        self.socket.close ()


def follow (exec, leaves):
    """What it wrote, read in pieces by clients that leave."""
    digest, seq, rejoined = hashlib.sha256 (), 1, 0
    while True:
        f = Follower (exec, seq, rng.random () < 0.5)
        for _ in range (rng.randint (1, leaves)):
            e = f.next ()
            if not e:
                return None, rejoined
            if e[0] != seq:
                return "%d after %d" % (e[0], seq - 1), rejoined
            seq += 1
            digest.update (e[2] if e[1] == 1 else b"")
            if e[1] == 3:
                f.close ()
                return digest.hexdigest (), rejoined
        f.close ()
        rejoined += 1


SCRIPT = ("i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); done"
          % d.scale (20000))
want = hashlib.sha256 (b"".join (b"line %d\n" % i
                                 for i in range (d.scale (20000))))
e = begin ({"command": SCRIPT})
got, times = follow (e, 40)
d.ok ("who leaves and comes back, again and again, misses no byte",
      got == want.hexdigest (), (got, times))
results = []
threads = [threading.Thread (target=lambda: results.append (follow (e, 300)))
           for _ in range (8)]
for t in threads:
    t.start ()
for t in threads:
    t.join ()
d.ok ("nor do eight at a time", [r[0] for r in results]
      == [want.hexdigest ()] * 8, results)

# Nobody reads: it goes on, and its end is known.
e = begin ({"command": "yes x | head -c 3000000; exit 4"})
d.equal ("without a reader it ends as well", ended (e)["status"], 4)
d.equal ("and all is there", len (ask ("GET", "/%s/stdout" % e,
                                       keep=False).body), 3000000)

# Those who vanish in the middle leave nothing.
before = d.descriptors (server.pid)
e = begin ({"command": "while :; do echo x; sleep 0.01; done"})
for _ in range (20):
    s = server.raw ()
    s.sendall (("GET %s/%s/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
                % (BASE, e)).encode ())
    s.recv (100)
    s.setsockopt (socket.SOL_SOCKET, socket.SO_LINGER,
                  struct.pack ("ii", 1, 0))
    s.close ()
ask ("POST", "/%s/signal" % e, {"signal": "KILL"})
ended (e)
d.ok ("clients that vanish leave no descriptor behind",
      d.soon (lambda: d.descriptors (server.pid) <= before),
      (before, d.descriptors (server.pid)))

many = [begin ({"command": "sleep 0.2; echo %d" % i}) for i in range (60)]
ends = [events (x) for x in many]
wrong = [(many[i], x) for i, x in enumerate (ends)
         if output (x) != b"%d\n" % i or x[-1].get ("status") != 0]
d.ok ("sixty at once", not wrong, wrong)

# ---- the end of the sandbox ------------------------------------------------

e = begin ({"argv": ["sleep", "600"]})
f = Follower (e, 1, False)
logs = os.path.join (server.home, "state/execs", BOX)
there = os.path.isdir (logs)
server.request ("DELETE", "/api/v1/sandboxes/" + BOX)
f.next ()
f.close ()
d.ok ("its logs go with a sandbox, and who reads sees the end",
      there and not os.path.exists (logs))
d.finish ()
