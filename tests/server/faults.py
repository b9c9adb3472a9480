# SPDX-License-Identifier: Apache-2.0
"""What goes wrong under load: workers and the daemon are killed, the disk is
full, descriptors run out, clients are slow, too many, or gone.  Nothing that
was acknowledged is lost, /healthz is answered throughout, and afterwards
memory and descriptors are as before.

CHECK_SCALE multiplies the counts.  FAULTS_CLOCK=1, on a machine with nothing
else to do: /healthz within 50 ms in 99 of 100 cases, and code of half a minute
in time for its client, by the clock."""

import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time

import daemon as d

BY_CLOCK = os.environ.get ("FAULTS_CLOCK") == "1"
MANY = min (1000, d.scale (30))


class Health (threading.Thread):
    """Asks all the time whether the daemon is well."""

    def __init__ (self, server):
        super ().__init__ (daemon=True)
        self.server, self.over = server, threading.Event ()
        self.ms, self.bad = [], []

    def run (self):
        while not self.ms or not self.over.wait (0.01):
            begin = time.monotonic ()
            try:
                r = self.server.request ("GET", "/healthz", keep=False)
                if r.status != 200:
                    self.bad.append (repr (r))
            except Exception as e:
                self.bad.append ("%s: %s" % (type (e).__name__, e))
            self.ms.append ((time.monotonic () - begin) * 1e3)

    def __enter__ (self):
        self.start ()
        return self

    def __exit__ (self, *_):
        self.over.set ()
        self.join ()
        ms = sorted (self.ms) or [0]
        p99 = ms[min (len (ms) - 1, int (len (ms) * 0.99))]
        d.note ("/healthz: %d times, p99 %.1f ms, most %.1f ms" % (
            len (self.ms), p99, ms[-1]))
        d.ok ("/healthz is answered throughout", self.ms and not self.bad,
              "\n".join (self.bad[:5]))
        if BY_CLOCK:
            d.ok ("in less than 50 ms, 99 of 100 times", p99 < 50,
                  "%.1f ms" % p99)


# ---- what is asked for -----------------------------------------------------

def box_new (server, **spec):
    r = server.request ("POST", "/api/v1/sandboxes",
                        dict ({"ttl_ms": 600000}, **spec))
    if r.status >= 300:
        raise RuntimeError ("no sandbox: %r" % r)
    return r.json ()["id"]


def counter_new (server, box, lines=20000):
    """A command that writes numbers, all of which must be there at the end."""
    code = "i=0; while [ $i -lt %d ]; do echo $i; i=$((i+1)); done" % lines
    r = server.request ("POST", "/api/v1/sandboxes/%s/execs" % box,
                        {"argv": ["/bin/sh", "-c", code],
                         "background": True})
    if r.status >= 300:
        raise RuntimeError ("no command: %r" % r)
    return r.json ()["exec"]


def counted (server, box, command, lines=20000):
    """Why the numbers are not all there, or None."""
    r = server.request ("GET", "/api/v1/sandboxes/%s/execs/%s/events?from=0"
                        % (box, command),
                        headers={"Accept": "application/x-ndjson"},
                        timeout=2 * d.PATIENCE, keep=False)
    if r.status != 200:
        return repr (r)
    events = [json.loads (line) for line in r.body.splitlines ()]
    seqs = [e["seq"] for e in events if "seq" in e]
    if seqs != sorted (set (seqs)):
        return "numbers of events that do not rise"
    text = "".join (e.get ("data", "") for e in events
                    if e.get ("stream") == "stdout")
    want = "".join ("%d\n" % i for i in range (lines))
    if text != want:
        return "%d bytes of %d, the end is %r; %r" % (
            len (text), len (want), text[-40:], events[-1:])
    return None


def listed (server):
    r = server.request ("GET", "/api/v1/sandboxes?limit=1000")
    return {s["id"]: s["state"] for s in r.json ()["sandboxes"]}


def workers (server):
    return [p for p in d.below (server.pid)
            if "coffer-worker" in d.command_line (p)
            or "coffer: " in d.command_line (p)]


# ---- the faults ------------------------------------------------------------

