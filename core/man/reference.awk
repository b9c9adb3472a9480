# SPDX-License-Identifier: Apache-2.0
# The reference of operations (sdk/doc/operations.md, which the program prints)
# as sections of mdoc, for coffer-provider(3).

function text(s) {
  gsub(/\\\|/, "|", s)
  gsub(/\\/, "\\e", s)
  gsub(/`/, "", s)
  sub(/^[.']/, "\\\\\\&&", s)
  return s
}

function end_list() {
  if (listing)
    print ".El"
  listing = 0
}

# What precedes the first section is for the file itself.
/^## / {
  end_list()
  print ".Sh " toupper(substr($0, 4))
  started = 1
  next
}
!started { next }
/^### record / { end_list(); print ".Ss struct coffer_" $3; next }
/^### / { end_list(); print ".Ss " $2; next }
/^\|---/ { next }
/^\| .*\| *\|$/ {                       # the head of a table
  end_list()
  if ($2 == "option")
    print ".Pp\nOptions:"
  print ".Bl -tag -width Ds"
  listing = 1
  next
}
/^\|/ {
  line = $0
  sub(/^\| /, "", line)
  sub(/ \|$/, "", line)
  gsub(/\\\|/, "\001", line)
  n = split(line, cell, " \\| ")
  if (cell[1] ~ /^[0-9]+$/) {           # a code: number, name, again?
    print ".It Dv COFFER_" text(cell[2]) " Pq " cell[1]
    word = cell[4]
    again = "Trying again: " cell[3] "."
  } else {
    print ".It Va " text(cell[1]) (n > 2 ? " Pq " text(cell[2]) : "")
    word = cell[n]
    again = ""
  }
  gsub("\001", "|", word)
  if (word != "" && n > 1)
    print text(word)
  if (again != "")
    print "(" again ")"
  next
}
/^$/ { next }
{ end_list(); print text($0) }
END { end_list() }
