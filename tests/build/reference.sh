#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sdk/doc/operations.md is what `coffer contract --markdown` prints today.
. "$COFFER_SOURCE/tests/build/tap.sh"

current () {
  "$COFFER_BUILD/coffer" contract --markdown > "$tmp/operations.md" || return 1
  diff -u "$COFFER_SOURCE/sdk/doc/operations.md" "$tmp/operations.md" || {
    echo "run: make update-operations"
    return 1
  }
}

plan 1
check "sdk/doc/operations.md is current" current
finish
