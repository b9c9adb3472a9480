# SPDX-License-Identifier: Apache-2.0
# Ports of a sandbox over HTTP: ports-client.py SANDBOX TOKEN; inside.py runs in it.
import base64, hashlib, json, os, random, socket, struct, sys, threading, time
sys.path.insert (0, os.path.dirname (os.path.abspath (__file__)))
from client import *

box = sys.argv[1]
tap = Tap ()
P = API + box + "/ports/"
WEB, RAW, WS = P + "8080", P + "8081", P + "8082"

for i in range (600):
    if all (request ("GET", P + "%d/" % p)[0] != 502 or p == 8082 for p in (8080, 8082)):
        break
    time.sleep (0.1)


def echo (method, path, headers=(), body=None):
    status, r, data = request (method, WEB + path, headers, body)
    return json.loads (data) if status == 200 else {"status": status}


def seen (answer, name):
    return [v for k, v in answer["headers"] if k.lower () == name.lower ()]


def code (method, path, headers=()):
    status, r, data = request (method, path, headers)
    try:
        return status, json.loads (data)["error"]["code"]
    except (ValueError, KeyError):
        return status, data[:100]


# -- what goes in
info = json.loads (request ("GET", WEB)[2])
tap.is_ ("a port is told", (info["sandbox"], info["port"], info["path"]), (box, 8080, WEB + "/"))
got = echo ("GET", "/a%2Fb//c/../d?x=1&y=%20+z", [
    ("Authorization", "Bearer " + sys.argv[2]), ("Cookie", "coffer_session=1; mine=2; coffer=3"),
    ("Cookie", "coffer=4"), ("Connection", "X-Hop, keep-alive"), ("X-Hop", "1"),
    ("Keep-Alive", "5"), ("TE", "trailers"), ("Proxy-Authorization", "x"),
    ("X-Forwarded-For", "6.6.6.6"), ("Forwarded", "for=6.6.6.6"), ("X-Coffer-Who", "root"),
    ("X-Mine", "café")])
tap.is_ ("the path and the query go in as they are", got["path"], "/a%2Fb//c/../d?x=1&y=%20+z")
tap.is_ ("its host is its own", seen (got, "Host"), ["localhost:8080"])
for name in ("Authorization", "X-Hop", "Keep-Alive", "TE", "Proxy-Authorization", "Forwarded",
             "X-Coffer-Who", "Upgrade", "Transfer-Encoding"):
    tap.is_ ("%s does not go in" % name, seen (got, name), [])
tap.is_ ("of the cookies those that are not ours", seen (got, "Cookie"), ["mine=2"])
tap.is_ ("what was there before", (seen (got, "X-Forwarded-Host"), seen (got, "X-Forwarded-Prefix"),
                                   seen (got, "X-Forwarded-For")),
         (["localhost"], [WEB], ["unknown"]))
tap.is_ ("another header does", seen (got, "X-Mine"), ["café"])
tap.is_ ("the connection is for one request", seen (got, "Connection"), ["close"])
tap.is_ ("the root", echo ("GET", "/")["path"], "/")
for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
    got = echo (method, "/m", (), b"body of it")
    tap.is_ (method, (got["method"], got["body"]), (method, "body of it"))
s = begin ("POST", WEB + "/c", [("Transfer-Encoding", "chunked"), ("Connection", "close")])
s.sendall (b"5\r\nhello\r\n")
time.sleep (0.1)
s.sendall (b"6\r\n world\r\n0\r\n\r\n")
got = json.loads (Reply (s).body ())
tap.is_ ("a body in chunks", (got["body"], seen (got, "Transfer-Encoding"),
                              seen (got, "Content-Length")), ("hello world", ["chunked"], []))
big = random.Random (1).randbytes (8 << 20)
tap.is_ ("eight MiB in", request ("POST", WEB + "/hash", (), big)[2].decode (),
         hashlib.sha256 (big).hexdigest ())

# -- what comes out
status, r, data = request ("GET", WEB + "/big")
tap.is_ ("32 MiB out", (status, r.get ("Content-Length"), data == b"0123456789abcdef" * (2 << 20)),
         (200, str (32 << 20), True))
status, r, data = request ("HEAD", WEB + "/big")
tap.is_ ("HEAD", (status, r.get ("Content-Length"), data), (200, str (32 << 20), b""))
for n in (204, 304, 404, 500):
    status, r, data = request ("GET", WEB + "/status/%d" % n)
    tap.is_ ("%d" % n, (status, data, r.get ("ETag")), (n, b"" if n < 400 else b"text", '"1"'))
