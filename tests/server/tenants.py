# SPDX-License-Identifier: Apache-2.0
"""Two tenants of one daemon, and folders of the host that requests may
show."""

import json
import os
import subprocess
import tempfile

import daemon as d

d.needs_sandbox ()
shared = tempfile.mkdtemp (prefix="coffer-roots-")
os.chmod (shared, 0o755)
for name, mode in (("open", 0o755), ("closed", 0o700)):
    os.mkdir (os.path.join (shared, name))
    with open (os.path.join (shared, name, "f"), "w") as f:
        f.write (name)
    os.chmod (os.path.join (shared, name), mode)
os.symlink ("/etc", os.path.join (shared, "out"))
os.symlink ("open", os.path.join (shared, "in"))
STRANGER = 61444
server = d.Daemon ({"allowed_roots": [shared]}).start ()
red = server.token ("red", "run", "red")
blue = server.token ("blue", "run", "blue")


def ask (token, method, path="", body=None, **kw):
    return server.request (method, "/api/v1/sandboxes" + path, body,
                           token=token, over="tcp", **kw)


r = ask (red, "POST", "", {"ttl": "10m"})
d.ok ("a tenant makes one", r.status == 201, repr (r))
box = r.json ()["id"]
d.equal ("which is its own", ask (red, "GET", "/" + box).json ()["tenant"],
         "red")
e = ask (red, "POST", "/%s/execs" % box,
         {"argv": ["cat"], "stdin": True}).json ()["exec"]
for method, path, body in (
        ("GET", "", None), ("DELETE", "", None),
        ("POST", "/extend", {"ttl": "1h"}), ("POST", "/pause", {}),
        ("POST", "/resume", {}), ("GET", "/execs", None),
        ("POST", "/execs", {"argv": ["/bin/true"]}),
        ("POST", "/execs?wait=1", {"argv": ["/bin/true"]}),
        ("GET", "/execs/" + e, None), ("GET", "/execs/%s/events" % e, None),
        ("GET", "/execs/%s/stdout" % e, None),
        ("GET", "/execs/%s/stderr" % e, None),
        ("POST", "/execs/%s/stdin" % e, b"x"),
        ("POST", "/execs/%s/stdin/close" % e, {}),
        ("POST", "/execs/%s/signal" % e, {"signal": 9}),
        ("POST", "/execs/%s/resize" % e, {"rows": 1, "columns": 1})):
    r = ask (blue, method, "/" + box + path, body)
    none = ask (blue, method, "/sb-" + "0" * 26 + path, body)
    d.ok ("to another it is not there: %s %s" % (method, path or "/"),
          r.status == none.status == 404 and r.code () == "E2009", repr (r))
d.equal ("nor is it listed", ask (blue, "GET").json ()["sandboxes"], [])
d.equal ("nor to the socket's tenant", server.request (
    "GET", "/api/v1/sandboxes").json ()["sandboxes"], [])
d.equal ("it is there all the same",
         [s["id"] for s in ask (red, "GET").json ()["sandboxes"]], [box])
key = {"Idempotency-Key": "same"}
one = ask (red, "POST", "", {"ttl": "5m"}, headers=key)
two = ask (blue, "POST", "", {"ttl": "5m"}, headers=key)
d.ok ("a key is a tenant's own", one.status == two.status == 201
      and one.json ()["id"] != two.json ()["id"], repr (two))
for token, reply in ((red, one), (blue, two)):
    ask (token, "DELETE", "/" + reply.json ()["id"])
ask (red, "DELETE", "/" + box)

# ---- folders of the host ---------------------------------------------------


def show (source, writable=False):
    return server.request ("POST", "/api/v1/sandboxes", {
        "ttl": "5m", "mounts": [{"source": source, "target": "/shown",
                                 "writable": writable}]})


def inside (r, command):
    got = server.request ("POST", "/api/v1/sandboxes/%s/execs?wait=1"
                          % r.json ()["id"], {"command": command}).json ()
    server.request ("DELETE", "/api/v1/sandboxes/" + r.json ()["id"])
    return got["status"], got["stdout"]["data"]


r = show (os.path.join (shared, "open"))
d.ok ("a folder beneath an allowed root is shown", r.status == 201, repr (r))
d.equal ("to be read", inside (r, "cat /shown/f; touch /shown/x 2>&-"),
         (1, "open"))
d.equal ("through a link that stays beneath it",
         inside (show (os.path.join (shared, "in")), "cat /shown/f"),
         (0, "open"))
r = show (os.path.join (shared, "open"), True)
d.equal ("or to be written", (inside (r, "echo new >/shown/new")[0],
                              open (os.path.join (shared, "open/new")).read ()),
         (0, "new\n"))
for what, source in (("another", "/usr"), ("the root's parent", "/tmp"),
                     ("one that begins alike", shared + "x"),
                     ("one by way of ..", shared + "/open/../../etc"),
                     ("one through a link", shared + "/out"),
                     ("one that is relative", "etc"),
                     ("what is not there", shared + "/nothing"),
                     ("none", "")):
    r = show (source)
    d.ok ("refused: " + what, r.status in (403, 422)
          and r.code () in ("E5001", "E2001"), repr (r))

if os.geteuid () == 0 and subprocess.run (
        ["setpriv", "--reuid", str (STRANGER), "--clear-groups", "true"],
        capture_output=True).returncode == 0:
    server.serve["socket"] = {
        "users": [{"name": str (STRANGER), "tenant": "red", "rights": "run"}]}
    server.stop ()
    for folder in (server.home, os.path.join (server.home, "run")):
        os.chmod (folder, 0o711)
    server.start ()

    def as_stranger (source, writable=False):
        body = json.dumps ({"ttl": "5m", "mounts": [
            {"source": source, "target": "/shown", "writable": writable}]})
        p = subprocess.run (
            ["setpriv", "--reuid", str (STRANGER), "--regid", str (STRANGER),
             "--clear-groups", "curl", "-sS", "-m", "60", "--unix-socket",
             server.socket, "-d", body,
             "http://localhost/api/v1/sandboxes"], capture_output=True)
        try:
            return json.loads (p.stdout)
        except ValueError:
            return {"error": {"code": p.stderr.decode ()}}

    got = as_stranger (os.path.join (shared, "open"))
    d.ok ("who may read a folder may show it", "id" in got, got)
    for what, source, writable in (("one that is closed to it", "closed",
                                    False),
                                   ("one that it may not write", "open",
                                    True)):
        got = as_stranger (os.path.join (shared, source), writable)
        d.equal ("not " + what, got.get ("error", {}).get ("code"), "E5001")
else:
    d.skip ("the rights of a peer", "root")
subprocess.run (["rm", "-rf", shared])
d.finish ()
