#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The scripts of contrib say what is wrong and do nothing by halves.
. "$COFFER_SOURCE/tests/build/tap.sh"
contrib=$COFFER_SOURCE/contrib
plan 7

unreadable () {
  find -L "$COFFER_SOURCE/contrib" "$COFFER_SOURCE/tests" \
    "$COFFER_SOURCE/manifests" -type f | while read -r f; do
    case $(head -1 "$f" 2>/dev/null | tr -d '\0') in
      '#!/bin/sh') sh -n "$f" 2>&1 ;;
      '#!/bin/bash') bash -n "$f" 2>&1 ;;
    esac
  done
}
check "every script can be parsed" silent unreadable

exits () { # STATUS TEXT COMMAND...
  exits_want=$1 exits_text=$2 exits_status=0
  shift 2
  "$@" > "$tmp/exits" 2>&1 || exits_status=$?
  cat "$tmp/exits"
  [ "$exits_status" -eq "$exits_want" ] && grep -qF "$exits_text" "$tmp/exits"
}
check "check refuses a step that it has not" \
  exits 2 'no step nonsense' sh "$contrib/check" nonsense

touch "$tmp/coffer"
chmod +x "$tmp/coffer"
check "the AppArmor profile names the program" \
  exits 0 "\"$(readlink -f "$tmp/coffer")\" flags=(unconfined)" \
  sh "$contrib/apparmor/install" --print "$tmp/coffer"
check "a path that AppArmor would read as a pattern is refused" \
  exits 2 'move the tree' \
  sh "$contrib/apparmor/install" --print "/tmp/你好 世界/'q\".txt"

missing () { # names what dpkg does not know
  . "$contrib/packages.sh"
  command -v dpkg-query >/dev/null || return 0
  [ "$(packages_missing coffer-no-such-package)" = 'coffer-no-such-package ' ]
}
check "a package that is missing is seen" missing

# In a user namespace of its own a process may lower its own limit to none.
none='echo 0 > /proc/sys/user/max_user_namespaces'
if unshare --user --map-root-user sh -c "$none" 2>/dev/null; then
  check "why-not names the setting and its remedy" \
    exits 0 'sysctl -w user.max_user_namespaces=' \
    unshare --user --map-root-user sh -c "$none"' && exec sh "$1" coffer' - \
    "$contrib/why-not"
else
  skip "why-not names the setting and its remedy" "user namespaces"
fi

# A tree that cannot be built, and nothing to install.
foreign () {
  cd "$tmp" && mkdir -p empty/contrib && cp "$contrib/quickstart" empty/contrib
  echo 'build_packages=; packages_install () { :; }' \
    > empty/contrib/packages.sh
  exits 1 'quickstart: this failed' sh empty/contrib/quickstart "$tmp/out"
}
check "quickstart stops at what fails, and shows it" foreign
finish
