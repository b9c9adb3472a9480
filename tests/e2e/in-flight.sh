# SPDX-License-Identifier: Apache-2.0
# A sandbox that has as many descriptors on their way as it can: the kernel
# counts them for all processes of its user.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs_sandbox
# As in a login session: what coffer may send is raised when it must be.
ulimit -S -n 1024

cat >"$T/flood.py" <<'END'
import array, resource, socket, sys, time

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
kept, sent, refused = [], 0, ""
some = array.array("i", [0] * 253)
while not refused and sent < 1 << 20:
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    pair[0].setblocking(False)
    kept.append(pair)
    try:
        while True:
            pair[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, some)])
            sent += 253
    except BlockingIOError:
        pass
    except OSError as error:
        refused = error.strerror
print(sent >= 253, refused, flush=True)
time.sleep(100)
END

box=$(coffer sandbox create) || exit 1
other=$(coffer sandbox create) || exit 1
coffer sandbox exec "$box" -- sh -c 'echo kept >file'
coffer sandbox upload "$box" "$T/flood.py" flood.py
coffer sandbox exec "$box" -- python3 flood.py >"$T/flood" 2>&1 &
flood=$!
soon 60 test -s "$T/flood"
like "it has sent all that it may" "$(cat "$T/flood")" '^True .'

run coffer sandbox exec "$box" -- echo on
is "commands of the same sandbox start" "$status $(cat "$out")" "0 on"
run coffer sandbox download "$box" file -
is "its files are read" "$status $(cat "$out")" "0 kept"
run coffer sandbox exec "$other" -- echo on
is "those of another one too" "$status $(cat "$out")" "0 on"
run coffer run -- echo new
is "and new ones are made" "$status $(cat "$out")" "0 new"
run coffer sandbox kill "$box" "$other"
is "all of them are ended" "$status" 0
wait $flood

finish
