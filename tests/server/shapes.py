# SPDX-License-Identifier: Apache-2.0
"""Values that a schema of the document allows, values that it does not, and
whether a reply is what the document says."""

import json
import os
import shutil
import subprocess

import daemon as d

try:
    import jsonschema
except ImportError:
    jsonschema = None

WORDS = ("", "a", "café\n☃\n", "你好 世界/'q\".txt", "../../etc/passwd", "-x",
         "\u202e", "%2F", "\ud83d\ude00", "a" * 300, "\u0000", "x\ty", "null")
NUMBERS = (0, 1, -1, 2, 255, 65536, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 63,
           -2 ** 63, 1.5, 1e308)


def npm_folder ():
    """Where contrib/check has installed the packages of npm/, or None."""
    for folder in (os.environ.get ("COFFER_NPM"),
                   os.path.join (d.BUILD, "npm")):
        if folder and shutil.which ("node") and os.path.exists (
                os.path.join (folder, "node_modules/ajv/package.json")):
            return folder
    return None


class Shapes:
    def __init__ (self, document, rng):
        self.document, self.rng = document, rng
        self.validators = {}

    # ---- replies -------------------------------------------------------

    def wrong (self, schema, value):
        """Why a value is not what the schema says, or None."""
        if jsonschema is None:
            return None
        key = id (schema)
        if key not in self.validators:
            whole = {"allOf": [schema],
                     "components": self.document.value["components"]}
            self.validators[key] = (
                jsonschema.Draft202012Validator (whole), schema)
        for error in self.validators[key][0].iter_errors (value):
            return "%s: %s" % ("/".join (map (str, error.absolute_path)),
                               error.message[:300])
        return None

    def reply_wrong (self, operation, reply):
        """Why a reply is not one that the document has, or None."""
        described = operation.response (reply.status)
        if described is None:
            return "status %d is not described" % reply.status
        content = described.get ("content")
        kind = (reply.header ("Content-Type") or "").split (";")[0].strip ()
        if not content:
            return "a body that is not described" if reply.body else None
        if reply.method == "HEAD":
            return None
        if kind not in content:
            if any (k.endswith ("/*") or k == "*/*" for k in content):
                return None
            return "type %r is not described" % kind
        schema = content[kind].get ("schema")
        if schema is None or not kind.endswith ("json"):
            return None
        try:
            lines = ([reply.body] if kind == "application/json"
                     else reply.body.splitlines ())
            for line in lines:
                why = self.wrong (schema, json.loads (line))
                if why:
                    return why
        except ValueError as e:
            return "not JSON: %s" % e
        return None

    def schema_at (self, operation, status, kind):
        """A pointer into the document to what such a reply is held to."""
        where = "/paths/%s/%s/responses/%s" % (
            operation.path.replace ("~", "~0").replace ("/", "~1"),
            operation.method.lower (), status)
        at = operation.value["responses"].get (str (status))
        if at and "$ref" in at:
            where = at["$ref"][1:]
        return where + "/content/%s/schema" % kind.replace ("/", "~1")

    def judge (self, replies):
        """What ajv says of replies (operation, reply), or None without it."""
        folder = npm_folder ()
        if not folder:
            return None
        lines = []
        for operation, reply in replies:
            kind = (reply.header ("Content-Type") or "").split (";")[0]
            if kind == "application/json" and reply.body:
                lines.append (json.dumps ({
                    "schema": self.schema_at (operation, reply.status, kind),
                    "what": "%s %s" % (operation.id, reply.status),
                    "body": json.loads (reply.body)}))
        r = subprocess.run (
            ["node", os.path.join (d.SOURCE, "tests/server/judge.mjs"),
             folder, d.DOCUMENT], input="\n".join (lines) + "\n",
            capture_output=True, text=True)
        return r.stdout.splitlines () + r.stderr.splitlines ()

    # ---- values --------------------------------------------------------

    def pick (self, schema):
        """The schema itself, or one of those that it offers."""
        schema = self.document.resolve (schema)
        for word in ("oneOf", "anyOf"):
            if word in schema:
                return self.pick (self.rng.choice (schema[word]))
        return schema

    def good (self, schema, depth=0):
        rng = self.rng
        schema = self.pick (schema)
        for word in ("const", "example"):
            if word in schema:
                return schema[word]
        for word in ("examples", "enum"):
            if word in schema:
                return rng.choice (schema[word])
        kind = schema.get ("type", "object")
        if isinstance (kind, list):
            kind = rng.choice (kind)
        make = getattr (self, "good_" + kind)
        return make (schema, depth)

    def good_object (self, schema, depth):
        out = {}
        required = schema.get ("required", [])
        for name, value in schema.get ("properties", {}).items ():
            if name in required or (depth < 4 and self.rng.random () < 0.3):
                out[name] = self.good (value, depth + 1)
        return out

    def good_array (self, schema, depth):
        least = schema.get ("minItems", 0)
        n = self.rng.randint (least, max (least, 2))
        return [self.good (schema.get ("items", {"type": "string"}),
                           depth + 1) for _ in range (n)]

    def good_string (self, schema, depth):
        least, most = schema.get ("minLength", 0), schema.get ("maxLength", 12)
        n = self.rng.randint (least, max (least, min (most, 12)))
        return "".join (self.rng.choice ("abcxyz019") for _ in range (n))

    def good_integer (self, schema, depth):
        least = schema.get ("minimum", 0)
        most = schema.get ("maximum", least + 1000)
        return self.rng.randint (least, most)

    def good_number (self, schema, depth):
        return float (self.good_integer (schema, depth))

    def good_boolean (self, schema, depth):
        return self.rng.random () < 0.5

    def good_null (self, schema, depth):
        return None

    def odd (self, depth=0):
        """Any JSON at all."""
        rng = self.rng
        kinds = 7 if depth < 3 else 5
        which = rng.randrange (kinds)
        if which == 0:
            return rng.choice (WORDS)
        if which == 1:
            return rng.choice (NUMBERS)
        if which in (2, 3):
            return rng.choice ((None, True, False))
        if which == 4:
            return {"b64": rng.choice (("", "/w==", "%", "AA"))}
        if which == 5:
            return [self.odd (depth + 1) for _ in range (rng.randrange (4))]
        return {rng.choice (WORDS): self.odd (depth + 1)
                for _ in range (rng.randrange (4))}

    def bad (self, schema):
        """Near a good one: something in it is another thing, missing, or too
        much.  It may happen to be good."""
        value = self.good (schema)
        rng = self.rng
        if not isinstance (value, dict) or rng.random () < 0.1:
            return self.odd ()
        names = list (self.document.resolve (schema).get ("properties", {}))
        for _ in range (rng.randint (1, 2)):
            which = rng.randrange (4)
            if which == 0 and value:
                value.pop (rng.choice (list (value)))
            elif which == 1:
                value[rng.choice (WORDS)] = self.odd ()
            elif names:
                value[rng.choice (names)] = self.odd ()
        return value
