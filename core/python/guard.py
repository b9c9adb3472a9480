# SPDX-License-Identifier: Apache-2.0
# The first two layers of the guarded interpreter: what code says is looked at
# before it runs (check), and what it imports and opens while it does (Imports).
#
# Both tell whoever wrote the code, mostly a model, early and with a line number
# what will not work.  Neither is a boundary: Python has more ways to an object
# than can be listed.  What holds is the kernel's: namespaces, Landlock, the
# system call filter, limits.  So what is refused here is what is never meant
# well, and ordinary code is let through.
#
# This file and runner.py are joined into one when coffer is built, and must
# work without site-packages in every Python from 3.9 on.

import _ast
import builtins
import posix
import sys

MODULE = type (sys)
VIOLATIONS = 50                 # told of at most
FAULT_MAX = 500

# Parts of packages that may be imported besides what a profile names.
PARTS = {
  "collections": "abc",
  "numpy": "fft linalg ma polynomial polynomial.polynomial random",
  "pandas": "api api.types tseries tseries.offsets",
  "scipy": "cluster cluster.hierarchy cluster.vq constants fft integrate "
           "interpolate linalg ndimage optimize signal sparse sparse.csgraph "
           "sparse.linalg spatial spatial.distance special stats",
  "matplotlib": "cm colors dates figure gridspec lines patches pyplot style "
                "ticker",
}

# What allowed modules have that reads, writes, loads or evaluates, or that finds
# attributes by names which are made while it runs.
REFUSED = {
  "collections": "",
  "csv": "",
  "functools": "",
  "json": "",
  "matplotlib": "matplotlib_fname rc_file get_data_path get_configdir "
                "get_cachedir",
  "matplotlib.pyplot": "imread switch_backend",
  "numpy": "ctypeslib distutils f2py frompyfunc fromfile genfromtxt load "
           "loadtxt lookfor memmap safe_eval source testing DataSource "
           "fromregex recfromcsv recfromtxt save savetxt savez "
           "savez_compressed",
  "numpy.ma": "",
  "operator": "attrgetter methodcaller",
  "pandas": "HDFStore ExcelFile ExcelWriter core eval io read_clipboard "
            "read_excel read_feather read_fwf read_gbq read_hdf read_html "
            "read_orc read_parquet read_pickle read_sas read_spss read_sql "
            "read_sql_query read_sql_table read_stata read_xml test to_pickle",
  "scipy": "io LowLevelCallable misc test weave",
  "string": "Formatter",
  "typing": "ForwardRef get_type_hints",
}
# Those that take a path, which then must lie in the working folder.
PATH_TAKERS = { "pandas": ("read_csv", "read_json", "read_table") }

# Builtins that code does not have.
NAMES = frozenset ("__builtins__ __import__ __loader__ "
                   "__spec__ breakpoint compile eval exec globals locals vars "
                   "help".split ())
# Names with two underscores that are ordinary at the top of a program.
TOP = frozenset ("__name__ __doc__ __debug__ __all__ __version__ __author__ "
                 "__annotations__ __file__".split ())
# Attributes with underscores that say nothing about the interpreter.
PLAIN = frozenset (
  "_ _asdict _fields _make _replace __abs__ __add__ __and__ __bool__ __call__ "
  "__ceil__ __class_getitem__ __contains__ __copy__ __delitem__ __divmod__ "
  "__doc__ __enter__ __eq__ __exit__ __float__ __floor__ __floordiv__ "
  "__format__ __ge__ __getitem__ __gt__ __hash__ __iadd__ __index__ __init__ "
  "__init_subclass__ __int__ __invert__ __iter__ __le__ __len__ __lshift__ "
  "__lt__ __matmul__ __mod__ __mul__ __name__ __ne__ __neg__ __new__ __next__ "
  "__or__ __pos__ __pow__ __qualname__ __radd__ __repr__ __reversed__ __rmul__ "
  "__round__ __rshift__ __rsub__ __rtruediv__ __set_name__ __setitem__ "
  "__slots__ __str__ __sub__ __truediv__ __version__ __xor__".split ())
# And without, that do.
INNER = frozenset (
  "ag_await ag_code ag_frame co_code co_consts co_names cr_await cr_code "
  "cr_frame cr_origin f_back f_builtins f_code f_globals f_locals "
  "f_trace format_map func_code func_globals gi_code gi_frame gi_yieldfrom mro "
  "tb_frame tb_lasti tb_next with_traceback".split ())


