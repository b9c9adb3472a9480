#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""type.py SCRIPT COMMAND ARG…: runs a command on a terminal of 100 x 37.

SCRIPT is a list of (wait for this text, then type that text); a pair of
numbers instead of a text sets the size of the terminal.  Prints all that was
shown, and at the end the exit status and whether the terminal is as it was.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

script, argv = eval (sys.argv[1]), sys.argv[2:]
# What the terminal was is looked at before the command is there to change it.
ready, go = os.pipe ()
pid, fd = pty.fork ()
if pid == 0:
    os.close (go)
    os.read (ready, 1)
    fcntl.ioctl (0, termios.TIOCSWINSZ, struct.pack ("HHHH", 37, 100, 0, 0))
    os.environ["TERM"] = "xterm"
    os.execvp (argv[0], argv)
before = termios.tcgetattr (fd)
os.close (go)
seen, mark, end = b"", 0, time.monotonic () + 60


def read ():
    global seen
    if select.select ([fd], [], [], 0.1)[0]:
        try:
            data = os.read (fd, 65536)
        except OSError:
            return False
        if not data:
            return False
        seen += data
    return time.monotonic () < end


alive = True
for wait, text in script:
    while alive and wait.encode () not in seen[mark:]:
        alive = read ()
    mark = len (seen)
    if isinstance (text, tuple):
        fcntl.ioctl (fd, termios.TIOCSWINSZ, struct.pack ("HHHH", text[0], text[1], 0, 0))
    else:
        os.write (fd, text.encode ())
while alive:
    alive = read ()
if time.monotonic () >= end:
    os.kill (pid, signal.SIGKILL)
code = os.waitstatus_to_exitcode (os.waitpid (pid, 0)[1])
restored = termios.tcgetattr (fd)
sys.stdout.write (seen.decode (errors="replace").replace ("\r\n", "\n"))
print ("status", code, "restored", restored == before)
