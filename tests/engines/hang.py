#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hang.py PORT FOLDER: a registry whose images never come.

silent: its manifest is asked for and never answered; drip: a layer comes byte by
byte, for ever; cut: half of a layer, and then the connection is closed.  A file
FOLDER/NAME is there once whoever asked has hung up.  On PORT + 1 connections are
taken and nothing more.
"""

import hashlib
import http.server
import json
import os
import select
import socket
import sys
import threading
import time

LAYER = 4000000
DIGEST = "sha256:" + hashlib.sha256 (b"never whole").hexdigest ()
CONFIG = json.dumps ({"architecture": "amd64", "os": "linux", "config": {},
                      "rootfs": {"type": "layers", "diff_ids": [DIGEST]}}).encode ()
CONFIG_DIGEST = "sha256:" + hashlib.sha256 (CONFIG).hexdigest ()
TYPE = "application/vnd.docker.distribution.manifest.v2+json"
MANIFEST = json.dumps ({
    "schemaVersion": 2, "mediaType": TYPE,
    "config": {"mediaType": "application/vnd.docker.container.image.v1+json",
               "size": len (CONFIG), "digest": CONFIG_DIGEST},
    "layers": [{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip",
                "size": LAYER, "digest": DIGEST}]}).encode ()


class Registry (http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message (self, *words):
        pass

    def give (self, body, kind, size=None):
        self.send_response (200)
        self.send_header ("Content-Type", kind)
        self.send_header ("Content-Length", str (size or len (body)))
        self.send_header ("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header ("Docker-Content-Digest",
                          "sha256:" + hashlib.sha256 (body).hexdigest ())
        self.end_headers ()
        if self.command != "HEAD":
            self.wfile.write (body)

    def gone (self, name):
        open (os.path.join (sys.argv[2], name), "w").close ()
        self.close_connection = True

    def hang (self, name):
        while not select.select ([self.connection], [], [], 0.2)[0]:
            pass
        self.gone (name)

    def layer (self, name):
        self.give (b"\x1f\x8b", "application/octet-stream", LAYER)
        self.wfile.write (bytes (LAYER // 4))
        if name == "cut":
            self.close_connection = True
            return
        try:
            while True:
                time.sleep (0.05)
                self.wfile.write (b"\0")
        except OSError:
            self.gone (name)

    def answer (self):
        parts = self.path.split ("/")
        if len (parts) < 5:
            self.give (b"{}", "application/json")
        elif parts[3] == "blobs" and parts[4] == CONFIG_DIGEST:
            self.give (CONFIG, "application/octet-stream")
        elif parts[3] == "blobs":
            self.layer (parts[2])
        elif parts[2] == "silent":
            self.hang ("silent")
        else:
            self.give (MANIFEST, TYPE)

    do_GET = do_HEAD = answer


def deaf (port):
    kept, listener = [], socket.create_server (("127.0.0.1", port))
    while True:
        kept.append (listener.accept ())


threading.Thread (target=deaf, args=(int (sys.argv[1]) + 1,), daemon=True).start ()
http.server.ThreadingHTTPServer (("127.0.0.1", int (sys.argv[1])),
                                 Registry).serve_forever ()
