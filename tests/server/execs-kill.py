# SPDX-License-Identifier: Apache-2.0
"""What is killed with SIGKILL while commands write: the daemon, again and
again, its worker, its keeper; and a disk without room.  No byte is lost or
doubled, each end is known."""

import base64
import hashlib
import json
import os
import random
import signal
import subprocess
import time

import daemon as d

d.needs_sandbox ()
rng = random.Random (11)


def base (box):
    return "/api/v1/sandboxes/%s/execs" % box


def box_new (server):
    r = server.request ("POST", "/api/v1/sandboxes", {"ttl": "1h"})
    assert r.status == 201, r
    return r.json ()["id"]


def begin (server, box, body):
    r = server.request ("POST", base (box), body)
    assert r.status == 201, r
    return r.json ()["exec"]


def info (server, box, exec):
    return server.request ("GET", "%s/%s" % (base (box), exec),
                           keep=False).json ()


def ended (server, box, exec):
    return d.soon (lambda: (lambda i: i if i["state"] != "running" else None) (
        info (server, box, exec)))


def events (server, box, exec, seq):
    r = server.request ("GET", "%s/%s/events?from=%d" % (base (box), exec, seq),
                        keep=False)
    return [json.loads (line) for line in r.body.splitlines ()]


def data (e):
    return (e["data"].encode () if e["encoding"] == "utf-8"
            else base64.b64decode (e["data"]))


def follow (server, box, exec, seen):
    """Adds what there is now to what was seen; whether it ended."""
    s = server.raw ()
    s.sendall (("GET %s/%s/events?from=%d&follow=0 HTTP/1.0\r\nHost: localhost"
                "\r\n\r\n" % (base (box), exec, len (seen) + 1)).encode ())
    f = s.makefile ("rb")
    while f.readline () not in (b"\r\n", b""):
        pass
    for line in f:
        if line.endswith (b"\n"):
            seen.append (json.loads (line))
    f.close ()
    s.close ()
    return bool (seen) and seen[-1]["event"] == "exited"


def whole (seen, stream):
    return b"".join (data (e) for e in seen if e["event"] == "output"
                     and e["stream"] == stream)


def numbered (seen):
    return [e["seq"] for e in seen] == list (range (1, len (seen) + 1))


def numbers (n):
    return b"".join (b"%d\n" % i for i in range (n))


def children (pid, name):
    return [p for p in d.below (pid) if name in d.command_line (p)]


def keepers ():
    return [p for p in d.below (os.getpid ())
            if "coffer-keeper" in d.command_line (p)]


# ---- the daemon ------------------------------------------------------------

server = d.Daemon ().start ()
box = box_new (server)
LINES = d.scale (30000)
count = "i=0; while [ $i -lt %d ]; do echo $i; i=$((i+1)); done" % LINES
fast = begin (server, box, {"command": count})
both = begin (server, box, {
    "command": "i=0; while [ $i -lt 300 ]; do echo $i; echo $i >&2;"
    " i=$((i+1)); sleep 0.005; done; exit 9"})
fed = begin (server, box, {"argv": ["cat"], "stdin": True})
tty = begin (server, box, {"command": "i=0; while [ $i -lt 300 ]; do echo $i;"
                           " i=$((i+1)); sleep 0.005; done", "tty": True})
seen = {e: [] for e in (fast, both, tty)}
for _ in range (6):
    for e in seen:
        if not seen[e] or seen[e][-1]["event"] != "exited":
            follow (server, box, e, seen[e])
    time.sleep (rng.random () / 10)
    server.stop (signal.SIGKILL)
    time.sleep (rng.random () / 20)
    server.start ()
for e in seen:
    d.soon (lambda: follow (server, box, e, seen[e]))
d.ok ("what one wrote meanwhile is whole", whole (seen[fast], "stdout")
      == numbers (LINES), len (whole (seen[fast], "stdout")))
d.ok ("of another both streams", whole (seen[both], "stdout")
      == whole (seen[both], "stderr") == numbers (300))
d.ok ("and of one on a terminal", whole (seen[tty], "stdout")
      == numbers (300).replace (b"\n", b"\r\n"),
      whole (seen[tty], "stdout")[-60:])
d.ok ("numbers of events have no gap", all (numbered (s)
                                            for s in seen.values ()))
d.equal ("their ends are known", [seen[e][-1]["status"] for e in seen],
         [0, 9, 0])
r = server.request ("POST", "%s/%s/stdin" % (base (box), fed), b"still\n")
server.request ("POST", "%s/%s/stdin/close" % (base (box), fed))
d.equal ("one that reads is fed on", (r.status, whole (
    events (server, box, fed, 1), "stdout")), (200, b"still\n"))

# Over while nobody is there.
e = begin (server, box, {"command": "sleep 0.3; yes 0123456 | head -c 100000;"
                         " echo end >&2; exit 5"})
