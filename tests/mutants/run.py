#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance kit against the reference provider and the mutants.

The reference must be found conformant; of each mutant the case that mutants.tsv
names must fail and no other.  A quick run tries each mutant with its case and a
few others, drawn by the seed; with --full, or CHECK_SCALE from 10 on, with all
of them.  A quick run with COFFER_MUTANTS=N tries one in N of the mutants, drawn by
the seed: so does each build of contrib/check, for whom all take too long.  Prints
TAP, or with --json one document, and the kill rate.
"""

import argparse
import concurrent.futures
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["COFFER_BUILD"]
SOURCE = os.environ["COFFER_SOURCE"]
COFFER = BUILD + "/tests/mutants/coffer"
TABLE = SOURCE + "/tests/mutants/mutants.tsv"


def table():
    with open(TABLE, encoding="utf-8") as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                yield (line.rstrip("\n").split("\t") + [""])[:4]


def kit(provider, only, seed, seconds):
    """The report of one run, in a COFFER_HOME of its own; None: there is none."""
    home = tempfile.mkdtemp(prefix="coffer-mutant.")
    # Runs at the same time want other ports: those are the machine's.
    own = random.Random("%d %s" % (seed, provider)).randrange(1000000000)
    argv = [COFFER, "kit", provider, "--json", "--seed", str(own)]
    for case in only:
        argv += ["--only", case]
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("COFFER_") and k != "BOX_BACKEND"}
    env.update(COFFER_HOME=home, REFERENCE_TOKEN="right-4f9a1c77d20b")
    try:
        child = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return None, "no end within %d s" % seconds
        try:
            return json.loads(out), ""
        except ValueError:
            return None, (err or out).decode(errors="replace")[-300:]
    finally:
        shutil.rmtree(home, ignore_errors=True)


def failed(report):
    return {c["id"]: c.get("reason", "") for c in report["cases"]
            if c["verdict"] == "failed"}


def failed_again(name, found, case, options):
    """Without what a busy machine made late: other cases are tried once more,
    but for those that judge what a whole run saw."""
    late = sorted(c for c in found if c != case and not c.startswith("codes."))
    report, _ = kit("m-" + name, late, options.seed + 1, options.seconds) \
        if late else (None, "")
    again = failed(report) if report else found
    return {c: why for c, why in found.items() if c not in late or c in again}


def ran(report):
    return sum(c["verdict"] in ("passed", "failed") for c in report["cases"])


def try_mutant(row, cases, options):
    name, what, case, _ = row
    began = time.monotonic()
    chance = random.Random("%d %s" % (options.seed, name))
    # What cannot be opened passes nothing: a whole run ends there.
    others = [c for c in cases if c != case and case != "load.opens"]
    only = [] if options.full else \
        [case] + chance.sample(others, min(options.others, len(others)))
    report, why = kit("m-" + name, only, options.seed, options.seconds)
    result = {"mutant": name, "seed": 0, "wrong": what, "case": case,
              "killed": False, "alone": False, "failed": {}, "once": [],
              "cases": 0, "why": why}
    if report:
        first = failed(report)
        found = failed_again(name, first, case, options)
        result.update(seed=report["seed"], killed=case in found,
                      alone=set(found) == {case}, failed=found,
                      once=sorted(set(first) - set(found)), cases=ran(report))
        if case not in {c["id"] for c in report["cases"]}:
            result["why"] = "there is no such case"
        elif case not in found:
            result["why"] = "it survived"
    result["seconds"] = round(time.monotonic() - began, 1)
    return result


def try_reference(options, only):
    report, why = kit("reference", only, options.seed, options.seconds)
    if not report:
        sys.exit("the reference provider: " + why)
    return {"verdict": report["verdict"], "failed": failed(report),
            "sanitizers": "sanitizers" in report,
            "cases": [c["id"] for c in report["cases"]],
            "waived": [c["id"] for c in report["cases"]
                       if c["verdict"] == "waived"],
            "seconds": round(report["duration_us"] / 1e6, 1)}


def all_cases():
    """Ids of all cases there are: the lines of --list that are not indented."""
    out = subprocess.run([COFFER, "kit", "--list"], check=True,
                         capture_output=True, text=True).stdout
    return [line.split()[0] for line in out.splitlines()
            if line and not line[0].isspace()]


def arguments():
    scale = int(os.environ.get("CHECK_SCALE", "1"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mutants", nargs="*", help="only these")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--full", action="store_true", default=scale >= 10)
    parser.add_argument("--others", type=int, default=2)
    parser.add_argument("--jobs", type=int,
                        default=int(os.environ.get("MUTANT_JOBS", "4")))
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int,
                        default=random.randrange(1000000000))
    return parser.parse_args()


class Tap:
    def __init__(self, quiet):
        self.quiet, self.n, self.bad = quiet, 0, 0

    def result(self, good, what, notes=()):
        self.n += 1
        self.bad += not good
        if self.quiet:
            return
        print("%s %d - %s" % ("ok" if good else "not ok", self.n, what))
        for note in notes:
            for line in note.splitlines():
                print("# " + line[:400])
        sys.stdout.flush()


def unseen(result, reference):
    """What is missing here for a mutant to be told from the reference."""
    if result["killed"]:
        return None
    # What is freed they keep, so that memory is not judged with them.
    if reference["sanitizers"] and result["mutant"] == "leaks-memory":
        return "memory that is judged, which sanitizers keep"
    # The claim is no lie where the user may not write there anyway.
    if os.geteuid() != 0 and result["mutant"] == "claims-readonly":
        return "root, who could change the machine's root"
    return None


def say_mutant(tap, result, reference):
    missing = unseen(result, reference)
    if missing:
        tap.result(True, "%s # SKIP missing: %s" % (result["mutant"], missing))
        return
    notes = ["%s: %s" % pair for pair in result["failed"].items()
             if pair[0] != result["case"]]
    if not result["killed"]:
        notes.insert(0, result["why"])
    if result["once"]:
        notes.append("failed once, and not again: " + " ".join(result["once"]))
    tap.result(result["alone"], "%s (%s) fails %s and no other of %d cases"
               % (result["mutant"], result["wrong"], result["case"],
                  result["cases"]), notes)


def say_reference(tap, reference):
    # Nothing is proven with sanitizers; but then too no case fails.
    want = "incomplete" if reference["sanitizers"] else "conformant"
    tap.result(reference["verdict"] == want and not reference["failed"],
               "the reference provider is %s (%.1f s, %d cases)"
               % (want, reference["seconds"], len(reference["cases"])),
               ["%s: %s" % pair for pair in reference["failed"].items()])


def mutants_of(options):
    rows = list(table())
    if options.mutants:
        return [r for r in rows if r[0] in options.mutants]
    share = int(os.environ.get("COFFER_MUTANTS") or "1")
    if options.full or share <= 1:
        return rows
    drawn = random.Random(options.seed).sample(range(len(rows)),
                                               len(rows) // share)
    return [rows[i] for i in sorted(drawn)]


def main():
    options = arguments()
    rows = mutants_of(options)
    tap = Tap(options.json)
    cases = all_cases()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        first = pool.submit(try_reference, options, [])
        tried = [pool.submit(try_mutant, r, cases, options) for r in rows]
        reference = first.result()
        say_reference(tap, reference)
        results = []
        for one in tried:
            results.append(one.result())
            say_mutant(tap, results[-1], reference)
    results = [r for r in results if not unseen(r, reference)]
    killed = sum(r["killed"] for r in results)
    alone = sum(r["alone"] for r in results)
    mode = "the whole kit" if options.full else \
        "the case of each and %d others" % options.others
    if options.json:
        json.dump({"killed": killed, "of": len(results), "alone": alone,
                   "mode": "full" if options.full else "quick",
                   "seed": options.seed, "reference": reference,
                   "mutants": results}, sys.stdout, indent=1)
        print()
    else:
        print("1..%d" % tap.n)
        print("# killed %d of %d, %d by that case alone; tried: %s, seed %d"
              % (killed, len(results), alone, mode, options.seed))
    sys.exit(tap.bad > 0)


main()