def refused_of (module):
  return REFUSED.get (module, "").split ()


class Policy:
  """What a profile lets code import."""

  def __init__ (self, name, imports):
    self.name = name
    self.imports = frozenset (imports)

  def allows (self, module):
    top, _, rest = module.partition (".")
    return (module in self.imports
            or (top in self.imports and rest
                and rest in PARTS.get (top, "").split ()))


# ---- before it runs ---------------------------------------------------------

def attribute_fault (name):
  """Why an attribute of that name is refused; None: it is not."""
  if name in INNER or (name.startswith ("_") and name not in PLAIN):
    return "the attribute %r is not allowed" % name
  return None


def bound_modules (tree):
  """{name: module}: what `import` binds, wherever it stands."""
  bound = { "np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot" }
  for node in nodes (tree):
    if type (node) is _ast.Import:
      for alias in node.names:
        whole = alias.name if alias.asname else alias.name.partition (".")[0]
        bound[alias.asname or whole] = whole
  return bound


def own_names (tree, modules):
  """What the code itself gives a name: its variables, and attributes with one
  underscore of its own objects, which are no part of the interpreter."""
  found = set ()
  for node in nodes (tree):
    kind = type (node)
    if kind is _ast.Name and type (node.ctx) is _ast.Store:
      found.add (node.id)
    elif kind is _ast.arg:
      found.add (node.arg)
    elif kind in (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef):
      found.add (node.name)
    elif kind is _ast.Attribute and type (node.ctx) is _ast.Store \
         and type (node.value) is _ast.Name and node.value.id not in modules:
      found.add (node.attr)
  return frozenset (n for n in found if not n.startswith ("__"))


def nodes (tree):
  """Without recursion: code may be nested as deep as the parser lets it."""
  todo = [tree]
  while todo:
    node = todo.pop ()
    yield node
    todo.extend (children (node))


def children (node):
  for field in node._fields:
    value = getattr (node, field, None)
    if isinstance (value, _ast.AST):
      yield value
    elif type (value) is list:
      for item in value:
        if isinstance (item, _ast.AST):
          yield item


class Check:
  def __init__ (self, policy):
    self.policy = policy
    self.found = []
    self.own = frozenset ()
    self.modules = {}
    self.rules = {
      "Attribute": self.attribute,
      "Call": self.call,
      "ClassDef": self.class_def,
      "Import": self.import_,
      "ImportFrom": self.import_from,
      "MatchClass": self.match_class,
      "Name": self.name,
      "TryStar": self.try_star,
    }

  def fault (self, line, text):
    self.found.append ((line, ("Line %d: %s" % (line, text))[:FAULT_MAX]))

  def walk (self, tree):
    self.modules = bound_modules (tree)
    self.own = own_names (tree, self.modules)
    todo = [(tree, 1)]
    while todo:
      node, line = todo.pop ()
      line = getattr (node, "lineno", line)
      rule = self.rules.get (type (node).__name__)
      if rule:
        rule (node, line)
      todo.extend ((child, line) for child in children (node))
    self.found.sort (key=lambda fault: fault[0])

  def named (self, name, line):
    fault = None if name in self.own else attribute_fault (name)
    if fault:
      self.fault (line, fault)

  def attribute (self, node, line):
    self.named (node.attr, line)
    if type (node.value) is _ast.Name:
      self.member (node.value.id, node.attr, line)

  def member (self, holder, name, line):
    """`np.load`, under the name that it was imported by."""
    module = self.modules.get (holder, holder)
    if self.policy.allows (module) and name in refused_of (module):
      self.fault (line, "%s.%s is not allowed" % (module, name))

  def name (self, node, line):
    if node.id in NAMES and node.id not in self.own:
      self.fault (line, "%s is not allowed" % node.id)
    elif node.id == "__match_args__":
      self.fault (line, "__match_args__ is not allowed")
    elif node.id.startswith ("__") and node.id.endswith ("__") \
         and node.id not in TOP and node.id not in PLAIN:
      self.fault (line, "the name %r is not allowed" % node.id)

  def call (self, node, line):
    function = node.func
    if type (function) is _ast.Name and function.id == "type" \
       and len (node.args) + len (node.keywords) > 1:
      self.fault (line, "type with more than one argument is not allowed")
    elif type (function) is _ast.Attribute and function.attr == "format" \
         and type (function.value) is _ast.Constant \
         and reaches (function.value.value):
      self.fault (line, "a format with attributes of that kind is not allowed")

  def class_def (self, node, line):
    for keyword in node.keywords:
      if keyword.arg and keyword.arg.startswith ("__"):
        self.fault (line, "the keyword %r is not allowed" % keyword.arg)

  def match_class (self, node, line):
    for name in node.kwd_attrs:
      self.named (name, line)

  def try_star (self, node, line):
    self.fault (line, "except* is not allowed")

  # ---- imports --------------------------------------------------------------

  def module (self, name, line):
    if self.policy.allows (name):
      return True
    self.fault (line, "import of %r is not allowed in profile %s (%s)"
                % (name, self.policy.name,
                   ", ".join (sorted (self.policy.imports))))
    return False

  def import_ (self, node, line):
    for alias in node.names:
      self.module (alias.name, line)

  def import_from (self, node, line):
    if node.level:
      self.fault (line, "a relative import has nothing to begin from")
    elif node.module != "__future__" and self.module (node.module, line):
      for alias in node.names:
        self.imported (node.module, alias.name, line)

  def imported (self, module, name, line):
    whole = "%s.%s" % (module, name)
    if name == "*" or self.policy.allows (whole):
      return
    if name.startswith ("_") or name in refused_of (module):
      self.fault (line, "%s is not allowed" % whole)
    elif not exported (module, name):
      self.fault (line, "%s is not a part of it that may be imported" % whole)


