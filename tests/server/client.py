# SPDX-License-Identifier: Apache-2.0
# What the clients of the daemon's tests share: a raw client of HTTP/1.1 over a
# unix socket, which can do what no library would, and TAP that goes on counting
# where the shell stopped.  Environment: SOCKET, COUNT_FILE, COFFER.
import os, socket, subprocess, sys

API = "/api/v1/sandboxes/"
PATIENCE = 120


class Tap:
    def __init__ (self):
        self.path = os.environ["COUNT_FILE"]
        self.n = int (open (self.path).read ())

    def is_ (self, what, got, want):
        self.n += 1
        with open (self.path, "w") as f:
            f.write (str (self.n))
        print ("%sok %d - %s" % ("" if got == want else "not ", self.n, what), flush=True)
        if got != want:
            for name, value in (("got", got), ("want", want)):
                print ("# %s: %s" % (name, repr (value)[:400]))

    def ok (self, what, good, note=None):
        self.is_ (what, bool (good) or (False, note), True)


def connect ():
    s = socket.socket (socket.AF_UNIX)
    s.settimeout (PATIENCE)
    s.connect (os.environ["SOCKET"])
    return s


class Broken (Exception):
    """The transfer ended before it was whole."""


class Reply:
    """Read from a socket; `left` is what came behind the head."""

    def __init__ (self, s, head_only=False):
        self.s, self.data = s, b""
        while b"\r\n\r\n" not in self.data:
            part = s.recv (65536)
            if not part:
                raise Broken (self.data)
            self.data += part
        head, _, self.data = self.data.partition (b"\r\n\r\n")
        lines = head.decode ("latin-1").split ("\r\n")
        self.status = int (lines[0].split ()[1])
        self.headers = [tuple (l.split (": ", 1)) for l in lines[1:]]
        self.head_only = head_only or self.status in (204, 304) or self.status < 200

    def all (self, name):
        return [v for k, v in self.headers if k.lower () == name.lower ()]

    def get (self, name):
        values = self.all (name)
        return values[0] if values else None

    def more (self):
        part = self.s.recv (262144)
        if not part:
            raise Broken (len (self.data))
        self.data += part

    def take (self, n):
        while len (self.data) < n:
            self.more ()
        out, self.data = self.data[:n], self.data[n:]
        return out

    def line (self):
        while b"\r\n" not in self.data:
            self.more ()
        out, _, self.data = self.data.partition (b"\r\n")
        return out

    def pieces (self):
        if self.head_only:
            return
        if (self.get ("Transfer-Encoding") or "").lower () == "chunked":
            while True:
                size = int (self.line ().split (b";")[0], 16)
                if size == 0:
                    self.line ()
                    return
                yield self.take (size)
                self.line ()
        length = self.get ("Content-Length")
        if length is None:
            while True:
                if self.data:
                    out, self.data = self.data, b""
                    yield out
                part = self.s.recv (262144)
                if not part:
                    return
                self.data = part
        left = int (length)
        while left:
            if not self.data:
                self.more ()
            out, self.data = self.data[:left], self.data[left:]
            left -= len (out)
            yield out

    def body (self):
        return b"".join (self.pieces ())


def head (method, path, headers=()):
    lines = ["%s %s HTTP/1.1" % (method, path), "Host: localhost"]
    lines += ["%s: %s" % h for h in headers]
    return ("\r\n".join (lines) + "\r\n\r\n").encode ("latin-1")


def begin (method, path, headers=(), body=None):
    s = connect ()
    headers = list (headers)
    if body is not None and not any (k.lower () in ("content-length", "transfer-encoding")
                                     for k, v in headers):
        headers.append (("Content-Length", len (body)))
    try:
        s.sendall (head (method, path, headers) + (body or b""))
    except BrokenPipeError:
        pass                    # a refusal that did not wait for all of it
    return s


def request (method, path, headers=(), body=None):
    """status, Reply, body"""
    s = begin (method, path, list (headers) + [("Connection", "close")], body)
    try:
        r = Reply (s, method == "HEAD")
        return r.status, r, r.body ()
    finally:
        s.close ()


def quote (name):
    if isinstance (name, str):
        name = name.encode ()
    return "".join (chr (b) if chr (b).isalnum () and b < 128 or chr (b) in "-_./"
                    else "%%%02X" % b for b in name)


def inside (sandbox, *argv, **options):
    """A command in the sandbox, by the command line."""
    return subprocess.run ([os.environ["COFFER"], "sandbox", "exec", sandbox, "--"] + list (argv),
                           stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, **options).stdout