server.stop (signal.SIGKILL)
time.sleep (1)
server.start ()
got = ended (server, box, e)
lines = events (server, box, e, 1)
d.equal ("what ends while no daemon is there is whole as well",
         (got and got["status"], len (whole (lines, "stdout")),
          whole (lines, "stderr")), (5, 100000, b"end\n"))
e = begin (server, box, {"command": "yes 0123456 | head -c 3000000; exit 6"})
server.stop (signal.SIGKILL)
time.sleep (0.3)
server.start ()
got = ended (server, box, e)
d.equal ("what is more than a pipe waits for the next one", (got["status"], got["stdout"]["bytes"],
                              got["stdout"]["dropped"]), (6, 3000000, 0))
got = server.request ("GET", "%s/%s/stdout" % (base (box), e), keep=False).body
d.equal ("byte by byte", hashlib.sha256 (got).hexdigest (),
         hashlib.sha256 (b"0123456\n" * 375000).hexdigest ())

# In order: those in the background go on too.
e = begin (server, box, {"command": "sleep 0.5; echo on; exit 3"})
server.stop ()
server.start ()
d.equal ("a daemon that ends in order leaves them running",
         ended (server, box, e)["status"], 3)

# ---- what it has besides ---------------------------------------------------

e = begin (server, box, {"command": "i=0; while [ $i -lt 300 ]; do echo $i;"
                         " i=$((i+1)); sleep 0.003; done; exit 4"})
for _ in range (3):
    for pid in children (server.pid, "coffer-worker"):
        os.kill (pid, signal.SIGKILL)
    time.sleep (0.2)
got = ended (server, box, e)
d.equal ("a worker that is killed takes no command with it",
         (got["status"], whole (events (server, box, e, 1), "stdout")),
         (4, numbers (300)))

e = begin (server, box, {"command": "i=0; while [ $i -lt 300 ]; do echo $i;"
                         " i=$((i+1)); sleep 0.005; done; exit 7"})
old = keepers ()
for pid in old:
    os.kill (pid, signal.SIGKILL)
d.ok ("another keeper takes the place of one that is killed",
      d.soon (lambda: keepers () and not set (keepers ()) & set (old)),
      (old, keepers ()))
server.stop (signal.SIGKILL)
server.start ()
got = ended (server, box, e)
d.equal ("and holds what that one held",
         (got["status"], whole (events (server, box, e, 1), "stdout")),
         (7, numbers (300)))

# ---- sandboxes, and those that are gone ------------------------------------

gone = box_new (server)
begin (server, gone, {"argv": ["sleep", "600"]})
server.stop (signal.SIGKILL)
server.coffer ("sandbox", "kill", gone)
server.start ()
listed = [s["id"] for s in server.request (
    "GET", "/api/v1/sandboxes").json ()["sandboxes"]]
d.equal ("what was ended meanwhile is gone, the rest is there", listed, [box])
d.ok ("and so are its logs", not os.path.exists (
    os.path.join (server.home, "state/execs", gone)))
server.request ("DELETE", "/api/v1/sandboxes/" + box)

# ---- no room ---------------------------------------------------------------

if os.geteuid () == 0 and subprocess.run (
        ["unshare", "-m", "true"], capture_output=True).returncode == 0:
    full = d.Daemon (wrap=["unshare", "-m", "sh", "-c", """
        mkdir -p -m 700 "$COFFER_HOME/state/execs"
        mount -t tmpfs -o size=1m,mode=700 logs "$COFFER_HOME/state/execs"
        exec "$@" """, "sh"]).start ()
    box = box_new (full)
    e = begin (full, box, {"command": "yes 0123456 | head -c 4000000;"
                           " echo last >&2; exit 8"})
    got = ended (full, box, e)
    kept = got["stdout"]["bytes"]
    d.ok ("on a full disk a command ends and its end is known",
          got["status"] == 8 and 0 < kept < 1 << 20
          and kept + got["stdout"]["dropped"] == 4000000, got)
    lines = events (full, box, e, 1)
    d.equal ("what was kept is the beginning, what was not is said",
             (whole (lines, "stdout"),
              sum (x["bytes"] for x in lines if x["event"] == "dropped"
                   and x["stream"] == "stdout")),
             ((b"0123456\n" * 500000)[:kept], 4000000 - kept))
    r = full.request ("POST", base (box) + "?wait=1", {"argv": ["/bin/true"]})
    d.equal ("what is awaited needs no room", (r.status, r.json ()["status"]),
             (200, 0))
    r = full.request ("POST", base (box), {"argv": ["/bin/true"]})
    d.ok ("one more in the background is an error, or fits", r.status in (201,
          500) and (r.status == 201 or r.code () == "E9001"), repr (r))
    full.request ("DELETE", "/api/v1/sandboxes/" + box)
    box = box_new (full)
    e = begin (full, box, {"command": "yes x | head -c 100000"})
    d.equal ("once there is room again all is kept",
             ended (full, box, e)["stdout"], {"bytes": 100000, "dropped": 0})
    full.request ("DELETE", "/api/v1/sandboxes/" + box)
else:
    d.skip ("a full disk", "the right to mount")
d.finish ()
