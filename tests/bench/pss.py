#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory of a run: the sum of the proportional set sizes of coffer and of
the processes that it keeps for a sandbox (worker, init, keeper), without the
command's own.

    pss.py NAME LIMIT_MIB COMMAND...

COMMAND must end in the program sleep, which gets its argument here (a time that
no other has) and is left out.  Prints "NAME_pss_mib VALUE" and one line a
process; exits 1 above the limit, 2 when nothing was measured."""

import os
import subprocess
import sys
import time


def processes():
    """pid -> (parent, name) of all there are."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                text = stat.read().decode("utf-8", "replace")
        except OSError:
            continue
        name = text[text.index("(") + 1:text.rindex(")")]
        found[int(pid)] = (int(text[text.rindex(")") + 2:].split()[1]), name)
    return found


def arguments(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
            return cmdline.read().split(b"\0")
    except OSError:
        return []


def ours(root, token):
    """The run's processes: those below it, and those that hold the sleeper (a
    keeper is nobody's child)."""
    table = processes()
    keep = {root}
    grown = True
    while grown:
        grown = False
        for pid, (parent, _) in table.items():
            if parent in keep and pid not in keep:
                keep.add(pid)
                grown = True
    sleepers = [p for p, (_, name) in table.items()
                if name == "sleep" and token in arguments(p)]
    for pid in sleepers:
        while pid > 1 and pid in table and pid not in (root, os.getpid()):
            keep.add(pid)
            pid = table[pid][0]
    return {p: table[p][1] for p in keep
            if p in table and p not in sleepers}, sleepers


def pss_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
        for line in rollup:
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def main():
    name, limit, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    token = f"1.{os.getpid()}"
    command.append(token)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as run:
        end = time.monotonic() + 10
        sleepers, found = [], {}
        while time.monotonic() < end and not sleepers:
            time.sleep(0.05)
            found, sleepers = ours(run.pid, token.encode())
        time.sleep(0.1)
        found, sleepers = ours(run.pid, token.encode()) if sleepers else ({}, [])
        sizes = {}
        for pid, program in found.items():
            try:
                sizes[pid] = (program, pss_kib(pid))
            except OSError:
                pass
        run.wait()
    if not sleepers or not sizes:
        print(f"# {name}: the command did not run", file=sys.stderr)
        return 2
    for pid, (program, kib) in sorted(sizes.items()):
        print(f"# {name}: {program} {kib} KiB")
    total = sum(kib for _, kib in sizes.values()) / 1024
    print(f"{name}_pss_mib {total:.2f}")
    return 1 if total > limit else 0


sys.exit(main())
