#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""internet.py serve DIR | internet.py CASE [ARG…]

`serve` is the internet of tests/e2e/network.sh: servers on addresses that the
loopback of a network namespace has, and a name server.  Who was reached is in
DIR/hits, which name was asked for in DIR/asked.  The other cases run inside of
a sandbox and print what they got.
"""

import hashlib
import json
import os
import socket
import socketserver
import struct
import sys
import threading
import time

PROXY = ("127.0.0.1", 3128)
ADDRESSES = {
    b"two.example.test": [["10.9.9.9", "93.184.216.34"]],
    # What a name leads to changes from one question to the next.
    b"rebind.example.test": [["93.184.216.34"], ["127.0.0.1"]],
    b"nat.example.test": [["64:ff9b::808:808"]],
    b"mapped.example.test": [["::ffff:127.0.0.1"]],
    b"meta.example.test": [["169.254.169.254"]],
    b"six.example.test": [["2606:2800:220::1"]],
}


# ---- servers -----------------------------------------------------------------

def note (name, text):
    with open (os.path.join (sys.argv[2], name), "a") as log:
        log.write (text + "\n")


class Http (socketserver.StreamRequestHandler):
    """Says what it got, to the byte, and how many bytes came after it."""

    def handle (self):
        head = b""
        while not head.endswith (b"\r\n\r\n"):
            line = self.rfile.readline (65536)
            if not line:
                break
            head += line
        fields = dict (line.lower ().split (b":", 1)
                       for line in head.split (b"\r\n")[1:] if b":" in line)
        body = b""
        if b"content-length" in fields:
            body = self.rfile.read (int (fields[b"content-length"]))
        elif b"transfer-encoding" in fields:
            while True:
                size = int (self.rfile.readline ().split (b";")[0], 16)
                body += self.rfile.read (size)
                self.rfile.readline ()
                if size == 0:
                    break
        note ("hits", self.server.tag + " " + head.split (b"\r\n")[0].decode ())
        self.connection.settimeout (0.1)
        try:
            more = len (self.connection.recv (65536))
        except TimeoutError:
            more = -1                   # silent, and still there
        answer = json.dumps ({
            "server": self.server.tag, "head": head.decode ("latin-1"),
            "body": hashlib.sha256 (body).hexdigest (), "size": len (body),
            "more": more}).encode ()
        self.wfile.write (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"
                          % (len (answer), answer))


class Count (socketserver.StreamRequestHandler):
    """Hears all of it, and says then how much that was."""

    def handle (self):
        seen, total = hashlib.sha256 (), 0
        while True:
            chunk = self.connection.recv (1 << 18)
            if not chunk:
                break
            seen.update (chunk)
            total += len (chunk)
        self.wfile.write (b"%d %s\n" % (total, seen.hexdigest ().encode ()))


class Pour (socketserver.StreamRequestHandler):
    """Sends 32 MiB without having heard anything."""

    def handle (self):
        for _ in range (32):
            self.wfile.write (b"x" * (1 << 20))


class Early (socketserver.StreamRequestHandler):
    """Answers the head of a request, and takes nothing more."""

    def handle (self):
        while self.rfile.readline () not in (b"\r\n", b""):
            pass
        self.wfile.write (b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\n"
                          b"no\n")


def name_server ():
    sock = socket.socket (socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind (("127.0.0.1", 53))
    asked = {}
    while True:
        query, peer = sock.recvfrom (4096)
        labels, at = [], 12
        while query[at]:
            labels.append (query[at + 1:at + 1 + query[at]])
            at += 1 + query[at]
        kind = struct.unpack (">H", query[at + 1:at + 3])[0]
        name = b".".join (labels).lower ()
        question = query[12:at + 5]
        note ("asked", f"{name.decode ()} {kind}")
        rounds = ADDRESSES.get (name)
        answers = b""
        count = 0
        if rounds:
            turn = asked.get ((name, kind), 0)
            asked[(name, kind)] = turn + 1
            for address in rounds[min (turn, len (rounds) - 1)]:
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                if (kind == 28) != (family == socket.AF_INET6):
                    continue
                data = socket.inet_pton (family, address)
                answers += b"\xc0\x0c" + struct.pack (">HHIH", kind, 1, 0,
                                                      len (data)) + data
                count += 1
        flags = 0x8180 if rounds else 0x8183
        sock.sendto (query[:2] + struct.pack (">HHHHH", flags, 1, count, 0, 0)
                     + question + answers, peer)


class Server (socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64


class Server6 (Server):
    address_family = socket.AF_INET6


def serve ():
    for tag, address, port, handler in [
            ("www", "93.184.216.34", 80, Http),
            ("www8080", "93.184.216.34", 8080, Http),
            ("other", "93.184.216.35", 80, Http),
            ("loopback", "127.0.0.1", 81, Http),
            ("loopback80", "127.0.0.1", 80, Http),
            ("private", "10.9.9.9", 80, Http),
            ("metadata", "169.254.169.254", 80, Http),
            ("six", "2606:2800:220::1", 80, Http),
            ("count", "93.184.216.34", 7, Count),
            ("pour", "93.184.216.34", 19, Pour),
            ("early", "93.184.216.34", 9, Early)]:
        kind = Server6 if ":" in address else Server
        server = kind ((address, port), handler)
        server.tag = tag
        threading.Thread (target=server.serve_forever, daemon=True).start ()
    threading.Thread (target=name_server, daemon=True).start ()
    note ("ready", "yes")
    while os.getppid () != 1:
        time.sleep (0.1)


# ---- clients -----------------------------------------------------------------

def connect ():
    return socket.create_connection (PROXY, 10)


def hear (sock):
    data = []
    try:
        while True:
            chunk = sock.recv (1 << 18)
            if not chunk:
                break
            data.append (chunk)
    except ConnectionResetError:
        data.append (b"<reset>")
    return b"".join (data)


def ask (data, cut=None):
    sock = connect ()
    if cut:
        for at in range (0, len (data), cut):
            sock.sendall (data[at:at + cut])
            time.sleep (0.0005)
    else:
        sock.sendall (data)
    return hear (sock)


def status (answer):
    return answer.split (b"\r\n")[0].decode ("latin-1")[9:12]


def raw ():
    """Requests that are malformed, or want what is not listed."""
    get = b"GET http://www.example.test/ HTTP/1.1\r\n"
    big = b"X: " + b"a" * 20000
    for name, data in [
            ("nul in the name", b"CONNECT evil\0.www.example.test:80 HTTP/1.1\r\n\r\n"),
            ("nul in a URL", b"GET http://www.example.test\0.evil/ HTTP/1.1\r\n\r\n"),
            ("lf alone", get + b"Host: www.example.test\nX: y\r\n\r\n"),
            ("cr alone", get + b"Host: www.example.test\rX: y\r\n\r\n"),
            ("Host of another", get + b"Host: other.example.test\r\n\r\n"),
            ("two Hosts", get + b"Host: www.example.test\r\nHost: other.example.test\r\n\r\n"),
            ("two lengths", get + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
            ("length and chunks", get + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            ("negative length", get + b"Content-Length: -5\r\n\r\n"),
            ("headers of 20000 bytes", get + big + b"\r\n\r\n"),
            ("no http at all", b"\x16\x03\x01\x02\0\1\0\1\xfc\3\3" + b"a" * 300),
            ("origin form", b"GET / HTTP/1.1\r\nHost: www.example.test\r\n\r\n"),
            ("user in a URL", b"GET http://www.example.test@other.example.test/ HTTP/1.1\r\n\r\n"),
            ("percent sign", b"CONNECT www%2eexample.test:80 HTTP/1.1\r\n\r\n"),
            ("another port", b"CONNECT www.example.test:81 HTTP/1.1\r\n\r\n"),
            ("its address", b"CONNECT 93.184.216.34:80 HTTP/1.1\r\n\r\n"),
            ("as a number", b"CONNECT 1572395042:80 HTTP/1.1\r\n\r\n"),
            ("loopback", b"CONNECT 127.0.0.1:81 HTTP/1.1\r\n\r\n"),
            ("loopback, short", b"CONNECT 127.1:81 HTTP/1.1\r\n\r\n"),
            ("loopback, mapped", b"CONNECT [::ffff:127.0.0.1]:81 HTTP/1.1\r\n\r\n"),
            ("loopback of six", b"CONNECT [::1]:81 HTTP/1.1\r\n\r\n"),
            ("link-local with a zone", b"CONNECT [fe80::1%25lo]:81 HTTP/1.1\r\n\r\n"),
            ("localhost", b"CONNECT localhost:81 HTTP/1.1\r\n\r\n"),
            ("a longer name", b"CONNECT www.example.test.evil.test:80 HTTP/1.1\r\n\r\n"),
            ("a shorter name", b"CONNECT example.test:80 HTTP/1.1\r\n\r\n"),
            ("a name of 300 bytes", b"CONNECT " + b"a." * 150 + b":80 HTTP/1.1\r\n\r\n"),
            ("the proxy itself", b"CONNECT 127.0.0.1:3128 HTTP/1.1\r\n\r\n")]:
        print (f"{name}: {status (ask (data))}")


def cuts ():
    """The same request, in pieces of each size, and bytes after it."""
    data = (b"POST http://www.example.test/x HTTP/1.1\r\nHost: www.example.test"
            b"\r\nContent-Length: 5\r\n\r\nhelloGET http://other/ HTTP/1.1\r\n\r\n")
    for cut in (1, 2, 3, 7, 50, None):
        body = ask (data, cut).split (b"\r\n\r\n", 1)[1]
        got = json.loads (body)
        print (got["size"], got["more"], got["body"][:8])
    tunnel = (b"CONNECT www.example.test:80 HTTP/1.1\r\n\r\n"
              b"GET /inside HTTP/1.1\r\n\r\n")
    print (sum (b'"server": "www"' in ask (tunnel, cut) for cut in (1, 5, None)))


def tunnel (port):
    sock = connect ()
    sock.sendall (b"CONNECT www.example.test:%d HTTP/1.1\r\n\r\n" % port)
    head = b""
    while not head.endswith (b"\r\n\r\n"):
        head += sock.recv (1)
    return sock


def big ():
    """32 MiB each way; an end in one direction is not one in the other."""
    sock = tunnel (7)
    seen = hashlib.sha256 ()
    block = os.urandom (1 << 20)
    for _ in range (32):
        sock.sendall (block)
        seen.update (block)
    sock.shutdown (socket.SHUT_WR)
    print (hear (sock) == b"%d %s\n" % (32 << 20, seen.hexdigest ().encode ()))
    sock = tunnel (19)
    time.sleep (0.3)                    # it waits, and nothing is lost
    print (len (hear (sock)) == 32 << 20)


def early ():
    """An answer before the body was sent is an answer."""
    sock = connect ()
    sock.sendall (b"POST http://www.example.test:9/ HTTP/1.1\r\n"
                  b"Content-Length: 99999999\r\n\r\n")
    try:
        for _ in range (50):
            sock.sendall (b"x" * 1000)
            time.sleep (0.005)
    except OSError:
        pass
    print (status (hear (sock)))


def socks (request):
    sock = connect ()
    sock.sendall (b"\5\1\0")
    assert sock.recv (2) == b"\5\0"
    sock.sendall (request)
    answer = sock.recv (10)
    return sock, answer[1] if len (answer) == 10 else -1


def socks5 ():
    def named (name, port, command=1):
        return (b"\5" + bytes ([command]) + b"\0\3" + bytes ([len (name)]) + name
                + struct.pack (">H", port))
    sock, answer = socks (named (b"WWW.example.test.", 80))
    sock.sendall (b"GET /socks HTTP/1.1\r\n\r\n")
    print ("listed", answer, b'"server": "www"' in hear (sock))
    for what, request in [
            ("another name", named (b"other.example.test", 80)),
            ("nul", named (b"www.example.test\0.evil", 80)),
            ("255 bytes", named (b"a" * 255, 80)),
            ("address", b"\5\1\0\1" + socket.inet_aton ("127.0.0.1") + b"\0\x51"),
            ("bind", named (b"www.example.test", 80, 2)),
            ("unknown", named (b"no.example.test", 80)),
            ("refused", named (b"www.example.test", 1))]:
        print (what, socks (request)[1])
    sock = connect ()
    sock.sendall (b"\5\1\2")            # with a password alone
    print ("password", hear (sock).hex ())
    # All at once, as some do.
    sock = connect ()
    sock.sendall (b"\5\1\0" + named (b"www.example.test", 80)
                  + b"GET /once HTTP/1.1\r\n\r\n")
    print ("at once", b'"server": "www"' in hear (sock))


def names (*targets):
    for name in targets:
        answer = ask (b"GET http://%s/ HTTP/1.1\r\n\r\n" % name.encode ())
        got = answer.split (b"\r\n\r\n", 1)[1].decode ()
        print (name, status (answer), json.loads (got)["server"]
               if status (answer) == "200" else got.strip ())


def idle (count, seconds):
    """Many that say nothing, and one that says a byte at a time."""
    socks_ = [socket.create_connection (PROXY, 5) for _ in range (int (count))]
    print ("connected", flush=True)
    begun = time.monotonic ()
    drip = connect ()
    drip.settimeout (float (seconds))
    try:
        while time.monotonic () - begun < float (seconds):
            drip.sendall (b"G")
            time.sleep (0.2)
    except OSError:
        pass
    sock = connect ()
    sock.settimeout (float (seconds))
    sock.sendall (b"CONNECT no:1 HTTP/1.1\r\n\r\n")
    print (status (hear (sock)), len (socks_))


def many ():
    for i in range (100):
        ask (b"CONNECT n%d.example.test:80 HTTP/1.1\r\n\r\n" % i)


def direct ():
    for address, port in [("93.184.216.34", 80), ("127.0.0.1", 81),
                          ("10.9.9.9", 80), ("169.254.169.254", 80)]:
        try:
            socket.create_connection ((address, port), 2)
            print (address, "reached")
        except OSError as error:
            print (address, error.strerror)


if sys.argv[1] == "serve":
    serve ()
else:
    globals ()[sys.argv[1]] (*sys.argv[2:])
