#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `coffer` starts in every command: it loads the few libraries that it may and
# no other.  Its modules load libc and what their work needs.
. "$COFFER_SOURCE/tests/build/tap.sh"
cd "$COFFER_BUILD" || exit 1

needed () { LC_ALL=C readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

beyond () { # FILE ALLOWED
  needed "$1" | grep -vE "^($2)\.so\."
}
own='libc|libffi|libyaml(-0)?|libjansson|libseccomp|libmd'
san='libasan|libubsan|libtsan|libm|libdl|libpthread|librt|libgcc_s|libresolv'

sanitized () { LC_ALL=C readelf -Ws "$1" | grep -qE '__(asan|ubsan|tsan)_'; }
sanitized core/cli/coffer && own="$own|$san"

if ! command -v readelf >/dev/null; then
  plan 1
  skip "what is loaded" "readelf"
  finish
fi
# The small program that executes it loads nothing, and holds no more than it
# needs: what a run waits for.
small=
built=coffer
if [ -x core/cli/front/coffer ]; then
  small='coffer core/cli/front/coffer'
  built=core/cli/build/coffer
fi
not_small () {
  for f in $small; do
    LC_ALL=C readelf -lW "$f" | grep -E 'INTERP|DYNAMIC' | sed "s|^|$f:|"
    LC_ALL=C readelf -lW "$f" | grep -q 'GNU_STACK.* RW ' \
      || echo "$f: executable stack"
    [ "$(wc -c < "$f")" -lt 262144 ] || echo "$f: $(wc -c < "$f") bytes"
  done
}
plan 7
check "coffer is there" test -x coffer
check "the one that begins a run is static and small" silent not_small
check "coffer loads only its own libraries" silent beyond "$built" "$own"
check "the installed coffer loads the same" \
  sh -c '[ "$1" = "$2" ]' - "$(needed "$built")" "$(needed core/cli/coffer)"

check "SQLite, which is opened when it is needed, is named for packagers" \
  sh -c 'readelf -p .note.dlopen "$1" | grep -q libsqlite3' - core/cli/coffer

# A provider of a service has libcurl for it.
modules () {
  for m in stage/providers-*/*.so; do
    case $m in */docker.so) more='|libcurl(-gnutls)?' ;; *) more= ;; esac
    [ ! -e "$m" ] || beyond "$m" "$own$more" | sed "s|^|$m: |"
  done
}
check "modules load only what the host loads" silent modules

soft () {
  for f in "$built" core/cli/coffer stage/providers-*/*.so stage/libexec/*; do
    case $f in *.py) continue ;; esac
    [ -e "$f" ] || continue
    LC_ALL=C readelf -Wl "$f" | grep -q 'GNU_STACK.* RWE' \
      && echo "$f: executable stack"
    LC_ALL=C readelf -Wl "$f" | grep -q GNU_RELRO || echo "$f: no relro"
    LC_ALL=C readelf -d "$f" | grep -qE 'BIND_NOW|FLAGS.*NOW' \
      || echo "$f: lazy binding"
    LC_ALL=C readelf -d "$f" | grep -E 'RPATH|RUNPATH|TEXTREL' \
      | sed "s|^|$f:|"
  done
}
check "what is built is hardened" silent soft
finish
