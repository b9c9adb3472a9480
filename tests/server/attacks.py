# SPDX-License-Identifier: Apache-2.0
"""The attack corpus through HTTP: requests that mean no good, code, output,
files that are swapped, and where secrets end up.

tests/attack/http.tsv has how each is answered, or which test beside this one
shows it; what is answered otherwise fails, and so does a canary outside that
was touched, whatever was answered.  `make update-http-attacks` writes the
table, only after a look at what has changed, and why.

  ATTACK_WRITE=FILE   the table as it is here
  CHECK_SCALE         multiplies the swaps"""

import base64
import concurrent.futures
import http.client
import json
import os
import re
import secrets
import shutil
import socket
import struct
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import daemon as d

TABLE = os.path.join (d.SOURCE, "tests/attack/http.tsv")
# What the corpus has of these kinds.
CORPUS = """HT01 HT02 HT04 HT05 HT06 HT08 HT09 HT10 HT12 HT13 HT14 HT16 HT17
HT18 HT20 PY01 PY02 PY04 PY05 PY06 PY08 PY09 PY10 PY12 PY13 PY14 PY16 PY17 PY18
PY20 PY21 PY22 PY24 PY25 PY26 PY28 PY29 PY30 PY32 PY33 PY34 PY36 PY37 PY38 PY40
PY41 PY42 PY44 PY45 PY46 OU01 OU02 OU04 OU05 OU06 OU08 OU09 OU10 OU12 TO01 TO02
TO04 TO05 TO06 CR01 CR02 CR04 CR05 CR06 CR08 CR09 CR10""".split ()
SWAPS = d.scale (40)
ROOT = os.geteuid () == 0

ENV_SECRET = secrets.token_hex (20)     # of one command, and of the daemon
CODE_SECRET = secrets.token_hex (20)    # a text in code
FILE_SECRET = secrets.token_hex (20)    # in a file outside

cases = []


def case (corpus, what):
    def add (function):
        cases.append ((corpus, what, function))
        return function
    return add


def rows (corpus, what, function, items):
    """A case each: of (what, argument…)."""
    for name, *rest in items:
        cases.append ((corpus, "%s: %s" % (what, name),
                       lambda world, rest=rest: function (world, *rest)))


class World:
    """The daemon, and what outside of its sandboxes must not change."""

    def __init__ (self):
        self.folder = tempfile.mkdtemp (prefix="coffer-attacks-")
        os.chmod (self.folder, 0o755)
        self.out = os.path.join (self.folder, "out")
        self.roots = os.path.join (self.folder, "roots")
        for path in (self.out, self.roots):
            os.mkdir (path)
            os.chmod (path, 0o777)
        self.canary = os.path.join (self.out, "f")
        with open (self.canary, "w") as f:
            f.write (FILE_SECRET)
        os.chmod (self.canary, 0o666)
        self.before = self.state ()
        self.server = d.Daemon (
            {"allowed_roots": [self.roots],
             "limits": {"header_time": "1s", "body_time": "1s",
                        "connections": 400}},
            env={"ATTACK_SECRET": ENV_SECRET}).start ()
        self.token = self.server.token ("attacker", "run")
        r = self.ask ("POST", "/api/v1/sandboxes", {"ttl_ms": 1200000})
        if r.status != 201:
            raise RuntimeError ("no sandbox: %r" % r)
        self.box = "/api/v1/sandboxes/" + r.json ()["id"]
        self.said = []          # every byte of every reply

    def state (self):
        return sorted ((name, os.stat (os.path.join (self.out, name)).st_size)
                       for name in os.listdir (self.out))

    def ask (self, method, target, body=None, **kw):
        r = self.server.request (method, target, body, keep=False, **kw)
        if hasattr (self, "said"):
            self.said.append (r.body)
        return r

    def faults (self):
        with open (self.canary) as f:
            if f.read () != FILE_SECRET or self.state () != self.before:
                yield "what is outside was changed"
        if any (FILE_SECRET.encode () in text for text in self.said):
            yield "what is outside was told"
        self.said.clear ()
        if not self.server.alive ():
            yield "the daemon has ended"

    def execute (self, code, **more):
        for _ in range (600):
            r = self.ask ("POST", "/execute", dict ({"code": code}, **more))
            if r.status != 429:
                return r
            time.sleep (0.05)
        return r

    def run (self, *argv, **more):
        return self.ask ("POST", self.box + "/execs?wait=1",
                         dict ({"argv": list (argv)}, **more))

    def begin (self, *argv):
        r = self.ask ("POST", self.box + "/execs",
                      {"argv": list (argv), "background": True})
        return self.box + "/execs/" + r.json ()["exec"]


# ---- bytes on a connection ---------------------------------------------------

def reply_of (s):
    """A reply: (status, headers, body); None: none came."""
    r = http.client.HTTPResponse (s)
    try:
        r.begin ()
        return r.status, r, r.read ()
    except (http.client.HTTPException, ConnectionError, ValueError):
        return None


def is_closed (s):
    """Waits until it is."""
    try:
        while s.recv (65536):
            pass
    except ConnectionError:
        pass
    except socket.timeout:
        return False
    return True


def raw (world, data, over="tcp"):
    """The status; "closed" when that ends the connection."""
    with world.server.raw (over) as s:
        try:
            s.sendall (data)
        except ConnectionError:
            pass                # it has judged it already
        r = reply_of (s)
        if r is None:
            return "closed"
        world.said.append (r[2])
        if (r[1].getheader ("Connection") or "").lower () == "close":
            return "%d closed" % r[0] if is_closed (s) else "%d open" % r[0]
        return str (r[0])


