# SPDX-License-Identifier: Apache-2.0
# The list of coffer kit --list as items of a manual page.
/^[a-z]/ {
  id = $1
  needs = ""
  if (match ($0, /\(.*\)$/))
    needs = substr ($0, RSTART + 1, RLENGTH - 2)
  printf ".It Cm %s%s\n", id, needs == "" ? "" : " Pq Li " needs
  next
}
/^    / {
  sub (/^ +/, "")
  gsub (/\\/, "\\e")
  if ($0 ~ /^[.']/)
    printf "\\&"
  print
}