tap.is_ ("chunks", request ("GET", WEB + "/chunks")[2], b"line 0line 1line 2")
status, r, data = request ("GET", WEB + "/cookies")
tap.is_ ("a cookie is for this port alone", r.all ("Set-Cookie"), ["a=b; HttpOnly; Path=%s/" % WEB])
for name in ("Strict-Transport-Security", "Access-Control-Allow-Origin", "X-Dropped"):
    tap.is_ ("%s does not come out" % name, r.all (name), [])
tap.is_ ("another header does, come out", r.all ("X-Kept"), ["yes"])
tap.ok ("a page has no part in this server's origin",
        (r.get ("Content-Security-Policy") or "").startswith ("sandbox "))
for where, want in (("/there?x=1", WEB + "/there?x=1"), ("http://localhost:8080/x", WEB + "/x"),
                    ("https://example.org/x", "https://example.org/x"), ("//other/x", "//other/x"),
                    ("relative", "relative"), (WEB + "/x", WEB + "/x")):
    tap.is_ ("Location %s" % where[:30], request ("GET", WEB + "/go/" + where)[1].get ("Location"),
             want)


# -- a server that is not one
def raw (*parts, method="GET", headers=()):
    path = RAW + "/" + "/".join (p if p == "headers" else p.encode ("latin-1").hex () for p in parts)
    s = begin (method, path, list (headers) + [("Connection", "close")])
    try:
        r = Reply (s, method == "HEAD")
        data = r.body ()
        if r.status == 502:
            return 502, json.loads (data)["error"]["code"]
        return r.status, data
    except Broken:
        return "broken"
    finally:
        s.close ()


OK = "HTTP/1.1 200 OK\r\n"
good = {
    "no length": (OK + "\r\nall of it", b"all of it"),
    "HTTP/1.0, newlines alone": ("HTTP/1.0 200 OK\nA: b\n\nall of it", b"all of it"),
    "a length and more": (OK + "Content-Length: 3\r\n\r\nall of it", b"all"),
    "1xx before it": ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                      + OK + "\r\nit", b"it"),
    "chunks, and more": (OK + "Transfer-Encoding: chunked\r\n\r\n3\r\nall\r\n0\r\n\r\nof it", b"all"),
    "no reason": ("HTTP/1.1 200\r\n\r\nit", b"it"),
    "a length of nothing": (OK + "Content-Length: 0\r\n\r\n", b""),
}
for what, (text, want) in good.items ():
    tap.is_ ("a reply with %s" % what, raw (text), (200, want))
tap.is_ ("204 has no body", raw ("HTTP/1.1 204 No\r\nContent-Length: 3\r\n\r\nall"), (204, b""))
tap.is_ ("nor has a reply to HEAD", raw (OK + "Content-Length: 3\r\n\r\nall", method="HEAD"),
         (200, b""))
refused = {
    "nothing": "", "garbage": "hello there, this is not HTTP\r\n\r\n",
    "half a head": OK + "Content-Type: te", "two lengths": OK + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    "twice the same length": OK + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "a list of lengths": OK + "Content-Length: 1, 1\r\n\r\nx",
    "a length below 0": OK + "Content-Length: -1\r\n\r\nx",
    "a signed length": OK + "Content-Length: +1\r\n\r\nx",
    "a length beyond 2^63": OK + "Content-Length: 9223372036854775808\r\n\r\nx",
    "a length and chunks": OK + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks twice": OK + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "another coding": OK + "Transfer-Encoding: gzip\r\n\r\nx",
    "a blank before the colon": OK + "Content-Length : 1\r\n\r\nx",
    "a folded line": OK + "A: b\r\n c\r\n\r\nx", "a line without colon": OK + "nonsense\r\n\r\nx",
    "a NUL": OK + "A: b\0c\r\n\r\nx", "a bare CR": OK + "A: b\rContent-Length: 1\r\n\r\nx",
    "a status of 600": "HTTP/1.1 600 No\r\n\r\n", "a status that is none": "HTTP/1.1 2x0 No\r\n\r\n",
    "HTTP/2": "HTTP/2 200 OK\r\n\r\n", "another protocol unasked": "HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\n",
    "no last reply": "HTTP/1.1 100 Continue\r\n\r\n" * 40,
    "headers without number": OK + "A: b\r\n" * 200 + "\r\n",
}
for what, text in refused.items ():
    tap.is_ ("refused: %s" % what, raw (text), (502, "E7021"))
