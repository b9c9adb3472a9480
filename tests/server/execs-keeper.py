# SPDX-License-Identifier: Apache-2.0
"""coffer-keeper when it is stopped, while a daemon is there and before one is;
and when no file takes what it moves: nothing waits for it, and what was dropped
is counted."""

import os
import resource
import signal

import daemon as d

d.needs_sandbox ()
server = d.Daemon ().start ()


def keepers ():
    return [p for p in d.below (os.getpid ())
            if "coffer-keeper" in d.command_line (p)]


def begin (box, body):
    r = server.request ("POST", "/api/v1/sandboxes/%s/execs" % box, body,
                        keep=False)
    return r.json ()["exec"] if r.status == 201 else repr (r)


def info (box, exec):
    return server.request ("GET", "/api/v1/sandboxes/%s/execs/%s" % (box, exec),
                           keep=False).json ()


def ended (box, exec):
    return d.soon (lambda: (lambda i: i.get ("state") != "running" and i) (
        info (box, exec)))


def say (box, exec, text):
    base = "/api/v1/sandboxes/%s/execs/%s" % (box, exec)
    r = server.request ("POST", base + "/stdin", text)
    server.request ("POST", base + "/stdin/close", {})
    ended (box, exec)
    return r.status, server.request ("GET", base + "/stdout").body


def killed ():
    server.process.send_signal (signal.SIGKILL)
    server.process.wait ()


box = server.request ("POST", "/api/v1/sandboxes", {"ttl": "1h"}).json ()["id"]
cats = [begin (box, {"argv": ["cat"], "stdin": True}) for _ in range (3)]

# ---- a daemon is there

first = keepers ()
d.equal ("there is one keeper", len (first), 1)
os.kill (first[0], signal.SIGSTOP)
many = [begin (box, {"argv": ["/bin/true"]}) for _ in range (80)]
d.ok ("commands begin while it is stopped", all (e[0] == "e" for e in many),
      many[-1])
d.equal ("and end", [e for e in many if ended (box, e)["status"] != 0], [])
d.equal ("those of before go on", say (box, cats[0], b"one\n"),
         (200, b"one\n"))
d.ok ("another keeper takes its place", d.soon (
    lambda: len (keepers ()) == 1 and keepers () != first), keepers ())

# ---- a daemon is not there yet

killed ()
os.kill (keepers ()[0], signal.SIGSTOP)
server.start ()
d.equal ("a keeper that was stopped gives what it has to the next daemon",
         say (box, cats[1], b"two\n"), (200, b"two\n"))

# ---- no room

last = begin (box, {"command": "until [ -e go ]; do sleep 0.05; done;"
                               " head -c 50000 /dev/zero"})
killed ()
keeper = keepers ()[0]
resource.prlimit (keeper, resource.RLIMIT_FSIZE,
                  (10000, resource.RLIM_INFINITY))
server.coffer ("sandbox", "exec", box, "--", "touch", "go")


def is_over ():
    """By its provider, which no daemon is needed for."""
    r = server.coffer ("sandbox", "exec", box, "--", "sh", "-c",
                       "! cat /proc/[0-9]*/cmdline | grep -q un[t]il")
    return r.returncode == 0


d.ok ("a command ends while there is no daemon", d.soon (is_over))


def moved ():
    """Its pipe is at its end, and the keeper lets go of it."""
    path = os.path.join (server.home, "state/execs", box, last, "stdout")
    return not any (path == os.path.realpath ("/proc/%d/fd/%s" % (keeper, f))
                    for f in os.listdir ("/proc/%d/fd" % keeper))


d.ok ("and the keeper moves what it wrote", d.soon (moved))
server.start ()
got = ended (box, last)["stdout"]
d.ok ("what no file took is counted as dropped", got["bytes"] <= 10000
      and got["bytes"] + got["dropped"] == 50000, repr (got))
d.equal ("and what the others write is not", say (box, cats[2], b"three\n"),
         (200, b"three\n"))
server.request ("DELETE", "/api/v1/sandboxes/" + box)
d.equal ("it ends when it is told to", server.stop (), 0)
d.finish ()
