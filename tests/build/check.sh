#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# contrib/check, of a build that is none: which tests that fail beside the others
# are tried once more, and that nothing of what it began outlives it.
. "$COFFER_SOURCE/tests/build/tap.sh"
# Of a make that runs this test alone TESTS would be that of those below.
unset MAKEFLAGS MFLAGS MAKELEVEL
plan 12

# `make check` there runs the words of TESTS: each prints what its file one, or from
# the second time on two, has.
work=$tmp/work build=$tmp/build top=$COFFER_SOURCE
mkdir -p "$work/log" "$build/tests"
: > "$work/skips"
cat > "$build/Makefile" <<'END'
TESTS = $(ALL)
check:
	@status=0; for t in $(TESTS); do sh ./fake $$t || status=1; done; exit $$status
END
cat > "$build/fake" <<'END'
said=$1.two
[ -e "$1.tried" ] || said=$1.one
touch "$1.tried"
grep -vE '^(PASS|FAIL|ERROR)' "$said" > "$1.log"
grep -E '^(PASS|FAIL|ERROR)' "$said"
! grep -qE '^(FAIL|ERROR)' "$said"
END

of () { # TEST, what it prints on standard input: the first time, ---, later
  awk -v one="$build/$1.one" -v two="$build/$1.two" '
    $0 == "---" { later = 1; next } { print > (later ? two : one) }'
}

