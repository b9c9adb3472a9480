#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# coffer-docker(7) has the keys of both manifests, and no other.
. "$COFFER_SOURCE/tests/build/tap.sh"
cd "$COFFER_SOURCE" || exit 1

keys () { # MANIFEST
  awk '/^config:/ { in_config = 1; next } /^[a-z]/ { in_config = 0 }
    in_config && /^  [a-z_]+:/ { sub (/:.*/, ""); print $1 }' "$1" | sort
}

page () { sed -n 's/^\.It Cm //p' core/man/coffer-docker.7 | sort; }

same () { # MANIFEST
  keys "$1" >"$tmp/keys" && page >"$tmp/page" || return 1
  [ "$(wc -l <"$tmp/keys")" -gt 5 ] || { echo "no keys in $1"; return 1; }
  diff "$tmp/keys" "$tmp/page"
}

plan 2
check "the keys of docker's manifest are those of the page" \
  same manifests/docker.yaml
check "the keys of podman's manifest are those of the page" \
  same manifests/podman.yaml
finish
