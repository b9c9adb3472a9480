# SPDX-License-Identifier: Apache-2.0
# A peer with TLS for tests/unit/test-http-tls.c: http-tls-peer.py FOLDER
#
# Makes a CA and certificates in FOLDER, listens on ports of loopback with one
# certificate each, and prints the ports in this order: good, another name's,
# an old one, of nobody the CA knows, asks for the client's.  Ends with its
# standard input.
import os
import socket
import ssl
import subprocess
import sys
import threading

os.chdir(sys.argv[1])
EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, stderr=subprocess.DEVNULL,
                   stdin=subprocess.DEVNULL)


def ca(name):
    openssl("req", "-x509", *EC, "-days", "2", "-subj", "/CN=" + name,
            "-keyout", name + ".key", "-out", name + ".pem")


def certificate(name, alternative, days="2", signer="ca"):
    with open(name + ".ext", "w") as f:
        f.write("subjectAltName=" + alternative + "\n")
    openssl("req", "-new", *EC, "-subj", "/CN=" + name,
            "-keyout", name + ".key", "-out", name + ".csr")
    openssl("x509", "-req", "-in", name + ".csr", "-CA", signer + ".pem",
            "-CAkey", signer + ".key", "-CAcreateserial", "-days", days,
            "-extfile", name + ".ext", "-out", name + ".pem")


def head(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(1)
        if not more:
            return None
        data += more
    return data


def stream(connection):
    connection.sendall(b"HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\n"
                       b"Connection: Upgrade\r\n\r\nearly")
    size = 0
    while True:
        try:
            data = connection.recv(65536)
        except ssl.SSLZeroReturnError:
            data = b""
        if not data:
            break
        size += len(data)
        connection.sendall(data)
    connection.sendall(b"bye %d" % size)


def answer(connection, plain):
    while True:
        request = head(connection)
        if request is None:
            return
        if b"Upgrade: tcp" in request:
            return stream(connection)
        if b" /plain" in request:
            connection.sendall(b"HTTP/1.1 302 Go\r\nContent-Length: 0\r\n"
                               b"Location: http://localhost/x\r\n\r\n")
            continue
        body = b"client %d" % bool(connection.getpeercert(True))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"
                           % (len(body), body))


def serve(connection, context):
    try:
        with context.wrap_socket(connection, server_side=True) as tls:
            answer(tls, False)
            tls.unwrap()
    except (OSError, ValueError):
        pass
    finally:
        connection.close()


def listen(name, client=False):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(name + ".pem", name + ".key")
    if client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations("ca.pem")
    listener = socket.create_server(("127.0.0.1", 0))

    def loop():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, context),
                             daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()
    return listener.getsockname()[1]


ca("ca")
ca("stranger")
certificate("good", "DNS:service.invalid,DNS:localhost")
certificate("other", "DNS:other.invalid")
certificate("old", "DNS:service.invalid", "-1")
certificate("unknown", "DNS:service.invalid", signer="stranger")
certificate("client", "DNS:client.invalid")
print(*(listen(n) for n in ("good", "other", "old", "unknown")),
      listen("good", True), flush=True)
sys.stdin.read()
