# SPDX-License-Identifier: Apache-2.0
"""Sandboxes through the daemon: made, listed, looked at, extended, paused,
ended; and requests that are sent twice."""

import json
import os
import threading

import daemon as d

BASE = "/api/v1/sandboxes"

d.needs_sandbox ()
server = d.Daemon ().start ()


def ask (method, path="", body=None, **kw):
    return server.request (method, BASE + path, body, **kw)


def refused (what, reply, status, code, *words):
    text = reply.body.decode ("utf-8", "replace")
    d.ok (what, reply.status == status and reply.code () == code
          and all (w in text for w in words), repr (reply))


def cli (*args):
    r = server.coffer (*args, "--json")
    return json.loads (r.stdout)


def timeless (info):
    """The end is a time of another clock, and some ns off each time."""
    return {k: v for k, v in info.items () if k != "expires_ns"}


# ---- making ----------------------------------------------------------------

LIMITS = {"limit.memory": ("memory", "memory_bytes"),
          "limit.cpu": ("cpus", "cpu_millis"), "limit.pids": ("pids",)}
without = set ()


def make (body):
    """Without the limits that nothing keeps here: an ordinary user may have no
    control groups."""
    r = ask ("POST", "", body)
    while r.code () == "E8010":
        lacks = r.json ()["error"]["details"]["capability"]
        for key in LIMITS[lacks]:
            body.pop (key, None)
        without.add (lacks)
        r = ask ("POST", "", body)
    return r


def unless (lacks, value):
    return None if lacks in without else value


r = make ({"ttl": "10m", "memory": "256M", "pids": 64,
           "env": {"GREETING": "hello 你好"},
           "metadata": {"color": "blue", "n": "1"},
           "workdir": "/tmp"})
d.ok ("one is made", r.status == 201, repr (r))
first = r.json ()
one = first["id"]
d.equal ("its place is said", r.header ("Location"), BASE + "/" + one)
d.equal ("with the keys that the command line prints", sorted (first),
         sorted (["id", "provider", "native_id", "state", "created_ns",
                  "expires_ns", "applied"]))
info = ask ("GET", "/" + one).json ()
d.equal ("sizes of either form are bytes",
         (info["spec"].get ("memory_bytes"), info["spec"]["ttl_ms"]),
         (unless ("limit.memory", 256 << 20), 600000))
d.equal ("metadata is kept", info["spec"]["metadata"], ["color=blue", "n=1"])
d.ok ("values of variables are not", "hello" not in json.dumps (info),
      info)
d.equal ("the command line sees the same",
         timeless (cli ("sandbox", "info", one)), timeless (info))
r = ask ("POST", "/%s/execs?wait=1" % one, {
    "command": "echo \"$GREETING\"; pwd"})
d.equal ("what was asked for holds inside", r.json ()["stdout"]["data"],
         "hello 你好\n/tmp\n")
r = make ({"memory_bytes": 64 << 20, "cpus": 0.5, "ttl_ms": 60000,
           "env": ["A=b"], "ports": [8080, "80"]})
two = r.json ()["id"]
d.ok ("and in the units that info prints", r.status == 201, repr (r))
spec = ask ("GET", "/" + two).json ()["spec"]
d.equal ("as they were said", (spec.get ("cpu_millis"), spec["ports"]),
         (unless ("limit.cpu", 500), ["8080", "80"]))

# ---- what is refused -------------------------------------------------------

for what, body, word in (
        ("a field that is not known", {"memry": 1}, "memry"),
        ("a field that is the daemon's", {"tenant": "x"}, "tenant"),
        ("another", {"ephemeral": True}, "ephemeral"),
        ("a size that is none", {"memory": "lots"}, "memory"),
        ("one below zero", {"memory_bytes": -1}, "memory_bytes"),
        ("a number said twice", {"ttl": "1m", "ttl_ms": 60000}, "ttl"),
        ("one out of range", {"pids": 99999999}, "pids"),
        ("a network that is none", {"network": "wifi"}, "network"),
        ("a list that is a text", {"allow": "x:1"}, "allow"),
        ("a variable without a name", {"env": {"": "x"}}, "env"),
        ("a NUL", {"workdir": {"b64": "L2EAYg=="}}, "workdir")):
    refused (what, ask ("POST", "", body), 422, "E2001", word)
r = ask ("POST", "", {"memry": 1})
d.ok ("with the nearest name", "memory" in r.json ()["error"]["hint"], repr (r))
refused ("a body that is no object", ask ("POST", "", [1]), 400, "E7005")
refused ("a provider that isolates nothing",
         ask ("POST", "", {"provider": "host"}), 403, "E5001")
refused ("a folder of the host",
         ask ("POST", "", {"mounts": [{"source": "/usr", "target": "/x"}]}),
         403, "E5001", "/usr")

# ---- listing ---------------------------------------------------------------

three = ask ("POST", "", {"metadata": {"color": "red"}}).json ()["id"]
listed = ask ("GET").json ()
d.equal ("all are listed, in the order of their making",
         [s["id"] for s in listed["sandboxes"]], [one, two, three])
d.equal ("as the command line lists them",
         [timeless (s) for s in listed["sandboxes"]],
         [timeless (s) for s in cli ("sandbox", "list")])
d.ok ("a whole list has no next", "next" not in listed, listed)
page = ask ("GET", "?limit=2").json ()
d.equal ("a page says what is next",
         ([s["id"] for s in page["sandboxes"]], page["next"]),
         ([one, two], two))
