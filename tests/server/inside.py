# SPDX-License-Identifier: Apache-2.0
# Servers inside of a sandbox, for ports.sh: 8080 is http.server, 8081 sends what
# the path says in hexadecimal digits, 8082 speaks WebSocket.
import base64, hashlib, http.server, json, socketserver, struct, threading, time

active = [0]


class Web (http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message (self, *args):
        pass

    def body (self):
        if self.headers.get ("Transfer-Encoding") == "chunked":
            out = b""
            while True:
                n = int (self.rfile.readline (), 16)
                out += self.rfile.read (n)
                self.rfile.readline ()
                if n == 0:
                    return out
        return self.rfile.read (int (self.headers.get ("Content-Length") or 0))

    def say (self, data, headers=(), status=200):
        self.send_response (status)
        for name, value in headers:
            self.send_header (name, value)
        if status not in (204, 304):
            self.send_header ("Content-Length", str (len (data)))
        self.end_headers ()
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write (data)

    def answer (self):
        path = self.path.partition ("?")[0]
        data = self.body ()
        if path == "/hash":
            return self.say (hashlib.sha256 (data).hexdigest ().encode ())
        if path == "/big":
            return self.say (b"0123456789abcdef" * (2 << 20))
        if path == "/cookies":
            return self.say (b"", [("Set-Cookie", "a=b; Path=/; Domain=localhost; HttpOnly"),
                                   ("Set-Cookie", "__Host-c=d; Path=/; Secure"),
                                   ("Set-Cookie", "coffer=stolen"),
                                   ("Strict-Transport-Security", "max-age=1"),
                                   ("Access-Control-Allow-Origin", "*"),
                                   ("X-Kept", "yes"), ("Connection", "X-Dropped"),
                                   ("X-Dropped", "yes")])
        if path.startswith ("/go/"):
            return self.say (b"", [("Location", self.path[4:])], 302)
        if path.startswith ("/status/"):
            return self.say (b"text", [("ETag", '"1"')], int (path[8:]))
        if path == "/chunks":
            self.send_response (200)
            self.send_header ("Transfer-Encoding", "chunked")
            self.end_headers ()
            for i in range (3):
                self.wfile.write (b"6;x=y\r\nline %d\r\n" % i)
            return self.wfile.write (b"0\r\nX-Trailer: 1\r\n\r\n")
        if path == "/active":
            return self.say (str (active[0]).encode ())
        if path == "/forever":
            self.send_response (200)
            self.end_headers ()
            self.close_connection = True
            active[0] += 1
            try:
                while True:
                    self.wfile.write (b"x" * 1000)
                    time.sleep (0.01)
            finally:
                active[0] -= 1
        self.say (json.dumps ({"method": self.command, "path": self.path,
                               "headers": self.headers.items (),
                               "body": data.decode ("latin-1")}).encode (),
                  [("Content-Type", "application/json")])

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer


class Raw (socketserver.StreamRequestHandler):
    def handle (self):
        path = self.rfile.readline ().split ()[1].decode ()
        while self.rfile.readline () not in (b"\r\n", b""):
            pass
        for word in path.strip ("/").split ("/"):
            if word == "headers":       # without an end
                try:
                    self.wfile.write (b"HTTP/1.1 200 OK\r\n")
                    while True:
                        self.wfile.write (b"X-More: of the same\r\n" * 100)
                except OSError:
                    return
            else:
                self.wfile.write (bytes.fromhex (word))


class Socket (socketserver.StreamRequestHandler):
    def handle (self):
        headers = {}
        self.rfile.readline ()
        while True:
            line = self.rfile.readline ().decode ().strip ()
            if not line:
                break
            name, _, value = line.partition (": ")
            headers[name.lower ()] = value
        key = headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode (hashlib.sha1 (key.encode ()).digest ()).decode ()
        self.wfile.write (("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                           "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n"
                           % accept).encode () + self.frame (1, b"welcome"))
        while True:
            first = self.rfile.read (2)
            if len (first) < 2:
                return
            n = first[1] & 127
            if n == 126:
                n, = struct.unpack (">H", self.rfile.read (2))
            elif n == 127:
                n, = struct.unpack (">Q", self.rfile.read (8))
            mask = self.rfile.read (4)
            data = self.rfile.read (n)
            data = bytes (b ^ mask[i % 4] for i, b in enumerate (data))
            if first[0] & 15 == 8:
                self.wfile.write (self.frame (8, data))
                return
            self.wfile.write (self.frame (10 if first[0] & 15 == 9 else first[0] & 15, data))

    def frame (self, op, data):
        n = len (data)
        size = bytes ([n]) if n < 126 else b"\x7e" + struct.pack (">H", n) if n < 65536 \
            else b"\x7f" + struct.pack (">Q", n)
        return bytes ([0x80 | op]) + size + data


class Server (socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 128

    def handle_error (self, *args):
        pass


for port, handler in ((8080, Web), (8081, Raw), (8082, Socket)):
    threading.Thread (target=Server (("127.0.0.1", port), handler).serve_forever).start ()
