# SPDX-License-Identifier: Apache-2.0
"""Bytes that are nearly requests: each is answered or hung up on, none with a
fault, and the daemon lives on with as many descriptors as before.

  FUZZ_SEED=N       the seed, which is printed
  FUZZ_RUNS=N       1000, times CHECK_SCALE"""

import os
import random
import re
import socket
import threading

import daemon as d

RUNS = d.scale (int (os.environ.get ("FUZZ_RUNS") or 1000))
THREADS = 4
seed = int (os.environ.get ("FUZZ_SEED") or random.SystemRandom ()
            .randrange (1 << 31))
d.note ("seed %d, %d requests" % (seed, RUNS))

HEADERS = (b"Host: localhost", b"Content-Type: application/json",
           b"Accept: application/x-ndjson", b"Connection: keep-alive",
           b"Expect: 100-continue", b"Transfer-Encoding: chunked",
           b"Content-Length: 2", b"Range: bytes=0-", b"Range: bytes=-1,0-,9",
           b"Authorization: Bearer cft_x_y", b"Idempotency-Key: a",
           b"traceparent: 00-0-0-00", b"Upgrade: websocket",
           b"Origin: http://x", b"Host: evil", b"X-Content-Sha256: 00")
PIECES = (b"\r\n", b"\r\n\r\n", b"\n", b"\0", b"\xff", b" ", b":", b"%00",
          b"%2e%2e%2f", b"/../", b"//", b"?", b"&=", b"{", b"}", b"[" * 50,
          b'"', b"\\u0000", b"0\r\n\r\n", b"ffffffffffffffff\r\n",
          b"-1", b"99999999999999999999", b"HTTP/9.9", b"x" * 20000)


def seeds (document, sandbox):
    """A request of each operation."""
    out = []
    for operation in document.operations:
        path = re.sub (r"\{(\w+)\}", lambda m: sandbox
                       if m[1] in ("id", "sandbox") else "workspace",
                       operation.path)
        if "kit" in path:
            continue
        body = b"" if operation.method in ("GET", "HEAD") else b"{}"
        out.append (("%s %s HTTP/1.1\r\n" % (operation.method, path))
                    .encode () + b"Host: localhost\r\n"
                    + (b"Content-Type: application/json\r\n"
                       b"Content-Length: %d\r\n" % len (body) if body else b"")
                    + b"\r\n" + body)
    out.append (b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                b"application/json\r\nContent-Length: 12\r\n\r\n"
                b'{"code":"1"}')
    return out


def mutate (rng, request):
    request = bytearray (request)
    for _ in range (rng.randint (1, 4)):
        at = rng.randrange (len (request) + 1)
        which = rng.randrange (8)
        if which == 0 and request:
            request[rng.randrange (len (request))] = rng.randrange (256)
        elif which == 1:
            del request[at:at + rng.randrange (16)]
        elif which == 2:
            request[at:at] = rng.choice (PIECES)
        elif which in (3, 4):
            line = request.find (b"\r\n") + 2
            request[line:line] = rng.choice (HEADERS) + b"\r\n"
        elif which == 5:
            request = request[:at]
        elif which == 6:
            request += request[:at]
        else:
            request[at:at] = request[at:at + 64]
    return bytes (request)


class Fuzz (threading.Thread):
    def __init__ (self, server, requests, number, runs):
        super ().__init__ (daemon=True)
        self.server, self.requests, self.runs = server, requests, runs
        self.rng = random.Random (seed * 31 + number)
        self.wrong = []
        self.answered = 0

    def run (self):
        for _ in range (self.runs):
            request = mutate (self.rng, self.rng.choice (self.requests))
            try:
                said = self.send (request)
            except OSError as e:
                if isinstance (e, (socket.timeout, ConnectionRefusedError)):
                    self.wrong.append ("%r: %s" % (request[:400], e))
                continue
            self.judge (request, said)
            if len (self.wrong) > 4:
                return

    def send (self, request):
        with self.server.raw (self.rng.choice (("unix", "tcp"))) as s:
            try:
                s.sendall (request)
                s.shutdown (socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass
            said = b""
            while len (said) < 1 << 20:
                try:
                    more = s.recv (65536)
                except ConnectionResetError:
                    break
                if not more:
                    break
                said += more
            return said

    def judge (self, request, said):
        self.answered += bool (said)
        first = said.split (b"\r\n")[0]
        if said and not re.match (rb"HTTP/1\.[01] [1-5]\d\d ", first):
            self.wrong.append ("%r: not HTTP: %r" % (request[:400], said[:200]))
        elif b" 500 " in first:
            self.wrong.append ("%r: a fault: %r" % (request[:400],
                                                    said[-400:]))


def fuzz (server, requests, first, runs):
    threads = [Fuzz (server, requests, first + i, runs // THREADS)
               for i in range (THREADS)]
    for t in threads:
        t.start ()
    for t in threads:
        t.join ()
    return threads


def main ():
    d.needs_sandbox ()
    server = d.Daemon ({"limits": {"header_time": "10s"}}).start ()
    r = server.request ("POST", "/api/v1/sandboxes", {"ttl_ms": 3600000})
    sandbox = r.json ()["id"]
    requests = seeds (d.Document (), sandbox)
    threads = fuzz (server, requests, 0, RUNS // 5)
    server.coffer ("sandbox", "kill", "--all", "--yes")
    d.soon (lambda: False, 0.5)
    before = d.held (server.pid)
    threads += fuzz (server, requests, THREADS, RUNS)
    wrong = sum ((t.wrong for t in threads), [])
    d.note ("%d answered" % sum (t.answered for t in threads))
    d.ok ("each is answered or hung up on, none with a fault", not wrong,
          "\n".join (wrong[:8]))
    d.ok ("the daemon is alive", server.alive (), server.said ())
    d.ok ("it answers", server.answers ())

    # What was asked for in passing, such as sandboxes, is taken away.
    server.coffer ("sandbox", "kill", "--all", "--yes")

    def settled ():
        return len (d.held (server.pid)) <= len (before)
    d.ok ("its descriptors are as many as before", d.soon (settled),
          d.more (before, d.held (server.pid)))
    d.equal ("it ends when it is told to", server.stop (), 0)
    d.finish ()


main ()
