# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# The fenced blocks of a Markdown file, by the comment above each: `run: here`
# is run, in one shell and in the order of the file; `file: NAME` is written to
# that file first.

# blocks FILE KIND: the blocks of a kind, one after the other.
blocks () {
  awk -v kind="$2" '
    /^<!-- .* -->$/ { mark = $0 }
    /^```$/ && inside { inside = 0; mark = ""; next }
    inside && take { print }
    /^```/ && !inside {
      inside = 1; take = mark == "<!-- " kind " -->"
    }' "$1"
}

# unmarked FILE KINDS: blocks that nobody runs; KINDS is a pattern of awk.
unmarked () {
  awk -v kinds="^<!-- ($2) -->\$" '$0 ~ kinds { mark = NR }
    /^```./ && mark != NR - 1 { print FILENAME ":" NR ": nobody runs this" }
  ' "$1"
}

# script FILE: all of it as one script, files written where they stand.
script () {
  awk '
    /^<!-- (run: here|file: .*) -->$/ { mark = $0 }
    /^```$/ && inside {
      if (mark ~ /file:/) print "END_OF_BLOCK"
      inside = 0; mark = ""; next
    }
    inside && mark { print }
    /^```/ && !inside {
      inside = 1
      if (mark ~ /file:/) {
        split (mark, word, " ")
        print "cat > " word[3] " <<'\''END_OF_BLOCK'\''"
      }
    }' "$1"
}
