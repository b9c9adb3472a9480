# SPDX-License-Identifier: Apache-2.0
"""The payload of the attack corpus as what a sandbox mostly runs: Python.

The same attempts as payload.c, by the interpreter's own means where it has
them and by ctypes where it has not.  Nobody believes what is printed."""
import ctypes
import fcntl
import mmap
import os
import platform
import signal
import socket
import stat
import struct
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
X86 = platform.machine() == "x86_64"
HIGH = 1 << 32
NUMBERS = {  # x86_64, aarch64
    "clone": (56, 220), "fchmodat": (268, 53), "openat2": (437, 437),
    "ioctl": (16, 29), "ptrace": (101, 117), "io_uring_setup": (425, 425),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "memfd_secret": (447, 447), "seccomp": (317, 277), "keyctl": (250, 219),
    "personality": (135, 92), "unshare": (272, 97), "mount": (165, 40),
    "mount_setattr": (442, 442), "socket": (41, 198), "shmget": (29, 194),
    "shmat": (30, 196), "process_vm_readv": (310, 270), "mlock": (149, 228),
    "clone3": (435, 435), "renameat2": (316, 276), "truncate": (76, 45),
    "fchmod": (91, 52), "fchmodat2": (452, 452), "openat": (257, 56),
    "mknodat": (259, 33), "fallocate": (285, 47), "kill": (62, 129),
    "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "setpriority": (141, 140), "sched_setattr": (314, 274),
    "mlock2": (325, 284), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "move_mount": (429, 429),
}


def call(name, *args):
    """A system call: -1 when it fails."""
    number = NUMBERS[name][0 if X86 else 1]
    return LIBC.syscall(ctypes.c_long(number), *[
        ctypes.c_char_p(a) if isinstance(a, bytes)
        else a if isinstance(a, (ctypes.c_void_p, ctypes.Array))
        else ctypes.c_long(a) for a in args])


def say(data):
    os.write(1, data)


def spill(path, text):
    with open(path, "r+b", buffering=0) as file:
        file.write(text)


def read(path):
    with open(path, "rb", buffering=0) as file:
        say(file.read())


def symlink(link, target):
    os.symlink(target, link)
    read(link)


def write(path):
    try:
        spill(path, b"fallen")
    except OSError:
        pass
    call("truncate", path.encode(), 3)


def chmod(path):
    call("fchmodat", -100, path.encode(), 0o600)
    call("fchmod", call("openat", -100, path.encode(), 0, 0), 0o600)
    call("fchmodat2", -100, path.encode(), 0o600, 0)


def remount(point, path):
    call("mount_setattr", -100, point.encode(), 0,
         ctypes.create_string_buffer(struct.pack("4Q", 0, 1, 0, 0)), 32)
    call("mount", 0, point.encode(), 0, 0x1020, 0)
    write(path)


def setuid_bit(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o755))
    other = path.encode() + b"-new"
    call("fchmodat", -100, path.encode(), 0o6755)
    call("fchmod", call("openat", -100, path.encode(), 0, 0), 0o6755)
    call("fchmodat2", -100, path.encode(), 0o6755, 0)
    os.umask(0)
    call("openat", -100, other, os.O_CREAT | os.O_WRONLY, 0o6755)
    call("mknodat", -100, other, stat.S_IFREG | 0o6755, 0)


def setuid_high(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o755))
    call("fchmodat", -100, path.encode(), 0o6755 | HIGH)


def setuid_openat2(path):
    os.umask(0)
    call("openat2", -100, path.encode(), ctypes.create_string_buffer(
        struct.pack("3Q", os.O_CREAT | os.O_WRONLY, 0o6755, 0)), 24)


def whiteout(path):
    os.mknod(path, stat.S_IFCHR | 0o600, 0)


