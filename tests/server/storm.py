# SPDX-License-Identifier: Apache-2.0
"""Everything at once, from several clients, some of which leave in the middle:
for the thread sanitizer, and for whatever else notices.

  STORM_SECONDS=N   4, times CHECK_SCALE, at most 120"""

import http.client
import json
import os
import random
import signal
import threading
import time

import daemon as d

SECONDS = min (120, int (os.environ.get ("STORM_SECONDS") or d.scale (4)))
CLIENTS = 6
seed = int (os.environ.get ("STORM_SEED") or random.SystemRandom ()
            .randrange (1 << 31))


class Client (threading.Thread):
    def __init__ (self, server, number, end):
        super ().__init__ (daemon=True)
        self.server, self.number, self.end = server, number, end
        self.rng = random.Random (seed * 31 + number)
        self.box = self.command = None
        self.wrong, self.count = [], 0

    def ask (self, method, target, body=None, **kw):
        r = self.server.request (method, target, body, keep=False,
                                 over="unix", **kw)
        self.count += 1
        if r.status == 500:
            self.wrong.append (repr (r))
        return r

    @property
    def base (self):
        return "/api/v1/sandboxes/%s" % (self.box or "sb-none")

    # ---- what is done --------------------------------------------------

    def create (self):
        r = self.ask ("POST", "/api/v1/sandboxes", {"ttl_ms": 120000})
        if r.status < 300:
            if self.box:
                self.ask ("DELETE", self.base)
            self.box = r.json ()["id"]

    def kill (self):
        self.ask ("DELETE", self.base)
        self.box = None

    def look (self):
        self.ask ("GET", self.rng.choice ((
            "/api/v1/sandboxes", self.base, self.base + "/metrics",
            self.base + "/execs", "/healthz", "/metrics", "/profile",
            "/api/v1/errors", "/api/v1/providers", "/api/v1/profiles")))

    def run_one (self):
        self.ask ("POST", self.base + "/execs?wait=1",
                  {"argv": ["/bin/echo", "storm"]})

    def begin (self):
        r = self.ask ("POST", self.base + "/execs", {
            "argv": ["/bin/sh", "-c", "for i in 1 2 3 4 5; do echo $i; done"],
            "background": self.rng.random () < 0.5})
        if r.status < 300:
            self.command = r.json ().get ("exec")

    def follow (self):
        if self.command:
            self.ask ("GET", self.base + "/execs/%s/events?from=0"
                      % self.command, headers={"Accept": self.rng.choice (
                          ("application/x-ndjson",
                           "application/x-coffer-frames"))})

    def write (self):
        self.ask ("PUT", self.base + "/files/workspace/f",
                  b"x" * self.rng.choice ((0, 10, 100000)))

    def read (self):
        self.ask ("GET", self.base + "/files/workspace/f")

    def execute (self):
        self.ask ("POST", "/execute", {"code": self.rng.choice (
            ("print(1)", "1/0", "import subprocess", "x = 1\nx"))})

    def leave (self):
        """In the middle of a reply, or before it."""
        s = self.server.raw ("unix")
        body = json.dumps ({"argv": ["/bin/sleep", "1"]}).encode ()
        s.sendall (b"POST %s/execs?wait=1 HTTP/1.1\r\nHost: localhost\r\n"
                   b"Content-Type: application/json\r\nContent-Length: %d\r\n"
                   b"\r\n" % (self.base.encode (), len (body)) + body)
        time.sleep (self.rng.random () * 0.05)
        s.close ()

    # Two clients share a session, so that they meet in it.
    @property
    def session (self):
        return "/api/v1/box/sessions/storm-%d" % (self.number // 2)

    def box_exec (self):
        self.ask ("POST", "/api/v1/box/exec", {
            "session_id": self.session.rsplit ("/", 1)[1],
            "cmd": "echo storm"})

    def box_begin (self):
        self.ask ("POST", self.session + "/processes", {
            "command": "sh", "args": ["-c", "echo a; read x; echo $x"]})

    def box_talk (self):
        self.ask ("POST", self.session + "/processes/default/stdin", b"on")
        self.ask ("GET", self.session + "/processes/default/log")

    def box_attach (self):
        """And leaves, at once or when there was a line."""
        s = self.server.raw ("unix")
        s.sendall (b"GET %s/processes/default/attach HTTP/1.1\r\nHost: "
                   b"localhost\r\n\r\n" % self.session.encode ())
        if self.rng.random () < 0.5:
            s.recv (1000)
        s.close ()

    def box_socket (self):
        """Says something, and leaves in the middle of what comes back."""
        s = self.server.raw ("unix")
        s.sendall (b"GET %s/processes/default/attach HTTP/1.1\r\nHost: "
                   b"localhost\r\nConnection: Upgrade\r\nUpgrade: websocket"
                   b"\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
                   b"MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n\x81\x82\0\0\0\0on"
                   % self.session.encode ())
        if self.rng.random () < 0.7:
            s.recv (1000)
        s.close ()

    def box_end (self):
        self.ask ("DELETE", self.session + self.rng.choice (
            ("", "/processes/default")))

    def box_look (self):
        self.ask ("GET", "/api/v1/box" + self.rng.choice (
            ("/status", "/sessions", "/errors")))

    def reload (self):
        self.server.process.send_signal (signal.SIGHUP)

    def run (self):
        todo = [self.create, self.look, self.look, self.run_one, self.begin,
                self.follow, self.write, self.read, self.execute, self.leave,
                self.kill, self.reload, self.box_exec, self.box_begin,
                self.box_talk, self.box_attach, self.box_socket, self.box_end,
                self.box_look]
        weights = [2, 6, 6, 4, 3, 3, 2, 2, 1, 1, 1, 1, 2, 2, 2, 2, 2, 1,
                   2]
        try:
            while time.monotonic () < self.end and len (self.wrong) < 3:
                self.rng.choices (todo, weights)[0] ()
        except (OSError, http.client.HTTPException) as e:
            self.wrong.append ("%s: %s" % (type (e).__name__, e))


def main ():
    d.needs_sandbox ()
    d.note ("seed %d, %d s" % (seed, SECONDS))
    server = d.Daemon ({"limits": {"queue": 64}}, tcp=False).start ()
    end = time.monotonic () + SECONDS
    clients = [Client (server, i, end) for i in range (CLIENTS)]
    for c in clients:
        c.start ()
    for c in clients:
        c.join ()
    wrong = sum ((c.wrong for c in clients), [])
    d.note ("%d requests" % sum (c.count for c in clients))
    d.ok ("nothing is answered with a fault", not wrong,
          "\n".join (wrong[:5]) + "\n" + server.said ())
    d.ok ("the daemon is alive and answers", server.alive ()
          and server.answers (), server.said ())
    d.equal ("it ends when it is told to", server.stop (), 0)
    said = server.said (1 << 24)
    d.ok ("and nothing was reported by a sanitizer", "Sanitizer" not in said,
          said[max (0, said.find ("Sanitizer") - 200):][:12000])
    d.finish ()


main ()
