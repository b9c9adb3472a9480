# SPDX-License-Identifier: Apache-2.0
"""Requests made from the document, with a seed: good ones, bad ones, and some
that are no requests.  Each is answered as the document says and with no fault;
afterwards the daemon is alive, with as many descriptors as before.

  DRIVER_SEED=N     the seed, which is printed
  DRIVER_ROUNDS=N   rounds over all operations; CHECK_SCALE multiplies"""

import json
import os
import random
import time
from urllib.parse import quote

import daemon as d
from shapes import Shapes, WORDS

SECONDS = 4                     # of driving, times CHECK_SCALE

# What would run for minutes, or take the provider away that all others need.
SLOW = ("kit",)
FAULTS = (500,)

seed = int (os.environ.get ("DRIVER_SEED") or random.SystemRandom ()
            .randrange (1 << 31))
d.note ("seed %d" % seed)
rng = random.Random (seed)


class Driver:
    def __init__ (self, server):
        self.server = server
        self.document = d.Document ()
        self.shapes = Shapes (self.document, rng)
        self.sandbox = self.execs = None
        self.seen = {}
        self.replies = []
        self.wrong = []
        self.count = 0

    # ---- one request ---------------------------------------------------

    def fresh (self):
        """A sandbox with a command and a file, for what needs some."""
        r = self.server.request ("POST", "/api/v1/sandboxes",
                                 {"ttl_ms": 600000})
        if r.status >= 300:
            raise RuntimeError ("no sandbox: %r" % r)
        self.sandbox = r.json ()["id"]
        base = "/api/v1/sandboxes/" + self.sandbox
        r = self.server.request ("POST", base + "/execs",
                                 {"argv": ["/bin/sleep", "30"],
                                  "background": True})
        self.exec = r.json ().get ("exec", "none") if r.status < 300 else "none"
        self.server.request ("PUT", base + "/files/workspace/a.txt", b"hello")

    def parameter (self, p):
        name = p["name"]
        if rng.random () < 0.15:
            return rng.choice (WORDS) or "x"
        known = {"sandbox": self.sandbox, "id": self.sandbox,
                 "exec": self.exec, "path": "workspace/a.txt"}
        if p["in"] == "path" and name in known:
            return known[name]
        value = self.shapes.good (p["schema"])
        if isinstance (value, bool):
            return "1" if value else "0"
        return str (value)

    def target (self, operation):
        path, query = operation.path, []
        for p in operation.parameters:
            if p["in"] == "path":
                value = quote (self.parameter (p).encode ("utf-8",
                                                          "surrogatepass"),
                               safe="/" if p["name"] == "path" else "")
                path = path.replace ("{%s}" % p["name"], value)
            elif p["in"] == "query" and (p.get ("required")
                                         or rng.random () < 0.4):
                query.append ("%s=%s" % (p["name"], quote (
                    self.parameter (p).encode ("utf-8", "surrogatepass"),
                    safe="")))
        return path + ("?" + "&".join (query) if query else "")

    def body (self, operation):
        content = operation.body ().get ("content", {})
        if not content:
            return None, {}
        kind = rng.choice (list (content))
        headers = {"Content-Type": kind}
        if kind != "application/json":
            return rng.choice ((b"", b"hello\n", bytes (range (256)),
                                b"x" * 70000)), headers
        schema = content[kind]["schema"]
        which = rng.random ()
        if which < 0.5:
            value = self.shapes.good (schema)
        elif which < 0.9:
            value = self.shapes.bad (schema)
        else:
            return rng.choice ((b"", b"{", b"\xff\xfe", b"[" * 40, b"nul",
                                b'{"a":1,"a":2}', b'{"a":"\\u0000"}')), headers
        return json.dumps (value).encode (), headers

    def one (self, operation):
        body, headers = self.body (operation)
        if operation.method in ("POST", "PUT", "DELETE") \
           and rng.random () < 0.1:
            headers["Idempotency-Key"] = "k%d" % rng.randrange (20)
        target = self.target (operation)
        try:
            reply = self.server.request (operation.method, target, body,
                                         headers, keep=False)
        except Exception as e:          # whatever it is, it is a finding
            self.wrong.append ("%s %s: %s %s" % (
                operation.method, target, type (e).__name__, e))
            return
        self.count += 1
        self.seen.setdefault (operation.id, set ()).add (reply.status)
        if len (self.replies) < 2000:
            self.replies.append ((operation, reply))
        why = self.shapes.reply_wrong (operation, reply)
        if reply.status in FAULTS:
            why = "a fault"
        if not reply.header ("X-Request-Id"):
            why = why or "no X-Request-Id"
        if why:
            self.wrong.append ("%s\n  %r\n  sent %r" % (why, reply, body))

    # ---- all of them ---------------------------------------------------

    def usable (self):
        return [o for o in self.document.operations
                if not any (w in o.path for w in SLOW)
                and "x-streams" not in o.value]

    def drive (self):
        end = time.monotonic () + min (120, SECONDS * d.scale (1)) / 2
        operations = self.usable ()
        self.fresh ()
        while time.monotonic () < end and len (self.wrong) < 10:
            rng.shuffle (operations)
            for operation in operations:
                self.one (operation)
                if time.monotonic () > end:
                    break
            self.renew ()

    def renew (self):
        listed = self.server.request ("GET", "/api/v1/sandboxes?limit=500",
                                      keep=False).json ()["sandboxes"]
        for s in listed:
            if s["id"] != self.sandbox:
                self.server.request ("DELETE",
                                     "/api/v1/sandboxes/" + s["id"],
                                     keep=False)
        if self.sandbox not in [s["id"] for s in listed]:
            self.fresh ()


def clear (server):
    for s in server.request ("GET", "/api/v1/sandboxes?limit=500").json () \
            ["sandboxes"]:
        server.request ("DELETE", "/api/v1/sandboxes/" + s["id"])


def main ():
    d.needs_sandbox ()
    server = d.Daemon ({"limits": {"runs": 8, "queue": 64}}).start ()
    server.request ("POST", "/execute", {"code": "print(1)"})
    driver = Driver (server)
    driver.drive ()             # what is opened once is open now
    clear (server)
    d.soon (lambda: False, 0.5)
    before = d.held (server.pid)
    driver.drive ()
    d.note ("%d requests, %d operations of %d" % (
        driver.count, len (driver.seen), len (driver.usable ())))
    d.ok ("each is answered as the document says", not driver.wrong,
          "\n".join (driver.wrong[:10]))
    said = driver.shapes.judge (driver.replies)
    if said is None:
        d.skip ("and so says ajv", "the packages of tests/server/npm")
    else:
        d.ok ("and so says ajv", len (said) == 1
              and not said[0].startswith ("0 "), "\n".join (said[:10]))
    d.ok ("every operation was tried",
          len (driver.seen) == len (driver.usable ())
          or driver.wrong, ", ".join (
              o.id for o in driver.usable () if o.id not in driver.seen))
    d.ok ("the daemon is alive", server.alive (), server.said ())
    clear (server)

    def settled ():
        return len (d.held (server.pid)) <= len (before)
    d.ok ("its descriptors are as many as before", d.soon (settled),
          d.more (before, d.held (server.pid)))
    d.equal ("it ends when it is told to", server.stop (), 0)
    d.finish ()


main ()
