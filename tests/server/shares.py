# SPDX-License-Identifier: Apache-2.0
"""What all tenants share: one that takes all it can leaves something to the
others, and is told which share it has used up."""

import json
import re

import daemon as d

d.needs_sandbox ()
server = d.Daemon ({"limits": {
    "connections": 48, "runs": 1, "queue": 4, "queue_time": "60s", "keys": 16,
    "commands": 8, "exec_log": "64MiB", "exec_logs": "4MiB", "output": "4MiB"}})
server.configure ()
red = server.token ("red", "run", "red")
blue = server.token ("blue", "run", "blue")
server.start ()


def ask (token, method, path, body=None, **kw):
    return server.request (method, path, body, token=token, over="tcp", **kw)


def made (token):
    r = ask (token, "POST", "/api/v1/sandboxes", {"ttl": "10m"})
    if r.status != 201:
        raise RuntimeError ("no sandbox: %r" % r)
    return "/api/v1/sandboxes/" + r.json ()["id"]


def begin (token, method, target, body=b""):
    """A request whose reply nobody reads yet."""
    s = server.raw ("tcp")
    s.sendall (("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                "Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
                % (method, target, token, len (body))).encode () + body)
    return s


def rest (s):
    out = b""
    while True:
        part = s.recv (65536)
        if not part:
            s.close ()
            return out
        out += part


def refused (what, reply, share):
    error = reply.json ().get ("error", {}) if reply.status == 429 else {}
    d.ok (what, error.get ("details", {}).get ("share") == share
          and reply.header ("Retry-After"), repr (reply))


theirs, ours = made (red), made (blue)

# ---- transfers: 32 of all, 16 of one that others are beside

ask (red, "POST", theirs + "/execs?wait=1",
     {"command": "head -c 33554432 /dev/zero >big"})
ask (blue, "PUT", ours + "/files/mine", b"blue")
slow = [begin (red, "GET", theirs + "/files/big") for _ in range (20)]
began = [s for s in slow[:16] if s.recv (1)]
d.equal ("sixteen transfers begin", len (began), 16)
r = ask (blue, "GET", ours + "/files/mine")
d.equal ("and another tenant's do not wait for them to end",
         (r.status, r.body), (200, b"blue"))
for s in slow:
    s.close ()

# ---- commands in the background

cats = [ask (red, "POST", theirs + "/execs", {"argv": ["cat"], "stdin": True})
        for _ in range (5)]
d.equal ("half of the commands are one tenant's", [r.status for r in cats[:4]],
         [201] * 4)
refused ("no more are", cats[4], "commands")
r = ask (blue, "POST", ours + "/execs", {"argv": ["cat"], "stdin": True})
d.equal ("and another's runs beside them", r.status, 201)
watched = theirs + "/execs/" + cats[0].json ()["exec"]

# ---- requests at work

streams = [begin (red, "GET", watched + "/events") for _ in range (24)]
for s in streams:
    s.recv (1)
refused ("half of the requests are one tenant's",
         ask (red, "GET", watched), "requests")
r = ask (blue, "GET", ours)
d.equal ("another is served", r.status, 200)
r = server.request ("GET", "/healthz", over="tcp", token=red)
d.equal ("and whoever asks whether the daemon is well", r.status, 200)
for s in streams:
    s.close ()


def let_go ():
    return ask (red, "GET", watched, keep=False).status == 200


d.ok ("who leaves makes room", d.soon (let_go))
for r in cats[:4]:
    ask (red, "POST", theirs + "/execs/%s/signal" % r.json ()["exec"],
         {"signal": 9})

# ---- logs: 4 MiB of all


def logged (token, box, size):
    r = d.soon (lambda: (lambda r: r.status == 201 and r) (
        ask (token, "POST", box + "/execs",
             {"command": "head -c %d /dev/zero" % size})))
    if not r:
        return None
    path = box + "/execs/" + r.json ()["exec"]
    rest (begin (token, "GET", path + "/events"))
    return ask (token, "GET", path).json ()