def whiteout_rename(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    call("renameat2", -100, path.encode(), -100, path.encode() + b"-renamed", 4)


def setuid_program(program, path):
    os.execv(program, [program, "read", path])


def disk(path, mib):
    with open(path, "wb", buffering=0) as file:
        try:
            for _ in range(int(mib) * 16):
                file.write(bytes(65536))
        except OSError:
            pass
        call("fallocate", file.fileno(), 0, 0, int(mib) << 20)


def escape(path):
    spill(path, b"0")


def reopen(path):
    spill("/proc/self/fd/%d" % os.open(path, os.O_PATH), b"fallen")


def link(path, name):
    os.link(path, name)


def fifo(path):
    os.mkfifo(path, 0o600)


def lock(path):
    lock.kept = open(path, "rb")
    fcntl.flock(lock.kept, fcntl.LOCK_EX)


def watch(path):
    LIBC.inotify_add_watch(LIBC.inotify_init1(0), path.encode(), 0xfff)


def fork(number):
    for _ in range(int(number)):
        if os.fork() == 0:
            time.sleep(1000)


def survive(path):
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in range(1, 16):
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_IGN)
    beat = os.open(path, os.O_WRONLY | os.O_APPEND)
    for number in range(3):
        os.close(number)
    for _ in range(600):
        os.write(beat, b".")
        time.sleep(0.005)
    os._exit(0)


def kill(pid, *_):
    pid = int(pid)
    told = ctypes.create_string_buffer(struct.pack("3i", 10, 0, -1), 128)
    call("kill", pid, 10)
    call("tgkill", pid, pid, 10)
    call("rt_sigqueueinfo", pid, 10, told)
    call("pidfd_send_signal", call("pidfd_open", pid, 0), 10, 0, 0)


def vm_read(pid, address, size):
    size = int(size)
    data = ctypes.create_string_buffer(size)
    here = struct.pack("2Q", ctypes.addressof(data), size)
    there = struct.pack("2Q", int(address), size)
    if call("process_vm_readv", int(pid), ctypes.create_string_buffer(here), 1,
            ctypes.create_string_buffer(there), 1, 0) > 0:
        say(data.raw)


def proc_mem(pid, address, size):
    with open("/proc/%s/mem" % pid, "rb", buffering=0) as file:
        file.seek(int(address))
        say(file.read(int(size)))


def prlimit(pid, *_):
    import resource
    resource.prlimit(int(pid), resource.RLIMIT_NOFILE, (7, 7))


def descriptors():
    for number in range(3, 256):
        try:
            os.write(number, b"fallen")
        except OSError:
            pass


def stuff(high):
    for char in b"id\n":
        call("ioctl", 0, 0x5412 | high,
             ctypes.create_string_buffer(bytes([char])))
    os._exit(0)


def tiocsti():
    stuff(0)


def tiocsti_high():
    stuff(HIGH)


def ptrace_init():
    call("ptrace", 0x4206, os.getppid(), 0, 0)


def renice():
    last = ctypes.create_string_buffer(
        struct.pack("2IQi7I", 48, 0, 0, 19, *[0] * 7))
    call("setpriority", 0, os.getppid(), 19)
    call("sched_setattr", os.getppid(), last, 0)


def identity():
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def core():
    try:
        os.kill(os.getpid(), signal.SIGSEGV)
    except PermissionError:  # where no signal may be sent
        ctypes.memset(8, 0, 4)


def mlock():
    data = ctypes.create_string_buffer(262144)
    call("mlock", ctypes.c_void_p(ctypes.addressof(data)), 262144)
    call("mlock2", ctypes.c_void_p(ctypes.addressof(data)), 262144, 1)
    LIBC.mmap(None, ctypes.c_size_t(262144), 3, 0x2022, -1, ctypes.c_long(0))
    mlock.kept = data


def memory(mib):
    size = int(mib) << 20
    memory.kept = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, size, 4096):
        memory.kept[at] = 1


def io_uring():
    call("io_uring_setup", 4, ctypes.create_string_buffer(512))


def perf():
    call("perf_event_open", ctypes.create_string_buffer(struct.pack(
        "2I5Q10Q", 1, 112, 0, 0, 0, 0, 0x60, *[0] * 10)), 0, -1, -1, 0)


