# SPDX-License-Identifier: Apache-2.0
"""What the tests of the daemon share: one that is started in a folder of its
own and ended again, requests to it, TAP, and the document that describes it.

A test is a script that imports this and ends with finish ().  Everything that
it starts is below it (it is a subreaper), and finish () adds a last test: that
nothing is left."""

import atexit
import ctypes
import http.client
import json
import os
import random
import re
import shutil
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.environ["COFFER_BUILD"]
SOURCE = os.environ["COFFER_SOURCE"]
COFFER = os.path.join (BUILD, "coffer")
DOCUMENT = os.path.join (SOURCE, "core/server/api/openapi.json")
PATIENCE = 60                   # seconds for what must happen
SANITIZED = None                # set below

count = 0
failed = 0


def scale (n):
    factor = float (os.environ.get ("CHECK_SCALE") or 1)
    return max (1, int (n * min (max (factor, 0.01), 1000)))


def note (text):
    for line in str (text).splitlines ():
        print ("#", line[:400], flush=True)


def ok (what, good, why=""):
    global count, failed
    count += 1
    if not good:
        failed += 1
    print ("ok" if good else "not ok", count, "-", what, flush=True)
    if not good and why:
        note (why)
    return bool (good)


def equal (what, got, want):
    return ok (what, got == want, "got:  %r\nwant: %r" % (got, want))


def skip (what, missing):
    global count
    count += 1
    print ("ok", count, "-", what, "# SKIP missing:", missing, flush=True)


def skip_all (missing):
    print ("1..0 # SKIP missing:", missing)
    sys.exit (0)


def soon (what, seconds=PATIENCE):
    """The first true value of a function, or None."""
    end = time.monotonic () + seconds
    while True:
        value = what ()
        if value or time.monotonic () > end:
            return value
        time.sleep (0.02)


