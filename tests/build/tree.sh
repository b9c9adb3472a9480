#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The rules that the source tree keeps, looked up in its files.
. "$COFFER_SOURCE/tests/build/tap.sh"
cd "$COFFER_SOURCE" || exit 1

# The files of the tree, without what is built or generated, or lies at the
# root by accident: README tries things out, and so do people.
files () {
  find -L core sdk plugins manifests tests contrib ./*.am ./*.ac ./*.md \
    LICENSE .clang-format \( -name 'build-*' -o -name autom4te.cache \) -prune \
    -o -type f -print | sed 's|^\./||' | sort \
    | grep -v -E '(^|/)(configure|Makefile\.in|aclocal\.m4|config\.h\.in)$' \
    | grep -v -E '~$'
}
files > "$tmp/files"

no_spdx () {
  grep -v -E '^(LICENSE|COPYING)$|\.(md|json|bin|seed|tsv|abi|so|pc\.in)$|\.(yaml)$|(^|/)(corpus|seeds|vectors|fixtures|bad)/' \
    "$tmp/files" | while read -r f; do
    head -5 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$f"
  done
}
check "every source file carries its licence" silent no_spdx

# A quoted file of plugins and sdk lies in its own folder or the one above, a
# bracketed one of ours is <coffer/…>.  The kit's runner is the host's.
strangers () {
  grep -E '^(plugins|sdk)/.*\.[ch]$' "$tmp/files" \
    | grep -v '^sdk/kit/runner/' | xargs grep -nE \
    '^[ ]*#[ ]*include[ ]*(<(base|contract|provider|sandbox|cli)/|"[^"]*/)' \
    | grep -vE '^plugins/[^/]*/[^/]*/[^/]*:.*"\.\./[^/"]*"'
}
check "plugins and sdk include nothing of the host" silent strangers

# A case of the kit sees what an author sees, and nothing of the runner's.
beyond_kit_h () {
  grep -E '^sdk/kit/[^/]*\.[ch]$' "$tmp/files" \
    | xargs grep -nE '^[ ]*#[ ]*include[ ]*"' | grep -v -E '"(kit|case)\.h"$'
}
check "cases of the kit include only <coffer/…>, libc and kit.h" \
  silent beyond_kit_h

# upward FOLDER FORBIDDEN-FOLDERS: what a lower layer must not include.
upward () {
  grep -rnE "^[ ]*#[ ]*include[ ]*[<\"]($2)/" "core/$1" --include='*.[ch]'
}
upwards () {
  upward base 'client|contract|provider|sandbox|store|policy|server|cli'
  upward contract 'provider|sandbox|store|policy|server|cli'
  upward provider 'sandbox|store|policy|server|cli'
  upward store 'sandbox|policy|server|cli'
  upward policy 'sandbox|store|server|cli'
  upward sandbox 'client|python|server|cli'
  upward python 'server|cli'
  upward client 'contract|provider|sandbox|store|policy|python|server|cli'
}
check "dependencies of core point one way" silent upwards

generated () {
  [ -e "$top/.git" ] || return 0        # a release has them
  for f in configure Makefile Makefile.in config.h config.status aclocal.m4 \
    config.log; do
    [ ! -e "$top/$f" ] || echo "$top/$f"
  done
}
# COFFER_SOURCE may be a folder of links to the tree: follow one home.
top=$(dirname "$(readlink -f Makefile.am)")
check "nothing generated lies at the root" silent generated

long_lists () {
  [ "$(wc -l < configure.ac)" -lt 250 ] || echo "configure.ac: 250 lines or more"
  grep -E '^(core|plugins|sdk)/.*\.[ch]$' "$tmp/files" \
    | xargs wc -l | awk '$1 > 700 && $2 != "total" { print $2 ": " $1 " lines" }'
  grep -E '^tests/.*\.[ch]$' "$tmp/files" \
    | xargs wc -l | awk '$1 > 860 && $2 != "total" { print $2 ": " $1 " lines" }'
}
check "no file outgrew its reader" silent long_lists

# From the brace that opens a function to the one that closes it.
long_functions () {
  grep -E '^(core|plugins|sdk)/.*\.[ch]$' "$tmp/files" | xargs awk '
    FNR == 1 { begun = 0 }
    /^\{$/ { begun = FNR }
    /^\}$/ && begun {
      if (FNR - begun - 1 > 60) print FILENAME ":" begun ": " FNR - begun - 1 \
        " lines"
      begun = 0
    }'
}
check "no function outgrew its reader" silent long_functions

# A code that nothing reports is one that its comment keeps for later.
idle_codes () {
  kept=$(sed -n '/^E (/q; p' core/base/errors.def | grep -oE '\b[0-9]{4}\b')
  sed -n 's/^E (\([0-9]*\), \([A-Z_]*\),.*/\1 \2/p' core/base/errors.def \
    | while read -r number name; do
      case " $(echo $kept) " in *" $number "*) continue ;; esac
      grep -rqw "E_$name" core --include='*.[ch]' || echo "E$number $name"
    done
}
check "every error code is reported somewhere" silent idle_codes

# Every file of a kind that is built, run or shipped stands by its name in a
# fragment: else a release lacks it, or nobody runs it.
unlisted () {
  { echo Makefile.am; grep "\.mk$" "$tmp/files"; } | xargs cat \
    | tr -s ' \\=' '\n\n\n' | sed 's|.*/||' | sort -u > "$tmp/listed"
  grep -E '^(core|plugins|sdk|tests|manifests|contrib)/' "$tmp/files" \
    | grep -E '\.([ch]|def|sh|py|m4|in|[1-8])$' \
    | grep -v -E '/(corpus|seeds|vectors|fixtures|bad)/' \
    | while read -r f; do
      name=${f##*/}
      grep -qxF -e "$name" -e "${name%.c}" "$tmp/listed" \
        || echo "$f is in no fragment"
    done
}
check "every file is listed where it is built, run or shipped" silent unlisted

trailing () {
  grep -E '\.([chy]|mk|sh|py|md|yaml|def|ac|am|[1-8])$' "$tmp/files" \
    | grep -v -E '/(corpus|seeds|vectors|fixtures|bad)/' \
    | xargs grep -nE '[[:blank:]]$'
}
check "no line ends in blanks" silent trailing

unsafe_calls () {
  grep -E '^(core|plugins|sdk/lib)/.*\.[ch]$' "$tmp/files" \
    | xargs grep -nE '(^|[^_[:alnum:]])(sprintf|strcpy|strcat|gets|strtok|tmpnam|mktemp|system|popen|alloca) \('
}
check "no call that cannot be used safely" silent unsafe_calls

plan 11
finish
