# SPDX-License-Identifier: Apache-2.0
"""A token that is revoked, or expires, while somebody is at work with it: what
is at work is cut, and others go on."""

import json

import daemon as d

d.needs_sandbox ()
server = d.Daemon ()
server.configure ()
server.start ()
gone, stays = server.token ("gone", "run"), server.token ("stays", "run")


def ask (method, target, body=None):
    return server.request (method, target, body, keep=False)


def begin (token, method, target, body=b"", size=None, over="tcp"):
    s = server.raw (over)
    s.sendall (("%s %s HTTP/1.1\r\nHost: localhost\r\n"
                "Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
                % (method, target, token, len (body) if size is None
                   else size)).encode () + body)
    return s


def is_closed (s):
    """Reads to the end, which must come."""
    try:
        while s.recv (65536):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def running ():
    return [e for e in ask ("GET", execs).json ()["execs"]
            if e["state"] == "running"]


box = "/api/v1/sandboxes/" + ask (
    "POST", "/api/v1/sandboxes", {"ttl": "1h"}).json ()["id"]
execs = box + "/execs"
cat = execs + "/" + ask ("POST", execs, {
    "argv": ["cat"], "stdin": True}).json ()["exec"]

theirs = begin (stays, "GET", cat + "/events")
cut = {
    "a stream": begin (gone, "GET", cat + "/events"),
    "a stream on the unix socket": begin (gone, "GET", cat + "/events",
                                          over="unix"),
    "a command that is waited for": begin (
        gone, "POST", execs + "?wait=1",
        json.dumps ({"argv": ["sleep", "600"]}).encode ()),
    "an upload": begin (gone, "PUT", box + "/files/part", b"some", 1000),
    "code that runs": begin (
        gone, "POST", "/execute",
        json.dumps ({"code": "while True: pass", "timeout": 30}).encode ())
}
theirs.recv (1)
for name in ("a stream", "a stream on the unix socket"):
    cut[name].recv (1)
d.ok ("all of it is at work", d.soon (lambda: len (running ()) == 2), running ())
r = server.coffer ("token", "revoke", "gone")
d.equal ("the token is revoked", r.returncode, 0)
for name, s in cut.items ():
    d.ok ("it is cut: " + name, is_closed (s))
d.ok ("what was waited for is ended", d.soon (lambda: len (running ()) == 1),
      running ())
d.equal ("what was sent in part is not there",
         ask ("GET", box + "/files/part").status, 404)
r = server.request ("GET", box, token=gone, over="tcp", keep=False)
d.equal ("nothing new is done with it", r.status, 401)
ask ("POST", cat + "/stdin", b"still here")
said = b""
while b"still here" not in said:
    said += theirs.recv (65536)
d.ok ("what another token is at work with goes on", True)

r = server.coffer ("token", "create", "brief", "--ttl", "3s", "--json")
brief = begin (json.loads (r.stdout)["token"], "GET", cat + "/events")
d.ok ("one that expires is as one that is revoked", is_closed (brief))
theirs.close ()
ask ("DELETE", box)
d.equal ("it ends when it is told to", server.stop (), 0)
d.finish ()
