# SPDX-License-Identifier: Apache-2.0
"""Commands on sandboxes do the same whether a daemon does the work or the
command's own process: the same output, the same errors, the same status."""

import json
import os
import re
import signal
import subprocess
import time

import daemon as d

VOLATILE = (
    (r"sb-[0-9a-z]{26}", "SB"),
    (r"pid:\d+", "PID"),
    (r'"(created|expires|started|modified)_ns":\s*\d+', r'"\1_ns":0'),
    (r'"(duration_us|cpu_us|bytes_a|native_id)":\s*("[^"]*"|\d+)', r'"\1":0'),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME"),
    (r"\b59m \d+s|1h 0m\b", "LEFT"),
    (r'"exec":\s*"[^"]+"', '"exec":"EXEC"'),
    (r'"value":\s*"[^"]*"', '"value":""'),
    (r'"(\w+)":\s*[0-9.]+', r'"\1":N'),
    (r"(?m)^(\w+_seconds_total|memory_\w+|processes|disk_\w+) +\S.*$",
     r"\1 N"),
)


def plain (text):
    for pattern, word in VOLATILE:
        text = re.sub (pattern, word, text)
    return text


class Way:
    """One of both ways, in a folder of its own."""

    def __init__ (self, server):
        self.server = server
        self.said = []

    def run (self, *args, stdin=b"", name=None):
        r = subprocess.run ([d.COFFER, *args], env=self.server.env,
                            input=stdin, capture_output=True,
                            timeout=d.PATIENCE)
        out = r.stdout.decode ("utf-8", "backslashreplace")
        err = r.stderr.decode ("utf-8", "backslashreplace")
        self.said.append ((name or " ".join (args), r.returncode, plain (out),
                           plain (err)))
        return out

    def all (self, folder):
        run = self.run
        run ("sandbox", "list")
        run ("sandbox", "list", "--json")
        box = run ("sandbox", "create", "--metadata", "name=café ☃",
                   "--metadata", "b=1", "-e", "GREETING=hello").strip ()
        run ("sandbox", "create", "--mem", "1K")
        run ("sandbox", "create", "--provider", "nothing")
        run ("sandbox", "create", "--profile", "nothing", "--json")
        other = json.loads (run ("sandbox", "create", "--ttl", "1h", "--mem",
                                 "256M", "--json"))["id"]
        run ("sandbox", "list")
        run ("sandbox", "list", "--json")
        for form in ((), ("--json",)):
            run ("sandbox", "info", box, *form)
            run ("sandbox", "info", "sb-nothing", *form)
            run ("sandbox", "extend", box, "30m", *form)
            run ("sandbox", "extend", box, "900d", *form)
            run ("sandbox", "connect", box, *form)
            run ("sandbox", "pause", box, *form)
            run ("sandbox", "connect", box, *form)
            run ("sandbox", "exec", box, *form, "--", "true")
            run ("sandbox", "resume", box, *form)
            run ("sandbox", "metrics", box, *form)
            self.commands (box, form)
        self.files (box, folder)
        run ("sandbox", "kill", other)
        run ("sandbox", "kill", other, box)
        run ("sandbox", "kill", box, "--json")
        run ("sandbox", "list", "--json")

    def commands (self, box, form):
        def run (*args, **kw):
            self.run ("sandbox", "exec", *args[:-1], box, *form, *args[-1],
                      **kw)
        run (("--", "echo", "café\n☃"))
        run (("--", "sh", "-c", "echo out; echo err >&2; exit 3"))
        run (("-c", "printf '\\377\\000x'; printf '\\376' >&2"))
        run (("--", "nothing-here"))
        run (("--", "/etc/passwd"))
        run (("-c", "kill -9 $$"))
        run (("-c", "echo $GREETING $X; pwd; id -u"))
        run ("-e", "X=you", "--workdir", "/tmp", ("-c", "echo $X; pwd"))
        run ("--workdir", "/nothing", ("--", "true"))
        run ("--user", "nobody-at-all", ("--", "true"))
        if form:
            run ("--timeout", "1s", ("--", "sleep", "100"))
        run ("-i", ("--", "cat"), stdin=b"given\n" * 20000)
        run ("-i", ("-c", "head -c 3"), stdin=b"x" * 3000000)
        run (("--", "cat"), stdin=b"not given\n")
        run (("-c", "seq 1 100000"))

    def files (self, box, folder):
        run = self.run
        name = os.path.join (folder, "å b.txt")
        with open (name, "wb") as f:
            f.write (b"caf\xc3\xa9\n\xff" * 5000)
        for form in ((), ("--json",)):
            run ("sandbox", "upload", box, name, "/workspace/x/å b.txt",
                 *form, name="upload into nothing")
            run ("sandbox", "upload", "-p", box, name, "/workspace/x/å b.txt",
                 *form, name="upload")
            run ("sandbox", "ls", box, "/workspace/x", *form)
            run ("sandbox", "ls", box, "/workspace/y", *form)
            run ("sandbox", "download", box, "/workspace/x/å b.txt",
                 name + ".back", *form, name="download")
            run ("sandbox", "download", box, "/workspace/none",
                 name + ".none", *form, name="download of nothing")
        with open (name + ".back", "rb") as f:
            self.said.append (("what was downloaded", 0, str (len (f.read ())),
                               ""))


