# SPDX-License-Identifier: Apache-2.0
# coffer-serve(8) against the table of options.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
needs python3
page=$COFFER_SOURCE/core/man/coffer-serve.8
coffer help --json >"$T/table"
json "$T/table" '"\n".join (sorted (o["name"] for c in d["commands"] if c["words"] == "serve" for o in c["options"]))' >"$T/options"
sed -n 's/^\.It Fl -\([a-z-]*\).*/\1/p' "$page" | sort >"$T/written"
same "every option has its entry, and no other" "$T/options" "$T/written"
if command -v mandoc >/dev/null 2>&1; then
  for page in coffer-serve.8 coffer.yaml.5; do
    is "mandoc finds nothing wrong in $page" \
      "$(mandoc -T lint -W warning "$COFFER_SOURCE/core/man/$page" 2>&1 | grep -v 'referenced manual not found')" ""
  done
else
  skip "mandoc finds nothing wrong" mandoc
fi
finish