got = logged (red, theirs, 8 << 20)
d.ok ("half of the room for logs is one tenant's, and the rest is counted",
      got and got["stdout"]["bytes"] <= 2 << 20
      and got["stdout"]["bytes"] + got["stdout"]["dropped"] == 8 << 20,
      repr (got))
refused ("it begins no other", ask (red, "POST", theirs + "/execs",
                                    {"command": "echo"}), "logs")
got = logged (blue, ours, 500000)
d.ok ("another's is whole", got and got["stdout"]["bytes"] == 500000
      and got["stdout"]["dropped"] == 0, repr (got))

# ---- output that is waited for: 4 MiB of all

much = json.dumps ({"command": "head -c 3000000 /dev/zero;"
                               " head -c 3000000 /dev/zero >&2;"
                               " until [ -e go ]; do sleep 0.1; done"}).encode ()
held = []
for i in range (40):
    r = ask (red, "POST", theirs + "/execs?wait=1", {"command": "echo"},
             keep=False)
    if r.status != 200:
        break
    held.append (begin (red, "POST", theirs + "/execs?wait=1", much))
refused ("half of the memory is one tenant's", r, "output")
r = ask (blue, "POST", ours + "/execs?wait=1",
         {"command": "head -c 100000 /dev/zero"})
d.ok ("another's output is whole", r.status == 200
      and r.json ()["stdout"]["bytes"] == 100000
      and "omitted" not in r.json ()["stdout"], repr (r))
ask (red, "PUT", theirs + "/files/go", b"")
replies = [json.loads (rest (s).split (b"\r\n\r\n", 1)[1]) for s in held]
d.ok ("what did not fit is counted", all (
    r.get ("error", {}).get ("details") == {"share": "output"}
    or all (r[s]["bytes"] == 3000000 and r[s]["omitted"]["bytes"] > 1900000
            for s in ("stdout", "stderr")) for r in replies), replies)
d.ok ("and it is given back", d.soon (lambda: ask (
    red, "POST", theirs + "/execs?wait=1", {"command": "echo"},
    keep=False).status == 200))

# ---- keys: 16 of all


def keyed (token, box, key):
    return ask (token, "POST", box + "/extend", {"ttl": "10m"},
                headers={"Idempotency-Key": key}, keep=False)


first = keyed (red, theirs, "first")
for i in range (40):
    keyed (blue, ours, "k%d" % i)
r = keyed (red, theirs, "first")
d.equal ("another's keys push none out",
         (r.status, r.header ("Idempotency-Replayed"), r.body),
         (200, "true", first.body))
r = keyed (blue, ours, "k0")
d.equal ("but its own", (r.status, r.header ("Idempotency-Replayed")),
         (200, None))

# ---- the queue: one runs, four wait


def queue ():
    text = ask (red, "GET", "/metrics", keep=False).body.decode ()
    return [int (re.search (r"^coffer_runs_%s (\d+)" % what, text, re.M)[1])
            for what in ("running", "waiting")]


def run (token, code):
    return begin (token, "POST", "/execute",
                  json.dumps ({"code": code, "timeout": 30}).encode ())


def has_queue (*want):
    return d.soon (lambda: queue () == list (want))


endless = run (red, "while True: pass")
has_queue (1, 0)
waits = run (red, "print ('red')"), run (red, "print ('red')")
d.ok ("two of one tenant wait", has_queue (1, 2), queue ())
refused ("no more do", ask (red, "POST", "/execute", {"code": "1"}), "queue")
next_one = run (blue, "while True: pass")
d.ok ("another's does", has_queue (1, 3), queue ())
endless.close ()
d.ok ("and is the next, though it came last", d.soon (
    lambda: queue () == [1, 2]) and not any (
        d.select.select (waits, [], [], 0)[0] for _ in (1,)), queue ())
next_one.close ()
d.equal ("then come the others", [rest (s).split ()[1] for s in waits],
         [b"200", b"200"])
for token, box in ((red, theirs), (blue, ours)):
    ask (token, "DELETE", box)
d.equal ("it ends when it is told to", server.stop (), 0)
d.finish ()
