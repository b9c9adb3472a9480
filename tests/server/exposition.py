# SPDX-License-Identifier: Apache-2.0
# Is a file Prometheus' text, with names and units as its users expect them?
# Prints what is wrong, a line each; nothing: it is well.
import re, sys

text = open (sys.argv[1], encoding="utf-8").read ()
NAME = re.compile (r"[a-z_][a-z0-9_]*$")
LINE = re.compile (r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile (r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
UNITS = ("ms", "milliseconds", "microseconds", "kb", "mb", "percent")
bad, types, helps, seen, order = [], {}, {}, set (), []
buckets = {}

def labels_of (text, line):
    found, at = {}, 0
    while at < len (text or ""):
        m = LABEL.match (text, at)
        if not m or m[1] in found:
            bad.append ("labels: " + line)
            break
        found[m[1]] = m[2]
        at = m.end ()
    return found

if not text.endswith ("\n"):
    bad.append ("no newline at the end")
for line in text.splitlines ():
    if line.startswith ("# HELP "):
        _, _, name, what = line.split (" ", 3)
        if name in helps:
            bad.append ("two HELP: " + name)
        helps[name] = what
        continue
    if line.startswith ("# TYPE "):
        _, _, name, kind = line.split (" ", 3)
        if name in types or kind not in ("counter", "gauge", "histogram"):
            bad.append ("TYPE: " + line)
        types[name] = kind
        order.append (name)
        continue
    m = LINE.match (line)
    if not m:
        bad.append ("a line that is none: " + line)
        continue
    name, labels, value = m[1], labels_of (m[2], line), float (m[3])
    family = name
    for suffix in ("_bucket", "_sum", "_count"):
        if name.endswith (suffix) and types.get (name[:-len (suffix)]) == "histogram":
            family = name[:-len (suffix)]
    if not order or order[-1] != family:
        bad.append ("not behind its TYPE: " + line)
    key = (name, tuple (sorted (labels.items ())))
    if key in seen:
        bad.append ("twice: " + line)
    seen.add (key)
    if value < 0 or value != value:
        bad.append ("a value that cannot be: " + line)
    if name != family and name.endswith ("_bucket"):
        le = labels.pop ("le")
        group = buckets.setdefault ((family, tuple (sorted (labels.items ()))), [])
        if group and (float (le) <= group[-1][0] or value < group[-1][1]):
            bad.append ("buckets that do not add up: " + line)
        group.append ((float (le), value))
    if name != family and name.endswith ("_count"):
        group = buckets.get ((family, tuple (sorted (labels.items ()))), [])
        if not group or group[-1] != (float ("inf"), value):
            bad.append ("the last bucket is not the count: " + line)
for name, kind in types.items ():
    if not NAME.match (name) or name not in helps:
        bad.append ("name or HELP: " + name)
    if (kind == "counter") != name.endswith ("_total"):
        bad.append ("_total is for counters: " + name)
    if any (part in UNITS for part in name.split ("_")):
        bad.append ("no base unit: " + name)
    if kind == "histogram" and not name.endswith ("_seconds"):
        bad.append ("a histogram without its unit: " + name)
print ("\n".join (bad), end="")
