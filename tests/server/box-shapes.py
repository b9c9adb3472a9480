# SPDX-License-Identifier: Apache-2.0
"""The box's replies are what the document says; another tenant sees nothing of
it; what was run is in the audit log, and its code is not."""

import hashlib
import json
import os
import random

import daemon as d
from shapes import Shapes

BOX = "/api/v1/box"

d.needs_sandbox ()
server = d.Daemon ()
os.makedirs (os.path.join (server.home, "config"), mode=0o700)
with open (os.path.join (server.home, "config/coffer.yaml"), "w") as f:
    f.write ("accept: [limit.memory, limit.pids, limit.disk]\n")
server.configure = lambda: None
server.start ()
shapes = Shapes (d.Document (), random.Random (1))
stranger = server.token ("stranger", "manage", "other")


def ask (status, method, path, body=None, **kw):
    r = server.request (method, BOX + path, body, **kw)
    operation = shapes.document.find (method, BOX + path)
    why = ("status %d" % r.status if r.status != status
           else shapes.reply_wrong (operation, r))
    d.ok ("%s %s: %d, as described" % (method, path, status), not why,
          "%s\n%r" % (why, r))
    return r


command = "echo secret-output; exit 3 # secret-code"
ask (200, "GET", "/status")
ask (200, "POST", "/exec", {"session_id": "a b", "cmd": command})
ask (422, "POST", "/exec", {"session_id": "a b"})
ask (409, "POST", "/exec", {"session_id": "a b", "cmd": ":", "cpus": 3})
ask (200, "POST", "/sessions", {"session_id": "a b", "network": "off"})
ask (200, "GET", "/sessions/a%20b")
ask (404, "GET", "/sessions/none")
ask (200, "POST", "/sessions/a%20b/processes", {"command": "cat"})
ask (200, "POST", "/sessions/a%20b/processes/default/stdin", b"line")
ask (200, "GET", "/sessions/a%20b/processes/default")
ask (200, "GET", "/sessions/a%20b/processes/default/log?stream=stderr")
ask (200, "GET", "/sessions")
ask (200, "GET", "/errors")

other = {"token": stranger, "over": "tcp"}
r = ask (200, "GET", "/sessions", **other)
d.equal ("another tenant sees no session", r.json ()["data"], [])
r = ask (200, "GET", "/errors", **other)
d.equal ("and no error", r.json ()["data"], [])
r = ask (200, "GET", "/status", **other)
d.equal ("and counts none", (r.json ()["data"]["active_sessions"],
                             r.json ()["data"]["recent_error_count"]), (0, 0))
ask (404, "GET", "/sessions/a%20b", **other)
ask (404, "DELETE", "/sessions/a%20b", **other)
ask (404, "GET", "/sessions/a%20b/processes/default/log", **other)

ask (200, "DELETE", "/sessions/a%20b/processes/default")
ask (200, "DELETE", "/sessions/a%20b")

with open (os.path.join (server.home, "state/audit.log")) as f:
    text = f.read ()
lines = [json.loads (line) for line in text.splitlines ()]
runs = [line for line in lines if line["event"] == "exec"
        and line.get ("code_sha256")]
d.equal ("what was run is audited",
         [(r["session"], r["verdict"], r["code_sha256"]) for r in runs],
         [("a b", "failed", hashlib.sha256 (command.encode ()).hexdigest ())])
made = [line for line in lines if line["event"] == "create"]
d.equal ("and what was made for it",
         [(m["session"], m["verdict"], m["sandbox"]) for m in made],
         [("a b", "ok", runs[0]["sandbox"])])
asked = [line for line in lines if line["event"] == "request"
         and line["request_id"] == runs[0]["request_id"]]
d.equal ("by the request's id", [(a["what"], a["status"]) for a in asked],
         [("boxExec", 200)])
d.ok ("neither code nor output is in it", "secret" not in text)
d.finish ()
