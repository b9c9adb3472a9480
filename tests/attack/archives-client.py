# SPDX-License-Identifier: Apache-2.0
# See archives.sh: archives-client.py SANDBOX.  A case is an archive and the harm
# that it is for, which is looked for outside: in a folder that everybody may
# write, and in what has been made.
import io, json, os, shutil, stat, subprocess, sys, tarfile, tempfile
sys.path.insert (0, os.path.join (os.path.dirname (os.path.abspath (__file__)), "..", "server"))
from client import *

box = sys.argv[1]
tap = Tap ()
ROOT = os.geteuid () == 0
TIB = 1 << 40
top = tempfile.mkdtemp (prefix="coffer-archives.", dir="/tmp")
outside, plain = os.path.join (top, "outside"), os.path.join (top, "plain")
BLOCK = 512

# -- archives


def entry (name, data=b"x", kind=tarfile.REGTYPE, link="", mode=0o644, size=None, pax=None):
    info = tarfile.TarInfo ("name")
    info.name = name.decode ("utf-8", "surrogateescape") if isinstance (name, bytes) else name
    info.type, info.linkname, info.mode = kind, link, mode
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    if kind == tarfile.REGTYPE:
        info.size = len (data)
    else:
        data = b""
    if kind in (tarfile.CHRTYPE, tarfile.BLKTYPE):
        info.devmajor, info.devminor = 1, 3
    info.pax_headers = pax or {}
    form = tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT
    head = info.tobuf (form, "utf-8", "surrogateescape")
    return head + data + bytes (-len (data) % BLOCK)


def tar (*entries):
    return b"".join (entries) + bytes (2 * BLOCK)


def field (head, at, text):
    """A field of a header, and the sum again."""
    head = bytearray (head)
    head[at:at + len (text)] = text
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum (head[:BLOCK])
    return bytes (head)


def sparse ():
    head = entry ("sparse", b"")
    head = field (head, 156, b"S")
    head = field (head, 257, b"ustar  \0")
    # One hole up to the last byte, which is not there either.
    head = field (head, 386, b"\x80" + TIB.to_bytes (11, "big") + b"00000000000\0")
    return field (head, 483, b"\x80" + TIB.to_bytes (11, "big"))


def sparse_pax ():
    body = b"1\n%d\n0\n" % TIB
    body += bytes (-len (body) % BLOCK)
    return entry ("GNUSparseFile.0/sparse", body, pax={
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "sparse",
        "GNU.sparse.realsize": str (TIB)})


DIR, LINK, HARD = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
up = "../" * 12 + outside[1:]
names = [b"n" + bytes ([c]) + b"m" for c in range (1, 256) if c != ord ("/")]

