# SPDX-License-Identifier: Apache-2.0
"""Attaching to a process of the box by WebSocket: with a client that others have
written (npm's `ws`, where it is), and with peers that keep to nothing."""

import base64
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import threading
import time

import daemon as d

BOX = "/api/v1/box/sessions/socket"
KEY = base64.b64encode (b"0123456789abcdef").decode ()
# Answers each line; of some words it does what they say.
PROGRAM = """
import sys
for line in sys.stdin.buffer:
    line = line.rstrip(b'\\n')
    out = b'got ' + line
    if line == b'long': out = 'é'.encode() * 1500000
    if line == b'bytes': out = b'\\xff\\xfe'
    if line == b'many': out = b'\\n'.join(b'%d' % i for i in range(20000))
    if line == b'sleep': import time; time.sleep(600)
    if line == b'end':
        sys.stdout.write('no newline'); sys.exit(3)
    sys.stdout.buffer.write(out + b'\\n')
    sys.stdout.flush()
"""


class Refused (Exception):
    pass


class Closed (Exception):
    pass


class Peer:
    """A client of its own, which may also do what none does."""

    def __init__ (self, server, process="p", headers=(), token=None,
                  over="unix"):
        self.s = server.raw (over)
        lines = ["GET %s/processes/%s/attach HTTP/1.1" % (BOX, process),
                 "Host: localhost", "Connection: keep-alive, Upgrade",
                 "Upgrade: websocket"]
        given = dict ({"Sec-WebSocket-Key": KEY,
                       "Sec-WebSocket-Version": "13"}, **dict (headers))
        lines += ["%s: %s" % h for h in given.items () if h[1] is not None]
        self.s.sendall (("\r\n".join (lines) + "\r\n\r\n").encode ())
        self.file = self.s.makefile ("rb")
        self.status = int (self.file.readline ().split ()[1])
        self.headers = {}
        while True:
            line = self.file.readline ().decode ().strip ()
            if not line:
                break
            name, _, value = line.partition (": ")
            self.headers[name.lower ()] = value
        if self.status != 101:
            size = int (self.headers.get ("content-length", 0))
            raise Refused (self.status, self.file.read (size), self.headers)

    def frame (self, op, data=b"", last=True, mask=b"\1\2\3\4", size=None,
               bits=0):
        n = len (data) if size is None else size
        out = bytes ([(0x80 if last else 0) | bits | op])
        m = 0x80 if mask else 0
        if n < 126:
            out += bytes ([m | n])
        elif n < 65536:
            out += bytes ([m | 126]) + struct.pack (">H", n)
        else:
            out += bytes ([m | 127]) + struct.pack (">Q", n)
        if mask:
            key = int.from_bytes (mask * (len (data) // 4 + 1), "big") \
                >> (8 * (4 - len (data) % 4))
            data = (int.from_bytes (data, "big") ^ key).to_bytes (
                len (data), "big") if data else b""
        self.s.sendall (out + (mask or b"") + data)

    def say (self, text):
        self.frame (1, text.encode () if isinstance (text, str) else text)

    def next (self):
        """A frame: (op, data, last)."""
        head = self.file.read (2)
        if len (head) < 2:
            raise Closed (None)
        n = head[1]
        if n == 126:
            n, = struct.unpack (">H", self.file.read (2))
        elif n == 127:
            n, = struct.unpack (">Q", self.file.read (8))
        return head[0] & 15, self.file.read (n), bool (head[0] & 0x80)

    def message (self):
        """(op, all of it); a close raises."""
        kind, text = None, b""
        while True:
            op, data, last = self.next ()
            if op == 8:
                raise Closed (*struct.unpack (">H", data[:2]),
                              data[2:].decode ())
            if op in (9, 10):
                return op, data
            kind = kind or op
            text += data
            if last:
                return kind, text

    def closed (self):
        """With which code; None: without."""
        try:
            while True:
                self.message ()
        except Closed as e:
            return e.args[0]
        except ConnectionError:
            return "reset"

    def close (self):
        self.file.close ()
        self.s.close ()


def begin (server, name="p", program=PROGRAM):
    r = server.request ("POST", BOX + "/processes", {
        "process_id": name, "command": "/usr/bin/python3",
        "args": ["-uc", program]})
    if r.status != 200:
        raise RuntimeError (repr (r))


def is_free (server, name="p"):
    def free ():
        r = server.request ("GET", "%s/processes/%s" % (BOX, name))
        return not r.json ()["data"]["attached"]
    return d.soon (free)


def talk (server):
    p = Peer (server, headers={"Sec-WebSocket-Protocol": "x, mcp"})
    want = base64.b64encode (hashlib.sha1 (
        (KEY + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode ()).digest ())
    d.equal ("the handshake", (p.headers["sec-websocket-accept"],
                               p.headers.get ("sec-websocket-protocol")),
             (want.decode (), "mcp"))
    p.say ('{"a": "ä☃"}')
    d.equal ("a message is a line, both ways", p.message (),
             (1, 'got {"a": "ä☃"}'.encode ()))
    p.frame (1, b"in ", last=False)
    p.frame (9, b"are you there")
    p.frame (0, b"parts", last=True)
    got = sorted ([p.message (), p.message ()])
    d.equal ("in fragments too, with a ping between them", got,
             [(1, b"got in parts"), (10, b"are you there")])
    p.say ("bytes")
    d.equal ("what is no text is binary", p.message (), (2, b"\xff\xfe"))
    p.say ("long")
    kind, text = p.message ()
    d.ok ("a long line is one message, in fragments",
          kind == 2 and text == "é".encode () * 1500000, len (text))
    p.say ("many")
    got = [p.message ()[1] for _ in range (20000)]
    d.ok ("many lines are as many messages",
          got == [b"%d" % i for i in range (20000)])
    try:
        Peer (server)
        d.ok ("one is attached at a time", False)
    except Refused as e:
        d.equal ("one is attached at a time", (
            e.args[0], json.loads (e.args[1])["error"]["name"]), (409, "BUSY"))
    p.frame (8, struct.pack (">H", 1000) + b"bye")
    d.equal ("a close is answered", p.closed (), 1000)
    p.close ()
    is_free (server)
    server.request ("POST", BOX + "/processes/p/stdin", b"meanwhile")
    p = Peer (server)
    d.equal ("who attaches next gets what came meanwhile", p.message (),
             (1, b"got meanwhile"))
    p.say ("end")
    d.equal ("a rest without an end of a line", p.message (),
             (1, b"no newline"))
    try:
        p.message ()
    except Closed as e:
        d.equal ("the process' end closes it", e.args,
                 (1000, "the process has ended with 3"))
    p.close ()


def refused (server):
    for what, headers, status in (
            ("another version", {"Sec-WebSocket-Version": "8"}, 400),
            ("no version", {"Sec-WebSocket-Version": None}, 400),
            ("no key", {"Sec-WebSocket-Key": None}, 400),
            ("a key that is none", {"Sec-WebSocket-Key": "x"}, 400)):
        try:
            Peer (server, headers=headers)
            got = 101
        except Refused as e:
            got = e.args[0]
        d.equal ("a handshake with " + what, got, status)
    for what, over, headers, status in (
            ("without a token", "tcp", {}, 401),
            ("of a page of the web", "tcp", {
                "Origin": "http://evil.example",
                "Authorization": "Bearer " + server.token ("w", "run")}, 403),
            ("of who may only look", "tcp", {
                "Authorization": "Bearer " + server.token ("v", "view")}, 403)):
        try:
            Peer (server, headers=headers, over=over)
            got = 101
        except Refused as e:
            got = e.args[0]
        d.equal ("one " + what, got, status)


def hostile (server):
    """What breaks the rules is told so, and takes nothing with it."""
    def unmasked (p):
        p.frame (1, b"x", mask=None)

    def huge (p):
        p.frame (1, b"", size=1 << 40)

    def negative (p):
        p.frame (1, b"", size=1 << 63)

    def large (p):
        for i in range (20):
            p.frame (0 if i else 1, b"x" * (1 << 20), last=False)

    def no_text (p):
        p.frame (1, b"\xff")

    def half_text (p):
        p.frame (1, b"\xc3", last=True)

    def split_ping (p):
        p.frame (9, b"x", last=False)

    def long_ping (p):
        p.frame (9, b"x" * 126)

    def reserved (p):
        p.frame (1, b"x", bits=0x40)

    def opcode (p):
        p.frame (3, b"x")

    def continued (p):
        p.frame (0, b"x")

    def begun_twice (p):
        p.frame (1, b"x", last=False)
        p.frame (1, b"x")

    def short_close (p):
        p.frame (8, b"x")

    def code_close (p):
        p.frame (8, struct.pack (">H", 1005))
    for what, do, code in (
            ("an unmasked frame", unmasked, 1002),
            ("a length of 2^40", huge, 1009),
            ("a length of 2^63", negative, 1009),
            ("fragments without end", large, 1009),
            ("text that is none", no_text, 1007),
            ("text that is cut", half_text, 1007),
            ("a ping in parts", split_ping, 1002),
            ("a long ping", long_ping, 1002),
            ("a reserved bit", reserved, 1002),
            ("a kind that is none", opcode, 1002),
            ("a continuation of nothing", continued, 1002),
            ("a message in a message", begun_twice, 1002),
            ("a close of one byte", short_close, 1002),
            ("a close with a code that is none", code_close, 1002)):
        p = Peer (server)
        try:
            do (p)
        except ConnectionError:
            pass                # it was hung up on already
        d.equal (what, p.closed (), code)
        p.close ()
        is_free (server)
    p = Peer (server)
    p.s.sendall (b"\x81\xfe")
    p.close ()
    d.ok ("who leaves in the middle of a frame is not attached",
          is_free (server))
    p = Peer (server)
    p.say ("sleep")
    body = b"x" * (1 << 20)
    p.say (body)                # more than its pipe takes
    p.close ()
    d.ok ("nor who leaves while the process takes nothing", is_free (server))
    r = server.request ("DELETE", BOX + "/processes/p")
    d.equal ("which can be ended", r.status, 200)


def unread (server):
    """A client that reads nothing: the process goes on."""
    begin (server, "flood", "for i in range(300000): print(i)\n"
           "open('/workspace/done', 'w').close()\nimport time\ntime.sleep(600)")
    p = Peer (server, "flood")
    done = d.soon (lambda: b"done" in server.request (
        "POST", "/api/v1/box/exec", {"session_id": "socket",
                                     "cmd": "ls /workspace"}).body)
    d.ok ("who does not read hinders no process", done)
    r = server.request ("DELETE", BOX + "/processes/flood")
    d.equal ("and it can be ended", r.status, 200)
    got, code = [], None
    try:
        while True:
            got.append (p.message ()[1])
    except Closed as e:
        code = e.args[0]
    except ConnectionError:
        code = "reset"
    d.ok ("what it reads then is in order, without a hole",
          got == [b"%d" % i for i in range (len (got))],
          "%r %r" % (got[:3], code))
    p.close ()


def drained (server):
    p = Peer (server)
    p.say ("hello")
    p.message ()
    threading.Timer (0.1, server.process.terminate).start ()
    d.equal ("a daemon that ends says so", p.closed (), 1001)
    p.close ()
    d.equal ("and does", server.stop (), 0)
    server.start ()
    p = Peer (server)
    p.say ("again")
    d.equal ("the next one goes on, from the first line", [
        p.message ()[1], p.message ()[1]], [b"got hello", b"got again"])
    p.close ()


NODE = """
const WebSocket = require(process.argv[1] + '/node_modules/ws');
const ws = new WebSocket('ws+unix:' + process.argv[2], ['mcp']);
const got = [];
ws.on('open', () => { ws.send('one'); ws.send('zwei ☃'); ws.ping('x'); });
ws.on('pong', () => got.push('pong'));
ws.on('message', (data, binary) => {
  got.push([data.toString(), binary]);
  if (got.filter(Array.isArray).length == 2) ws.send('end');
});
ws.on('close', (code, why) => {
  console.log(JSON.stringify([ws.protocol, got, code, why.toString()]));
});
ws.on('error', e => console.log(JSON.stringify(String(e))));
setTimeout(() => process.exit(1), 50000);
ws.on('close', () => process.exit(0));
"""


def others (server):
    what = "a client that others have written"
    npm = os.environ.get ("COFFER_NPM", os.path.join (d.BUILD, "npm"))
    if not shutil.which ("node") or not os.path.exists (
            os.path.join (npm, "node_modules/ws/package.json")):
        d.skip (what, "the packages of tests/server/npm")
        return
    link = os.path.join (server.home, "s")
    os.symlink (server.socket, link)
    r = subprocess.run (["node", "-e", NODE, npm, "%s:%s/processes/p/attach"
                         % (link, BOX)], capture_output=True, timeout=60,
                        stdin=subprocess.DEVNULL)
    try:
        protocol, got, code, why = json.loads (r.stdout)
    except ValueError:
        d.ok (what, False, r.stdout + r.stderr)
        return
    d.equal (what, (protocol, [g for g in got if g != "pong"], got.count (
        "pong"), code, why), (
        "mcp", [["got one", False], ["got zwei ☃", False],
                ["no newline", False]], 1, 1000,
        "the process has ended with 3"))


def main ():
    d.needs_sandbox ()
    if not os.access ("/usr/bin/python3", os.X_OK):
        d.skip_all ("/usr/bin/python3")
    server = d.Daemon ().start ()
    r = server.request ("POST", "/api/v1/box/sessions", {
        "session_id": "socket", "memory_mb": 512})
    if r.status != 200:
        raise RuntimeError (repr (r))
    begin (server)
    server.request ("GET", BOX + "/processes/p")
    before = d.held (server.pid)
    talk (server)
    begin (server)
    refused (server)
    others (server)
    begin (server)
    hostile (server)
    unread (server)
    server.request ("DELETE", BOX + "/processes/p")
    d.ok ("descriptors are as many as before", d.soon (
        lambda: len (d.held (server.pid)) <= len (before)),
        d.more (before, d.held (server.pid)))
    begin (server)
    drained (server)
    server.request ("DELETE", BOX)
    d.equal ("the daemon ends when it is told to", server.stop (), 0)
    said = server.said (1 << 20)
    broke = re.search ("Sanitizer|runtime error", said)
    d.ok ("nothing broke in it", not broke,
          broke and said[broke.start ():][:6000])
    d.finish ()


main ()