tap.is_ ("refused: headers without end", raw ("headers"), (502, "E7021"))
broken = {
    "half a body": OK + "Content-Length: 10\r\n\r\nhalf",
    "half a chunk": OK + "Transfer-Encoding: chunked\r\n\r\nA\r\nhalf",
    "no last chunk": OK + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    "no end of the trailers": OK + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\nA: b\r\n",
    "a chunk that is none": OK + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
    "a chunk below 0": OK + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n-1\r\n",
    "a chunk of 2^64": OK + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n10000000000000000\r\n",
    "more than the chunk": OK + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalfway\r\n0\r\n\r\n",
}
for what, text in broken.items ():
    head_end = text.index ("\r\n\r\n") + 4
    tap.is_ ("broken off: %s" % what, raw (text[:head_end], text[head_end:]), "broken")
tap.is_ ("where nobody listens", code ("GET", P + "9/"), (502, "E7002"))
for port in ("0", "65536", "x", "-1", "8080x"):
    tap.is_ ("port %s" % port, code ("GET", P + port + "/"), (400, "E7005"))
tap.is_ ("of no sandbox", code ("GET", API + "sb-" + "0" * 26 + "/ports/8080/"), (404, "E2009"))


# -- WebSocket
class WebSocket:
    def __init__ (self, early=b""):
        key = base64.b64encode (os.urandom (16)).decode ()
        self.s = connect ()
        self.s.sendall (head ("GET", WS + "/socket", [
            ("Connection", "keep-alive, Upgrade"), ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", key)]) + early)
        self.r = Reply (self.s)
        want = hashlib.sha1 ((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode ()).digest ()
        self.good = (self.r.status == 101 and self.r.get ("Upgrade") == "websocket"
                     and self.r.get ("Sec-WebSocket-Accept") == base64.b64encode (want).decode ())

    @staticmethod
    def frame (op, data):
        n, mask = len (data), os.urandom (4)
        size = bytes ([0x80 | n]) if n < 126 else b"\xfe" + struct.pack (">H", n) if n < 65536 \
            else b"\xff" + struct.pack (">Q", n)
        data = bytes (b ^ mask[i % 4] for i, b in enumerate (data))
        return bytes ([0x80 | op]) + size + mask + data

    def send (self, op, data):
        self.s.sendall (self.frame (op, data))

    def take (self):
        first = self.r.take (2)
        n = first[1]
        if n == 126:
            n, = struct.unpack (">H", self.r.take (2))
        elif n == 127:
            n, = struct.unpack (">Q", self.r.take (8))
        return first[0] & 15, self.r.take (n)


ws = WebSocket ()
tap.ok ("a WebSocket", ws.good, ws.r.headers)
tap.is_ ("what it says at once", ws.take (), (1, b"welcome"))
ws.send (1, "café ☃".encode ())
tap.is_ ("text there and back", ws.take (), (1, "café ☃".encode ()))
data = random.Random (2).randbytes (300000)
ws.send (2, data)
tap.is_ ("bytes", ws.take () == (2, data), True)
ws.send (9, b"ping")
tap.is_ ("ping", ws.take (), (10, b"ping"))
ws.send (8, b"\x03\xe8")
tap.is_ ("its end", ws.take (), (8, b"\x03\xe8"))
try:
    rest = ws.s.recv (10)
except ConnectionError:
    rest = b""
tap.is_ ("and that of the connection", rest, b"")
ws = WebSocket (WebSocket.frame (1, b"early"))
tap.is_ ("what is sent with the request", (ws.good, ws.take (), ws.take ()),
         (True, (1, b"welcome"), (1, b"early")))
ws.s.close ()
many = [WebSocket () for i in range (20)]
for i, w in enumerate (many):
    w.send (1, b"%d" % i)
tap.is_ ("twenty of them", [(w.take (), w.take ()) for w in many],
         [((1, b"welcome"), (1, b"%d" % i)) for i in range (20)])
for w in many:
    w.s.close ()
tap.is_ ("an upgrade that is not taken", request ("GET", WEB + "/", [
    ("Connection", "Upgrade"), ("Upgrade", "h2c")])[0], 200)

# -- many, and those who leave
done = []


def one (i):
    got = echo ("POST", "/%d" % i, (), b"%d" % i * 1000)
    if got.get ("path") == "/%d" % i and got["body"] == str (i) * 1000:
        done.append (i)


threads = [threading.Thread (target=one, args=(i,)) for i in range (32)]
[t.start () for t in threads]
[t.join () for t in threads]
tap.is_ ("thirty-two at once", sorted (done), list (range (32)))
left = [begin ("GET", WEB + "/forever") for i in range (5)]
for s in left:
    next (Reply (s).pieces ())
tap.is_ ("streams run", request ("GET", WEB + "/active")[2], b"5")
for s in left:
    s.close ()
for i in range (600):
    now = request ("GET", WEB + "/active")[2]
    if now == b"0":
        break
    time.sleep (0.05)
tap.is_ ("who leaves is left inside", now, b"0")
