# SPDX-License-Identifier: Apache-2.0
# Results of contrib/check: one for a command, those of a `make check` one by one,
# and the second try of a test that failed beside the others.  Sourced; needs $work,
# with a folder log and the file skips, and $patience, the seconds of a `make check`.

passed=0 failed=0 skipped=0

result () { # pass|fail|skip NAME [DETAIL]
  case $1 in
    pass) passed=$((passed + 1)) ;;
    fail)
      failed=$((failed + 1))
      echo "$1: $2${3:+ ($3)}" >> "$work/failures" ;;
    skip) skipped=$((skipped + 1)) ;;
  esac
  echo "$1: $2${3:+ ($3)}"
}

# Each line whole, as what is printed next may be a result, which is counted by the
# beginning of its line.
end_of () { # LOG
  tail -15 "$1" | awk '{ print "  | " $0 }'
}

# A shell that waits for what is in its foreground hears no signal until that has
# ended: what takes long is waited for by `wait`, which a signal ends.
attend () { # COMMAND...
  "$@" &
  wait "$!"
}

# One result for a command; its output is in a log, whose end is shown when it
# fails.
run () { # NAME COMMAND...
  run_name=$1 run_log=$work/log/$(echo "$1" | tr ' /' '--').log
  shift
  if attend "$@" >"$run_log" 2>&1 </dev/null; then
    result pass "$run_name"
  else
    end_of "$run_log"
    result fail "$run_name" "$run_log"
    end_of "$run_log" >> "$work/failures"
    return 1
  fi
}

# Compiles, and fails on any warning: the compiler's, the linker's, make's.
build () { # NAME COMMAND...
  build_name=$1
  shift
  run "$build_name: builds" "$@" || return 1
  if grep -aE 'warning' "$run_log"; then
    result fail "$build_name: no warning" "$run_log"
  else
    result pass "$build_name: no warning"
  fi
}

log_of () { # FOLDER TEST
  echo "$1/$(echo "$2" | sed 's/\.\(sh\|py\)$//').log"
}

# What a test's own log holds of a failure: the lines up to its "not ok", else
# the end.
said_by () { # FOLDER RESULT
  said_test=${2#*: }
  said_number=${said_test#* }
  said_log=$(log_of "$1" "${said_test%% *}")
  [ -f "$said_log" ] || return 0
  awk -v number="${said_number%% *}" '
    { line[NR] = substr ($0, 1, 300) }
    $1 == "not" && $2 == "ok" && $3 == number { last = NR + 3 }
    END {
      if (!last || last > NR) last = NR
      for (i = last > 15 ? last - 15 : 1; i <= last; i++) print "  | " line[i]
    }' "$said_log"
}

# The results of a `make check`, one by one.
tests () { # NAME LOG FOLDER
  while IFS= read -r tests_line; do
    tests_text="$1: ${tests_line#*: }"
    case $tests_line in
      PASS:*) result pass "$tests_text" ;;
      FAIL:*|ERROR:*|XPASS:*)
        result fail "$tests_text" "$2"
        said_by "$3" "$tests_line" >> "$work/failures" ;;
      SKIP:*)
        if printf '%s\n' "$tests_line" | grep -qFf "$work/skips"; then
          result skip "$tests_text"
        else
          result fail "$tests_text" "a skip that is not in tests/skips.allow"
        fi ;;
    esac
  done < "$2.results"
}

results_of () { # LOG
  grep -aE '^(PASS|FAIL|ERROR|SKIP|XPASS|XFAIL): ' "$1" > "$1.results"
}

# The tests whose failure may be the machine's, busy with others: when at most
# three failed, those that did not crash.
doubtful () { # LOG FOLDER
  doubts=
  doubt_all=$(sed -n -E 's/^(FAIL|ERROR|XPASS): ([^ ]+).*/\2/p' "$1.results" \
    | sort -u)
  [ -n "$doubt_all" ] && [ "$(echo "$doubt_all" | wc -l)" -le 3 ] || return 1
  for doubt in $doubt_all; do
    awk -v test="$doubt" '$2 == test && /exited with status 13[0-9]/ { found = 1 }
      END { exit !found }' "$1.results" || doubts="$doubts $doubt"
  done
  [ -n "$doubts" ]
}

# What sanitizers said, each thing once: of addresses and numbers none is twice
# the same.  A case that fails leaves what it holds, which is no leak.
reports_of () { # LOG
  reports_leaks='^$'
  ! grep -qa '^not ok' "$1" \
    || reports_leaks='LeakSanitizer|Sanitizer: [N]+ byte.* leaked'
  grep -aoE '[A-Za-z]+Sanitizer:.*|runtime error: .*' "$1" \
    | sed -E 's/0x[0-9a-f]+|[0-9]+/N/g' | grep -vE "$reports_leaks" | sort -u
}

# Each alone; where all of its results are good they take the first ones' place.
# What skips all of itself then has not passed, nor has a test of which a sanitizer
# said what it does not say when all is well: modules that crash as they are told
# to are reported each time.
try_again () { # NAME LOG FOLDER [COMMAND...]
  again_name=$1 again_log=$2 again_dir=$3
  shift 3
  for again in $doubts; do
    again_base=$work/log/$again_name-again-$(basename "$again")
    cp "$(log_of "$again_dir" "$again")" "$again_base.first" || continue
    attend "$@" env --default-signal=INT,QUIT timeout -k 10 "$patience" \
      make -C "$again_dir" check TESTS="$again" \
      >"$again_base.log" 2>&1 || continue
    results_of "$again_base.log"
    grep -q '^PASS' "$again_base.log.results" || continue
    reports_of "$again_base.first" > "$again_base.first.reports"
    reports_of "$(log_of "$again_dir" "$again")" > "$again_base.reports"
    [ -z "$(comm -23 "$again_base.first.reports" "$again_base.reports")" ] \
      || continue
    awk -v test="$again" '$2 != test' "$again_log.results" > "$again_base.rest"
    cat "$again_base.rest" "$again_base.log.results" > "$again_log.results"
    echo "$again_name: $again failed beside others, and passed alone" \
      >> "$work/again"
    sed -n -E 's/^(not ok .*)/  | \1/p' "$again_base.first" >> "$work/again"
  done
}

# One more at a time than there are processors: many tests wait.  What each prints
# stays together (-O), as half a line is no result.
make_check () { # NAME FOLDER [COMMAND...]
  check_name=$1 check_dir=$2 check_log=$work/log/$1-check.log
  shift 2
  check_status=0
  attend "$@" env --default-signal=INT,QUIT timeout -k 10 "$patience" \
    make -O -j"$(($(nproc) + 1))" -k -C "$check_dir" \
    "${check_target:-check}" ${check_tests:+"TESTS=$check_tests"} \
    >"$check_log" 2>&1 || check_status=$?
  results_of "$check_log"
  if [ "${check_target:-check-engines}" = check-engines ] \
     && [ "$check_status" -eq 2 ] \
     && doubtful "$check_log" "$check_dir"; then
    try_again "$check_name" "$check_log" "$check_dir" "$@"
    grep -qE '^(FAIL|ERROR|XPASS)' "$check_log.results" || check_status=0
  fi
  tests "$check_name" "$check_log" "$check_dir"
  if [ ! -s "$check_log.results" ]; then
    end_of "$check_log"
    result fail "$check_name: make check ran" "$check_log"
  elif [ "$check_status" -ne 0 ] \
       && ! grep -qE '^(FAIL|ERROR|XPASS)' "$check_log.results"; then
    result fail "$check_name: make check" "exit $check_status, $check_log"
  fi
}