# What it is called, the archive, the harm that it does unpacked by tar (of an
# ordinary user: another), what is answered (200: it is harmless, and unpacked).
# The harm is None where tar itself would not have it.
CASES = [
    ("an absolute name", tar (entry (outside + "/new")), "outside", 422),
    ("an absolute name in a pax header", tar (entry ("x", pax={"path": outside + "/new"})), "outside", 422),
    ("a name upwards", tar (entry (up + "/new")), "outside", 422),
    ("a long name upwards", tar (entry ("./" * 60 + up + "/new")), "outside", 422),
    ("a folder upwards", tar (entry (up + "/new", kind=DIR, mode=0o777)), "outside", 422),
    ("another mode of a folder upwards", tar (entry (up, kind=DIR, mode=0o711)), "outside", 422),
    ("over a file outside", tar (entry (outside + "/file", b"fallen")), "outside", 422),
    ("a link out", tar (entry ("l", kind=LINK, link=outside + "/file")), "link", 422),
    ("a link upwards", tar (entry ("d/l", kind=LINK, link="../../../" + up)), "link", 422),
    ("a link that turns", tar (entry ("d/l", kind=LINK, link="e/../../../" + up)), "link", 422),
    ("a file through a link", tar (entry ("l", kind=LINK, link=outside), entry ("l/new")), "outside", 422),
    ("a folder that becomes a link",
     tar (entry ("d", kind=DIR, mode=0o755), entry ("d", kind=LINK, link=outside), entry ("d/new")),
     "outside", 422),
    ("a link in two steps",
     tar (entry ("d", kind=DIR, mode=0o755), entry ("a", kind=LINK, link="d"),
          entry ("a/l", kind=LINK, link=outside), entry ("d/l/new")),
     "outside", 422),
    ("a hard link out", tar (entry ("h", kind=HARD, link=outside + "/file")), "outside", 422),
    ("a hard link upwards", tar (entry ("h", kind=HARD, link=up + "/file")), "outside", 422),
    ("a file over a hard link out",
     tar (entry ("h", kind=HARD, link=outside + "/file"), entry ("h", b"fallen")), "outside", 422),
    ("a hard link to a link out",
     tar (entry ("l", kind=LINK, link=outside + "/file"), entry ("h", kind=HARD, link="l")), "link", 422),
    ("a device of characters", tar (entry ("null", kind=tarfile.CHRTYPE)), ("special", ""), 422),
    ("a device of blocks", tar (entry ("disk", kind=tarfile.BLKTYPE)), ("special", ""), 422),
    ("a fifo", tar (entry ("f", kind=tarfile.FIFOTYPE)), "special", 422),
    ("a setuid bit", tar (entry ("s", mode=0o4755)), "bits", 422),
    ("a setgid bit", tar (entry ("s", mode=0o2755)), "bits", 422),
    ("a sticky bit of a file", tar (entry ("s", mode=0o1755)), "bits", 422),
    ("a setgid folder", tar (entry ("d", kind=DIR, mode=0o2755)), "bits", 422),
    ("a hard link with a setuid bit",
     tar (entry ("a"), entry ("b", kind=HARD, link="a", mode=0o4755)), None, 422),
    ("a sparse file of a TiB", tar (sparse ()), "huge", 422),
    ("a sparse file of a TiB in pax headers", tar (sparse_pax ()), "huge", 422),
    ("a size that wraps", tar (field (entry ("w", b""), 124, b"\x80" + b"\xff" * 11)), None, 422),
    ("a size below nothing", tar (field (entry ("w", b""), 124, b"\xff" * 12)), None, 422),
    ("a size that is no number", tar (field (entry ("w", b""), 124, b"0000000000z\0")), None, 422),
    ("a size of a pax header that wraps", tar (entry ("w", pax={"size": str (1 << 64)})), None, 422),
    ("more bytes than may be", tar (field (entry ("w", b""), 124, b"77777777777\0")), None, 422),
    ("a name with a NUL", tar (entry ("w", pax={"path": "a\0b"})), None, 422),
    ("a name for all entries", tar (field (entry ("w", b"20 path=" + outside.encode ()[:11] + b"\n"),
                                           156, b"g")), None, 422),
    ("a name of no bytes", tar (entry ("w", pax={"path": ""})), None, 422),
    ("a name too deep", tar (entry ("d/" * 400 + "x")), None, 422),
    ("owners that are root", tar (entry ("mine")), ("root", ""), 200),
    ("an attribute", tar (entry ("mine", pax={"SCHILY.xattr.user.coffer": "1"})), "attribute", 200),
    ("names of any byte", tar (*map (entry, names)), None, 200),
]

# -- where they are unpacked

LOOK = r'''
import json, os, sys
found = {}
for case in os.listdir (os.fsencode (sys.argv[1])):
    here = os.path.join (os.fsencode (sys.argv[1]), case)
    found[case.decode ()] = rows = []
    for folder, folders, files in os.walk (here):
        for name in folders + files:
            path = os.path.join (folder, name)
            st = os.lstat (path)
            link = os.readlink (path).hex () if os.path.islink (path) else None
            marks = [] if link else os.listxattr (path)
            rows.append ((path[len (here) + 1:].hex (), st.st_mode, st.st_uid, st.st_size, link, marks))
json.dump ((found, os.getuid ()), sys.stdout)
'''