# ---- processes -------------------------------------------------------------

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL (None).prctl (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def parents ():
    out = {}
    for name in os.listdir ("/proc"):
        if name.isdigit ():
            try:
                with open ("/proc/%s/stat" % name, "rb") as f:
                    text = f.read ()
            except OSError:
                continue
            fields = text[text.rindex (b")") + 2:].split ()
            out[int (name)] = (int (fields[1]), fields[0])
    return out


def below (root):
    """The processes below one, none that has ended."""
    tree = parents ()
    found = []
    for pid in tree:
        at = pid
        while at in tree and at > 1 and at != root:
            at = tree[at][0]
        if at == root and pid != root and tree[pid][1] != b"Z":
            found.append (pid)
    return found


def reap ():
    try:
        while os.waitpid (-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def command_line (pid):
    try:
        with open ("/proc/%d/cmdline" % pid, "rb") as f:
            return f.read ().replace (b"\0", b" ").decode ("utf-8", "replace")
    except OSError:
        return "?"


def descriptors (pid):
    try:
        return len (os.listdir ("/proc/%d/fd" % pid))
    except OSError:
        return -1


def opened (pid):
    """What they are: of what is left, a diagnosis."""
    out = []
    for name in os.listdir ("/proc/%d/fd" % pid):
        try:
            out.append (re.sub (r"\d+", "N", os.readlink ("/proc/%d/fd/%s"
                                                          % (pid, name))))
        except OSError:
            pass
    return sorted (out)


def more (before, after):
    after = list (after)
    for name in before:
        if name in after:
            after.remove (name)
    return after


def held (pid):
    """As opened, but without what a daemon opens once and keeps: the folder of
    each provider that was asked for by name, and where dropped output goes; nor
    the sandbox that waits for /execute for a while, one for each profile of
    Python code, which has two."""
    names = [name for name in opened (pid)
             if not re.search (r"/providers(-N)?$|^/dev/null$", name)]
    waits = [name for name in names if "/run/runs/sb-" in name][:2]
    return more (waits + ["pipe:[N]"] * len (waits), names)


def memory (pid):
    """Bytes of PSS."""
    with open ("/proc/%d/smaps_rollup" % pid) as f:
        return int (re.search (r"^Pss:\s+(\d+) kB", f.read (), re.M)[1]) * 1024


# ---- requests --------------------------------------------------------------

class Reply:
    def __init__ (self, method, target, status, headers, body):
        self.method, self.target = method, target
        self.status, self.headers, self.body = status, headers, body

    def header (self, name, default=None):
        for key, value in self.headers:
            if key.lower () == name.lower ():
                return value
        return default

    def json (self):
        return json.loads (self.body)

    def code (self):
        """Of an error: E2009."""
        try:
            return self.json ()["error"]["code"]
        except (ValueError, KeyError, TypeError):
            return None

    def __repr__ (self):
        return "%s %s -> %d %r" % (self.method, self.target, self.status,
                                   self.body[:300])


class UnixConnection (http.client.HTTPConnection):
    def __init__ (self, path, timeout):
        super ().__init__ ("localhost", timeout=timeout)
        self.path = path

    def connect (self):
        self.sock = unix_socket (self.path, self.timeout)


def unix_socket (path, timeout=PATIENCE):
    """By its folder's descriptor, as an address holds 107 bytes."""
    folder = os.open (os.path.dirname (path), os.O_PATH)
    try:
        s = socket.socket (socket.AF_UNIX)
        s.settimeout (timeout)
        s.connect ("/proc/self/fd/%d/%s" % (folder, os.path.basename (path)))
        return s
    finally:
        os.close (folder)


# ---- the daemon ------------------------------------------------------------

def flow (value):
    """As YAML: JSON but for keys, sizes and times, which are plain."""
    if isinstance (value, str) and re.fullmatch (r"\d+[A-Za-z]+", value):
        return value
    if isinstance (value, dict):
        return "{%s}" % ", ".join ("%s: %s" % (k, flow (v))
                                   for k, v in value.items ())
    if isinstance (value, list):
        return "[%s]" % ", ".join (map (flow, value))
    return json.dumps (value)


class Daemon:
    """coffer serve, with its own COFFER_HOME.  `serve` is the section of that
    name of coffer.yaml."""

    def __init__ (self, serve=None, args=(), env=None, home=None, tcp=True,
                  wrap=(), config=None):
        self.made = home is None
        self.home = home or tempfile.mkdtemp (prefix="coffer-server-")
        self.env = dict (os.environ, COFFER_HOME=self.home, **(env or {}))
        for name in ("COFFER_PROVIDER", "BOX_BACKEND", "COFFER_LOG"):
            self.env.pop (name, None)
        self.serve = dict (serve or {})
        # A user without control groups does without what needs them.
        self.config = dict ({"accept": ["limit.memory", "limit.pids",
                                        "limit.disk"]}, **(config or {}))
        self.args, self.wrap = list (args), list (wrap)
        self.tcp, self.port, self.socket = tcp, None, None
        self.process = None
        self.replies = []       # of what the document describes
        self.log = os.path.join (self.home, "serve.log")
        daemons.append (self)

    def configure (self):
        folder = os.path.join (self.home, "config")
        os.makedirs (folder, mode=0o700, exist_ok=True)
        path = os.path.join (folder, "coffer.yaml")
        with open (path + ".new", "w") as f:
            f.write (flow (dict (self.config, **({"serve": self.serve}
                                                 if self.serve else {}))))
        os.chmod (path + ".new", 0o600)
        os.rename (path + ".new", path)

    def coffer (self, *args, **kw):
        return subprocess.run ([COFFER, *args], env=self.env,
                               stdin=subprocess.DEVNULL, capture_output=True,
                               timeout=kw.pop ("timeout", PATIENCE), **kw)

    def token (self, name, rights, tenant="default"):
        r = self.coffer ("token", "create", name, "--tenant", tenant,
                         "--rights", rights, "--json")
        return json.loads (r.stdout)["token"]

    def start (self):
        self.configure ()
        said = os.path.join (self.home, "serve.out")
        with open (self.log, "ab") as log, open (said, "wb") as out:
            self.process = subprocess.Popen (
                [*self.wrap, COFFER, "serve", "--json", "--listen",
                 "127.0.0.1:0" if self.tcp else "none", *self.args],
                env=self.env, stdin=subprocess.DEVNULL, stdout=out,
                stderr=log)

        def ready ():
            with open (said, "rb") as f:
                line = f.readline ()
            return line.endswith (b"\n") and line or not self.alive ()
        line = soon (ready)
        if not isinstance (line, bytes):
            raise RuntimeError ("no daemon: " + self.said ())
        where = json.loads (line)
        if "socket" not in where:
            raise RuntimeError ("no daemon: %r" % line)
        self.socket = where["socket"]
        if self.tcp:
            self.port = int (where["listen"][0].rsplit (":", 1)[1])
        return self

    def said (self, size=2000):
        try:
            with open (self.log, "rb") as f:
                return f.read ()[-size:].decode ("utf-8", "replace")
        except OSError:
            return ""

    def answers (self):
        try:
            return self.request ("GET", "/healthz", keep=False).status == 200
        except (OSError, http.client.HTTPException):
            return False

    @property
    def pid (self):
        """Of coffer-serve, which coffer becomes."""
        return self.process.pid

    def alive (self):
        return self.process and self.process.poll () is None

    def connection (self, over="unix", timeout=PATIENCE):
        if over == "unix":
            return UnixConnection (self.socket, timeout)
        return http.client.HTTPConnection ("127.0.0.1", self.port,
                                           timeout=timeout)

    def raw (self, over="unix", timeout=PATIENCE):
        if over == "unix":
            return unix_socket (self.socket, timeout)
        return socket.create_connection (("127.0.0.1", self.port), timeout)

    def request (self, method, target, body=None, headers=None, token=None,
                 over="unix", timeout=PATIENCE, keep=True):
        headers = dict (headers or {})
        if token:
            headers["Authorization"] = "Bearer " + token
        if isinstance (body, (dict, list)):
            headers.setdefault ("Content-Type", "application/json")
            body = json.dumps (body).encode ()
        c = self.connection (over, timeout)
        try:
            try:
                c.request (method, target, body, headers)
            except BrokenPipeError:
                pass            # it has answered before it had read all
            r = c.getresponse ()
            reply = Reply (method, target, r.status, r.getheaders (),
                           r.read ())
        finally:
            c.close ()
        if keep:
            self.replies.append (reply)
        return reply

    def stop (self, number=signal.SIGTERM):
        if not self.process:
            return None
        if self.process.poll () is None:
            self.process.send_signal (number)
        try:
            return self.process.wait (PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill ()
            return self.process.wait ()

    def clean (self):
        """Ends what it made, and removes its folder."""
        if self.process:
            self.stop ()
        self.coffer ("sandbox", "kill", "--all", "--yes")
        self.coffer ("sandbox", "prune")
        if self.made:
            shutil.rmtree (self.home, ignore_errors=True)


daemons = []


def needs_sandbox ():
    """Only a machine that cannot isolate is a reason to skip."""
    home = tempfile.mkdtemp (prefix="coffer-server-")
    try:
        r = subprocess.run ([COFFER, "run", "--", "/bin/true"],
                            env=dict (os.environ, COFFER_HOME=home),
                            capture_output=True, text=True)
    finally:
        shutil.rmtree (home, ignore_errors=True)
    if r.returncode and "E2005" in r.stderr:
        skip_all ("a machine that can isolate: " + r.stderr.splitlines ()[0])


def is_sanitized ():
    with open (os.path.realpath (COFFER), "rb") as f:
        data = f.read ()
    return any (word in data for word in (b"__asan_init", b"__tsan_init"))


SANITIZED = is_sanitized ()


@atexit.register
def end_all ():
    for daemon in daemons:
        try:
            daemon.clean ()
        except (OSError, subprocess.SubprocessError) as e:
            note ("clearing up: %s" % e)
    daemons.clear ()


def finish ():
    homes = [d.home for d in daemons if d.made]
    end_all ()

    def quiet ():
        reap ()
        return not below (os.getpid ())
    soon (quiet, 30)
    left = ["%d %s" % (p, command_line (p)) for p in below (os.getpid ())]
    left += [h for h in homes if os.path.exists (h)]
    ok ("nothing is left behind: processes, folders", not left,
        "\n".join (left))
    print ("1..%d" % count)
    sys.exit (0)


# ---- the document ----------------------------------------------------------

METHODS = ("get", "put", "post", "delete", "head", "patch", "options")


class Operation:
    def __init__ (self, document, path, method, value, shared):
        self.document, self.path, self.method = document, path, method.upper ()
        self.value = value
        self.id = value["operationId"]
        self.parameters = [document.resolve (p) for p
                           in shared + value.get ("parameters", [])]
        self.pattern = re.compile (
            re.sub (r"\\\{(\w+)\\\}", lambda m: "(.+)" if m[1] == "path"
                    else "([^/]+)", re.escape (path)) + r"\Z")

    def response (self, status):
        responses = self.value["responses"]
        r = responses.get (str (status), responses.get ("default"))
        return self.document.resolve (r) if r else None

    def body (self):
        return self.document.resolve (self.value.get ("requestBody", {}))


class Document:
    def __init__ (self, path=DOCUMENT):
        with open (path, encoding="utf-8") as f:
            self.value = json.load (f)
        self.operations = []
        for where, item in self.value["paths"].items ():
            for method in METHODS:
                if method in item:
                    self.operations.append (
                        Operation (self, where, method, item[method],
                                   item.get ("parameters", [])))

    def resolve (self, value):
        while isinstance (value, dict) and "$ref" in value:
            at = self.value
            for part in value["$ref"][2:].split ("/"):
                at = at[part.replace ("~1", "/").replace ("~0", "~")]
            value = at
        return value

    def find (self, method, target):
        """The operation that a request is for: the most literal path."""
        path = target.split ("?")[0]
        found = [o for o in self.operations
                 if o.method == method and o.pattern.match (path)]
        return max (found, key=lambda o: (-o.path.count ("{"), len (o.path)),
                    default=None)
