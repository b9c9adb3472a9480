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

# kit_of FOLDER: a coffer there that goes before COFFER_BUILD's.  With sanitizers
# no provider is ever conformant, but "incomplete" with exit status 3, and none
# that is not shipped would be opened: for such a build both are forgiven.
kit_of () {
  mkdir -p "$1"
  if ! grep -q '^SANITIZE = .' "$COFFER_BUILD/Makefile"; then
    ln -s "$COFFER_BUILD/coffer" "$1/coffer"
    return
  fi
  cat > "$1/coffer" <<END
#!/bin/sh
if [ "\$1" != kit ] && [ -n "\${COFFER_HOME:-}" ]; then
  mkdir -p "\$COFFER_HOME/config"
  echo 'require_conformance: false' > "\$COFFER_HOME/config/coffer.yaml"
fi
# A daemon is ended by the number of the process that was started.
[ "\$1" != serve ] || exec "$COFFER_BUILD/coffer" "\$@"
"$COFFER_BUILD/coffer" "\$@"
status=\$?
[ "\$1 \$status" != "kit 3" ] || status=0
exit \$status
END
  chmod 755 "$1/coffer"
}
