# SPDX-License-Identifier: Apache-2.0
# The table of coffer-providers(7) from providers.tsv: three lines that say what was
# run, and a line a capability.
BEGIN { FS = "\t" }
/^#/ { next }
$1 == "provider" { next }
{
  if ($1 == "run")
    $1 = ""
  line = ".It"
  for (i = 1; i <= NF; i++) {
    text = $i == "no" ? "-" : $i
    if (text == "")
      text = "\\&"
    line = line (i > 1 ? " Ta " : " ") (text ~ / / ? "\"" text "\"" : text)
  }
  print line
}