def reaches (text):
  """Does a format string look at attributes or items with underscores?"""
  return type (text) is str and any (
    "._" in field.partition ("}")[0] or "[_" in field.partition ("}")[0]
    for field in text.split ("{")[1:])


def exported (module, name):
  """A module's own things, not the modules that it uses.  What is not there at
  all is told when it is imported."""
  try:
    value = getattr (load (module), name)
  except Exception:
    return True
  return type (value) is not MODULE


def syntax_fault (error):
  line = getattr (error, "lineno", None) or 1
  text = getattr (error, "msg", None) or str (error) or type (error).__name__
  return "Line %d: %s" % (line, text)


def check (source, policy, filename):
  """The tree of `source`, a str, and what is wrong with it: (tree, [str]).
  The tree is what is compiled afterwards, so that nothing else can run."""
  try:
    tree = compile (source, filename, "exec", 0x400, True)     # only the tree
  except SyntaxError as error:
    return None, [syntax_fault (error)]
  except (RecursionError, MemoryError):
    return None, ["Line 1: the code is too large or nested too deep"]
  except ValueError as error:
    return None, [syntax_fault (error)]
  look = Check (policy)
  look.walk (tree)
  faults = list (dict.fromkeys (text for _, text in look.found))
  if len (faults) > VIOLATIONS:
    more = len (faults) - VIOLATIONS
    faults[VIOLATIONS:] = ["and %d more" % more]
  return tree, faults


# ---- while it runs ----------------------------------------------------------

def load (name):
  """The real module.  -S leaves the folders of packages out: they are looked
  through for what the standard library does not have."""
  try:
    __import__ (name)
  except ModuleNotFoundError:
    if not add_packages ():
      raise
    __import__ (name)
  return sys.modules[name]


def add_packages ():
  version = "python%d.%d" % sys.version_info[:2]
  before = len (sys.path)
  for folder in ("/usr/local/lib/%s/dist-packages" % version,
                 "/usr/local/lib/%s/site-packages" % version,
                 "/usr/lib/python3/dist-packages",
                 "/usr/lib64/%s/site-packages" % version,
                 "/usr/lib/%s/site-packages" % version):
    if folder in sys.path:
      continue
    try:
      posix.stat (folder)
    except OSError:
      continue
    sys.path.append (folder)
  return len (sys.path) > before


class Facade (MODULE):
  """A module as code sees it: what it has of its own, looked up when it is asked
  for, and no other modules but those that may be imported."""

  def __getattr__ (self, name):
    value = member (self.__dict__["__name__"], name)
    self.__dict__[name] = value
    return value

  def __dir__ (self):
    return public (self.__dict__["__name__"])

  def __repr__ (self):
    return "<module %r>" % self.__dict__["__name__"]


facades = {}
policy = None


def facade (name):
  made = facades.get (name)
  if made is None:
    real = load (name)
    made = facades[name] = Facade (name, real.__doc__)
  return made


def public (name):
  real = sys.modules[name]
  names = getattr (real, "__all__", None) or dir (real)
  hidden = refused_of (name)
  return [n for n in names
          if not n.startswith ("_") and n not in hidden
          and (type (getattr (real, n, None)) is not MODULE
               or policy.allows ("%s.%s" % (name, n)))]


