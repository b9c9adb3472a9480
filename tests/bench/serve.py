#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the daemon is promised to do, each beside its peer in one run:

    serve.py NAME

Prints "NAME_... VALUE" lines; exits 1 when the promise is not kept, 2 when
nothing was measured.  NAME:
  execute       /execute of print(1) beside python3 -I -c, and 8 clients at once
  execute_data  the same of numpy and pandas
  exec          commands a second in a sandbox that runs, beside fork and exec
  events        256 MiB of a command's output as NDJSON and as frames, while it
                runs and from its log, beside the same command and a bare pipe
  idle          the memory of a daemon that does nothing
BENCH_SECONDS: of each turn (2)."""

import json
import os
import re
import statistics
import subprocess
import sys

sys.path.insert (0, os.path.join (os.environ["COFFER_SOURCE"], "tests/server"))
import daemon as d              # noqa: E402

DRIVER = os.path.join (d.BUILD, "tests/bench/http-driver")
SECONDS = float (os.environ.get ("BENCH_SECONDS") or 2)
TURNS = 5
EVENTS = int (os.environ.get ("BENCH_EVENTS") or 256 << 20)


def drive (*args):
    """What the driver says, which is its last line: programs that it starts
    write before that."""
    r = subprocess.run ([DRIVER, *map (str, args)], capture_output=True,
                        text=True, timeout=600)
    if r.returncode:
        raise RuntimeError (r.stderr.strip ()[-500:])
    return json.loads (r.stdout.splitlines ()[-1])


def start (**serve):
    """A daemon, and a short name of its socket."""
    server = d.Daemon (serve, tcp=False).start ()
    server.link = os.path.join (server.home, "s")
    os.symlink (server.socket, server.link)
    return server


def value (name, number):
    print ("%s %.4g" % (name, number), flush=True)


def beside (name, server, body, bare):
    """The ratio of the medians of turns of both, so that what else the machine
    does meets both alike."""
    r = server.request ("POST", "/execute", body)       # starts what is kept
    if r.status != 200 or r.json ()["stdout"] != "1\n":
        raise RuntimeError (repr (r))
    text = json.dumps (body)
    ours, theirs = [], []
    for _ in range (TURNS):
        ours.append (drive ("rate", server.link, "/execute", text, SECONDS, 1))
        theirs.append (drive ("bare", SECONDS, 1, *bare))
    p50 = statistics.median (t["p50_us"] for t in ours) / 1e3
    other = statistics.median (t["p50_us"] for t in theirs) / 1e3
    value (name + "_ms", p50)
    value (name + "_python_ms", other)
    value (name + "_ratio", p50 / other)
    return p50 / other


PYTHON = "/usr/bin/python3"


def execute ():
    server = start (limits={"queue": 1024})
    body = {"code": "print(1)"}
    ratio = beside ("execute", server, body, [PYTHON, "-I", "-c", "print(1)"])
    t = drive ("rate", server.link, "/execute", json.dumps (body),
               2 * SECONDS, 8)
    value ("execute_8_p50_ms", t["p50_us"] / 1e3)
    value ("execute_8_p99_ms", t["p99_us"] / 1e3)
    value ("execute_8_ratio", t["p99_us"] / t["p50_us"])
    value ("execute_8_rate", t["rate"])
    return ratio <= 0.45 and t["p99_us"] <= 3 * t["p50_us"]


def execute_data ():
    code = "import numpy, pandas; print(1)"
    if subprocess.run ([PYTHON, "-c", code], capture_output=True).returncode:
        print ("# execute_data: SKIP missing: numpy and pandas")
        return True
    server = start ()
    return beside ("execute_data", server, {"code": code,
                                            "profile": "data-science"},
                   [PYTHON, "-c", code]) <= 0.05


def sandbox (server):
    r = server.request ("POST", "/api/v1/sandboxes", {"ttl_ms": 600000})
    return "/api/v1/sandboxes/" + r.json ()["id"]


def exec_rate ():
    server = start ()
    box = sandbox (server)
    bare = drive ("bare", SECONDS, 1, "/bin/true")["rate"]
    best = 0
    for clients in (1, 2, 4):
        rate = drive ("rate", server.link, box + "/execs?wait=1",
                      '{"argv":["/bin/true"]}', SECONDS, clients)["rate"]
        value ("exec_rate_%d" % clients, rate)
        best = max (best, rate)
    bare = (bare + drive ("bare", SECONDS, 1, "/bin/true")["rate"]) / 2
    value ("exec_bare_rate", bare)
    value ("exec_ratio", best / bare)
    return best >= 1000 or best >= 0.5 * bare


# What writes so many bytes of lines: one that writes 4 KiB at a time, as a
# program's library does, and takes little of a processor; and a row of filters,
# which takes more of two than there is to give.
WRITES = """import os
page = (b"x" * 79 + b"\\n") * 52
left = %d
while left:
    left -= os.write (1, page[:min (left, 4096)])
