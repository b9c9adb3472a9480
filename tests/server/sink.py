# SPDX-License-Identifier: Apache-2.0
# A collector of traces: sink.py PORT-FILE OUT-FILE STATUS…
# Answers with the statuses in turn, the last for ever, and adds a line of JSON
# for each request to OUT-FILE: {"status", "type", "headers", "spans": […]}, with
# protobuf decoded by hand.  Ids are hex, times numbers.
import http.server, json, os, struct, sys

statuses = [int (word) for word in sys.argv[3:]]
out = open (sys.argv[2], "a", encoding="utf-8", buffering=1)

def varint (data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at

def fields (data):
    at, found = 0, {}
    while at < len (data):
        tag, at = varint (data, at)
        if tag & 7 == 0:
            value, at = varint (data, at)
        elif tag & 7 == 1:
            value, at = struct.unpack_from ("<Q", data, at)[0], at + 8
        elif tag & 7 == 2:
            size, at = varint (data, at)
            assert at + size <= len (data), "cut off"
            value, at = data[at:at + size], at + size
        else:
            raise ValueError ("wire type")
        found.setdefault (tag >> 3, []).append (value)
    return found

def attributes (items):
    result = {}
    for item in items:
        pair = fields (item)
        value = fields (pair[2][0])
        result[pair[1][0].decode ()] = value[1][0].decode () if 1 in value else value[3][0]
    return result

def from_protobuf (data):
    for resource_spans in fields (data)[1]:
        whole = fields (resource_spans)
        resource = attributes (fields (whole[1][0]).get (1, []))
        for scope_spans in whole[2]:
            for span in fields (scope_spans)[2]:
                f = fields (span)
                yield {"trace": f[1][0].hex (), "span": f[2][0].hex (),
                       "parent": f.get (4, [b""])[0].hex (), "name": f[5][0].decode (),
                       "kind": f[6][0], "start": f[7][0], "end": f[8][0],
                       "attributes": attributes (f.get (9, [])), "resource": resource,
                       "failed": fields (f[15][0]).get (3, [0])[0] if 15 in f else 0}

def from_json (data):
    plain = lambda items: {i["key"]: i["value"].get ("stringValue",
                           int (i["value"].get ("intValue", 0))) for i in items}
    for whole in json.loads (data)["resourceSpans"]:
        for scope_spans in whole["scopeSpans"]:
            for f in scope_spans["spans"]:
                yield {"trace": f["traceId"], "span": f["spanId"],
                       "parent": f.get ("parentSpanId", ""), "name": f["name"],
                       "kind": f["kind"], "start": int (f["startTimeUnixNano"]),
                       "end": int (f["endTimeUnixNano"]),
                       "attributes": plain (f["attributes"]),
                       "resource": plain (whole["resource"]["attributes"]),
                       "failed": f.get ("status", {}).get ("code", 0)}

class Sink (http.server.BaseHTTPRequestHandler):
    def do_POST (self):
        data = self.rfile.read (int (self.headers["Content-Length"]))
        status = statuses.pop (0) if len (statuses) > 1 else statuses[0]
        kind = self.headers["Content-Type"]
        decode = from_json if kind == "application/json" else from_protobuf
        out.write (json.dumps ({"status": status, "type": kind, "path": self.path,
                                "headers": dict (self.headers.items ()),
                                "spans": list (decode (data))}) + "\n")
        self.send_response (status)
        self.send_header ("Content-Length", "0")
        self.end_headers ()
    def log_message (self, *_):
        pass

server = http.server.ThreadingHTTPServer (("127.0.0.1", 0), Sink)
with open (sys.argv[1] + ".new", "w") as f:
    f.write (str (server.server_port))
os.rename (sys.argv[1] + ".new", sys.argv[1])
server.serve_forever ()
