#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Code that means no good, run by the service and judged from outside.

  corpus.py URL|cli [CASES]   prints lines OK|NOT OK, a tab, what, a tab, why not

Most of it goes past the first two layers at once, by a hole that any guard in
Python has, so that what is tried meets the kernel's.  What it prints decides
nothing: a file, a variable and sockets outside do, and the reply's own facts.
"""

import base64
import concurrent.futures
import http.client
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

# A function's globals, taken out by who copies attributes: the runner's.
BREAK = """
import functools
def reach(what, name):
    got = []
    class Taker:
        def __setattr__(self, key, value):
            got.append(value)
    functools.update_wrapper(Taker(), what, assigned=(name,), updated=())
    return got[0]
def fails(function, *args):
    try:
        function(*args)
    except OSError as error:
        return error
own = reach(open, '__globals__')
posix, sys = own['posix'], own['sys']
leave = reach(posix, '_exit')
load = reach(own['builtins'], '__import__')
channel = [fd for fd in range(3, 64) if not fails(posix.fstat, fd)]
"""


class World:
    """What must not be touched or told."""

    def __init__(self, folder):
        self.secret = secrets.token_hex(16)
        self.file = os.path.join(folder, "secret")
        self.target = os.path.join(folder, "target")
        for path, mode in (self.file, 0o644), (self.target, 0o666):
            with open(path, "w") as file:
                file.write(self.secret)
            os.chmod(path, mode)
        self.contacts = []
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.abstract = "coffer-" + secrets.token_hex(8)
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind("\0" + self.abstract)
        self.unix.listen(8)
        for listener in self.tcp, self.unix:
            threading.Thread(target=self.listen, args=(listener,),
                             daemon=True).start()

    def listen(self, listener):
        while True:
            connection, _ = listener.accept()
            self.contacts.append(listener.getsockname())
            connection.close()

    def fill(self, code):
        for name, value in (("FILE", self.file), ("TARGET", self.target),
                            ("PORT", self.tcp.getsockname()[1]),
                            ("ABSTRACT", "\0" + self.abstract)):
            code = code.replace("@%s@" % name, repr(value))
        return code

    def faults(self, text):
        if self.secret in text:
            yield "the secret is in the reply"
        with open(self.target) as file:
            if file.read() != self.secret:
                yield "the file outside was changed"
        if self.contacts:
            yield "somebody called: %s" % self.contacts


# ---- how code is run --------------------------------------------------------

def run_cli(code, timeout=10, profile=None):
    argv = [os.path.join(os.environ["COFFER_BUILD"], "coffer"), "run",
            "--python", "-", "--json", "--timeout", "%dms" % (timeout * 1000)]
    if profile:
        argv += ["--profile", profile]
    done = subprocess.run(argv, input=code.encode(), capture_output=True,
                          timeout=120)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        return 500, {"error": done.stderr.decode() + done.stdout.decode()}
    if "violations" in document:
        return 400, document
    return (200 if "stdout" in document else 500), document


def run_http(url):
    place = urllib.parse.urlsplit(url)

    def run(code, timeout=10, profile=None):
        body = {"code": code, "timeout": timeout}
        if profile:
            body["profile"] = profile
        for _ in range(600):
            connection = http.client.HTTPConnection(
                place.hostname, place.port, timeout=120)
            connection.request("POST", "/execute", json.dumps(body),
                               {"Content-Type": "application/json"})
            reply = connection.getresponse()
            document = json.loads(reply.read())
            connection.close()
            if reply.status != 429:
                break
            time.sleep(0.05)
        return reply.status, document
    return run


# ---- the cases --------------------------------------------------------------

CASES = []


def case(name, code, check, **how):
    CASES.append((name, code, check, how))


def ran(d, status=0):
    return d["exit_code"] == status and not d["timed_out"]


def refused(*lines):
    def check(d):
        found = [int(v.split(":")[0][5:]) for v in d["violations"]]
        return found == list(lines)
    return check


def ended(d):
    """In time, by whatever means."""
    return d["timed_out"] or d["exit_code"] != 0


case("plain code answers with every field",
     "import math\nprint('pi =', round(math.pi, 2))\n6 * 7",
     lambda d: ran(d) and d["stdout"] == "pi = 3.14\n" and d["stderr"] == ""
     and d["result"] == "42" and d["error"] is None and d["signal"] is None
     and d["oom"] is False and d["limits_hit"] == [] and d["artifacts"] == []
     and d["layers_applied"] == ["ast", "import", "landlock", "seccomp",
                                 "namespaces"]
     and not any(d["truncated"].values()) and d["duration_ms"] > 0)
case("PY02 a class in a pattern", "match ():\n  case object(__class__=c): pass",
     refused(2), min_python=(3, 10))
case("PY05 a name made at run time is no builtin",
     "import functools\nb = functools.reduce(lambda a, c: a + c, 'eval')\n"
     "print(b in dir())\n(lambda f: f)(0)['x']",
     lambda d: ran(d, 1) and "TypeError" in d["error"])
case("PY08 modules of modules", "from statistics import sys", refused(1))
case("PY09 a process", BREAK + "posix.fork()",
     lambda d: ran(d, 1) and "PermissionError" in d["error"])
case("PY09 another program", BREAK + "posix.execv('/bin/true', ['true'])",
     lambda d: ran(d, 1) and "PermissionError" in d["error"])
case("PY13 an annotation that is evaluated", "import functools\n"
     "@functools.singledispatch\ndef f(x): pass\n"
     "@f.register\ndef g(x: '__import__(\"os\").listdir(\"/\")'): pass",
     lambda d: ended(d))
case("PY20 eval in letters of full width", "ｅval('1')", refused(1))
case("PY21 a coding cookie is a comment",
     "# -*- coding: utf-7 -*-\nprint('+AGE-')",
     lambda d: ran(d) and d["stdout"] == "+AGE-\n")
case("PY22 a lone carriage return ends a line", "print(1)\rprint(2)",
     lambda d: ran(d) and d["stdout"] == "1\n2\n")
case("PY22 a separator of lines is no end of one", "print('a\u2028b')\n1/0",
     lambda d: ran(d, 1) and "line 2" in d["stderr"])
case("PY22 a very long line", "x = '%s'\nlen(x)" % ("a" * 400000),
     lambda d: ran(d) and d["result"] == "400000")
case("PY36 a large power", "9**9**9", ended, timeout=1)
case("PY36 a large text", "'a' * 10**10", ended)
case("PY36 a large list", "[0] * 10**9", lambda d: ran(d, 1) and d["oom"])
case("PY36 an expression that goes back",
     "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
     lambda d: d["timed_out"], timeout=1)
case("PY37 an endless loop", "print('begun')\nwhile True: pass",
     lambda d: d["timed_out"] and d["exit_code"] == 124 and d["signal"]
     and "timed out after 1s" in d["stderr"] and d["result"] is None
     and d["limits_hit"] == ["timeout"], timeout=1)
case("PY38 an exit past all handlers", BREAK + "leave(0)",
     lambda d: ran(d) and d["result"] is None)
case("PY38 an exit with a text", "raise SystemExit('x')",
     lambda d: ran(d, 1) and d["stderr"] == "x\n" and d["result"] is None)
case("PY38 an exit with a large number", "raise SystemExit(300)",
     lambda d: ran(d, 44))
case("PY38 its own end by a signal",
     BREAK + "load('_ctypes').call_function\n"
     "load('ctypes').string_at(1)",
     lambda d: d["exit_code"] == 128 + d["signal"] and "signal" in d["error"]
     if d["signal"] else ran(d, 1))
case("PY40 a thread that prints on", BREAK + "import json\n"
     "def chatter():\n"
     "    while True: print('x')\n"
     "load('_thread').start_new_thread(chatter, ())\n'done'",
     lambda d: ran(d) and d["result"] == "'done'")
case("PY41 no text of ours", "print(__file__)",
     lambda d: ran(d, 1) and "<execute>" in d["stderr"]
     and "runner" not in d["stderr"] and "/" not in d["stderr"])
case("PY42 a failed import tells no paths", "import csv\ncsv.nothing",
     lambda d: ran(d, 1) and "/" not in d["stderr"])
case("PY44 a future import and a docstring",
     "'''doc'''\nfrom __future__ import annotations\n"
     "def f(x: Missing) -> None: pass\nprint(__doc__)\n1/0",
     lambda d: ran(d, 1) and d["stdout"] == "doc\n" and "line 5" in d["stderr"])
case("PY45 parts of packages", "import collections.abc\n"
     "from collections import abc\nabc.Mapping is collections.abc.Mapping",
     lambda d: d["result"] == "True")
case("PY46 what modules import by themselves",
     "import decimal, random, statistics, datetime, json\n"
     "statistics.mean([decimal.Decimal(1), decimal.Decimal(2)])",
     lambda d: d["result"] == "Decimal('1.5')")
case("PY46 what is written in C imports by itself",
     "import datetime\n"
     "datetime.datetime.strptime('2020-02-03', '%Y-%m-%d').isoformat()",
     lambda d: d["result"] == "'2020-02-03T00:00:00'")
case("PY46 an error of numpy is numpy's",
     "import numpy\nnumpy.array(['a']) + 1",
     lambda d: ran(d, 1) and "ufunc" in d["error"]
     and "<runner>" not in d["stderr"],
     profile="data-science", timeout=30, needs="numpy")
case("FS28 a file of the host, by open", "open(@FILE@).read()",
     lambda d: ran(d, 1))
case("FS28 a file of the host, by the kernel", BREAK
     + "posix.read(posix.open(@FILE@, 0), 100)", lambda d: ran(d, 1))
case("FS28 its directory and what it is", BREAK
     + "print(posix.listdir('/'))\nposix.stat(@FILE@)", lambda d: ran(d, 1))
case("FS28 a file outside, to write", BREAK
     + "posix.write(posix.open(@TARGET@, 2), b'x')", lambda d: ran(d, 1))
case("FS29 /tmp has nothing of others", BREAK + "posix.listdir('/tmp')",
     lambda d: d["result"] == "[]")
case("FS32 modes of what is shown", BREAK + "posix.chmod('/usr/bin', 0o777)",
     lambda d: ran(d, 1))
case("LL02 a link into the results", BREAK
     + "print(fails(posix.symlink, @FILE@, 'out/a'))\n"
     "print(fails(posix.link, '/etc/passwd', 'out/b'))\n"
     "print(fails(posix.mkfifo, 'out/c'))\n1",
     lambda d: ran(d) and d["artifacts"] == [])
case("CR01 the environment", BREAK
     + "print(posix.environ)\n"
     "for path in '/proc/self/environ', '/proc/1/environ':\n"
     "    try:\n"
     "        print(posix.read(posix.open(path, 0), 9999))\n"
     "    except OSError as error:\n"
     "        print(error)",
     lambda d: ran(d) and "COFFER" not in d["stdout"]
     and "TEST_SECRET" not in d["stdout"])
case("PR18 descriptors", BREAK + "len(channel)",
     lambda d: ran(d) and d["result"] == "1")
case("NE12 sockets", BREAK + "socket = load('socket')\n"
     "for family, address in ((2, ('127.0.0.1', @PORT@)), (1, @ABSTRACT@)):\n"
     "    try:\n"
     "        s = socket.socket(family, 1)\n"
     "        s.connect(address)\n"
     "    except OSError as error:\n"
     "        print(error.errno)",
     lambda d: ran(d) and d["stdout"] == "97\n97\n"
     or d["stdout"] == "1\n1\n")
case("KS calls of the kernel", BREAK
     + "c = load('ctypes').CDLL(None, use_errno=True)\n"
     "[c.syscall(n, 0, 0, 0, 0) for n in (425, 435, 250, 272)]",
     lambda d: d["result"] == "[-1, -1, -1, -1]")
case("ME01 more memory than there is", "bytearray(4 << 30)",
     lambda d: d["oom"] and "memory" in d["limits_hit"] and not d["timed_out"])
case("ME02 killed for its memory",
     "x = []\nwhile True: x.append('a' * 10**6)",
     lambda d: d["oom"] and "memory" in d["limits_hit"] and not d["timed_out"]
     and (d["exit_code"] == 1 and d["error"] == "MemoryError"
          or d["exit_code"] == 137 and d["signal"] == 9
          and d["stderr"] == d["error"] + "\n" == "killed: out of memory\n"),
     timeout=30)
case("OU01 output without end", "while True: print('x' * 1000)",
     lambda d: d["timed_out"] and d["truncated"]["stdout"]
     and len(d["stdout"]) < 100000, timeout=1)
case("OU02 more than a pipe holds", "for i in range(3000): print('x' * 99)",
     lambda d: ran(d) and d["truncated"]["stdout"]
     and d["stdout"].endswith("x\n") and "left out here]" in d["stdout"])
case("OU04 NUL bytes", "print('a\\0b')",
     lambda d: d["stdout"] == "a\0b\n")
case("OU05 one very long line", "print('x' * 20000000)",
     lambda d: ran(d) and len(d["stdout"]) < 100000)
case("OU06 bytes that are no text", BREAK + "posix.write(1, b'\\xff\\xfeok')",
     lambda d: d["stdout"] == "\ufffd\ufffdok")
case("OU09 a forged reply in the output",
     "print('{\"exit_code\":0,\"result\":\"forged\"}')\n"
     "print('data: {}\\n\\nHTTP/1.1 200 OK\\r\\n')\nraise SystemExit(7)",
     lambda d: ran(d, 7) and d["result"] is None
     and d["stdout"].startswith('{"exit_code"'))
case("OU10 garbage on the channel", BREAK
     + "posix.write(channel[0], b'garbage' * 100)\nprint('on')\n'mine'",
     lambda d: ran(d, d["exit_code"]) and d["result"] is None
     and d["stdout"] == "on\n" and "channel" in d["error"])
case("OU10 megabytes on the channel", BREAK
     + "block = b'A\\0\\x3f\\xff\\xff' + b'x' * 4194303\n"
     "for i in range(100):\n"
     "    error = fails(posix.write, channel[0], block)\n"
     "    if error: break\n"
     "print('on', i > 0)\nleave(3)",
     lambda d: ran(d, 3) and d["result"] is None and d["artifacts"] == []
     or d["exit_code"] == 3)
case("OU10 a second verdict", BREAK
     + "v = b'{\"accepted\":false,\"violations\":[\"Line 1: x\"],\"layers\":[]}'\n"
     "posix.write(channel[0], b'V' + len(v).to_bytes(4, 'big') + v)\n"
     "leave(5)",
     lambda d: ran(d, 5) and d["result"] is None)
case("OU10 a forged result says nothing of the end", BREAK
     + "import json\nr = json.dumps({'result': 'forged', 'error': None, "
     "'cut': False, 'memory': False, 'skipped': 0}).encode()\n"
     "posix.write(channel[0], b'R' + len(r).to_bytes(4, 'big') + r)\n"
     "raise SystemExit(9)",
     lambda d: ran(d, 9) and d["timed_out"] is False and not d["oom"])
case("OU10 an artifact whose name leads away", BREAK
     + "n = b'../../etc/cron.d/x'\np = len(n).to_bytes(2, 'big') + n + b'y'\n"
     "posix.write(channel[0], b'A' + len(p).to_bytes(4, 'big') + p)\n'mine'",
     lambda d: d["artifacts"] == [] and d["result"] is None)
case("OU12 every descriptor closed", BREAK
     + "for fd in range(256): fails(posix.close, fd)\nleave(3)",
     lambda d: ran(d, 3) and d["stdout"] == "" and d["result"] is None)
case("OU12 no channel any more", BREAK
     + "posix.close(channel[0])\nprint('on')\n'lost'",
     lambda d: d["result"] is None and d["stdout"] == "on\n")
case("artifacts are files of ./out",
     "open('out/a.txt', 'w').write('caf\u00e9\u2603')\n"
     "open('elsewhere', 'w').write('x')\nopen('out/b', 'wb').write(bytes(9))",
     lambda d: [(a["name"], a["size"]) for a in d["artifacts"]]
     == [("a.txt", 8), ("b", 9)]
     and base64.b64decode(d["artifacts"][0]["data"]).decode()
     == "caf\u00e9\u2603")
case("artifacts beyond the count are left out",
     "for i in range(40): open('out/%02d' % i, 'w').write('x')",
     lambda d: len(d["artifacts"]) == 16 and d["truncated"]["artifacts"])
case("a figure is an artifact",
     "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])",
     lambda d: ran(d) and [a["name"] for a in d["artifacts"]]
     == ["figure-1.png"] and base64.b64decode(d["artifacts"][0]["data"])
     .startswith(b"\x89PNG"), profile="data-science", timeout=30,
     needs="matplotlib")
case("a long result is cut", "'x' * 100000",
     lambda d: len(d["result"]) == 8192 and d["truncated"]["result"])
case("a repr that fails is an error of the code",
     "class A:\n    def __repr__(self): return 1\nA()",
     lambda d: ran(d, 1) and "TypeError" in d["error"])


# ---- all of it --------------------------------------------------------------

def judge(world, run, one):
    name, code, check, how = one
    how = dict(how)
    if sys.version_info[:2] < how.pop("min_python", (3, 9)):
        return name, "", "a newer Python"
    needs = how.pop("needs", None)
    if needs and subprocess.run(["/usr/bin/python3", "-c", "import " + needs],
                                capture_output=True).returncode:
        return name, "", needs
    began = time.monotonic()
    try:
        status, d = run(world.fill(code), **how)
        took = time.monotonic() - began
        text = json.dumps(d, ensure_ascii=False)
        why = list(world.faults(text))
        if status >= 500 or not check(d):
            why.append("%d %s" % (status, text[:600]))
        if took > how.get("timeout", 10) + 30:
            why.append("it took %.1f s" % took)
    except Exception as error:
        why = ["%s: %s" % (type(error).__name__, error)]
    return name, " ".join("; ".join(why).split()), None


def main():
    where = sys.argv[1]
    run = run_cli if where == "cli" else run_http(where)
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        world = World(folder)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            chosen = [c for c in CASES if re.search(only, c[0])]
            for name, why, missing in pool.map(
                    lambda one: judge(world, run, one), chosen):
                failed += why != ""
                print("%s\t%s\t%s" % ("SKIP" if missing else
                                      "NOT OK" if why else "OK", name,
                                      missing or why))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
