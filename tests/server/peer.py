# SPDX-License-Identifier: Apache-2.0
# A client that behaves as it is told, line by line of standard input:
#   open NAME unix:PATH|HOST:PORT    send NAME TEXT (python's escapes)
#   many N HOST:PORT                 that many more, called 0, 1, …
#   recv NAME N                      until N bytes or the end: prints them
#   status NAME                      reads a reply's head: prints its status
#   closed NAME                      waits until the other side closes
#   drip NAME MS                     a byte of a header each MS until that
#   close NAME, half NAME, reset NAME, close-all
# Each answers with a line.  What is waited for has a minute.
import ast, resource, socket, struct, sys, time

peers = {}
most = resource.getrlimit (resource.RLIMIT_NOFILE)[1]
resource.setrlimit (resource.RLIMIT_NOFILE, (most, most))

def connect (where):
    if where.startswith ("unix:"):
        peer = socket.socket (socket.AF_UNIX)
        peer.settimeout (60)
        peer.connect (where[5:])
        return peer
    host, _, port = where.rpartition (":")
    return socket.create_connection ((host, int (port)), 60)

def receive (peer, size):
    got = b""
    while len (got) < size:
        part = peer.recv (size - len (got))
        if not part:
            break
        got += part
    return got

def closed (peer):
    try:
        while peer.recv (65536):
            pass
    except ConnectionError:
        pass
    return "closed"

def drip (peer, ms):
    began = time.monotonic ()
    peer.settimeout (0)
    try:
        while time.monotonic () - began < 60:
            peer.send (b"x")
            try:
                if not peer.recv (65536):
                    return "closed"
            except BlockingIOError:
                pass
            time.sleep (ms / 1000)
    except ConnectionError:
        return "closed"
    return "still there"

def act (word, name, rest):
    if word == "open":
        peers[name] = connect (rest)
    elif word == "many":
        for i in range (int (name)):
            peers[str (i)] = connect (rest)
    elif word == "send":
        peers[name].sendall (ast.literal_eval ('b"' + rest + '"'))
    elif word == "recv":
        return repr (receive (peers[name], int (rest)).decode ("latin-1"))
    elif word == "status":
        head = b""
        while not head.endswith (b"\r\n\r\n"):
            byte = peers[name].recv (1)
            if not byte:
                break
            head += byte
        return head.split (b" ")[1].decode () if head else "closed"
    elif word == "closed":
        return closed (peers[name])
    elif word == "drip":
        return drip (peers[name], int (rest))
    elif word == "half":
        peers[name].shutdown (socket.SHUT_WR)
    elif word == "reset":
        peers[name].setsockopt (socket.SOL_SOCKET, socket.SO_LINGER,
                                struct.pack ("ii", 1, 0))
        peers.pop (name).close ()
    elif word == "close":
        peers.pop (name).close ()
    elif word == "close-all":
        while peers:
            peers.popitem ()[1].close ()
    else:
        return "what?"
    return "ok"

for line in sys.stdin:
    word, _, rest = line.rstrip ("\n").partition (" ")
    name, _, rest = rest.partition (" ")
    try:
        said = act (word, name, rest)
    except OSError as e:
        said = type (e).__name__
    print (said, flush=True)
