# SPDX-License-Identifier: Apache-2.0
# coffer run --python: what is printed, how it ends, what goes with it.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox
[ -x /usr/bin/python3 ] || skip_all "/usr/bin/python3"

python () { # CODE [OPTION…]
  printf '%s' "$1" >"$T/code.py"; shift
  run coffer run --python "$T/code.py" "$@"
}

python 'import math
print("pi =", round(math.pi, 2))
6 * 7'
is "output and the value of a trailing expression" "$status $(cat "$out")" \
  "0 pi = 3.14
42"
is "and nothing else" "$(cat "$err")" ""
printf 'print("caf\303\251")' >"$T/in"
coffer run --python - <"$T/in" >"$out" 2>"$err"
is "code from standard input" "$(cat "$out")" "café"

python 'x = 1
import os
eval("2")'
is "refused code" "$status" 2
like "says each line that it is refused for" "$(cat "$err")" 'Line 2: import'
like "all of them" "$(cat "$err")" 'Line 3: eval'
is "and nothing on standard output" "$(cat "$out")" ""
python 'import os' --json
is "with --json as a document" \
  "$status $(json "$out" 'd["error"], len (d["violations"])')" \
  "2 ('Code validation failed', 1)"

python 'def f():
    return 1 / 0
f()'
is "an error of the code" "$status" 1
is "has a traceback of the code alone" "$(grep -c 'File "<execute>"' "$err")" 2
unlike "with no path of ours" "$(cat "$err")" "runner|$T"
python 'raise SystemExit(7)'
is "its own status" "$status" 7
python 'print("begun")
while True: pass' --timeout 500ms
is "a timeout" "$status $(cat "$out")" "124 begun"
like "is said" "$(cat "$err")" 'timed out after'

python 'open("out/a.txt", "w").write("caf\u00e9")
open("out/b", "w").write("2")
None' --artifacts "$T/kept"
is "artifacts are kept" "$status $(cat "$T/kept/a.txt") $(cat "$T/kept/b")" \
  "0 café 2"
python 'open("out/b", "w").write("3")' --artifacts "$T/kept"
is "what is there is not replaced" "$status $(cat "$T/kept/b")" "125 2"

python '1 + 1' --json
is "the document" "$(json "$out" 'd["result"], d["exit_code"], d["profile"]')" \
  "('2', 0, 'minimal')"
is "has the layers that were read back" "$(json "$out" 'd["layers_applied"]')" \
  "['ast', 'import', 'landlock', 'seccomp', 'namespaces']"

python '1' --profile nothing
is "a profile that there is not" "$status" 125
python '1' --profile default
like "one that has no imports" "$(cat "$err")" 'E2012.*default'
python '1' -w "$T"
like "options that the profile answers" "$(cat "$err")" 'E6001.*workspace'
python '1' --timeout 31s
like "more time than there is" "$(cat "$err")" 'E6006.*timeout'
python ''
is "no code" "$status" 125
run coffer run --python "$T/nothing.py"
is "no file" "$status" 125
run coffer run
is "no command either" "$status" 125

if [ -d /usr/lib/python3/dist-packages/pandas ]; then
  python 'import numpy as np, pandas as pd
from scipy import stats
df = pd.DataFrame({"a": np.arange(4)})
print(int(df.a.sum()), round(float(stats.norm.cdf(0)), 2))
np.linalg.norm([3.0, 4.0])' --profile data-science
  is "numpy, pandas and scipy" "$status $(cat "$out")" "0 6 0.5
5.0"
  python 'open("d.csv", "w").write("a,b\n1,2\n3,4\n")
import pandas as pd
print(int(pd.read_csv("d.csv").b.sum()))
pd.read_csv("/etc/passwd")' --profile data-science
  is "pandas reads the files of the code, and no others" \
    "$status $(cat "$out") $(tail -1 "$err")" \
    "1 6 PermissionError: [Errno 13] Permission denied: '/etc/passwd'"
  if [ -d /usr/lib/python3/dist-packages/matplotlib ]; then
    python 'import matplotlib.pyplot as plt
plt.plot([1, 2, 4])
plt.show()' --profile data-science --artifacts "$T/figures"
    is "figures of matplotlib are artifacts" \
      "$status $(head -c 4 "$T/figures/figure-1.png" | tail -c 3)" "0 PNG"
  else
    skip "figures of matplotlib are artifacts" "python3-matplotlib"
  fi
else
  skip "numpy, pandas and scipy" "python3-numpy, python3-pandas, python3-scipy"
fi

finish