# What has become of these, as contrib/check prints it.
judged () { # TEST...
  rm -f "$build"/tests/*.tried "$work"/again "$work"/failures
  sh -c '. "$1/contrib/results.sh"; work=$2 patience=60 build=$3
    passed=0 failed=0 skipped=0 check_target= check_tests=
    shift 3
    make_check fake "$build" env ALL="$*"
    echo "passed $passed, failed $failed"; cat "$work/again"' - \
    "$top" "$work" "$build" "$@" 2>/dev/null
}

becomes () { # passed N, failed N|again WORDS TEST...
  becomes_want=$1
  shift
  judged "$@" > "$tmp/judged" || :
  cat "$tmp/judged"
  grep -qF -- "$becomes_want" "$tmp/judged"
}

of tests/good <<'END'
ok 1 - a
PASS: tests/good 1 - a
---
ok 1 - a
PASS: tests/good 1 - a
END
of tests/busy <<'END'
not ok 1 - a
FAIL: tests/busy 1 - a
ERROR: tests/busy - exited with status 1
---
ok 1 - a
PASS: tests/busy 1 - a
END
check "a test that failed beside others and passes alone has passed" \
  becomes 'passed 2, failed 0' tests/good tests/busy
check "and it is said" \
  becomes 'tests/busy failed beside others, and passed alone' tests/busy

of tests/bad <<'END'
not ok 1 - a
FAIL: tests/bad 1 - a
---
not ok 1 - a
FAIL: tests/bad 1 - a
END
check "one that fails again has failed" \
  becomes 'passed 2, failed 1' tests/good tests/busy tests/bad

# A case that fails leaves what it holds.
of tests/left <<'END'
not ok 1 - a
==7==ERROR: LeakSanitizer: detected memory leaks
SUMMARY: AddressSanitizer: 48 byte(s) leaked in 2 allocation(s).
FAIL: tests/left 1 - a
ERROR: tests/left - exited with status 23
---
ok 1 - a
PASS: tests/left 1 - a
END
check "what a case that failed has left is no leak" \
  becomes 'passed 1, failed 0' tests/left

of tests/leaks <<'END'
ok 1 - a
==7==ERROR: LeakSanitizer: detected memory leaks
SUMMARY: AddressSanitizer: 48 byte(s) leaked in 2 allocation(s).
PASS: tests/leaks 1 - a
ERROR: tests/leaks - exited with status 23
---
ok 1 - a
PASS: tests/leaks 1 - a
END
check "a leak of cases that all passed is one" \
  becomes 'passed 1, failed 1' tests/leaks

# Modules that crash as they are told to are reported each time.
of tests/hostile <<'END'
==7==ERROR: AddressSanitizer: SEGV on unknown address 0x0000000a (pc 0x7f01)
not ok 1 - a
FAIL: tests/hostile 1 - a
---
==9==ERROR: AddressSanitizer: SEGV on unknown address 0x0000000b (pc 0x7f23)
ok 1 - a
PASS: tests/hostile 1 - a
END
check "what a sanitizer says of a test each time says nothing" \
  becomes 'passed 1, failed 0' tests/hostile

of tests/freed <<'END'
==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010
not ok 1 - a
FAIL: tests/freed 1 - a
---
ok 1 - a
PASS: tests/freed 1 - a
END
of tests/wraps <<'END'
core/base/text.c:7:3: runtime error: signed integer overflow
not ok 1 - a
FAIL: tests/wraps 1 - a
---
ok 1 - a
PASS: tests/wraps 1 - a
END
of tests/crashed <<'END'
FAIL: tests/crashed 1 - a
ERROR: tests/crashed - exited with status 139
---
ok 1 - a
PASS: tests/crashed 1 - a
END
check "what it said once alone stays a failure" \
  becomes 'passed 0, failed 1' tests/freed
check "an undefined one too" becomes 'passed 0, failed 1' tests/wraps
check "a crash too, and the others are tried again" \
  becomes 'passed 1, failed 2' tests/busy tests/crashed

for t in one two three four; do
  sed "s/busy/$t/" "$build/tests/busy.one" > "$build/tests/$t.one"
  sed "s/busy/$t/" "$build/tests/busy.two" > "$build/tests/$t.two"
done
check "where more than three failed it was not the others" \
  becomes 'passed 0, failed 8' tests/one tests/two tests/three tests/four

# ---- the end ----------------------------------------------------------------

# As the script ends itself, with a build made ahead, one of whose commands has
# left the group, beside tests that take for ever.
cat > "$tmp/begin" <<'END'
top=$1 work=$2 scratch=$3 wanted=clang user=
passed=0 failed=0 skipped=0 check_target= check_tests= patience=600
. "$top/contrib/results.sh"
. "$top/contrib/ahead.sh"
make_clang () {
  run "ahead" $low timeout 600 sh -c 'echo $$ > "$1/ahead.pid"; sleep 599; :' - "$scratch"
}
trap 'end_all' EXIT
trap 'exit 1' HUP INT TERM
begin_ahead
make_check fake "$scratch"
END
printf 'check:\n\t@sh -c '"'"'echo $$$$ > tests.pid; sleep 598; :'"'"'\n' \
  > "$tmp/Makefile"

soon () { # COMMAND...
  soon_tries=600
  until "$@"; do
    soon_tries=$((soon_tries - 1))
    [ "$soon_tries" -gt 0 ] || return 1
    sleep 0.05
  done
}
both_began () { [ -s "$tmp/ahead.pid" ] && [ -s "$tmp/tests.pid" ]; }
gone () { # PID
  case $(ps -o stat= -p "$1") in ''|Z*) ;; *) return 1 ;; esac
}

nothing_outlives () { # SIGNAL, to it alone; -SIGNAL: to all of its group
  rm -f "$tmp/ahead.pid" "$tmp/tests.pid"
  setsid env --default-signal=HUP,INT,TERM sh "$tmp/begin" "$top" "$work" \
    "$tmp" > "$tmp/said" 2>&1 &
  began=$!
  soon both_began || { cat "$tmp/said"; return 1; }
  case $1 in
    -*) kill -s "${1#-}" -- "-$began" ;;
    *) kill -s "$1" "$began" ;;
  esac
  lives=0
  for pid in "$began" $(cat "$tmp/ahead.pid" "$tmp/tests.pid"); do
    soon gone "$pid" || { lives=1; ps -f -p "$pid"; kill -KILL "$pid"; }
  done
  wait "$began"
  return "$lives"
}
by_each () { # [-]
  for signal in HUP INT TERM; do
    echo "$signal"
    nothing_outlives "$1$signal" || return 1
  done
}
check "what it began ends with it" by_each ''
check "also when all of its group are told to end" by_each -
finish