"""
FILTERS = "head -c %d /dev/zero | tr '\\0' x | fold -w 79"


def speed (size, turn):
    if turn["bytes"] < size:
        raise RuntimeError ("%d bytes came" % turn["bytes"])
    return size / turn["seconds"] / 1e6


def events_of (server, argv, accept):
    """MB a second while the command runs, and from its log."""
    box = sandbox (server)
    r = server.request ("POST", box + "/execs", {"argv": argv})
    where = box + "/execs/%s/events?from=1" % r.json ()["exec"]
    rates = [speed (EVENTS, drive ("stream", server.link, where, accept))
             for _ in ("live", "kept")]
    server.request ("DELETE", box)      # its log goes
    return rates


def events_beside (server, name, argv, accepts):
    """{accept: (live, kept)}, the medians of turns."""
    turns = [(speed (EVENTS, drive ("pipe", *argv)),
              [events_of (server, argv, accept) for accept in accepts])
             for _ in range (3)]
    bare = statistics.median (pipe for pipe, _ in turns)
    value ("events_%s_pipe_mb_s" % name, bare)
    rates = {}
    for i, accept in enumerate (accepts):
        live, kept = (statistics.median (ours[i][k] for _, ours in turns)
                      for k in (0, 1))
        short = accept.split ("-")[-1]
        value ("events_%s_%s_live_mb_s" % (name, short), live)
        value ("events_%s_%s_live_ratio" % (name, short), live / bare)
        value ("events_%s_%s_kept_mb_s" % (name, short), kept)
        rates[short] = (live, kept)
    return rates


def events ():
    server = start (limits={"exec_log": "600MiB", "exec_logs": "1GiB"})
    accepts = ["application/x-ndjson", "application/x-coffer-frames"]
    rates = events_beside (server, "writes",
                           [PYTHON, "-I", "-c", WRITES % EVENTS], accepts)
    events_beside (server, "filters",
                   ["/bin/sh", "-c", FILTERS % EVENTS], accepts)
    return min (rates["ndjson"]) >= 150 and min (rates["frames"]) >= 300


def idle ():
    server = start ()
    box = sandbox (server)      # one provider is loaded
    server.request ("DELETE", box)
    for profile in ("minimal", "data-science"):         # a zygote each
        server.request ("POST", "/execute", {"code": "1", "profile": profile})
    pids = [server.pid] + d.below (server.pid)
    total = zygotes = 0
    for pid in pids:
        line = " ".join (d.command_line (pid).split ())
        size = d.memory (pid)
        kind = "zygote" if re.search (r"python|zygote", line) else "daemon"
        print ("# idle_serve: %s: %.1f MiB: %s" % (kind, size / 2 ** 20,
                                                  line[:80]))
        if kind == "daemon":
            total += size
        else:
            zygotes += size
    value ("zygotes_pss_mib", zygotes / 2 ** 20)
    value ("idle_serve_pss_mib", total / 2 ** 20)
    return total <= 20 << 20


def main ():
    kept = {"execute": execute, "execute_data": execute_data,
            "exec": exec_rate, "events": events, "idle": idle}[sys.argv[1]]
    try:
        return 0 if kept () else 1
    except (RuntimeError, OSError, KeyError, ValueError) as e:
        print ("# %s: %s" % (sys.argv[1], e), file=sys.stderr)
        return 2
    finally:
        d.end_all ()


sys.exit (main ())
