# SPDX-License-Identifier: Apache-2.0
"""Much output, in every form, each byte of it: 256 MiB in the long run."""

import base64
import hashlib
import json
import struct

import daemon as d

SIZE = min (256, d.scale (24 if d.SANITIZED else 96)) << 20
BLOCK = 1 << 20

d.needs_sandbox ()
server = d.Daemon ({"limits": {"exec_log": "512MiB", "exec_logs": "1GiB"}},
                   tcp=False).start ()
box = server.request ("POST", "/api/v1/sandboxes", {"ttl": "1h"}).json ()["id"]
base = "/api/v1/sandboxes/%s/execs" % box

# Text of known content, that compresses badly for whoever loses a part of it.
LINE = "".join ("%08d café \"quoted\" \\ back\n" % i for i in range (4096))
SCRIPT = "cat >/tmp/block; n=%d; while [ $n -gt 0 ]; do cat /tmp/block;" \
    " n=$((n-1)); done"
block = LINE.encode ()
TIMES = SIZE // len (block)
r = server.request ("POST", base, {"command": SCRIPT % TIMES, "stdin": True})
e = r.json ()["exec"]
server.request ("POST", "%s/%s/stdin" % (base, e), block)
server.request ("POST", "%s/%s/stdin/close" % (base, e))
digest = hashlib.sha256 ()
for _ in range (TIMES):
    digest.update (block)
want = digest.hexdigest ()


def get (path, accept):
    c = server.connection ()
    c.request ("GET", "%s/%s/%s" % (base, e, path), headers={"Accept": accept})
    return c, c.getresponse ()


# While it is written.
c, r = get ("events", "application/x-coffer-frames")
digest, seqs, last = hashlib.sha256 (), 0, None
while True:
    head = r.read (24)
    if len (head) < 24:
        break
    size, kind, stream, _, seq, _ = struct.unpack ("<IBBHQq", head)
    body = r.read (size)
    if seq != seqs + 1:
        break
    seqs = seq
    if kind == 1:
        digest.update (body)
    last = kind, body
c.close ()
d.equal ("as frames, while it is written", digest.hexdigest (), want)
d.equal ("up to its end", (last[0], json.loads (last[1])["status"]), (3, 0))

c, r = get ("events", "application/x-ndjson")
digest, n = hashlib.sha256 (), 0
for line in r:
    event = json.loads (line)
    n += 1
    if event["seq"] != n:
        break
    if event["event"] == "output":
        digest.update (event["data"].encode ()
                       if event["encoding"] == "utf-8"
                       else base64.b64decode (event["data"]))
c.close ()
d.equal ("as lines, afterwards", (digest.hexdigest (), n), (want, seqs))

c, r = get ("stdout", "*/*")
digest, total = hashlib.sha256 (), 0
while True:
    part = r.read (BLOCK)
    if not part:
        break
    digest.update (part)
    total += len (part)
c.close ()
d.equal ("as its bytes", (digest.hexdigest (), total),
         (want, TIMES * len (block)))
server.request ("DELETE", "/api/v1/sandboxes/" + box)
d.finish ()
