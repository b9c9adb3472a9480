# SPDX-License-Identifier: Apache-2.0
# Runs one piece of code and ends.  It is the first program of its sandbox, with
# a socket as standard input, the channel: the request comes from there, and the
# verdict, the result and the artifacts go back.
#
#   in:  u32 size, JSON {"v", "profile", "imports", "code", "files", "caps"}, the
#        code's bytes, each file's bytes
#   out: frames of a kind, u32 size and payload: V, the verdict, before anything
#        of the code has run; R, what it came to; A, a file of ./out or a figure
#
# Sizes are big-endian.  Once the verdict is out the channel is the code's as
# much as ours: whoever reads it believes nothing but its form.
#
# `run` is called at once where the file is executed as __cold__.  Where an
# interpreter is kept ready, `prepare` is called before it serves, and `run` in
# each child.

import io

NAME = "<execute>"
OWN = "<runner>"
PLOTTING = ".matplotlib"        # in the working folder
HEADER_MAX = 256 << 10
DEPTH_MAX = 8                   # of folders below ./out
ERROR_MAX = 1000
FAILED = 125                    # of the runner itself
ACCEPTED = b'{"accepted": true, "violations": [], "layers": ["ast", "import"]}'

# Made beforehand in an interpreter that is kept ready, whose children find them.
own_decoder = None
own_streams = None


# ---- the channel ------------------------------------------------------------

def take_channel ():
  """Standard input becomes /dev/null; dup2 is not to be had."""
  channel = posix.dup (0)
  posix.close (0)
  posix.open ("/dev/null", posix.O_RDONLY)
  return channel


def read_all (channel, size):
  parts = []
  while size > 0:
    part = posix.read (channel, min (size, 1 << 20))
    if not part:
      raise EOFError ("the request ends early")
    parts.append (part)
    size -= len (part)
  return b"".join (parts)


def read_request (channel):
  size = int.from_bytes (read_all (channel, 4), "big")
  if size > HEADER_MAX:
    raise ValueError ("the request's head is too large")
  request, _ = decoder ().scan_once (read_all (channel, size).decode ("utf-8"),
                                     0)
  if request["v"] != 1:
    raise ValueError ("the request is of another version")
  request["code"] = read_all (channel, request["code"])
  for file in request["files"]:
    file["bytes"] = read_all (channel, file["size"])
  return request


def decoder ():
  global own_decoder
  if own_decoder is None:
    import json
    own_decoder = json.JSONDecoder ()
  return own_decoder


def send (channel, kind, payload):
  data = memoryview (kind + len (payload).to_bytes (4, "big") + payload)
  while data:
    data = data[posix.write (channel, data):]


def send_json (channel, kind, value):
  import json
  send (channel, kind, json.dumps (value).encode ("ascii"))


# ---- before -----------------------------------------------------------------

def streams_new ():
  return (open (0, "r", encoding="utf-8", closefd=False),
          # By lines: what ends at its timeout has said what it has printed.
          open (1, "w", 1, encoding="utf-8", closefd=False),
          open (2, "w", encoding="utf-8", errors="backslashreplace",
                closefd=False))


def streams_prepare ():
  """For children, whose input is nothing and whose outputs are pipes, as they
  are while these are made: they ask what they are of but once."""
  global own_streams
  reader, writer = posix.pipe ()
  kept = posix.dup (1), posix.dup (2)
  posix.dup2 (writer, 1)
  posix.dup2 (writer, 2)
  own_streams = streams_new ()
  posix.dup2 (kept[0], 1)
  posix.dup2 (kept[1], 2)
  for fd in (reader, writer) + kept:
    posix.close (fd)
  renew_streams ()


def renew_streams ():
  sys.stdin, sys.stdout, sys.stderr = own_streams or streams_new ()
  sys.__stdin__, sys.__stdout__ = sys.stdin, sys.stdout
  sys.__stderr__ = sys.stderr


def reseed ():
  """A child of an interpreter that was kept ready draws its own numbers."""
  for name in ("random", "numpy.random"):
    if name in sys.modules:
      sys.modules[name].seed ()


