# SPDX-License-Identifier: Apache-2.0
"""A provider that hangs while a command of its is to be seen to end: how those
of another end is seen all the same."""

import os
import signal

import daemon as d

d.COFFER = os.path.join (d.BUILD, "tests/mutants/coffer")
server = d.Daemon ()
server.configure ()


def made (provider):
    """A daemon makes none of these, as nothing isolates them."""
    r = server.coffer ("sandbox", "create", "--provider", provider)
    return r.stdout.decode ().strip ()


box, hangs = made ("reference"), made ("m-kill-invents")
server.start ()


def execs (id):
    return "/api/v1/sandboxes/%s/execs" % id


def begin (id, body):
    r = server.request ("POST", execs (id), body, keep=False)
    return execs (id) + "/" + r.json ()["exec"] if r.status == 201 else repr (r)


def state (path):
    return server.request ("GET", path, keep=False).json ().get ("state")


def name_of (pid):
    with open ("/proc/%d/comm" % pid) as f:
        return f.read ().strip ()


def workers ():
    """By the names that they have while they are loaded: who hides from others
    has no command line."""
    return {p for p in d.below (server.pid)
            if name_of (p).startswith ("coffer-w")}


begin (box, {"argv": ["/bin/true"]})
others = workers ()
waits = begin (hangs, {"command": "until [ -e go ]; do sleep 0.05; done"})
stopped = workers () - others
d.ok ("a command of another provider runs, which has a worker of its own",
      state (waits) == "running" and len (stopped) == 1,
      "%s, %r of %r" % (waits, stopped, others))
for pid in stopped:
    os.kill (pid, signal.SIGSTOP)

# It is asked every two seconds, and ended when it has not answered for ten: if
# others had to wait for that, it would be gone when they have ended.
seen = 0
until = d.time.monotonic () + 4
while d.time.monotonic () < until:
    path = begin (box, {"argv": ["/bin/true"]})
    seen += bool (d.soon (lambda: state (path) == "exited"))
d.ok ("ends of others are seen, one after the other", seen > 1, seen)
d.equal ("while it still hangs", workers () & stopped, stopped)
d.equal ("with what is its own", state (waits), "running")
for pid in stopped & workers ():
    os.kill (pid, signal.SIGCONT)
server.coffer ("sandbox", "exec", hangs, "--", "touch", "go")
d.ok ("it is, once it goes on", d.soon (lambda: state (waits) == "exited"),
      state (waits))
server.coffer ("sandbox", "kill", hangs, box)
d.equal ("it ends when it is told to", server.stop (), 0)
d.finish ()
