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
sanitized coffer && own="$own|$san"

if ! command -v readelf >/dev/null; then
  plan 1
  skip "what is loaded" "readelf"
  finish
fi
plan 6
check "coffer is there" test -x coffer
check "coffer loads only its own libraries" silent beyond coffer "$own"
check "the installed coffer loads the same" \
  sh -c '[ "$1" = "$2" ]' - "$(needed coffer)" "$(needed core/cli/coffer)"

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
  for f in coffer core/cli/coffer stage/providers-*/*.so stage/libexec/*; do
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
