# SPDX-License-Identifier: Apache-2.0
# Every field of run, create, exec and call, with values that are none: refused
# with the code, the field and the range, before anything is made.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3
: >"$T/a file"; mkdir "$T/shown"

python3 - "$COFFER_BUILD/coffer" "$T" >"$T/report" <<'PY'
import json, subprocess, sys
coffer, top = sys.argv[1:]

# Option, field in the error's details ("" is none: the message names it), part
# of the message, values.
huge = ["99999999999999999999", "18446744073709551617", "9223372036854775808"]
sizes = ["", "0", "-1", "+1M", " 1M", "1M ", "1e3", "0x10", "1.5.5M", "1,5M", "12x", "2E",
         "nan", "16777216T", *huge]
counts = ["", "0", "-1", "1.5", "0x1", "1 ", "x", "4294967297", *huge]
times = ["", "0", "-1", "1ns", "0.0001s", "soon", "99999999999d", "1h30", *huge]
spec = [
    ("--mem", "mem", "from 1MiB to 1EiB", sizes + ["1K", "9223372036854775807"]),
    ("--disk", "disk", "from 64KiB to 1EiB", sizes + ["1", "2048P"]),
    ("--pids", "pids", "from 1 to 4194304", counts + ["4194305"]),
    ("--cpus", "cpus", "from 0.001 to 1024",
     ["", "0", "-1", "nan", "inf", "0x1", "1e0", " 1", "0.0001", "1025", "1024.001", "two", *huge]),
    ("--net", "", "none, host or allow", ["", "hots", "None", "none,host"]),
    ("--user", "user", "", ["", "a b", "4294967295", "-1", "0x0", "root:root", "n" * 33]),
    ("--workdir", "", "absolute path|component|longer than", ["", "x", "./x", "/a/../b", "/a/./b", "/a//b", "/" + "d" * 300]),
    ("--profile", "profile", "", ["", "no-such", "a b", "-x", "../default", "/etc/passwd", "\t"]),
    ("--template", "template", "", ["", "no-such", "a b", "-x", "../x", "/"]),
    ("--accept", "accept", "no capability", ["", "limit.memry", "all", "*"]),
    ("--env", "", "name", ["", "=x", "1A=b", "A B=c", "A-B=c", "é=1"]),
    ("--env-file", "", "", ["", "/nope", top]),
    ("--volume", "", "", ["", "/tmp", ":/x", "/tmp:", "/tmp:rel", "/tmp:/a/../b", "/tmp:/", "/nope:/x",
                          "/dev/null:/x", f"{top}/shown:/a//b"]),
    ("--workspace", "", "", ["", "/nope", f"{top}/shown:rx", "/dev/null"]),
]
run = [("--timeout", "timeout", "from 1ms to 366d", times + ["367d"])]
create = [("--ttl", "ttl", "from 1s to 366d", times + ["1ms", "999ms", "367d"]),
          ("--port", "ports", "between 1 and 65535", ["", "0", "-1", "65536", "80,81", "http", *huge]),
          ("--image", "image", "", ["", "a b", "-x", "\t"]),
          ("--metadata", "", "NAME=VALUE|UTF-8", ["", "x", "=x", b"\xff=1"])]
calls = [("memory_bytes", ["-1", "x", "1.5", "1Z", *huge]), ("cpu_millis", ["-1", "1x", "4294967296"]),
         ("pids", ["-1", "4294967296", "1.5"]), ("disk_bytes", ["-1", "x"]), ("inodes", ["-1", "0x1", *huge]),
         ("address_bytes", ["-1", "x"]), ("file_bytes", ["-1", "x"]), ("open_files", ["-1", "4294967296"]),
         ("ttl_ms", ["-5", "x", *huge]), ("root_writable", ["2", "maybe", "-1"]), ("single_exec", ["2"]),
         ("template_fd", ["0", "/dev/null"]), ("lifeline", ["0"]), ("memory", ["5"]), ("profiles", ["x"])]

def refused (words, codes, field, parts, exact):
    done = subprocess.run ([coffer, *words, "--json"] if "--" not in words
                           else [coffer, "--json", *words],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           stdin=subprocess.DEVNULL, timeout=60)
    try:
        error = json.loads (done.stdout)["error"]
    except (ValueError, KeyError):
        return f"no error but {done.returncode} {done.stdout[:200]!r} {done.stderr[:200]!r}"
    wrong = []
    if done.returncode != exact: wrong.append (f"exit {done.returncode}")
    if error["code"] not in codes: wrong.append (error["code"])
    if field and (error.get ("details") or {}).get ("field") != field:
        wrong.append (f"field {error.get ('details')}")
    if parts and not any (part in error["message"] for part in parts.split ("|")):
        wrong.append (error["message"])
    if not error.get ("hint"): wrong.append ("no hint")
    return " ".join (wrong)

def table (name, rows, command, tail, exact):
    for option, field, part, values in rows:
        wrong = []
        for value in values:
            words = [*command, option, value, *tail]
            bad = refused (words, {"E6006", "E2001"}, field, part, exact)
            if bad: wrong.append (f"{value!r}: {bad}")
        print ("bad" if wrong else "ok", f"{name} {option}: {len (values)} values", "; ".join (wrong), sep="\t")

table ("run", spec + run, ["run"], ["--", "touch", "/workspace/x"], 125)
table ("create", spec + create, ["sandbox", "create"], [], 2)
table ("exec", run, ["sandbox", "exec", "sb-00000000000000000000000000"], ["--", "true"], 125)
for key, values in calls:
    wrong = [f"{v}: {bad}" for v in values
             if (bad := refused (["call", "linux", "sandbox_create", "sandbox=bad-input", f"spec.{key}={v}"],
                                 {"E6006", "E2001"}, "", key, 2))]
    print ("bad" if wrong else "ok", f"call spec.{key}: {len (values)} values", "; ".join (wrong), sep="\t")
for words in (['spec={"pids":1,"bogus":2}'], ['spec={"pids":1,"pids":2}'], ["bogus=1"], ["opts.x=1"],
              ['spec={"mounts":[{"target":"/x","bogus":1}]}'], ["spec=[]"], ["spec=x"], ["spec.pids"]):
    bad = refused (["call", "linux", "sandbox_create", "sandbox=bad-input", *words], {"E6006", "E6001"}, "", "", 2)
    print ("bad" if bad else "ok", f"call {words[0]}", bad, sep="\t")
for words, code in ((["run", "--memory", "1G", "--", "true"], 125), (["run", "--inodes=5", "--", "true"], 125),
                    (["run", "--mem", "1G", "--mem", "1G", "--", "true"], 125),
                    (["sandbox", "create", "--timeout", "1s"], 2), (["run", "--tty=1", "--", "true"], 125)):
    bad = refused (words, {"E6001"}, "", "", code)
    print ("bad" if bad else "ok", " ".join (words), bad, sep="\t")
PY
while IFS='	' read -r verdict name wrong; do
  is "$name" "$verdict $wrong" "ok "
done <"$T/report"
[ -s "$T/report" ] || is "the table was tried" no yes

# Refused is refused before there is anything to undo.
is "nothing was made: no folder of a sandbox, no record" \
  "$(find "$COFFER_HOME/run" "$COFFER_HOME/state" \( -name 'sb-*' -o -name 'bad-input*' \) 2>/dev/null)" ""
run coffer sandbox list --json
is "and none is listed" "$(cat "$out")" "[]"

finish
