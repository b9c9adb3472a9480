#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guard by itself: what is refused with which line, what is let through, and
what code can import.  Prints TAP."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["COFFER_SOURCE"], "core", "python"))
import guard

IMPORTS = ("math statistics itertools functools re datetime collections json "
           "csv string textwrap decimal fractions random operator "
           "typing").split()
MINIMAL = guard.Policy("minimal", IMPORTS)
SCIENCE = guard.Policy("data-science",
                       IMPORTS + ["numpy", "pandas", "scipy", "matplotlib"])

# (what, code, lines of the violations)
REFUSED = [
    ("a class by its attribute", "().__class__", [1]),
    ("an attribute in a class pattern",
     "match ():\n  case object(__class__=c): pass", [2]),
    ("a frame in a class pattern",
     "g = (x for x in ())\nmatch g:\n  case object(gi_frame=f): pass", [3]),
    ("the contents of a cell in a pattern",
     "match f:\n  case object(__closure__=c): pass", [2]),
    ("modules of a module",
     "from statistics import sys\nfrom datetime import sys\n"
     "from json import codecs\nfrom re import copyreg", [1, 2, 3, 4]),
    ("names with an underscore in an import",
     "from random import _urandom", [1]),
    ("evaluation of annotations",
     "from typing import get_type_hints as h", [1]),
    ("a forward reference", "import typing\ntyping.ForwardRef('x')", [2]),
    ("an evaluation by a private name", "x._evaluate(None, None)", [1]),
    ("tracebacks", "try: pass\nexcept Exception as e:\n"
     "  e.__traceback__\n  e.with_traceback(None)\n"
     "  e.__context__.tb_frame", [3, 4, 5, 5]),
    ("except*", "try: pass\nexcept* ValueError: pass", [1]),
    ("attributes by names made at run time",
     "from operator import attrgetter, methodcaller", [1, 1]),
    ("the same through the module", "import operator\noperator.attrgetter", [2]),
    ("evaluation", "eval('1')\nexec('1')\ncompile('1', '', 'eval')", [1, 2, 3]),
    ("evaluation in letters of full width", "ｅval('1')", [1]),
    ("an import by its function", "__import__('os')", [1]),
    ("the builtins", "__builtins__", [1]),
    ("a decorator that evaluates", "@eval\ndef f(): pass", [1]),
    ("what is in a class body", "class A:\n  x = eval", [2]),
    ("a default of a lambda", "f = lambda x=eval: x", [1]),
    ("a class made by a call", "type('X', (), {})", [1]),
    ("a walk through the classes", "type.mro(int)", [1]),
    ("subclasses", "int.__subclasses__()", [1]),
    ("positional patterns of one's own",
     "class A:\n  __match_args__ = ('__class__',)", [2]),
    ("a format that looks inside", "'{0.__class__}'.format(1)", [1]),
    ("format_map", "'{a}'.format_map({})", [1]),
    ("a formatter", "import string\nstring.Formatter()", [2]),
    ("what the profile has not", "import os\nimport subprocess\nimport sys\n"
     "from importlib import reload\nimport gc, inspect",
     [1, 2, 3, 4, 5, 5]),
    ("pickles", "import pickle\nimport marshal\nimport shelve", [1, 2, 3]),
    ("a part that the profile has not", "import json.tool", [1]),
    ("a relative import", "from . import x\nfrom .a import b", [1, 2]),
    ("what has no syntax", "x = 1\n(", [2]),
    ("a NUL", "x = 1\0", [1]),
    ("too many brackets", "(" * 300 + ")" * 300, [1]),
    ("too deep a nesting", "-" * 100000 + "1", [1]),
]

SCIENCE_REFUSED = [
    ("files by numpy", "import numpy as np\nnp.genfromtxt('/etc/passwd')\n"
     "np.fromfile('x')\nnp.memmap('x')\nnp.load('x', allow_pickle=True)",
     [2, 3, 4, 5]),
    ("compilers and foreign functions",
     "import numpy.f2py\nimport numpy\nnumpy.ctypeslib\nnumpy.distutils",
     [1, 3, 4]),
    ("what pandas loads or evaluates",
     "import pandas as pd\npd.read_pickle('x')\npd.eval('1')\n"
     "pd.read_sql('x', 'y')", [2, 3, 4]),
    ("files by scipy", "import scipy.io\nimport scipy\nscipy.LowLevelCallable",
     [1, 3]),
]