def head (*lines, method="POST", path="/execute", version="1.1", host=True):
    return ("\r\n".join (["%s %s HTTP/%s" % (method, path, version)]
                         + ["Host: localhost"] * host + list (lines))
            + "\r\n\r\n").encode ("latin-1")


def headers (world, lines, body=b'{"code":"1"}'):
    return raw (world, head (*lines) + body)


JSON = "Content-Type: application/json"
rows ("HT01", "a body's length", headers, (
    ("one byte more than it may have", [JSON, "Content-Length: 1048577"]),
    ("2^63", [JSON, "Content-Length: 9223372036854775808"]),
    ("2^64", [JSON, "Content-Length: 18446744073709551616"]),
    ("-1", [JSON, "Content-Length: -1"]),
    ("+12", [JSON, "Content-Length: +12"]),
    ("0x0c", [JSON, "Content-Length: 0x0c"]),
    ("5, 5", [JSON, "Content-Length: 5, 5"]),
    ("two that differ", [JSON, "Content-Length: 12", "Content-Length: 13"]),
    ("two that do not", [JSON, "Content-Length: 12", "Content-Length: 12"])))
rows ("HT02", "a body's coding", headers, (
    ("with a length", [JSON, "Content-Length: 12",
                       "Transfer-Encoding: chunked"]),
    ("chunked, chunked", [JSON, "Transfer-Encoding: chunked, chunked"]),
    ("a space before the colon", [JSON, "Transfer-Encoding : chunked"]),
    ("a tab behind the colon", [JSON, "Transfer-Encoding:\tchunked"],
     b"c\r\n{\"code\":\"1\"}\r\n0\r\n\r\n"),
    ("twice", [JSON, "Transfer-Encoding: chunked",
               "Transfer-Encoding: chunked"]),
    ("identity", [JSON, "Transfer-Encoding: identity"]),
    ("gzip", [JSON, "Transfer-Encoding: gzip, chunked"]),
    ("xchunked", [JSON, "Transfer-Encoding: xchunked"]),
    ("a chunk's size that is none", [JSON, "Transfer-Encoding: chunked"],
     b"zz\r\n"),
    ("a chunk's size of 20 digits", [JSON, "Transfer-Encoding: chunked"],
     b"fffffffffffffffffff0\r\n"),
    ("a chunk without its end", [JSON, "Transfer-Encoding: chunked"],
     b"c\r\n{\"code\":\"1\"}X\r\n0\r\n\r\n"),
    ("a chunk's size before LF alone", [JSON, "Transfer-Encoding: chunked"],
     b"c\n{\"code\":\"1\"}\r\n0\r\n\r\n"),
    ("a chunk's extension with a bare CR", [
        JSON, "Transfer-Encoding: chunked"],
     b"c;a\rb\r\n{\"code\":\"1\"}\r\n0\r\n\r\n"),
    ("a trailer that is a header", [JSON, "Transfer-Encoding: chunked"],
     b"c\r\n{\"code\":\"1\"}\r\n0\r\nHost: evil\r\n\r\n"),
    ("a request behind it is no second one", [
        JSON, "Content-Length: 12", "Content-Length: 0"],
     b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")))
rows ("HT02", "a body's coding", raw, (
    ("in HTTP/1.0", head (JSON, "Transfer-Encoding: chunked", version="1.0")
     + b"c\r\n{\"code\":\"1\"}\r\n0\r\n\r\n"),))
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
SECOND = GET + b"\r\n"


def smuggled (world, first):
    with world.server.raw ("tcp") as s:
        s.sendall (first + SECOND)
        text = b""
        while True:
            try:
                more = s.recv (65536)
            except ConnectionError:
                break
            if not more:
                break
            text += more
    return "%d replies" % len (re.findall (rb"HTTP/1\.1 \d", text))


rows ("HT02", "how many are answered", smuggled, (
    ("behind a refused body", head (JSON, "Content-Length: 4",
                                    "Transfer-Encoding: chunked")
     + b"0\r\n\r\n"),
    ("behind chunks", head (JSON, "Transfer-Encoding: chunked")
     + b"c\r\n{\"code\":\"1\"}\r\n0\r\n\r\n"),
    ("behind a chunk that ends with LF alone", head (
        JSON, "Transfer-Encoding: chunked")
     + b"c\r\n{\"code\":\"1\"}\n0\n\n"),
    ("behind chunks that were refused", head (
        JSON, "Transfer-Encoding: chunked", path="/nowhere")
     + b"c\r\n{\"code\":\"1\"}\r\n0\r\n\r\n"),
    ("behind lines of LF alone", b"GET /healthz HTTP/1.1\nHost: localhost\n\n"),
    ("behind one that is folded", GET + b"A: b\r\n\tc\r\n\r\n"),
    ("behind one with an empty line before it", b"\r\n" + SECOND + GET
     + b"A: b\nB: c\r\n\r\n")))


@case ("HT04", "a header, a body, byte by byte")
def slow (world):
    out = []
    for first in (b"GET /healthz HTTP/1.1\r\nX: ", head (
            JSON, "Content-Length: 100000")):
        with world.server.raw ("tcp") as s:
            s.sendall (first)
            s.settimeout (0.1)
            end = time.monotonic () + d.PATIENCE
            while time.monotonic () < end:
                try:
                    s.send (b"x")
                    if not s.recv (65536):
                        out.append ("closed")
                        break
                except socket.timeout:
                    pass
                except ConnectionError:
                    out.append ("closed")
                    break
            else:
                out.append ("still there")
    return " ".join (out)


@case ("HT04", "who does not read a stream hinders nobody")
def unread (world):
    command = world.begin ("/bin/sh", "-c", "seq 300000; sleep 600")
    s = world.server.raw ("tcp")
    s.setsockopt (socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.sendall (head ("Authorization: Bearer " + world.token, method="GET",
                     path=command + "/events?from=0"))
    r = world.run ("/bin/echo", "on")
    world.ask ("POST", command + "/signal", {"signal": 9})
    s.close ()
    return "%d, %d" % (r.status, world.ask ("GET", "/healthz").status)


@case ("HT05", "a hundred at once on one connection are answered in order")
def pipelined (world):
    with world.server.raw ("unix") as s:
        s.sendall (b"".join (head (method="GET", path="/api/v1/sandboxes/sb-"
                                   "%026d" % i) for i in range (100)))
        file = s.makefile ("rb")
        order = []
        for _ in range (100):
            status = file.readline ()
            size = 0
            while True:
                line = file.readline ()
                if line in (b"\r\n", b""):
                    break
                if line.lower ().startswith (b"content-length:"):
                    size = int (line.split (b":")[1])
            body = file.read (size)
            found = re.search (rb"sb-(\d+)", body)
            order.append ((status[9:12], int (found[1]) if found else body))
    return "404 in order" if order == [(b"404", i) for i in range (100)] \
        else repr (order[:3])


def left (world, how):
    """What it asked for has ended: its sandbox runs nothing of it."""
    word = "left-" + secrets.token_hex (4)
    body = json.dumps ({"argv": ["/bin/sh", "-c", "echo $$ >/workspace/%s;"
                                 " exec sleep 600" % word]}).encode ()
    s = world.server.raw ("unix")
    s.sendall (head (JSON, "Content-Length: %d" % len (body),
                     path=world.box + "/execs?wait=1") + body)
    if not d.soon (lambda: world.ask ("GET", world.box + "/files/"
                                      + word).status == 200):
        return "it never began"
    how (s)

    def over ():
        r = world.run ("/bin/sh", "-c", "kill -0 $(cat /workspace/%s)" % word)
        return r.status == 200 and r.json ()["status"] != 0
    gone = d.soon (over)
    s.close ()
    return "it ended" if gone else "it runs on"


rows ("HT05", "a client that leaves in the middle", left, (
    ("closes", lambda s: s.close ()),
    ("has finished sending", lambda s: s.shutdown (socket.SHUT_WR)),
    ("resets", lambda s: (s.setsockopt (
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack ("ii", 1, 0)),
        s.close ()))))

rows ("HT06", "headers", raw, (
    ("100,000 lines", GET + b"A: b\r\n" * 100000 + b"\r\n"),
    ("a line of a megabyte", GET + b"A: " + b"b" * (1 << 20) + b"\r\n\r\n"),
    ("a target of a megabyte", b"GET /" + b"a" * (1 << 20)
     + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("a folded line", GET + b"A: b\r\n c\r\n\r\n"),
    ("a line folded to nothing", GET + b"A: b\r\n \r\n\r\n"),
    ("a folded line with a colon", GET + b"A: b\r\n c: d\r\n\r\n"),
    ("a NUL", GET + b"A: b\0c\r\n\r\n"),
    ("NULs as an end of a line", GET + b"A: b\0\0B: c\r\n\r\n"),
    ("a NUL at the end of a value", GET + b"A: b\0\r\n\r\n"),
    ("a NUL in a name", GET + b"A\0b: c\r\n\r\n"),
    ("a bare CR", GET + b"A: b\rB: c\r\n\r\n"),
    ("a CR before a line's end", GET + b"A: b\r\r\n\r\n"),
    ("bare LFs", b"GET /healthz HTTP/1.1\nHost: localhost\n\n"),
    ("LF alone behind the first line", b"GET /healthz HTTP/1.1\nHost: "
     b"localhost\r\n\r\n"),
    ("LF alone behind a header", GET + b"A: b\nB: c\r\n\r\n"),
    ("LF alone behind the last", GET + b"A: b\n\r\n"),
    ("LF alone at the end", GET + b"A: b\r\n\n"),
    ("LF alone at the end, and a body of NULs", GET
     + b"Content-Length: 2\n\n\0\0"),
    ("an escape for terminals", GET + b"A: \x1b[2J\r\n\r\n"),
    ("an empty value", GET + b"A:\r\nB: \r\nC:\t \t\r\n\r\n"),
    ("blanks around a value", GET + b"A: \t b c \r\n\r\n"),
    ("a value that is no UTF-8", GET + b"A: \xff\xfe\r\n\r\n"),
    ("two spaces behind the method", b"GET  /healthz HTTP/1.1\r\nHost: "
     b"localhost\r\n\r\n"),
    ("a space behind the version", b"GET /healthz HTTP/1.1 \r\nHost: "
     b"localhost\r\n\r\n"),
    ("a CR in the target", b"GET /healthz?\rA HTTP/1.1\r\nHost: "
     b"localhost\r\n\r\n"),
    ("a NUL in the target", b"GET /healthz\0a HTTP/1.1\r\nHost: "
     b"localhost\r\n\r\n"),
    ("a tab in the target", b"GET /healthz?\ta HTTP/1.1\r\nHost: "
     b"localhost\r\n\r\n"),
    ("a query", b"GET /healthz?a=b&c&=d&%41 HTTP/1.1\r\nHost: "
     b"localhost\r\n\r\n"),
    ("none, in HTTP/1.0", b"GET /healthz HTTP/1.0\r\n\r\n"),
    ("none, in HTTP/1.0, with LF alone", b"GET /healthz HTTP/1.0\n\n"),
    ("a method with a CR", b"GE\rT /healthz HTTP/1.1\r\nHost: localhost"
     b"\r\n\r\n"),
    ("a space before the colon", GET + b"A : b\r\n\r\n"),
    ("no colon", GET + b"Abc\r\n\r\n"),
    ("no name", GET + b": b\r\n\r\n"),
    ("two hosts", GET + b"Host: evil\r\n\r\n"),
    ("no host", b"GET /healthz HTTP/1.1\r\n\r\n"),
    ("HTTP/1.2", b"GET /healthz HTTP/1.2\r\nHost: localhost\r\n\r\n"),
    ("HTTP/0.9", b"GET /healthz\r\n\r\n"),
    ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500
     + b"\r\n\r\n"),
    ("a method that is none", b"EAT /healthz HTTP/1.1\r\nHost: localhost"
     b"\r\n\r\n"),
    ("CONNECT", b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("a target of another host", b"GET http://evil/healthz HTTP/1.1\r\nHost: "
     b"localhost\r\n\r\n"),
    ("an absolute target", b"GET http://localhost/healthz HTTP/1.1\r\nHost: "
     b"localhost\r\n\r\n"),
    ("a space in the target", b"GET /heal thz HTTP/1.1\r\nHost: localhost"
     b"\r\n\r\n")))


@case ("HT06", "headers: 15,000 bytes in pieces, one head behind another")
def in_pieces (world):
    first = head (*["X-%d: %s" % (i, "v" * 90) for i in range (150)],
                  method="GET", path="/healthz")
    out = []
    with world.server.raw ("tcp") as s:
        for _ in range (2):
            for i in range (0, len (first), 997):
                s.sendall (first[i:i + 997])
            out.append (str (reply_of (s)[0]))
        s.sendall (first.replace (b"\r\n", b"\n"))
        out.append (str (reply_of (s)[0]))
    return " ".join (out)


def identifier (world, name):
    return str (world.ask ("GET", "/api/v1/sandboxes/" + name).status)


rows ("HT08", "an id", identifier, (
    ("../x", "../x"), ("a/b", "a/b"), ("a%2fb", "a%2fb"),
    ("%2e%2e%2fx", "%2e%2e%2fx"), ("empty", ""), ("300 letters", "a" * 300),
    ("not ASCII", "%C3%A9%E2%98%83"), ("not UTF-8", "%ff%fe"),
    ("-rf", "-rf"), (".", "."), (".hidden", ".hidden"), ("a NUL", "a%00b"),
    ("half an escape", "a%4"), ("as SQL", "x'%20OR%201=1%20--")))


def post (world, body, kind="application/json"):
    return str (world.ask ("POST", "/execute", body, headers={
        "Content-Type": kind}).status)


rows ("HT09", "a body", post, (
    ("none", b""), ("null", b"null"), ("a list", b"[]"),
    ("bytes behind it", b'{"code":"1"} x'), ("two", b'{"code":"1"}{}'),
    ("a BOM", b'\xef\xbb\xbf{"code":"1"}'), ("single quotes", b"{'code':'1'}"),
    ("a comment", b'{"code":"1"/* */}'), ("a comma at the end",
                                          b'{"code":"1",}'),
    ("a field twice", b'{"code":"1","code":"2"}')))
rows ("HT10", "a body", post, (
    ("10^5 brackets", b"[" * 100000),
    ("10^5 objects", b'{"a":' * 100000),
    ("60,000 keys", b'{"code":"1",' + b",".join (
        b'"k%d":1' % i for i in range (60000)) + b"}"),
    ("a text of 10 MB", b'{"code":"' + b"a" * 10000000 + b'"}'),
    ("a number of 10^4 digits", b'{"code":"1","timeout":' + b"9" * 10000
     + b"}"),
    ("a fraction of 10^4 digits", b'{"code":"1","timeout":0.' + b"0" * 10000
     + b"1}"),
    ("an exponent of 10^4 digits", b'{"code":"1","timeout":1e-' + b"9" * 10000
     + b"}")))
rows ("HT12", "a field", post, (
    ("code 1", b'{"code":1}'), ("code null", b'{"code":null}'),
    ("code []", b'{"code":[]}'), ("no code", b"{}"),
    ("timeout \"2\"", b'{"code":"1","timeout":"2"}'),
    ("timeout true", b'{"code":"1","timeout":true}'),
    ("timeout NaN", b'{"code":"1","timeout":NaN}'),
    ("timeout Infinity", b'{"code":"1","timeout":Infinity}'),
    ("timeout 1e999", b'{"code":"1","timeout":1e999}'),
    ("timeout -0", b'{"code":"1","timeout":-0}'),
    ("timeout 1e-320", b'{"code":"1","timeout":1e-320}'),
    ("timeout 2.0000001", b'{"code":"1","timeout":2.0000001}'),
    ("timeout 30.0001", b'{"code":"1","timeout":30.0001}')))
rows ("HT13", "a text", post, (
    ("a surrogate alone", b'{"code":"\\ud800"}'),
    ("surrogates the wrong way", b'{"code":"\\udc00\\ud800"}'),
    ("a NUL", b'{"code":"a\\u0000b"}'),
    ("bytes that are no UTF-8", b'{"code":"\xff"}'),
    ("a byte in more than it needs", b'{"code":"\xc0\xaf"}'),
    ("a surrogate in bytes", b'{"code":"\xed\xa0\x80"}'),
    ("beyond Unicode", b'{"code":"\xf4\x90\x80\x80"}'),
    ("a control character", b'{"code":"a\x01b"}')))
rows ("HT14", "a field that nobody knows", post, (
    ("as any", b'{"code":"1","unknown":[1]}'),
    ("__proto__", b'{"code":"1","__proto__":{"timeout":1}}'),
    ("a name of 900 KB", b'{"code":"1","' + b"n" * 900000 + b'":1}')))


@case ("HT14", "in the native API")
def unknown_native (world):
    return str (world.ask ("POST", "/api/v1/sandboxes", {
        "__proto__": {"mounts": []}}).status)


def crossed (world, lines, method="POST", over="tcp", body=b'{"code":"1"}'):
    return raw (world, head (*lines, "Content-Length: %d" % len (body),
                             method=method, host=not any (
                                 line.startswith ("Host:") for line in lines))
                + body, over)


rows ("HT16", "a page of the web", crossed, (
    ("posts text/plain", ["Origin: http://evil.example",
                          "Content-Type: text/plain"]),
    ("posts JSON", ["Origin: http://evil.example", JSON]),
    ("whose origin is null", ["Origin: null", JSON]),
    ("of this machine, of another port", ["Origin: http://localhost:9", JSON]),
    ("asks before", ["Origin: http://evil.example",
                     "Access-Control-Request-Method: POST"], "OPTIONS"),
    ("by a name that leads here", ["Host: rebound.example", JSON]),
    ("by a name that begins as ours", ["Host: localhost.evil.example", JSON]),
    ("by another address", ["Host: 169.254.169.254", JSON]),
    ("over the socket", ["Origin: http://evil.example", JSON], "POST",
     "unix")))


@case ("HT16", "no reply lets a page of the web read it")
def cors (world):
    found = [h for over in ("unix", "tcp") for h, _ in world.ask (
        "GET", "/healthz", headers={"Origin": "http://localhost"},
        over=over).headers if h.lower ().startswith ("access-control")]
    return "none" if not found else repr (found)


def login (world, lines, target="/api/v1/sandboxes"):
    return raw (world, head (*lines (world), method="GET",
                             path=target.replace ("TOKEN", world.token)))


rows ("HT17", "a token", login, (
    ("none", lambda w: []),
    ("of another", lambda w: ["Authorization: Bearer cft_aaaaaaaa_"
                              + "a" * 43]),
    ("its beginning", lambda w: ["Authorization: Bearer " + w.token[:-1]]),
    ("and a letter more", lambda w: ["Authorization: Bearer " + w.token
                                     + "a"]),
    ("in other letters", lambda w: ["Authorization: Bearer "
                                    + w.token.swapcase ()]),
    ("as a password", lambda w: ["Authorization: Basic " + base64.b64encode (
        b":" + w.token.encode ()).decode ()]),
    ("of a megabyte", lambda w: ["Authorization: Bearer " + "a" * (1 << 20)]),
    ("twice", lambda w: ["Authorization: Bearer " + w.token,
                         "Authorization: Bearer cft_a_b"]),
    ("in the query", lambda w: [], "/api/v1/sandboxes?token=TOKEN"),
    ("in a cookie", lambda w: ["Cookie: token=" + w.token]),
    ("as it must be", lambda w: ["Authorization: Bearer " + w.token])))


@case ("HT17", "no token is in a log")
def token_logged (world):
    found = [path for path in written (world)
             if world.token.split ("_")[-1].encode () in written (world)[path]]
    return "none" if not found else repr (found)


rows ("HT18", "a body that is expected, coded", headers, (
    ("Expect: 100-continue", [JSON, "Content-Length: 12",
                              "Expect: 100-continue"]),
    ("Expect: anything", [JSON, "Content-Length: 12", "Expect: miracles"]),
    ("gzip", [JSON, "Content-Length: 12", "Content-Encoding: gzip"]),
    ("a list of codings", [JSON, "Content-Length: 12",
                           "Content-Encoding: gzip, br"])))


@case ("HT20", "64 at once run, or are told when to come back")
def many (world):
    def one (n):
        r = world.ask ("POST", "/execute", {"code": "print(%d)" % n},
                       over="tcp")
        if r.status == 429:
            return r.header ("Retry-After") is not None
        return r.status == 200 and r.json ()["stdout"] == "%d\n" % n
    with concurrent.futures.ThreadPoolExecutor (16) as pool:
        good = sum (pool.map (one, range (64)))
    return "%d" % good


# ---- code --------------------------------------------------------------------

def code (world, text, **more):
    """Which layer it meets: the guard, the interpreter, or none."""
    r = world.execute (text, **more)
    if r.status == 400:
        return "refused" if "violations" in r.json () else "400"
    if r.status != 200:
        return repr (r)
    reply = r.json ()
    if reply["timed_out"]:
        return "timed out"
    if reply["exit_code"]:
        return "fails"
    return "runs"


rows ("PY01", "a class by its attribute", code, [("", "().__class__")])
rows ("PY04", "a frame in a pattern", code, [
    ("", "g = (x for x in ())\nmatch g:\n  case object(gi_frame=f): pass")])
rows ("PY06", "the contents of a cell in a pattern", code, [
    ("", "match print:\n  case object(__closure__=c): pass")])
rows ("PY10", "a name with an underscore in an import", code, [
    ("", "from random import _urandom")])
rows ("PY12", "annotations that are evaluated", code, [
    ("", "from typing import get_type_hints as h")])
rows ("PY14", "what evaluates texts", code, (
    ("a forward reference", "import typing\ntyping.ForwardRef('1')"),
    ("by its method", "x = 1\nx._evaluate(None, None)"),
    ("names of fields", "from collections import namedtuple\n"
     "namedtuple('A', 'a b=__import__(\"os\")')")))
rows ("PY16", "an object out of an error", code, [
    ("", "try: '{0.zz}'.format(print)\n"
     "except AttributeError as e: print(e.obj.__self__)")])
rows ("PY17", "a traceback", code, [
    ("", "try: pass\nexcept Exception as e: e.__traceback__.tb_frame")])
rows ("PY18", "attributes by names made at run time", code, (
    ("attrgetter", "from operator import attrgetter"),
    ("methodcaller", "import operator\noperator.methodcaller"),
    ("getattr", "getattr((), '__cla' + 'ss__')"),
    ("reduce", "import functools\n"
     "functools.reduce(getattr, ['__cla' + 'ss__'], ())")))
rows ("PY24", "what is called by its place", code, (
    ("a decorator", "@eval\ndef f(): pass"),
    ("a class body", "class A:\n  x = eval"),
    ("hooks of one's own", "class A:\n  def __init_subclass__(cls): print(1)\n"
     "class B(A): pass")))
rows ("PY25", "classes made by calls", code, (
    ("type of three", "type('X', (), {})"), ("mro", "type.mro(int)")))
rows ("PY26", "names of its own", code, (
    ("print", "def print(*a): pass\nprint(1)"),
    ("deleted", "print = 1\ndel print\nprint(1)"),
    ("defaults, walrus, nonlocal", "def f(a=(b := 1)):\n  c = 0\n"
     "  def g():\n    nonlocal c\n    c += 1\n  g()\n  return c\nf()")))
rows ("PY28", "what it changes is its own", code, (
    ("json", "import json\njson.dumps = None"),
    ("the next has it as it was", "import json\nprint(json.dumps(1))"),
    ("builtins", "import builtins")))
rows ("PY29", "the interpreter's own", code, (
    ("sys", "import sys"), ("modules", "import json\njson.sys.modules"),
    ("_getframe", "import typing\ntyping.sys._getframe()")))
rows ("PY30", "modules that look inside", code, [
    (name, "import " + name) for name in (
        "gc", "weakref", "inspect", "traceback", "dis", "ast", "code",
        "codeop", "runpy", "pkgutil", "importlib.util", "ctypes")])
rows ("PY32", "pickles", code, [
    (name, "import " + name) for name in ("pickle", "marshal", "shelve",
                                          "copyreg")])
rows ("PY33", "files by numpy and pandas", lambda w, t: code (
    w, t, profile="data-science"), (
    ("genfromtxt", "import numpy as np\nnp.genfromtxt('/etc/passwd')"),
    ("memmap", "import numpy as np\nnp.memmap('/etc/passwd')"),
    ("load", "import numpy as np\nnp.load('x', allow_pickle=True)"),
    ("read_pickle", "import pandas as pd\npd.read_pickle('x')"),
    ("eval", "import pandas as pd\npd.eval('1')")))
rows ("PY34", "compilers", lambda w, t: code (w, t, profile="data-science"), (
    ("f2py", "import numpy.f2py"), ("ctypeslib",
                                    "import numpy\nnumpy.ctypeslib"),
    ("scipy", "import scipy\nscipy.LowLevelCallable")))


# ---- output ------------------------------------------------------------------

def events (world, command):
    r = world.ask ("GET", command + "/events?from=0",
                   headers={"Accept": "application/x-ndjson"})
    return [json.loads (line) for line in r.body.splitlines ()]


@case ("OU06", "two streams at once are each in order")
def interleaved (world):
    command = world.begin ("/bin/sh", "-c", "i=0; while [ $i -lt 3000 ]; do"
                           " echo o$i; echo e$i >&2; i=$((i+1)); done")
    text = {"stdout": "", "stderr": ""}
    for event in events (world, command):
        if event.get ("stream") in text:
            text[event["stream"]] += event.get ("data", "")
    return "in order" if text == {
        "stdout": "".join ("o%d\n" % i for i in range (3000)),
        "stderr": "".join ("e%d\n" % i for i in range (3000))} else "not"


@case ("OU08", "descriptors by their names are its own")
def reopened (world):
    r = world.run ("/bin/sh", "-c", "for f in /proc/self/fd/1 /dev/stdout; do"
                   " echo mine >>$f; done; for f in /proc/self/fd/0"
                   " /dev/fd/3 /proc/1/fd/1 /proc/1/fd/3; do"
                   " (echo lost >>$f) 2>/dev/null; done; exit 0")
    text = r.json ()["stdout"]["data"]
    return "mine" if set (text.split ()) <= {"mine"} else repr (text)


# ---- what is swapped while it is looked at -----------------------------------

SWAP = """
import os, sys
kind, out = sys.argv[1:]
os.chdir('/workspace')
os.makedirs('mid/in', exist_ok=True)
open('mid/in/f', 'w').write('inside')
open('begun', 'w').close()
def put(make, name):
    try: make('new')
    except FileExistsError: pass
    try: os.rename('new', name)
    except OSError: pass
while not os.path.exists('over'):
    if kind == 'link':
        put(lambda n: open(n, 'w').write('inside'), 'f')
        put(lambda n: os.symlink(out + '/f', n), 'f')
    elif kind == 'folder':
        os.rename('mid', 'away')
        os.symlink(out, 'mid')
        os.unlink('mid')
        os.rename('away', 'mid')
        os.rename('mid/in', 'mid/away')
        os.symlink(out, 'mid/in')
        os.unlink('mid/in')
        os.rename('mid/away', 'mid/in')
    else:
        put(lambda n: open(n, 'w').write('inside'), 'f')
        put(os.mkfifo, 'f')
"""


def swapped (world, kind, requests):
    """While a command of the sandbox swaps what they name."""
    world.run ("/bin/sh", "-c", "rm -rf /workspace/* ")
    command = world.begin ("/usr/bin/python3", "-c", SWAP, kind, world.out)
    base = world.box + "/files/"
    if not d.soon (lambda: world.ask ("GET", base + "begun").status == 200):
        return "it never began: %r" % events (world, command)
    wrong = []
    for _ in range (SWAPS):
        for method, path, body in requests:
            try:
                r = world.ask (method, base + path, body)
            except http.client.IncompleteRead as e:
                world.said.append (e.partial)
                continue        # another file than it was: no success
            if r.status >= 500 and r.code () != "E8010":
                wrong.append (repr (r))
    world.ask ("PUT", base + "over", b"")
    d.soon (lambda: world.ask ("GET", command).json ()["state"] != "running")
    return "never outside" if not wrong else wrong[0]


rows ("TO01", "a file is swapped with a link", swapped, [
    ("", "link", (("GET", "f", None), ("PUT", "f", b"written"),
                  ("GET", "f?op=stat", None), ("GET", "?op=list", None),
                  ("POST", "f?op=rename", {"to": "g"}),
                  ("DELETE", "f", None)))])
rows ("TO02", "a folder is swapped with a link", swapped, [
    ("", "folder", (("GET", "mid/in/f", None), ("PUT", "mid/in/f", b"written"),
                    ("PUT", "mid/f", b"written"),
                    ("GET", "mid/in?op=list&depth=3", None),
                    ("POST", "mid/in/d?op=mkdir", None),
                    ("DELETE", "mid/in/d?recursive=1", None),
                    ("POST", "mid/in/f?op=rename", {"to": "mid/g"})))])
rows ("TO04", "a file is swapped with a pipe", swapped, [
    ("", "pipe", (("GET", "f", None), ("GET", "f?op=stat", None),
                  ("PUT", "f", b"written")))])


@case ("TO05", "a source is swapped while its sandbox is made")
def source_swapped (world):
    source = os.path.join (world.roots, "source")
    inside = os.path.join (world.roots, "inside")
    os.mkdir (inside)
    os.mkdir (source)
    over = threading.Event ()

    def swap ():
        while not over.is_set ():
            os.rename (source, inside + "-1")
            os.symlink (world.out, source)
            os.unlink (source)
            os.rename (inside + "-1", source)
    thread = threading.Thread (target=swap)
    thread.start ()
    wrong = []
    try:
        for _ in range (max (4, SWAPS // 8)):
            r = world.ask ("POST", "/api/v1/sandboxes", {
                "ttl_ms": 60000, "mounts": [
                    {"source": source, "target": "/mnt", "writable": True}]})
            if r.status != 201:
                if r.status >= 500:
                    wrong.append (repr (r))
                continue
            box = "/api/v1/sandboxes/" + r.json ()["id"]
            world.ask ("POST", box + "/execs?wait=1", {"argv": [
                "/bin/sh", "-c", "cat /mnt/f; echo x >>/mnt/f"]})
            world.ask ("DELETE", box)
    finally:
        over.set ()
        thread.join ()
    return "never outside" if not wrong else wrong[0]


@case ("TO06", "an id that has gone leads nowhere")
def gone (world):
    r = world.ask ("POST", "/api/v1/sandboxes", {"ttl_ms": 60000})
    box = "/api/v1/sandboxes/" + r.json ()["id"]
    world.ask ("POST", box + "/execs", {"argv": ["/bin/sleep", "600"],
                                        "background": True})
    world.ask ("DELETE", box)
    world.ask ("POST", "/api/v1/sandboxes", {"ttl_ms": 60000})
    return " ".join (str (world.ask (*what).status) for what in (
        ("GET", box + "/files/f"), ("PUT", box + "/files/f", b"x"),
        ("POST", box + "/execs?wait=1", {"argv": ["/bin/true"]})))


# ---- what is this machine's own ----------------------------------------------

def reached (world, entry, own=False):
    """Whether a token may ask for it; the daemon's user may."""
    r = world.ask ("POST", "/api/v1/sandboxes",
                   {"ttl_ms": 60000, "network": "allow", "allow": [entry]},
                   **{} if own else {"token": world.token, "over": "tcp"})
    if r.status == 201:
        world.ask ("DELETE", "/api/v1/sandboxes/" + r.json ()["id"])
    return str (r.status)


rows ("NE06", "an address that is asked for", reached, (
    ("loopback", "127.0.0.1:80"), ("loopback, of version 6", "[::1]:80"),
    ("loopback in version 6", "[::ffff:127.0.0.1]:80"),
    ("none, which is loopback", "0.0.0.0:80"),
    ("of a cloud's secrets", "169.254.169.254:80"),
    ("private", "10.0.0.1:80"), ("as a number", "2130706433:80"),
    ("in octal", "0177.0.0.1:80"), ("public", "8.8.8.8:53"),
    ("a name", "example.com:443"),
    ("loopback, by the daemon's user", "127.0.0.1:80", True)))


@case ("NE06", "an address that a session asks for")
def reached_box (world):
    return str (world.ask ("POST", "/api/v1/box/exec", {
        "session_id": "ne06", "cmd": "true", "network": "on",
        "allow": ["127.0.0.1:80"]}, token=world.token, over="tcp").status)


# ---- secrets -----------------------------------------------------------------

def written (world):
    """Every byte that the daemon keeps, by its file."""
    out = {}
    for folder, _, names in os.walk (world.server.home):
        for name in names:
            path = os.path.join (folder, name)
            if os.path.isfile (path) and not os.path.islink (path):
                with open (path, "rb") as f:
                    out[os.path.relpath (path, world.server.home)] = f.read ()
    return out


@case ("CR02", "no secret is in a command line")
def command_lines (world):
    command = world.ask ("POST", world.box + "/execs", {
        "argv": ["/bin/sleep", "600"], "env": {"S": ENV_SECRET},
        "background": True}).json ()["exec"]
    lines = [d.command_line (p) for p in
             [world.server.pid] + d.below (world.server.pid)
             + d.below (os.getpid ())]
    world.ask ("POST", "%s/execs/%s/signal" % (world.box, command),
               {"signal": 9})
    return "none" if not [x for x in lines if ENV_SECRET in x
                          or world.token.split ("_")[-1] in x] else "some"


@case ("CR06", "nor in anything that is kept")
def kept (world):
    world.run ("/bin/true", env={"S": ENV_SECRET})
    world.ask ("POST", "/api/v1/box/exec", {
        "session_id": "cr06", "cmd": "true", "env": {"S": ENV_SECRET}})
    world.ask ("POST", "/api/v1/box/sessions/cr06/processes", {
        "command": "true", "env": {"S": ENV_SECRET}})
    r = world.ask ("GET", "/metrics")
    found = [path for path, text in written (world).items ()
             if ENV_SECRET.encode () in text]
    world.ask ("DELETE", "/api/v1/box/sessions/cr06")
    return "none" if not found and ENV_SECRET.encode () not in r.body \
        else repr (found)


@case ("CR08", "nor is code in a log")
def code_logged (world):
    world.execute ("x = '%s'" % CODE_SECRET)
    world.run ("/bin/sh", "-c", ": " + CODE_SECRET)
    found = [path for path, text in written (world).items ()
             if CODE_SECRET.encode () in text
             and not path.startswith ("run/")]
    return "none" if not found else repr (found)


@case ("CR09", "what one was given the next has not")
def next_has_not (world):
    world.run ("/bin/sh", "-c", "echo $S", env={"S": ENV_SECRET})
    world.execute ("x = 1", files=[{"path": "a", "content": ENV_SECRET}])
    r = world.run ("/bin/sh", "-c", "env; cat /proc/self/environ")
    e = world.execute ("open('a').read()")
    return "none" if ENV_SECRET.encode () not in r.body + e.body else "some"


@case ("CR09", "nobody enters what waits for the next")
def waits_for_next (world):
    folder = os.path.join (world.server.home, "run", "runs")

    def waiting ():
        world.execute ("1")
        return d.soon (lambda: os.listdir (folder), 2)
    ids = d.soon (waiting) or []
    said = [world.ask (method, "/api/v1/sandboxes/" + name + path, body).status
            for name in ids for method, path, body in (
                ("GET", "", None), ("GET", "/execs", None),
                ("POST", "/execs", {"argv": ["true"]}),
                ("PUT", "/files/a", "b"), ("GET", "/ports/80/", None),
                ("DELETE", "", None))]
    listed = world.ask ("GET", "/api/v1/sandboxes?limit=1000").body
    if not ids or any (name.encode () in listed for name in ids):
        return "listed" if ids else "none waits"
    return " ".join (sorted (set (map (str, said))))


# Who else shows it: (of the corpus, what, where, by which word).
ELSEWHERE = (
    ("HT20", "1000 at once", "tests/server/faults.py", "many_at_once"),
    ("CR04", "no credential goes on through a port",
     "tests/server/ports-client.py", '"Authorization"'),
    ("CR05", "a worker does not let itself be read", "tests/unit/test-hostile.c",
     '"more"'),
    ("CR10", "hashes of tokens are compared in one time",
     "core/policy/token-verify.c", "difference |="))


def others ():
    """What corpus.py runs through HTTP, and who else shows what."""
    os.environ.setdefault ("COFFER_BUILD", d.BUILD)
    import corpus
    for name, *_ in corpus.CASES:
        found = re.match (r"((?:PY|OU|CR)\d\d) (.*)", name)
        if found:
            yield found[1], found[2], "tests/server/corpus.py", found[2]
    yield from ELSEWHERE


# ---- the table ---------------------------------------------------------------

def table_read ():
    out = {}
    with open (TABLE, encoding="utf-8") as f:
        for line in f:
            if not line.startswith ("#"):
                corpus, what, answer = line.rstrip ("\n").split ("\t")
                out[corpus, what] = answer
    del out["corpus", "case"]
    return out


def table_write (path, lines):
    with open (path, "w", encoding="utf-8") as f:
        f.write ("# SPDX-License-Identifier: Apache-2.0\n"
                 "corpus\tcase\tanswer\n")
        f.writelines ("%s\t%s\t%s\n" % line for line in lines)


def judge (world, want, corpus, what, function):
    try:
        answer = function (world)
    except Exception as e:
        answer = "%s: %s" % (type (e).__name__, e)
    wrong = list (world.faults ())
    what = re.sub (": $", "", what)
    good = want.get ((corpus, what))
    d.ok ("%s %s" % (corpus, what), not wrong and answer == good,
          "%s\ngot:  %s\nwant: %s" % ("\n".join (wrong), answer, good))
    return corpus, what, answer


def main ():
    d.needs_sandbox ()
    path = os.environ.get ("ATTACK_WRITE")
    want = {} if path else table_read ()
    world = World ()
    world.execute ("1")
    before = d.held (world.server.pid)
    names = [(corpus, what) for corpus, what, _ in cases]
    assert len (set (names)) == len (names)
    lines = [judge (world, want, *one) for one in cases]
    for corpus, what, test, word in others ():
        lines.append ((corpus, what, test))
        with open (os.path.join (d.SOURCE, test), encoding="utf-8") as f:
            text = f.read ()
        if want.get ((corpus, what)) != test or word not in text:
            d.ok ("%s %s: shown by %s" % (corpus, what, test), False)
    d.equal ("each of the corpus is in the table",
             sorted (set (CORPUS) - {line[0] for line in lines}), [])
    d.equal ("and nothing else", sorted (set (want) - {
        line[:2] for line in lines}), [])
    if path:
        table_write (path, lines)
    world.server.coffer ("sandbox", "kill", "--all", "--yes")
    d.ok ("descriptors are as many as before", d.soon (
        lambda: len (d.held (world.server.pid)) <= len (before)),
        d.more (before, d.held (world.server.pid)))
    d.equal ("the daemon ends when it is told to", world.server.stop (), 0)
    d.ok ("nothing broke in it", not re.search (
        "Sanitizer|runtime error", world.server.said (1 << 20)))
    shutil.rmtree (world.folder)
    d.finish ()


main ()
