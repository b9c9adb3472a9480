# SPDX-License-Identifier: Apache-2.0
# A client that behaves as it is told, line by line of standard input:
#   open NAME unix:PATH|HOST:PORT    send NAME TEXT (python's escapes)
#   recv NAME N                      until N bytes or the end: prints them
#   closed NAME                      waits until the other side closes: "closed"
#   close NAME
# Each answers with a line.  What is waited for has a minute.
import ast, socket, sys

peers = {}
for line in sys.stdin:
    word, _, rest = line.rstrip ("\n").partition (" ")
    name, _, rest = rest.partition (" ")
    said = "ok"
    try:
        if word == "open":
            if rest.startswith ("unix:"):
                peers[name] = socket.socket (socket.AF_UNIX)
                peers[name].settimeout (60)
                peers[name].connect (rest[5:])
            else:
                host, _, port = rest.rpartition (":")
                peers[name] = socket.create_connection ((host, int (port)), 60)
        elif word == "send":
            peers[name].sendall (ast.literal_eval ('b"' + rest + '"'))
        elif word == "recv":
            got = b""
            while len (got) < int (rest):
                part = peers[name].recv (int (rest) - len (got))
                if not part:
                    break
                got += part
            said = repr (got.decode ("latin-1"))
        elif word == "closed":
            while peers[name].recv (65536):
                pass
            said = "closed"
        elif word == "close":
            peers.pop (name).close ()
        else:
            said = "what?"
    except OSError as e:
        said = "closed" if word == "closed" and isinstance (e, ConnectionError) \
            else type (e).__name__
    print (said, flush=True)
