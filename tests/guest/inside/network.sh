# SPDX-License-Identifier: Apache-2.0
# A list of what may be reached, and the machine's network, with the Landlock
# that this kernel has.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3

abi=$(python3 -c 'import ctypes
print (max (0, ctypes.CDLL (None).syscall (444, None, ctypes.c_size_t (0), 1)))')
cat >"$T/server.py" <<'PY'
import socket, sys
server = socket.create_server (("127.0.0.1", 0))
print (server.getsockname ()[1], flush=True)
while True:
    client, _ = server.accept ()
    client.sendall (b"through\n")
    client.close ()
PY
python3 "$T/server.py" >"$T/port" &
server=$!
soon 20 test -s "$T/port" || exit 1
port=$(cat "$T/port")
client='
import socket, sys
s = socket.create_connection (("127.0.0.1", 3128))
s.sendall (b"CONNECT 127.0.0.1:%s HTTP/1.1\r\n\r\n" % sys.argv[1].encode ())
print (b"".join (iter (lambda: s.recv (4096), b"")).split (b"\r\n")[0].decode ()[9:12])
'
run coffer run --json --net allow --allow "127.0.0.1:$port" -- python3 -c "$client" "$port"
is "what is listed is reached" "$(json "$out" 'd["stdout"]["data"].strip ()')" 200
fact=$(json "$out" '[f["state"] + " " + f["value"] for f in d["applied"]["facts"] if f["name"] == "proxy"][0]')
if [ "$abi" -eq 0 ]; then
  like "a proxy without Landlock is called degraded" "$fact" '^degraded .*seccomp; this kernel has no Landlock$'
else
  like "a proxy says which Landlock holds it" "$fact" "^ok .*seccomp, Landlock ABI $abi \\("
fi
run coffer run --json --net allow --allow "127.0.0.1:1" -- python3 -c "$client" "$port"
is "what is not is refused" "$(json "$out" 'd["stdout"]["data"].strip ()')" 403
is "and named" "$(json "$out" '[f["value"] for f in d["exit"]["facts"]]')" "['127.0.0.1:$port (not in the list)']"

run coffer run --profile network-extended --net host -- python3 -c "
import socket
print (socket.create_connection (('127.0.0.1', $port)).recv (100).decode (), end='')"
if [ "$(id -u)" -ne 0 ] && [ "$abi" -lt 6 ]; then
  like "the machine's network is not for a sandbox with the caller's id" \
    "$status $(cat "$err")" '^125 coffer: E2005: .*abstract sockets'
else
  is "the machine's network" "$status $(cat "$out")" "0 through"
fi
kill "$server"; wait "$server" 2>/dev/null
finish