def member (name, wanted):
  if wanted == "__all__":
    return public (name)
  if wanted == "__version__" and hasattr (sys.modules[name], wanted):
    return getattr (sys.modules[name], wanted)
  if wanted.startswith ("_") or wanted in refused_of (name):
    raise AttributeError ("module %r: %r is not allowed here" % (name, wanted))
  whole = "%s.%s" % (name, wanted)
  if policy.allows (whole):
    return facade (whole)
  value = getattr (sys.modules[name], wanted)
  if type (value) is MODULE:
    if policy.allows (value.__name__):
      return facade (value.__name__)
    raise AttributeError ("module %r: %r is not allowed here" % (name, wanted))
  if wanted in PATH_TAKERS.get (name, ()):
    return path_taker (value)
  return value


def of_library (fromlist):
  """What is written in C imports by the builtins of the code that called it,
  and says so by a list, which a statement never does.  It takes the module from
  where all of them are, and not what is returned here."""
  return type (fromlist) is list


def guarded_import (name, globals=None, locals=None, fromlist=(), level=0):
  if of_library (fromlist):
    __import__ (name)
    return None
  if level or type (name) is not str:
    raise ImportError ("a relative import has nothing to begin from")
  if name == "__future__":
    return __import__ (name)
  if not policy.allows (name):
    raise ImportError ("import of %r is not allowed in profile %s"
                       % (name, policy.name))
  made = facade (name)
  parts = name.split (".")
  for i in range (1, len (parts)):
    above = facade (".".join (parts[:i]))
    above.__dict__[parts[i]] = facade (".".join (parts[:i + 1]))
  return made if fromlist else facade (parts[0])


# ---- builtins ---------------------------------------------------------------

def attribute_name (value, name):
  if type (name) is not str:
    raise TypeError ("attribute name must be string")
  own = type (value).__module__ == "__main__" and not name.startswith ("__")
  fault = None if own else attribute_fault (name)
  if fault:
    raise AttributeError (fault)
  return name


def guarded_getattr (value, name, *default):
  return getattr (value, attribute_name (value, name), *default)


def guarded_hasattr (value, name):
  try:
    return hasattr (value, attribute_name (value, name))
  except AttributeError:
    return False


def guarded_setattr (value, name, what):
  return setattr (value, attribute_name (value, name), what)


def guarded_delattr (value, name):
  return delattr (value, attribute_name (value, name))


def inside (path):
  """Is it below the working folder or /tmp?  Links are the kernel's affair."""
  if type (path) is bytes:
    path = path.decode ("utf-8", "surrogateescape")
  if type (path) is not str:
    return False
  if not path.startswith ("/"):
    path = posix.getcwd () + "/" + path
  parts = []
  for part in path.split ("/"):
    if part == "..":
      if parts:
        parts.pop ()
    elif part not in ("", "."):
      parts.append (part)
  whole = "/" + "/".join (parts) + "/"
  return whole.startswith ((posix.getcwd () + "/", "/tmp/"))


def refuse_path (path):
  raise PermissionError (13, "Permission denied", path)


def guarded_open (file, mode="r", buffering=-1, encoding=None, errors=None,
                  newline=None, closefd=True, opener=None):
  if opener is not None or not inside (file):
    refuse_path (file)
  return builtins.open (file, mode, buffering, encoding, errors, newline)


def path_taker (function):
  def taking (source, *args, **rest):
    if not hasattr (source, "read") and not inside (source):
      refuse_path (source)
    return function (source, *args, **rest)
  taking.__name__ = taking.__qualname__ = function.__name__
  taking.__doc__ = function.__doc__
  return taking


def leave (code=None):
  raise SystemExit (code)


own_builtins = None             # of the one code that is run here


def guarded_builtins (own_policy):
  """The builtins of the code.  Modules that it imports keep the real ones, so
  that what they import themselves still works."""
  global policy, own_builtins
  policy = own_policy
  if own_builtins is None:
    own_builtins = builtins_new ()
  return own_builtins


def builtins_new ():
  own = { name: value for name, value in vars (builtins).items ()
          if name not in NAMES }
  own.update (__import__=guarded_import, open=guarded_open,
              getattr=guarded_getattr, hasattr=guarded_hasattr,
              setattr=guarded_setattr, delattr=guarded_delattr,
              exit=leave, quit=leave)
  return own