def userfault():
    call("userfaultfd", 1)


def secretmem():
    call("memfd_secret", 0)


def listener():
    allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0,
                                                    0x7fff0000))
    program = ctypes.create_string_buffer(struct.pack(
        "H6xQ", 1, ctypes.addressof(allow)))
    LIBC.prctl(38, 1, 0, 0, 0)
    call("seccomp", 1, 8, program)


def family():
    for number in (40, 38, 15, 44, 29, 31, 30, 21, 43):
        call("socket", number, 1, 0)
        call("socket", number | HIGH, 1, 0)
        call("socket", number, 5, 0)


def keyring(name):
    data = ctypes.create_string_buffer(256)
    key = call("keyctl", 10, -3, b"user", name.encode(), 0)
    size = call("keyctl", 11, key, data, 256, 0)
    if 0 < size <= 256:
        say(data.raw[:size])


def personality():
    call("personality", 0x0040000)


def new_user():
    call("unshare", 0x10000000)


def clone3():
    if call("clone3", ctypes.create_string_buffer(struct.pack(
            "8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64), 64) == 0:
        time.sleep(1000)


def memfd():
    os.memfd_create("fallen")


def pidfd():
    pidfd.kept = os.pidfd_open(os.getpid())


def pipes():
    pipes.kept = [os.pipe() for _ in range(32)]


def raw():
    raw.kept = []
    for arguments in ((17, 3, 0x300), (2, 3, 1)):
        raw.kept.append(socket.socket(*arguments))


def mount(point):
    point = point.encode()
    if call("mount", b"fallen", point, b"tmpfs", 0, 0) == 0:
        return
    call("unshare", 0x10020000)
    if call("mount", b"fallen", point, b"tmpfs", 0, 0) == 0:
        return
    files = call("fsopen", b"tmpfs", 0)
    call("fsconfig", files, 1, b"source", b"fallen", 0)
    call("fsconfig", files, 6, 0, 0, 0)
    call("move_mount", call("fsmount", files, 0, 0), b"", -100, point, 4)


def tcp(port):
    tcp.kept = []
    for protocol, way in ((0, "connect"), (0, "send"), (262, "connect")):
        try:
            sock = socket.socket(type=socket.SOCK_STREAM, proto=protocol)
            sock.settimeout(1)
            tcp.kept.append(sock)
            if way == "send":
                sock.sendto(b"fallen", 0x20000000, ("127.0.0.1", int(port)))
            else:
                sock.connect(("127.0.0.1", int(port)))
        except OSError:
            pass


def udp(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.sendto(b"fallen", ("127.0.0.1", int(port)))
        except OSError:
            pass
        sock.connect(("127.0.0.1", int(port)))
        sock.send(b"fallen")


def abstract(name):
    abstract.kept = socket.socket(socket.AF_UNIX)
    abstract.kept.connect("\0" + name)


def pathname(path):
    pathname.kept = socket.socket(socket.AF_UNIX)
    pathname.kept.connect(path)


def mtu():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, 0x8922, struct.pack("16si20x", b"lo", 1400))


def links():
    with socket.socket(16, socket.SOCK_RAW, 0) as sock:
        sock.send(struct.pack("IHHII16x", 32, 18, 0x301, 1, 0))
        say(sock.recv(32768))


def hostname():
    socket.sethostname("fallen")


def nodename():
    say(os.uname().nodename.encode())


def shm(key, size):
    LIBC.shmat.restype = ctypes.c_long
    number = call("shmget", int(key), 0, 0)
    at = call("shmat", number, 0, 0o10000)
    if at > 0:
        say(ctypes.string_at(at, int(size)))


def sysctl(path):
    spill(path, b"33")


def inet():
    inet.kept = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)


def main():
    attempt = globals().get(sys.argv[1].replace("-", "_"))
    try:
        attempt(*sys.argv[2:])
    except Exception as error:  # whatever came of it
        sys.stderr.write("%s\n" % error)
    say(b"\n=ready\n")
    while os.read(0, 256):
        pass


main()
