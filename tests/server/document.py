# SPDX-License-Identifier: Apache-2.0
"""The document that describes the interface: redocly has nothing to say
against it, the daemon serves it as it is, and its examples are what its
schemas allow."""

import json
import os
import random
import subprocess

import daemon as d
from shapes import Shapes, npm_folder


def lint ():
    what = "redocly passes the document"
    folder = npm_folder ()
    if not folder:
        d.skip (what, "the packages of tests/server/npm")
        return
    r = subprocess.run (
        ["node", os.path.join (folder, "node_modules/@redocly/cli/bin/cli.js"),
         "lint", d.DOCUMENT,
         "--config", os.path.join (d.SOURCE, "tests/server/redocly.yaml"),
         "--format=github-actions"], capture_output=True, text=True,
        env=dict (os.environ, REDOCLY_TELEMETRY="off", HOME=folder,
                  REDOCLY_SUPPRESS_UPDATE_NOTICE="true"))
    d.ok (what, r.returncode == 0, r.stdout + r.stderr)


def examples ():
    shapes = Shapes (d.Document (), random.Random (1))
    wrong = []

    def look (value, where):
        if isinstance (value, list):
            for i, item in enumerate (value):
                look (item, "%s/%d" % (where, i))
        if not isinstance (value, dict):
            return
        for e in value.get ("examples", []) if "type" in value else []:
            why = shapes.wrong (value, e)
            if why:
                wrong.append ("%s: %s" % (where, why))
        if "example" in value and "type" in value:
            why = shapes.wrong (value, value["example"])
            if why:
                wrong.append ("%s: %s" % (where, why))
        for key, item in value.items ():
            look (item, "%s/%s" % (where, key))

    look (shapes.document.value, "")
    d.ok ("its examples are what its schemas allow", not wrong,
          "\n".join (wrong[:10]))


def served ():
    server = d.Daemon (tcp=False).start ()
    r = server.request ("GET", "/api/v1/openapi.json")
    with open (d.DOCUMENT, "rb") as f:
        d.ok ("the daemon serves it as it is",
              r.status == 200 and r.body == f.read ()
              and r.header ("Content-Type") == "application/json", repr (r))
    version = server.coffer ("version", "--json")
    d.equal ("it is of this version", json.loads (r.body)["info"]["version"],
             json.loads (version.stdout)["version"])


lint ()
examples ()
served ()
d.finish ()