def harm (rows, uid):
    """What has been made that nobody may leave."""
    found = set ()
    for name, mode, owner, size, link, marks in rows:
        kind = stat.S_IFMT (mode)
        if link is None and mode & 0o7000:
            found.add ("bits")
        if kind not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            found.add ("special")
        if size > TIB // 2:
            found.add ("huge")
        if owner == 0 or owner != uid:
            found.add ("root")
        if link is not None:
            target = os.path.join (os.path.dirname (bytes.fromhex (name)), bytes.fromhex (link))
            if target.startswith (b"/") or os.path.normpath (target).startswith (b".."):
                found.add ("link")
        if "user.coffer" in marks:
            found.add ("attribute")
    return found


def set_up ():
    shutil.rmtree (outside, ignore_errors=True)
    os.mkdir (outside)
    os.chmod (outside, 0o777)
    with open (outside + "/file", "w") as f:
        f.write ("whole\n")
    os.chmod (outside + "/file", 0o666)


def harmed ():
    st, folder = os.lstat (outside + "/file"), os.lstat (outside)
    with open (outside + "/file") as f:
        whole = f.read () == "whole\n"
    return not (whole and os.listdir (outside) == ["file"] and st.st_nlink == 1
                and st.st_mode & 0o7777 == 0o666 and folder.st_mode & 0o7777 == 0o777)


def look (*command):
    answer = subprocess.run (command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
    if answer.returncode:
        raise Broken (answer.returncode, answer.stderr)
    return json.loads (answer.stdout)


def by_tar (n, data):
    here = os.path.join (plain, str (n))
    os.makedirs (here)
    set_up ()
    subprocess.run (["tar", "-xPp", "--xattrs", "--xattrs-include=user.*", "--overwrite", "-f", "-"],
                    input=data, cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    timeout=PATIENCE)
    found = harm (look (sys.executable, "-c", LOOK, plain)[0][str (n)], -1 if ROOT else os.getuid ())
    if not ROOT:
        found -= {"root"}
    if harmed ():
        found.add ("outside")
    shutil.rmtree (here)
    return found


def by_coffer (n, data):
    base = API + box
    request ("POST", base + "/files/cases/%d?op=mkdir" % n)
    set_up ()
    status = request ("PUT", base + "/archive/cases/%d" % n, (), data)[0]
    return status, harmed ()


# Whether files here have such attributes at all.
def has_attributes ():
    try:
        os.setxattr (outside + "/file", "user.coffer", b"1")
        return True
    except OSError:
        return False


try:
    os.chmod (top, 0o711)
    set_up ()
    attributes = has_attributes ()
    request ("POST", API + box + "/files/cases?op=mkdir")
    answers = []
    for n, (what, data, wanted, status) in enumerate (CASES):
        if isinstance (wanted, tuple):
            wanted = wanted[0 if ROOT else 1]
        if wanted == "attribute" and not attributes:
            wanted = ""
        if wanted:
            tap.ok ("tar alone falls to %s" % what, wanted in by_tar (n, data), wanted)
        answers.append (by_coffer (n, data))
    found, uid = look (os.environ["COFFER"], "sandbox", "exec", box, "--", "python3", "-c", LOOK, "cases")
    for n, (what, data, wanted, status) in enumerate (CASES):
        rows = found[str (n)]
        made = status != 200 and bool (rows)
        tap.is_ ("coffer does not: %s" % what, (answers[n], harm (rows, uid), made),
                 ((status, False), set (), False))
    tap.is_ ("a name is what it was, byte for byte",
             sorted (row[0] for row in found[str (len (CASES) - 1)]), sorted (n.hex () for n in names))
finally:
    shutil.rmtree (top)
