# SPDX-License-Identifier: Apache-2.0
"""Every route of every surface, called with every method, by everybody: which
one answers, to whom, and that the document has them all."""

import json
import re

import daemon as d

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
RIGHTS = ("none", "view", "run", "manage", "operate")

# Paths that later surfaces are to have.
FREE = ("/v1", "/v1/sandboxes", "/v1/sandboxes/x", "/v2/sandboxes",
        "/sandboxes", "/sandboxes/x", "/sandboxes/x/refreshes", "/templates",
        "/api", "/api/v2/sandboxes", "/execute/x", "/contexts", "/files", "")


def routes (server):
    r = server.coffer ("serve", "--routes", "--json")
    if r.returncode:
        raise RuntimeError (r.stderr)
    table = []
    for row in json.loads (r.stdout)["routes"]:
        if row["method"] == "*":        # any, each an operation of its own
            table += [dict (row, method=m, operation=row["operation"]
                            + m.capitalize ()) for m in METHODS]
        else:
            table.append (row)
    return table


def plain (path):
    """As the document writes it."""
    return path.replace ("…}", "}")


def concrete (path, sandbox="sb-00000000000000000000000000"):
    """A request's path, of what is not there."""
    values = {"id": sandbox, "port": "80", "path": "a/b"}
    return re.sub (r"\{(\w+)…?\}",
                   lambda m: values.get (m[1], "nothing-" + m[1]), path)


def same_as_document (table):
    document = d.Document ()
    served = {(r["method"], plain (r["path"])): r["operation"] for r in table}
    written = {(o.method, o.path): o.id for o in document.operations}
    d.equal ("every route is in the document",
             sorted (set (served.items ()) - set (written.items ())), [])
    d.equal ("and the document has no other",
             sorted (set (written.items ()) - set (served.items ())), [])
    ids = [o.id for o in document.operations]
    d.equal ("each operation has a name of its own",
             sorted (i for i in ids if ids.count (i) > 1), [])
    d.equal ("rights are written down as they are", [
        (o.id, o.value.get ("x-right")) for o in document.operations
        for r in table if r["operation"] == o.id
        and r["right"] != o.value.get ("x-right", "none")], [])


def allowed (table, path):
    """Methods of all rows with that path."""
    found = {r["method"] for r in table if r["path"] == path}
    if "GET" in found:
        found.add ("HEAD")
    return found


def which_method (server, table, token):
    wrong = []
    for path in sorted ({r["path"] for r in table}):
        have = allowed (table, path)
        for method in METHODS:
            r = server.request (method, concrete (path), over="tcp",
                                token=token, keep=False)
            if method in have:
                if r.status == 405 or (r.status == 404
                                       and r.code () == "E7003"
                                       and "nothing" not in path):
                    wrong.append ("%r, which is a route" % r)
                continue
            words = {w.strip () for w in (r.header ("Allow") or "")
                     .split (",")} - {"HEAD"}
            if r.status != 405 or words != have - {"HEAD"}:
                wrong.append ("%r, Allow: %s" % (r, r.header ("Allow")))
    d.ok ("each method of each path is answered by its row, others by 405",
          not wrong, "\n".join (wrong[:10]))


def who_may (server, table, tokens):
    wrong = []
    for row in table:
        need = RIGHTS.index (row["right"])
        path = concrete (row["path"])
        for have, name in enumerate (RIGHTS):
            r = server.request (row["method"], path, over="tcp",
                                token=tokens.get (name), keep=False)
            refused = {0: 401}.get (have, 403)
            if have < need and not row["anonymous"]:
                good = r.status == refused
                if refused == 401:
                    good = good and r.header ("WWW-Authenticate")
            else:
                good = r.status not in (401, 403) or row["anonymous"]
            if not good:
                wrong.append ("%s as %s: %r" % (row["operation"], name, r))
    d.ok ("each route is for who has its right, and for nobody else",
          not wrong, "\n".join (wrong[:10]))
    public = sorted (r["path"] for r in table if r["anonymous"])
    d.equal ("without a token there are three routes", public,
             ["/execute", "/healthz", "/profile"])


