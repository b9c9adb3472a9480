# SPDX-License-Identifier: Apache-2.0
# Profiles as rows { "NAME", "TEXT" } of C.
FNR == 1 {
  if (NR > 1)
    print "  },"
  name = FILENAME
  sub (/.*\//, "", name)
  sub (/\.yaml$/, "", name)
  print "  { \"" name "\","
}
{
  gsub (/\\/, "\\\\")
  gsub (/"/, "\\\"")
  print "    \"" $0 "\\n\""
}
END { print "  }," }
