# SPDX-License-Identifier: Apache-2.0
# A text as a literal of C, line by line.
{
  gsub (/\\/, "\\\\")
  gsub (/"/, "\\\"")
  print "\"" $0 "\\n\""
}