def both ():
    direct, asked = d.Daemon (tcp=False), d.Daemon (tcp=False).start ()
    ways = []
    for server in (direct, asked):
        server.configure ()
        way = Way (server)
        folder = os.path.join (server.home, "mine")
        os.mkdir (folder)
        way.all (folder)
        way.said = [(n, s, o.replace (server.home, "HOME"),
                     e.replace (server.home, "HOME"))
                    for n, s, o, e in way.said]
        ways.append (way)
    different = ["%s\n  here:   %r\n  daemon: %r" % (a[0], a[1:], b[1:])
                 for a, b in zip (ways[0].said, ways[1].said) if a[1:] != b[1:]]
    d.note ("%d commands" % len (ways[0].said))
    d.ok ("each command prints the same and ends the same, by whomever it "
          "was done", not different, "\n".join (different[:12]))
    return direct, asked


def asks (server, *args):
    """Whether a command connects to the daemon: by what the daemon's system
    calls would show, one stopped answers nobody."""
    os.kill (server.pid, signal.SIGSTOP)
    try:
        p = subprocess.Popen ([d.COFFER, *args], env=server.env,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
        try:
            p.wait (3 if args[0] == "sandbox" and args[1] == "list" else
                    d.PATIENCE)
            return False
        except subprocess.TimeoutExpired:
            return True
    finally:
        os.kill (server.pid, signal.SIGCONT)
        p.wait (d.PATIENCE)


def who_asks (server):
    d.ok ("sandbox list asks the daemon", asks (server, "sandbox", "list"))
    d.ok ("run does not", not asks (server, "run", "--", "true"))
    d.ok ("nor does what shows folders of this machine",
          not asks (server, "sandbox", "create", "-v", "/usr:/data:ro"))
    server.coffer ("sandbox", "kill", "--all", "--yes")


def interrupted (server):
    """SIGINT ends the command inside too."""
    box = server.coffer ("sandbox", "create").stdout.decode ().strip ()
    for number in (signal.SIGINT, signal.SIGTERM):
        p = subprocess.Popen ([d.COFFER, "sandbox", "exec", box, "--", "sh",
                               "-c", "echo ready; exec sleep 1000"],
                              env=server.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.readline ()
        p.send_signal (number)
        _, err = p.communicate (timeout=d.PATIENCE)
        d.equal ("a signal ends the command inside, and the status says so",
                 (p.returncode, b"interrupted" in err), (128 + number, True))

    def over ():
        r = server.coffer ("sandbox", "exec", box, "-c",
                           "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | "
                           "grep -c 'sleep 100[0]'")
        return r.stdout.strip () == b"0"
    d.ok ("nothing of it runs on", d.soon (over))
    r = subprocess.run ("'%s' sandbox exec %s -- yes | head -1; "
                        % (d.COFFER, box), shell=True, env=server.env,
                        capture_output=True, timeout=d.PATIENCE)
    d.equal ("a reader that has enough ends it too", r.stdout, b"y\n")
    server.coffer ("sandbox", "kill", box)


def background (server):
    box = server.coffer ("sandbox", "create").stdout.decode ().strip ()
    r = server.coffer ("sandbox", "exec", "-d", box, "-c",
                       "for i in 1 2 3; do echo $i; done; exit 5")
    command = r.stdout.decode ().strip ()
    r = server.coffer ("sandbox", "attach", box, command)
    d.equal ("attach shows what a command in the background wrote, and its "
             "end", (r.stdout, r.returncode), (b"1\n2\n3\n", 5))
    r = server.coffer ("sandbox", "exec", "-d", box, "--", "sleep", "1000")
    command = r.stdout.decode ().strip ()
    r = server.coffer ("sandbox", "ps", box)
    d.ok ("ps has it", command in r.stdout.decode (), repr (r))
    r = server.coffer ("sandbox", "signal", box, command, "KILL")
    d.equal ("signal ends it", r.returncode, 0)
    r = server.coffer ("sandbox", "attach", box, command)
    d.equal ("with the status of that", r.returncode, 137)
    r = server.coffer ("sandbox", "exec", "-d", box, "--", "nothing-here")
    d.equal ("one that cannot be started says so", r.returncode, 127)
    server.coffer ("sandbox", "kill", box)


def named (server):
    other = d.Daemon (tcp=False)
    other.configure ()
    where = "unix:" + server.socket
    box = server.coffer ("sandbox", "create").stdout.decode ().strip ()
    r = other.coffer ("--host", where, "sandbox", "list", "--json")
    d.equal ("--host names a daemon elsewhere",
             [s["id"] for s in json.loads (r.stdout)], [box])
    r = other.coffer ("--host", where, "sandbox", "exec", box, "--", "echo",
                      "there")
    d.equal ("which runs commands", r.stdout, b"there\n")
    for args in (("run", "--", "true"), ("provider", "list")):
        r = other.coffer ("--host", where, *args)
        d.ok ("what no daemon does is refused: %s" % args[0],
              r.returncode in (2, 125) and b"asks no daemon" in r.stderr,
              repr (r))
    r = other.coffer ("--host", where, "sandbox", "create", "-v",
                      "/usr:/data:ro")
    d.ok ("folders of its machine are its operator's to show",
          r.returncode != 0 and b"allowed_roots" in r.stderr, repr (r))
    r = other.coffer ("--host", "unix:/nothing/here", "sandbox", "list")
    d.ok ("one that is not there is an error", r.returncode != 0
          and b"E7002" in r.stderr, repr (r))
    server.coffer ("sandbox", "kill", box)


d.needs_sandbox ()
here, server = both ()
who_asks (server)
interrupted (server)
background (server)
named (server)
server.process.kill ()
server.process.wait ()
server.process = None
r = server.coffer ("sandbox", "list")
d.equal ("with the daemon gone commands do it themselves", r.returncode, 0)
d.finish ()
