# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# A whole run of the kit, and what is demanded of it.

# Every case that applies passed.  What probe takes away on this machine is a
# skip here too, and then the run is incomplete for that reason alone; as is one
# of a build with sanitizers.  KIT_REPORTS: a folder that is given the report.
kit_conformant () { # PROVIDER
  run coffer kit "$1" --json
  [ -z "${KIT_REPORTS:-}" ] || cp "$out" "$KIT_REPORTS/${engine:-$1}.json"
  python3 - "$out" >"$T/kit" <<'PY' || { cat "$err" "$out" >&2; : >"$T/kit"; }
import json, sys
d = json.load (open (sys.argv[1], encoding="utf-8"))
for c in d["cases"]:
    print (c["verdict"], c["id"], str (c.get ("reason", "")).replace ("\n", " "), sep="\t")
whole = d["mode"] == "worker" and not d["partial"]
print ("verdict", d["verdict"], "sanitizers" in d, whole, sep="\t")
PY
  note "$1: $(json "$out" '"seed %s, %d ms, %s" % (d["seed"], d["duration_us"] // 1000, d["counts"])' 2>&1)"
  is "$1: no case of the kit fails" "$(grep '^failed' "$T/kit" 2>&1)" ""
  ok "$1: cases were run" grep -q '^passed' "$T/kit"
  narrowed=$(grep '^skipped' "$T/kit" | cut -f 3 | sort -u)
  if [ -n "$narrowed" ]; then
    is "$1: the run is incomplete" "$status $(grep '^verdict' "$T/kit")" \
      "3 $(printf 'verdict\tincomplete\t%s\tTrue' \
        "$(grep '^verdict' "$T/kit" | cut -f 3)")"
    unlike "$1: only as probe takes something away" \
      "$(printf '%s\n' "$narrowed" | grep -v ' is taken away by probe: ' || echo none)" ' '
    skip "$1: conformant" "what probe takes away: $(printf '%s' "$narrowed" | head -1)"
  elif grep -q '^verdict.*True.True$' "$T/kit"; then
    is "$1: complete, with sanitizers" "$status" 3
  else
    is "$1: conformant" "$status $(grep '^verdict' "$T/kit")" \
      "0 $(printf 'verdict\tconformant\tFalse\tTrue')"
  fi
}