def other_tenants (server, table, token, sandbox):
    """To others it is not there: the reply is that of a sandbox that never
    was."""
    wrong = []
    for row in table:
        if "/sandboxes/{id}" not in row["path"] or row["method"] == "DELETE":
            continue
        theirs = server.request (row["method"],
                                 concrete (row["path"], sandbox), over="tcp",
                                 token=token, keep=False)
        nobodys = server.request (row["method"], concrete (row["path"]),
                                  over="tcp", token=token, keep=False)
        if (theirs.status, theirs.code ()) != (nobodys.status,
                                               nobodys.code ()):
            wrong.append ("%r, of none: %r" % (theirs, nobodys))
    d.ok ("another tenant's sandbox is as one that is not there", not wrong,
          "\n".join (wrong[:10]))
    r = server.request ("DELETE", "/api/v1/sandboxes/" + sandbox, over="tcp",
                        token=token)
    still = server.request ("GET", "/api/v1/sandboxes/" + sandbox)
    d.ok ("and is not killed by them", still.status == 200,
          "%r, then %r" % (r, still))
    r = server.request ("GET", "/api/v1/sandboxes", over="tcp", token=token)
    d.equal ("nor listed", r.json ().get ("sandboxes"), [])


# What others have made, whose clients send fields that only some servers know.
OPEN = ["boxExec", "createBoxSession", "execute", "startBoxProcess"]
QUERIES = {"changeFile": ("?op=mkdir", "?op=rename", "?op=remove")}


def fields_that_are_none (server, table, sandbox):
    """A field that nobody reads is a mistake of whoever sends it: it is refused
    by its name, and nothing is done."""
    base = "/api/v1/sandboxes/%s/execs" % sandbox
    command = server.request ("POST", base, {"argv": ["cat"], "stdin": True})
    wrong, loose = [], []
    for row in table:
        if not row["json"]:
            continue
        path = concrete (row["path"], sandbox).replace (
            "nothing-exec", command.json ()["exec"]).replace (
            "nothing-provider", "linux")
        for query in QUERIES.get (row["operation"], ("",)):
            r = server.request (row["method"], path + query,
                                {"no_such_field": 1}, keep=False)
            if row["operation"] in OPEN:
                loose.append (row["operation"])
            elif r.status not in (400, 422) or b"no_such_field" not in r.body:
                wrong.append ("%s%s: %r" % (row["operation"], query, r))
    d.ok ("a field that there is not is refused, by each route", not wrong,
          "\n".join (wrong))
    d.equal ("but for those that are made as others made them", sorted (loose),
             OPEN)
    r = server.request ("GET", base + "/" + command.json ()["exec"])
    d.equal ("and what it was about is as before", r.json ()["state"],
             "running")


def what_is_free (server, token):
    wrong = []
    for path in FREE:
        for method in METHODS:
            r = server.request (method, path or "/", over="tcp", token=token,
                                keep=False)
            if r.status != 404:
                wrong.append (repr (r))
    d.ok ("what later surfaces are to have answers nothing yet", not wrong,
          "\n".join (wrong[:10]))


def main ():
    d.needs_sandbox ()
    server = d.Daemon ()
    server.configure ()
    tokens = {name: server.token (name, name) for name in RIGHTS[1:]}
    stranger = server.token ("stranger", "manage", tenant="other")
    server.start ()
    table = routes (server)
    d.note ("%d routes" % len (table))
    same_as_document (table)
    which_method (server, table, tokens["operate"])
    who_may (server, table, tokens)
    what_is_free (server, tokens["operate"])
    sandbox = server.request ("POST", "/api/v1/sandboxes",
                              {"ttl_ms": 600000}).json ()["id"]
    other_tenants (server, table, stranger, sandbox)
    fields_that_are_none (server, table, sandbox)
    d.equal ("it ends when it is told to", server.stop (), 0)
    d.finish ()


main ()
