#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is built for use has none of the switches of layer.h: no word of them,
# and no ear for them.
. "$COFFER_SOURCE/tests/build/tap.sh"
cd "$COFFER_BUILD" || exit 1
with=tests/attack/linux-switches.so
with_init=tests/attack/init-switches
layers=$(sed -n 's/.*"\([a-z-]*\)").*/\1/p' "$COFFER_SOURCE/tests/attack/switches.h" \
  | paste -sd, -)
every=user,ids,mount,pid,net,caps,nnp,landlock,seccomp,rlimits,${layers}

# Every file that an installation or a sandbox's host has of this provider.
shipped () {
  find coffer core plugins stage -type f \( -perm -u+x -o -name '*.so' \) \
    ! -name '*.sh' ! -name '*switches*' -print
}
words () { # FILES...
  for f in "$@"; do
    ! grep -aqE 'COFFER_TEST_(LAYERS|FAULT|INIT_ONLY)|COFFER_LAYER|layers_(off|read|word|take|call|ids)' \
      "$f" || echo "$f"
  done
}
found () { [ -n "$(words "$@")" ]; }

# Every attack against the layers that are on although they are asked to be off.
attack () { # [PROFILE] MODULE INIT
  tests/attack/attack "$@" > "$tmp/attack" || return 1
  grep -v '^ok' "$tmp/attack" | grep -v '^1\.\.' > "$tmp/not"
  [ ! -s "$tmp/not" ] || { cat "$tmp/not"; return 1; }
  [ "$(grep -c '^ok' "$tmp/attack")" -ge 30 ]
}
deaf_init () { COFFER_TEST_INIT_ONLY=1 attack "$with" plugins/linux/coffer-init; }
# The same with an init that listens: most must fall, or nothing was asked.
listening_init () {
  COFFER_TEST_INIT_ONLY=1 tests/attack/attack "$with" "$with_init" \
    > "$tmp/attack" || return 1
  [ "$(grep -c '^not ok' "$tmp/attack")" -ge 10 ]
}
facts () { # of a sandbox, without what differs between two
  COFFER_HOME=$tmp/home ./coffer run --json -- true > "$tmp/json" || return 1
  python3 -c 'import json, sys
for fact in json.load (open (sys.argv[1]))["applied"]["facts"]:
    print (fact["name"], fact["state"])' "$tmp/json"
}
same_facts () {
  facts > "$tmp/without" && [ -s "$tmp/without" ] || return 1
  COFFER_TEST_LAYERS=$every COFFER_TEST_FAULT=init:20:1 facts > "$tmp/asked"
  cmp "$tmp/without" "$tmp/asked"
}

plan 7
check "a build with switches has their words" found "$with"
check "what is built for use has none" silent words $(shipped)
if unshare -Ur true 2>/dev/null; then
  check "a sandbox is the same whatever is asked" same_facts
  check "the module for use leaves out no layer" \
    attack plugins/linux/linux.so plugins/linux/coffer-init
  check "nor one of profile strict" \
    attack strict plugins/linux/linux.so plugins/linux/coffer-init
  check "the init for use leaves out no layer" deaf_init
  check "an init with switches does" listening_init
else
  for what in 1 2 3 4 5; do skip "sandboxes without switches, $what" \
    "user namespaces"; done
fi
finish
