# SPDX-License-Identifier: Apache-2.0
"""deny.py CALL:ERRNO[:MASK]... -- COMMAND...: runs a command under a seccomp
filter, as a container's: each system call fails with the errno, where a mask is
given only when its first argument has a bit of it."""
import ctypes
import errno
import os
import platform
import struct
import sys

NUMBERS = {
    "x86_64": {"landlock_create_ruleset": 444, "clone": 56, "unshare": 272,
               "mount_setattr": 442, "fsopen": 430, "linkat": 265, "setns": 308,
               "mount": 165, "open_tree": 428, "move_mount": 429, "pivot_root": 155},
    "aarch64": {"landlock_create_ruleset": 444, "clone": 220, "unshare": 97,
                "mount_setattr": 442, "fsopen": 430, "linkat": 37, "setns": 268,
                "mount": 40, "open_tree": 428, "move_mount": 429, "pivot_root": 41},
}[platform.machine ()]

LOAD, JUMP_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, ERRNO = 0x7fff0000, 0x00050000

at = sys.argv.index ("--")
program = []
for rule in sys.argv[1:at]:
    call, code, *mask = rule.split (":")
    answer = (RETURN, 0, 0, ERRNO | getattr (errno, code))
    program.append ((LOAD, 0, 0, 0))
    if mask:
        program += [(JUMP_EQUAL, 0, 3, NUMBERS[call]), (LOAD, 0, 0, 16),
                    (JUMP_SET, 0, 1, int (mask[0], 0)), answer]
    else:
        program += [(JUMP_EQUAL, 0, 1, NUMBERS[call]), answer]
program.append ((RETURN, 0, 0, ALLOW))

class Filter (ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

code = b"".join (struct.pack ("HBBI", *step) for step in program)
libc = ctypes.CDLL (None, use_errno=True)
for words in ((38, 1, 0, 0, 0),
              (22, 2, ctypes.byref (Filter (len (program), code)))):
    if libc.prctl (*words) != 0:
        sys.exit (f"prctl: {os.strerror (ctypes.get_errno ())}")
os.execvp (sys.argv[at + 1], sys.argv[at + 1:])
