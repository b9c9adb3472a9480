# SPDX-License-Identifier: Apache-2.0
"""An https server on loopback for scenarios: files, answers that mislead, and
git over http(s) by git-http-backend.

  https.py FOLDER CERT KEY [GIT]     prints "HTTPS-PORT HTTP-PORT" and serves until
                                     its standard input ends
"""
import http.server, os, ssl, subprocess, sys, threading, time, urllib.parse

folder, cert, key = sys.argv[1:4]
git_root = sys.argv[4] if len (sys.argv) > 4 else None
seen = open (os.path.join (folder, "..", "requests"), "a", buffering=1)

class Handler (http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message (self, *_): pass

    def answer (self, status, headers=(), body=b""):
        self.send_response (status)
        for name, value in headers: self.send_header (name, value)
        self.send_header ("Content-Length", str (len (body)))
        self.end_headers ()
        self.wfile.write (body)

    def redirect (self, to): self.answer (302, [("Location", to)])

    def do_GET (self):
        seen.write (f"{self.command} {self.path} {self.headers.get ('Authorization', '-')}\n")
        path, _, query = self.path.partition ("?")
        name = urllib.parse.unquote (path.rsplit ("/", 1)[-1])
        if path.startswith ("/git/") and git_root: return self.git (path[4:], query)
        if path == "/to-http": return self.redirect (f"http://127.0.0.1:{ports[1]}/good.tar.gz")
        if path == "/to-file": return self.redirect ("file:///etc/passwd")
        if path.startswith ("/loop"): return self.redirect (path + "x")
        if path.startswith ("/once/"): return self.redirect ("/" + name)
        if path == "/endless":
            self.send_response (200); self.send_header ("Transfer-Encoding", "chunked")
            self.end_headers ()
            try:
                block = b"10000\r\n" + bytes (65536) + b"\r\n"
                while True: self.wfile.write (block)
            except OSError: return
        if path.startswith ("/silent"):
            time.sleep (120); return
        if path == "/short":
            self.send_response (200); self.send_header ("Content-Length", "1000000")
            self.end_headers (); self.wfile.write (b"x" * 100); self.close_connection = True
            return
        file = os.path.join (folder, name)
        if not os.path.isfile (file): return self.answer (404, body=b"no such file")
        body = open (file, "rb").read ()
        if path.startswith ("/slow/"): return self.drip (body)
        self.answer (200, body=body)

    def drip (self, body):
        self.send_response (200)
        self.send_header ("Content-Length", str (len (body)))
        self.end_headers ()
        part = len (body) // 25 + 1
        for i in range (0, len (body), part):
            self.wfile.write (body[i:i + part]); time.sleep (0.08)

    def do_POST (self):
        seen.write (f"{self.command} {self.path} -\n")
        path, _, query = self.path.partition ("?")
        self.git (path[4:], query)

    def body (self):
        if self.headers.get ("Transfer-Encoding", "") == "chunked":
            out = b""
            while True:
                size = int (self.rfile.readline (), 16)
                out += self.rfile.read (size); self.rfile.readline ()
                if not size: return out
        return self.rfile.read (int (self.headers.get ("Content-Length") or 0))

    def git (self, path, query):
        body = self.body ()
        if self.headers.get ("Content-Encoding") == "gzip":
            import gzip; body = gzip.decompress (body)
        env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": git_root, "GIT_HTTP_EXPORT_ALL": "1",
               "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command,
               "CONTENT_TYPE": self.headers.get ("Content-Type", ""), "CONTENT_LENGTH": str (len (body)),
               "REMOTE_ADDR": "127.0.0.1", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
               "GIT_CONFIG_VALUE_0": "*"}
        if self.headers.get ("Git-Protocol"): env["GIT_PROTOCOL"] = self.headers["Git-Protocol"]
        done = subprocess.run (["git", "http-backend"], input=body, env=env, capture_output=True)
        head, _, content = done.stdout.partition (b"\r\n\r\n")
        headers, status = [], 200
        for line in head.decode ().split ("\r\n"):
            name, _, value = line.partition (": ")
            if name == "Status": status = int (value.split ()[0])
            elif name: headers.append ((name, value))
        self.answer (status, headers, content)

class Server (http.server.ThreadingHTTPServer):
    daemon_threads = True
    def handle_error (self, *_): pass

secure, plain = (Server (("127.0.0.1", 0), Handler) for _ in "ab")
ports = secure.server_address[1], plain.server_address[1]
context = ssl.SSLContext (ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain (cert, key)
secure.socket = context.wrap_socket (secure.socket, server_side=True, do_handshake_on_connect=False)
for server in secure, plain:
    threading.Thread (target=server.serve_forever, daemon=True).start ()
print (*ports, flush=True)
sys.stdin.read ()