def worker_killed (server):
    box = box_new (server)
    command = counter_new (server, box)
    with Health (server):
        for _ in range (d.scale (1) if d.scale (1) < 10 else 10):
            for pid in workers (server):
                try:
                    os.kill (pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

            def again ():
                r = server.request ("GET", "/api/v1/sandboxes/" + box)
                return r.status == 200
            d.ok ("after SIGKILL of the worker its sandbox is found again",
                  d.soon (again))
        why = d.soon (lambda: counted (server, box, command) is None)
    d.ok ("no byte of a command in the background is lost", why,
          counted (server, box, command))
    server.request ("DELETE", "/api/v1/sandboxes/" + box)


def daemon_killed (server):
    boxes = [box_new (server) for _ in range (4)]
    commands = {box: counter_new (server, box) for box in boxes}
    before = set (listed (server))
    server.process.kill ()
    server.process.wait ()
    server.start ()
    now = listed (server)
    d.ok ("a daemon that was killed finds every sandbox again",
          before <= set (now), "lacking: %s" % (before - set (now)))
    for box, command in commands.items ():
        good = d.soon (lambda: counted (server, box, command) is None)
        if not good:
            break
    d.ok ("and every byte of their commands", good,
          counted (server, box, command))
    r = server.request ("POST", "/api/v1/sandboxes/%s/execs?wait=1" % boxes[0],
                        {"argv": ["/bin/echo", "again"]})
    d.ok ("which go on being used", r.status == 200
          and b"again" in r.body, repr (r))
    for box in boxes:
        server.request ("DELETE", "/api/v1/sandboxes/" + box)
    d.ok ("until they are killed", not before & set (listed (server)))


def slow_clients (server):
    """Each sends a header a byte at a time."""
    slow = [server.raw (way) for way in ("unix", "tcp") * 20]
    for s in slow:
        s.setblocking (False)
        s.send (b"GET /healthz HTTP/1.1\r\nX: ")
    with Health (server):
        end = time.monotonic () + d.PATIENCE
        open_ones = set (slow)
        while open_ones and time.monotonic () < end:
            for s in list (open_ones):
                try:
                    s.send (b"x")
                    if s.recv (4096) == b"":
                        open_ones.discard (s)
                except BlockingIOError:
                    pass
                except OSError:
                    open_ones.discard (s)
            time.sleep (0.2)
    d.ok ("who sends a header a byte at a time is hung up on", not open_ones,
          "%d are still there" % len (open_ones))
    for s in slow:
        s.close ()


def many_at_once (server):
    """All are answered: run, or told to come back."""
    body = b'{"code":"print(6*7)","timeout":5}'
    request = (b"POST /execute HTTP/1.1\r\nHost: localhost\r\nConnection: "
               b"close\r\nContent-Type: application/json\r\n"
               b"Content-Length: %d\r\n\r\n" % len (body)) + body
    select = selectors.DefaultSelector ()
    said = {}
    with Health (server):
        for _ in range (MANY):
            s = server.raw ("tcp")
            s.sendall (request)
            s.setblocking (False)
            said[s] = b""
            select.register (s, selectors.EVENT_READ)
        end = time.monotonic () + 120 + MANY
        while select.get_map () and time.monotonic () < end:
            for key, _ in select.select (1):
                s = key.fileobj
                try:
                    more = s.recv (65536)
                except ConnectionResetError:
                    more = b""
                said[s] += more
                if not more:
                    select.unregister (s)
                    s.close ()
    ran = [r for r in said.values () if r.startswith (b"HTTP/1.1 200")]
    # By the queue, or, with more connections than may be, at the door.
    later = [r for r in said.values ()
             if re.match (rb"HTTP/1\.1 (429|503) ", r)]
    other = [r for r in said.values () if r not in ran and r not in later]
    d.note ("%d ran, %d were told to come back" % (len (ran), len (later)))
    d.ok ("%d at once are all answered" % MANY, ran and not other,
          "%d not: %r" % (len (other), other[:2]))
    d.ok ("each that ran has its own output",
          all (b'"42\\n"' in r for r in ran), repr (ran[:1]))
    d.ok ("each that did not is told when to come back",
          all (re.search (rb"\r\nRetry-After: \d+\r\n", r, re.I)
               for r in later))


def runs (server):
    return [p for p in d.below (server.pid)
            if "python" in d.command_line (p)
            and "zygote" not in d.command_line (p)]


def gone_clients (server):
    """What they have started ends with them, not with its timeout."""
    body = b'{"code":"while True: pass","timeout":30}'
    request = (b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
               b"application/json\r\nContent-Length: %d\r\n\r\n"
               % len (body)) + body
    before, which = d.descriptors (server.pid), d.opened (server.pid)
    with Health (server):
        gone = [server.raw (way) for way in ("unix", "tcp") * 3]
        for s in gone:
            s.sendall (request)
        time.sleep (0.3)
        begin = time.monotonic ()
        for s in gone:
            s.close ()
        r = server.request ("POST", "/execute", {"code": "print(6*7)"})
        took = time.monotonic () - begin
    d.ok ("what vanished clients have asked for makes room for others",
          r.status == 200 and r.json ()["stdout"] == "42\n" and took < 25,
          "%.1f s, %r" % (took, r))
    d.ok ("and its descriptors are given back",
          d.soon (lambda: d.descriptors (server.pid) <= before),
          "%d, %d before: %s" % (d.descriptors (server.pid), before,
                                 d.more (which, d.opened (server.pid))))


def few_descriptors ():
    server = d.Daemon ({"limits": {"connections": 1000}},
                       wrap=["prlimit", "--nofile=160:160"]).start ()
    box = box_new (server)
    before, which = d.descriptors (server.pid), d.opened (server.pid)
    idle = []
    for _ in range (300):
        try:
            idle.append (server.raw ("tcp", 5))
        except OSError:
            break
    time.sleep (0.5)
    d.ok ("without descriptors the daemon lives on", server.alive ())
    for s in idle:
        s.close ()
    r = d.soon (lambda: server.answers ())
    d.ok ("and answers when there are some again", r)

    def again ():
        r = server.request ("POST", "/api/v1/sandboxes/%s/execs?wait=1" % box,
                            {"argv": ["/bin/echo", "again"]})
        return r if r.status == 200 and b"again" in r.body else None
    # The last of its connections may not be closed there yet.
    d.ok ("also from its sandboxes", d.soon (again))
    d.ok ("with as many descriptors as before",
          d.soon (lambda: d.descriptors (server.pid) <= before + 4),
          "%d, %d before: %s" % (d.descriptors (server.pid), before,
                                 d.more (which, d.opened (server.pid))))
    server.clean ()
    d.daemons.remove (server)


def full_disk ():
    what = "a full disk"
    if os.geteuid () != 0:
        d.skip (what, "the right to mount")
        return
    server = d.Daemon ()
    state = os.path.join (server.home, "state")
    os.mkdir (state, 0o700)
    server.wrap = ["unshare", "--mount", "sh", "-c",
                   'mount -t tmpfs -o size=4m,mode=0700 tmpfs "$1" && shift'
                   ' && exec "$@"', "-", state]
    if subprocess.run (["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs",
                        state], capture_output=True).returncode:
        d.skip (what, "the right to mount")
        return
    server.start ()
    box = box_new (server)
    filler = "/proc/%d/root%s/filler" % (server.pid, state)
    with open (filler, "wb", buffering=0) as f:
        try:
            while True:
                f.write (b"x" * 65536)
        except OSError:
            pass
    with Health (server):
        r = server.request ("POST", "/api/v1/sandboxes", {"ttl_ms": 600000})
        d.ok ("with a full disk a sandbox is refused, or it is there",
              r.status in (200, 201) or (r.status >= 400 and r.code ()),
              repr (r))
        made = r.json ()["id"] if r.status < 300 else None
        r = server.request ("POST", "/api/v1/sandboxes/%s/execs?wait=1" % box,
                            {"argv": ["/bin/echo", "still"]})
        d.ok ("a command runs or is refused with a code",
              (r.status == 200 and b"still" in r.body) or r.code (), repr (r))
    os.unlink (filler)
    now = listed (server)
    d.ok ("nothing that was acknowledged is lost",
          box in now and (made is None or made in now), repr (now))
    r = server.request ("POST", "/api/v1/sandboxes", {"ttl_ms": 600000})
    d.ok ("and with room all goes on", r.status in (200, 201), repr (r))
    for box in listed (server):
        server.request ("DELETE", "/api/v1/sandboxes/" + box)
    server.clean ()
    d.daemons.remove (server)


def in_time ():
    """Whose code runs as long as it may, and who waits behind it, are answered
    before their clients leave."""
    server = d.Daemon ({"limits": {"runs": 1}}).start ()
    said = []

    def one ():
        begin = time.monotonic ()
        r = server.request ("POST", "/execute", {"code": "while True: pass",
                                                 "timeout": 30})
        said.append ((r.status, time.monotonic () - begin))
    threads = [threading.Thread (target=one) for _ in range (3)]
    for t in threads:
        t.start ()
    for t in threads:
        t.join ()
    d.ok ("each is answered within 35 s, run or not",
          sorted (s for s, _ in said) == [200, 429, 429]
          and max (took for _, took in said) < 35, said)
    server.clean ()
    d.daemons.remove (server)


def main ():
    d.needs_sandbox ()
    server = d.Daemon ({"limits": {"header_time": "1s", "queue": 1024,
                                   "connections": 1200}}).start ()
    server.request ("POST", "/execute", {"code": "print(1)"})
    server.request ("DELETE", "/api/v1/sandboxes/" + box_new (server))
    worker_killed (server)
    daemon_killed (server)
    server.request ("POST", "/execute", {"code": "print(1)"})
    descriptors, memory = d.descriptors (server.pid), d.memory (server.pid)
    slow_clients (server)
    many_at_once (server)
    gone_clients (server)
    d.ok ("after all of it descriptors are as many as before",
          d.soon (lambda: d.descriptors (server.pid) <= descriptors + 2),
          "%d, %d before" % (d.descriptors (server.pid), descriptors))
    if d.SANITIZED:
        d.skip ("and memory is what it was",
                "memory that is judged, which sanitizers keep")
    else:
        d.ok ("and memory is what it was",
              d.soon (lambda: d.memory (server.pid)
                      < 1.5 * memory + (8 << 20)),
              "%d KiB, %d before" % (d.memory (server.pid) >> 10,
                                     memory >> 10))
    d.equal ("it ends when it is told to", server.stop (), 0)
    few_descriptors ()
    full_disk ()
    if BY_CLOCK:
        in_time ()
    d.finish ()


main ()