ACCEPTED = [
    ("an ordinary class", "class Account:\n  def __init__(self):\n"
     "    self._balance = 0\n  @property\n  def balance(self):\n"
     "    return self._balance\nprint(Account()._balance)"),
    ("methods with one underscore", "class A:\n  def _f(self): return 1\n"
     "  def g(self): return self._f()"),
    ("links of one's own nodes", "class N: pass\na = N()\nb = N()\n"
     "a._next = b\nprint(a._next)"),
    ("a main program", "def main():\n  print('hi')\n\n"
     "if __name__ == '__main__':\n  main()"),
    ("names of types", "print(type(1).__name__)"),
    ("a docstring and a future import",
     "'''doc'''\nfrom __future__ import annotations\nx: Foo = 1"),
    ("a named tuple", "from collections import namedtuple\n"
     "P = namedtuple('P', 'x y')\nprint(P(1, 2)._asdict())"),
    ("parts of a package", "import collections.abc\n"
     "from collections import abc, OrderedDict"),
    ("comprehensions, walrus, nonlocal, del",
     "def f():\n  n = 0\n  def g():\n    nonlocal n\n    n += 1\n  g()\n"
     "  return n\nprint([y := x for x in range(3)], f())\nprint = print\n"
     "del print"),
    ("patterns", "match {'a': [1, 2]}:\n  case {'a': [x, *rest]}: print(x)\n"
     "  case str(): pass"),
    ("a variable called vars", "vars = {'a': 1}\nfor help in vars: print(help)"),
    ("generators, async, decorators", "import functools\n"
     "@functools.lru_cache(None)\ndef f(n): return n\n"
     "async def g():\n  yield 1\n"),
    ("SQL, hex and dots in texts",
     "q = f'SELECT {1} FROM t; DROP TABLE x'\n"
     "h = 'd41d8cd98f00b204e9800998ecf8427e'\np = '../data'"),
    ("form feeds, tabs and no newline at the end", "x = 1\n\f\ny = 2"),
]


def main():
    count = 0

    def result(good, what, *more):
        nonlocal count
        count += 1
        print("%sok %d - %s" % ("" if good else "not ", count, what))
        for line in () if good else more:
            print("# %s" % (line,))

    version = sys.version_info[:2]
    for policy, cases in (MINIMAL, REFUSED), (SCIENCE, SCIENCE_REFUSED):
        for what, code, lines in cases:
            if "match" in code and version < (3, 10) \
               or "except*" in code and version < (3, 11):
                lines = None
            faults = guard.check(code, policy, "<execute>")[1]
            found = [int(f.split(":")[0][5:]) for f in faults
                     if f.startswith("Line ")]
            result(faults and lines in (None, found),
                   "refused: %s" % what, faults, lines)
    for what, code in ACCEPTED:
        if "match" in code and version < (3, 10):
            continue
        faults = guard.check(code, MINIMAL, "<execute>")[1]
        result(not faults, "let through: %s" % what, faults)

    faults = guard.check("\n".join(["eval"] * 200), MINIMAL, "<execute>")[1]
    result(len(faults) == 51 and faults[50] == "and 150 more",
           "no more violations are told than anybody reads", len(faults))

    own = guard.guarded_builtins(MINIMAL)
    missing = [n for n in ("eval", "exec", "compile", "globals", "vars",
                           "breakpoint") if n in own]
    result(not missing, "code has no builtins that evaluate", missing)
    space = {"__builtins__": own, "__name__": "__main__"}

    def fails(what, code, kind):
        try:
            exec(code, dict(space))
        except kind:
            return result(True, what)
        except BaseException as error:
            return result(False, what, repr(error))
        result(False, what, "nothing was raised")

    fails("an import at run time is looked at too", "import os", ImportError)
    fails("a module has no modules", "import statistics as s\ns.sys",
          AttributeError)
    fails("an attribute by a name made at run time",
          "getattr((), '__cla' + 'ss__')", AttributeError)
    fails("a file elsewhere", "open('/etc/passwd')", PermissionError)
    fails("a file by dots", "open('x' + '/..' * 30 + '/etc/passwd')",
          PermissionError)
    fails("a descriptor", "open(0)", PermissionError)
    exec("import decimal, random, statistics, json\n"
         "assert decimal.Decimal('1.5') + 1 == decimal.Decimal('2.5')\n"
         "assert statistics.mean([1, 2, 3]) == 2\n"
         "assert json.loads(json.dumps({'a': [1]})) == {'a': [1]}\n"
         "from collections.abc import Mapping\nimport collections.abc\n"
         "assert isinstance({}, collections.abc.Mapping)\n"
         "from math import *\nassert sqrt(4) == 2\n"
         "class A: pass\na = A()\nsetattr(a, '_x', 1)\n"
         "assert getattr(a, '_x') == 1 and not hasattr(a, '__dict__')\n",
         dict(space))
    result(True, "modules that import others still work")
    print("1..%d" % count)


main()