def quiet_libraries ():
  import os
  for name, value in (("OPENBLAS_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "1"),
                      ("MPLBACKEND", "Agg"), ("MPLCONFIGDIR", PLOTTING)):
    os.environ[name] = value


def plotting_folder (imports):
  """matplotlib wants a folder of its own, and of the distribution a file that
  is not shown inside."""
  if "matplotlib" not in imports:
    return
  try:
    posix.mkdir (PLOTTING, 0o755)
    posix.close (posix.open (PLOTTING + "/matplotlibrc",
                             posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC,
                             0o644))
  except OSError:
    pass


def place_files (files):
  for file in files:
    parts = file["path"].split ("/")
    for i in range (1, len (parts)):
      try:
        posix.mkdir ("/".join (parts[:i]), 0o755)
      except FileExistsError:
        pass
    fd = posix.open (file["path"], posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL
                     | posix.O_NOFOLLOW | posix.O_CLOEXEC, 0o644)
    data = memoryview (file["bytes"])
    while data:
      data = data[posix.write (fd, data):]
    posix.close (fd)
  try:
    posix.mkdir ("out", 0o755)
  except FileExistsError:
    pass


# ---- the code ---------------------------------------------------------------

def future_flags (tree):
  import __future__
  flags = 0
  for node in tree.body:
    if type (node) is _ast.ImportFrom and node.module == "__future__":
      for alias in node.names:
        flags |= getattr (__future__, alias.name).compiler_flag
  return flags


def compile_all (tree):
  """What is executed, and what is evaluated for the result, or None."""
  flags = future_flags (tree)
  last = None
  if tree.body and type (tree.body[-1]) is _ast.Expr:
    last = _ast.Expression (body=tree.body.pop ().value)
    last = compile (last, NAME, "eval", flags, True)
  return compile (tree, NAME, "exec", flags, True), last


def judge (code, own_policy):
  """(what to run, violations)."""
  try:
    text = code.decode ("utf-8")
  except UnicodeDecodeError as error:
    return None, ["Line %d: the code is not UTF-8"
                  % (code.count (b"\n", 0, error.start) + 1)]
  tree, faults = check (text, own_policy, NAME)
  if faults:
    return None, faults
  try:
    return compile_all (tree) + (text,), []
  except SyntaxError as error:
    return None, [syntax_fault (error)]
  except (RecursionError, MemoryError, ValueError):
    return None, ["Line 1: the code is too large or nested too deep"]


def execute (program, space, cap):
  """The repr of the trailing expression, and whether it was cut."""
  whole, last, _ = program
  exec (whole, space)
  value = eval (last, space) if last else None
  if value is None:
    return None, False
  return cut (repr (value), cap)


def cut (text, cap):
  """As text that JSON can hold, of at most `cap` bytes; whether it was more."""
  data = text.replace ("\0", "\\x00").encode ("utf-8", "backslashreplace")
  return data[:cap].decode ("utf-8", "ignore"), len (data) > cap


def library_name (path):
  """A file of a library by its name in there."""
  folders = [f for f in sys.path if f and path.startswith (f + "/")]
  return path[len (max (folders, key=len)) + 1:] if folders else path


def strip_own (shown):
  """Takes our own frames out, also of what an exception came from; and paths,
  which are not those of who reads it."""
  todo, seen = [shown], set ()
  while todo:
    one = todo.pop ()
    if one is None or id (one) in seen:
      continue
    seen.add (id (one))
    one.stack[:] = [f for f in one.stack if f.filename != OWN]
    for frame in one.stack:
      frame.filename = library_name (frame.filename)
    todo += [one.__cause__, one.__context__]
    todo += getattr (one, "exceptions", None) or []


def report (error, text):
  """The traceback onto standard error; its last line is returned."""
  try:
    import linecache
    import traceback
    linecache.cache[NAME] = (len (text), None, text.splitlines (True), NAME)
    shown = traceback.TracebackException (type (error), error,
                                          error.__traceback__)
    strip_own (shown)
    sys.stderr.write ("".join (shown.format ()))
    return cut ("".join (shown.format_exception_only ()).strip (), ERROR_MAX)[0]
  except BaseException:
    line = type (error).__name__
    sys.stderr.write (line + "\n")
    return line


def status_of (leaving):
  if leaving.code is None:
    return 0
  if isinstance (leaving.code, int):
    return leaving.code & 255
  sys.stderr.write ("%s\n" % (leaving.code,))
  return 1


def run_program (program, own_policy, caps):
  """(exit status, what is told of it)."""
  space = MODULE ("__main__")
  sys.modules["__main__"] = space
  space.__dict__["__builtins__"] = guarded_builtins (own_policy)
  told = { "result": None, "error": None, "cut": False, "memory": False,
           "skipped": 0 }
  status = 0
  try:
    told["result"], told["cut"] = execute (program, space.__dict__,
                                           caps["result"])
  except SystemExit as leaving:
    status = status_of (leaving)
  except BaseException as error:
    status = 1
    told["memory"] = isinstance (error, MemoryError)
    told["error"] = report (error, program[2])
  for stream in (sys.__stdout__, sys.__stderr__):
    try:
      stream.flush ()
    except Exception:
      pass
  return status, told


# ---- artifacts --------------------------------------------------------------

class Artifacts:
  def __init__ (self, caps):
    self.caps = caps
    self.left = caps["artifacts"]
    self.found = []
    self.skipped = 0

  def add (self, name, data):
    try:
      encoded = name.encode ("utf-8")
    except UnicodeEncodeError:
      encoded = b""
    if not encoded or len (encoded) > 255 or len (data) > self.left \
       or len (data) > self.caps["artifact"] \
       or len (self.found) >= self.caps["count"]:
      self.skipped += 1
      return
    self.left -= len (data)
    self.found.append (len (encoded).to_bytes (2, "big") + encoded + data)

  def file (self, folder, name, shown):
    fd = posix.open (name, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK
                     | posix.O_CLOEXEC, dir_fd=folder)
    try:
      found = posix.fstat (fd)
      kind = found.st_mode & 0o170000
      if kind == 0o040000:
        return self.folder (fd, shown)
      if kind != 0o100000 or found.st_size > self.caps["artifact"]:
        self.skipped += 1
        return
      parts, size = [], 0
      while size <= self.caps["artifact"]:
        part = posix.read (fd, 1 << 20)
        if not part:
          break
        parts.append (part)
        size += len (part)
      self.add (shown, b"".join (parts))
    finally:
      posix.close (fd)

  def folder (self, fd, shown):
    if shown.count ("/") >= DEPTH_MAX:
      self.skipped += 1
      return
    for name in sorted (posix.listdir (fd)):
      try:
        self.file (fd, name, shown + "/" + name if shown else name)
      except OSError:
        self.skipped += 1

  def figures (self):
    pyplot = sys.modules.get ("matplotlib.pyplot")
    if pyplot is None:
      return
    for number in pyplot.get_fignums ():
      data = io.BytesIO ()
      pyplot.figure (number).savefig (data, format="png")
      self.add ("figure-%d.png" % number, data.getvalue ())

  def collect (self):
    try:
      self.figures ()
    except Exception:
      self.skipped += 1
    try:
      fd = posix.open ("out", posix.O_RDONLY | posix.O_DIRECTORY
                       | posix.O_NOFOLLOW | posix.O_CLOEXEC)
    except OSError:
      return
    self.folder (fd, "")


# ---- all of it --------------------------------------------------------------

def serve (channel):
  request = read_request (channel)
  own_policy = Policy (request["profile"], request["imports"])
  renew_streams ()
  reseed ()
  if own_streams is None:
    quiet_libraries ()
  program, faults = judge (request["code"], own_policy)
  if faults:
    send_json (channel, b"V", { "accepted": False, "violations": faults,
                                "layers": ["ast", "import"] })
    return 0
  send (channel, b"V", ACCEPTED)
  request["code"] = None
  place_files (request["files"])
  plotting_folder (request["imports"])
  status, told = run_program (program, own_policy, request["caps"])
  artifacts = Artifacts (request["caps"])
  artifacts.collect ()
  told["skipped"] = artifacts.skipped
  send_json (channel, b"R", told)
  for artifact in artifacts.found:
    send (channel, b"A", artifact)
  return status


def run ():
  """Does not return."""
  status = FAILED
  try:
    sys.dont_write_bytecode = True
    status = serve (take_channel ())
  except BaseException as error:
    try:
      posix.write (2, ("the runner failed: %s: %s\n"
                       % (type (error).__name__, error)).encode ("utf-8",
                                                                 "replace"))
    except BaseException:
      pass
  finally:
    posix._exit (status)


def rehearse ():
  """What each child does with any code is done a few times beforehand: it then
  finds it imported and as the interpreter makes it after some calls, and in
  pages that it need not write to."""
  import __future__
  import json
  for _ in range (16):
    own_policy = Policy ("minimal", ["math"])
    program, _ = judge (b"import math\nx = [1]\nprint (x)\nmath.pi", own_policy)
    guarded_builtins (own_policy)
    decoder ().scan_once (json.dumps ({ "a": [1, None, "b"], "c": True }), 0)
    cut ("1", 10)


def ahead ():
  """In a child that waits for its request: the same once more, of code that does
  nothing, so that the memory which any code has it write to is its own by
  then."""
  import json
  own_policy = Policy ("minimal", ["math"])
  caps = { "result": 10, "artifact": 0, "artifacts": 0, "count": 0 }
  renew_streams ()
  program, _ = judge (b"print (1)\n1", own_policy)
  decoder ().scan_once (json.dumps (run_program (program, own_policy,
                                                 caps)[1]), 0)
  Artifacts (caps).collect ()


def prepare (modules):
  """Imports beforehand what code of a profile may import; the names of those
  that are not here."""
  import gc
  import json
  import linecache
  import traceback
  quiet_libraries ()
  sys.dont_write_bytecode = True
  missing = []
  for name in modules:
    try:
      load (name)
    except Exception:
      missing.append (name)
  streams_prepare ()
  rehearse ()
  gc.collect ()
  gc.freeze ()
  return missing


if __name__ == "__cold__":
  run ()