page = ask ("GET", "?limit=2&after=" + page["next"]).json ()
d.equal ("the last page", ([s["id"] for s in page["sandboxes"]],
                           "next" in page), ([three], False))
for what, query, want in (("by metadata", "metadata=color=blue", [one]),
                          ("by two of them",
                           "metadata=color=blue&metadata=n=1", [one]),
                          ("by state", "state=running", [one, two, three]),
                          ("by another", "state=paused", []),
                          ("by provider", "provider=linux",
                           [one, two, three])):
    got = [s["id"] for s in ask ("GET", "?" + query).json ()["sandboxes"]]
    d.equal (what, got, want)
for query in ("limit=0", "limit=x", "after=x", "metadata=x",
              "&".join (["metadata=n=1"] * 17)):
    refused ("?" + query, ask ("GET", "?" + query), 400, "E7005")

# ---- its life --------------------------------------------------------------

before = ask ("GET", "/" + two).json ()["expires_ns"]
r = ask ("POST", "/%s/extend" % two, {"ttl": "30m"})
d.ok ("it is extended", r.status == 200
      and r.json ()["expires_ns"] > before + 60 * 10 ** 9, repr (r))
refused ("to what is too long",
         ask ("POST", "/%s/extend" % two, {"ttl_ms": 10 ** 14}), 422, "E2001")
refused ("without a time", ask ("POST", "/%s/extend" % two, {}), 422, "E2001")
r = ask ("POST", "/%s/pause" % two)
d.equal ("it is paused", (r.status, r.json ()["state"]), (200, "paused"))
d.equal ("as its state says",
         [s["id"] for s in ask ("GET", "?state=paused").json ()["sandboxes"]],
         [two])
refused ("a paused one runs nothing",
         ask ("POST", "/%s/execs?wait=1" % two, {"argv": ["/bin/true"]}),
         409, "E2003")
r = ask ("POST", "/%s/resume" % two)
d.equal ("it goes on", (r.status, r.json ()["state"]), (200, "running"))
r = ask ("DELETE", "/" + two)
d.equal ("it is ended", (r.status, r.json ()),
         (200, {"id": two, "already_gone": False}))
for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/pause"),
                     ("GET", "/execs")):
    refused ("%s %s of what is gone" % (method, path),
             ask (method, "/" + two + path), 404, "E2009")
refused ("an id that is none", ask ("GET", "/sb-x"), 404, "E2009")

# ---- sent twice ------------------------------------------------------------


def keyed (key, body, method="POST", path=""):
    return ask (method, path, body, headers={"Idempotency-Key": key})


def count ():
    return len (ask ("GET").json ()["sandboxes"])


had = count ()
r = keyed ("k1", {"ttl": "5m"})
again = keyed ("k1", {"ttl": "5m"})
d.ok ("the same request again gets the same reply",
      r.status == 201 and again.body == r.body
      and again.header ("Location") == r.header ("Location")
      and again.header ("Idempotency-Replayed") == "true", repr (again))
d.equal ("and is not done again", count (), had + 1)
refused ("another request with the key", keyed ("k1", {"ttl": "6m"}), 422,
         "E5004")
refused ("a key that is none", keyed ("x y", {}), 400, "E7005")
refused ("one that is too long", keyed ("x" * 256, {}), 400, "E7005")
made = r.json ()["id"]
r = keyed ("k2", {"memry": 1})
d.equal ("what was refused is tried again", keyed ("k2", {"memry": 1}).status,
         422)
r = keyed ("k3", None, "DELETE", "/" + made)
d.ok ("an end that is sent twice is one",
      keyed ("k3", None, "DELETE", "/" + made).body == r.body
      and r.status == 200, repr (r))

replies = []


def at_once ():
    replies.append (keyed ("k4", {"ttl": "5m"}))


had = count ()
threads = [threading.Thread (target=at_once) for _ in range (8)]
for t in threads:
    t.start ()
for t in threads:
    t.join ()
d.ok ("eight at once are one", count () == had + 1
      and {r.status for r in replies} <= {201, 409}
      and len ({r.json ()["id"] for r in replies if r.status == 201}) == 1,
      replies)
kept = keyed ("k4", {"ttl": "5m"})

server.stop (9)
server.start ()
again = keyed ("k4", {"ttl": "5m"})
d.ok ("also by a daemon that was started anew",
      again.body == kept.body and again.status == 201, repr (again))
refused ("and for another request it is refused there", keyed ("k4", {}), 422,
         "E5004")

# A daemon that died after the making and before the answer: what it noted is
# there, what it would have said is not.
folder = os.path.join (server.home, "state/idempotency")
for name in os.listdir (folder):
    path = os.path.join (folder, name)
    note = json.load (open (path))
    if note.get ("sandbox") == kept.json ()["id"]:
        for key in ("status", "type", "place", "body"):
            del note[key]
        json.dump (note, open (path, "w"))
part = os.path.join (folder, "." + 64 * "a")
open (part, "w").close ()
os.utime (part, (1, 1))
server.stop (9)
server.start ()
d.ok ("what was left of a note that was being written is gone",
      not os.path.exists (part))
had = count ()
again = keyed ("k4", {"ttl": "5m"})
d.ok ("what was made and not answered is found by its key",
      again.status == 201 and again.json ()["id"] == kept.json ()["id"]
      and count () == had, repr (again))

d.finish ()
