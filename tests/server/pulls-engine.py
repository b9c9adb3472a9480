#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pulls-engine.py SOCKET LEFT: as much of a container engine as a pull needs.

It has no image.  A pull of one says a hundred times how far it is, and then that it
is broken; one of hang:… goes on for ever, and LEFT is there once nobody listens.
"""

import http.server
import json
import os
import socketserver
import sys
import time


class Engine (http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string (self):
        return "peer"

    def log_message (self, *words):
        pass

    def say (self, status, value):
        body = json.dumps (value).encode ()
        self.send_response (status)
        self.send_header ("Api-Version", "1.41")
        self.send_header ("Content-Type", "application/json")
        self.send_header ("Content-Length", str (len (body)))
        self.end_headers ()
        self.wfile.write (body)

    def line (self, value):
        body = json.dumps (value).encode () + b"\n"
        self.wfile.write (b"%x\r\n%s\r\n" % (len (body), body))

    def pull (self):
        self.send_response (200)
        self.send_header ("Content-Type", "application/json")
        self.send_header ("Transfer-Encoding", "chunked")
        self.end_headers ()
        n = 0
        while n < 100 or "hang" in self.path:
            n += 1
            self.line ({"id": "layer", "status": "Downloading", "progressDetail":
                        {"current": min (n, 100) * 10000, "total": 1000000}})
            time.sleep (0.02)
        self.line ({"error": "it is broken"})
        self.wfile.write (b"0\r\n\r\n")

    def answer (self):
        self.rfile.read (int (self.headers.get ("Content-Length") or 0))
        if self.path.endswith ("/_ping"):
            self.say (200, {})
        elif "/images/create" in self.path:
            try:
                self.pull ()
            except OSError:
                open (sys.argv[2], "w").close ()
                self.close_connection = True
        else:
            self.say (404, {"message": "there is none"})

    do_GET = do_POST = do_DELETE = answer


class Server (socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


os.umask (0o077)
Server (sys.argv[1], Engine).serve_forever ()
