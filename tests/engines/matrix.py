# SPDX-License-Identifier: Apache-2.0
# From reports of the conformance kit, one a run, to the table of what each provider
# has been seen to do: matrix.py CONTRACT.H MANIFESTS CASES FOLDER, where CASES is what
# `coffer kit --list --json` prints and FOLDER has NAME.json for each run.
#   yes        cases that need the word passed
#   untried    claimed by now, and no case of that run tried it
#   no         it is not claimed
#   given up   claimed, and not to be had of that engine: its operator's file says so
# A run that was not conformant gets no column, and is named on standard error.
import json, pathlib, re, sys

RUNS = ("linux", "host", "docker", "gvisor", "podman", "rootless")


def words (header):
    text = pathlib.Path (header).read_text (encoding="utf-8")
    return re.findall (r'^  CAP \(\w+, "([^"]+)"', text, re.M)


def claims (folder, report):
    """What the provider's manifest claims."""
    path = pathlib.Path (folder) / f"{report['provider']['id']}.yaml"
    lines = path.read_text (encoding="utf-8").split ("\ncapabilities:", 1)[1]
    return re.findall (r"[a-z]+(?:\.[a-z]+)*", re.split (r"\n[a-z]", lines)[0])


def state (word, cases, report, claimed):
    """What a run says of a word."""
    needing = [c for c in report["cases"] if word in cases[c["id"]]]
    verdicts = {c["verdict"] for c in needing}
    if "failed" in verdicts:
        return "failed"
    if word in report.get ("without", "").split ():
        return "given up"
    if any (c["verdict"] == "skipped" and c["reason"].startswith (word + " is ")
            for c in needing):
        return "taken away"
    if "passed" in verdicts:
        return "yes"
    return "untried" if word in claimed else "no"


def engine (report):
    """The engine by its own word, of those that have one."""
    facts = {f["name"]: f.get ("value", "") for f in report["facts"] or []}
    return facts.get ("engine", "-").split (", ")[0].split (" (")[0]


def main (header, manifests, list_path, folder):
    cases = {c["id"]: c["claims"].split ()
             for c in json.loads (pathlib.Path (list_path).read_text ())}
    runs, reports = [], []
    for run in RUNS:
        report = json.loads ((pathlib.Path (folder) / f"{run}.json").read_text ())
        if report["verdict"] == "conformant":
            runs.append (run)
            reports.append (report)
        else:
            print (f"{run}: no column: {report['why']}", file=sys.stderr)
    print ("# SPDX-License-Identifier: Apache-2.0\n"
           "# From whole runs of the conformance kit; `make update-providers`"
           " makes it anew.")

    def row (name, values):
        print (name, *values, sep="\t")

    row ("run", runs)
    row ("provider", (r["provider"]["id"] for r in reports))
    row ("engine", (engine (r) for r in reports))
    row ("verdict", (r["verdict"] for r in reports))
    row ("passed", (r["counts"]["passed"] for r in reports))
    row ("waived", (r["counts"]["waived"] for r in reports))
    for word in words (header):
        row (word, (state (word, cases, r, claims (manifests, r)) for r in reports))


main (*sys.argv[1:])
