# SPDX-License-Identifier: Apache-2.0
# What contrib/check makes beside its tests, and how all that it has begun ends with
# it.  Sourced; needs results.sh, $work, $scratch, $top, $user and $wanted.

# Beside the tests of gcc begins, one after the other, what the wanted steps
# `made` of themselves.  $low runs a command where it takes only what nobody else
# wants, which where sessions have shares of their own (autogroup) is the
# session's to say.  What each printed is kept, and read when its step comes.
ahead= low=
begin_ahead () {
  mkdir -p "$work/ahead" "$scratch/bin"
  cat > "$scratch/bin/coffer-check-low" <<'END'
#!/bin/sh
echo "$$" > "$0.pid"
{ echo 19 > /proc/self/autogroup; } 2>/dev/null
nice -n 19 "$@"
status=$?
: > "$0.pid"
exit "$status"
END
  : > "$scratch/bin/coffer-check-low.pid"
  chmod 755 "$scratch/bin/coffer-check-low"
  # Root signals what is named there: nobody else on the machine is to write it.
  [ -z "$user" ] || chown "$user" "$scratch/bin/coffer-check-low.pid"
  (
    trap - EXIT HUP INT TERM
    PATH=$PATH:$scratch/bin low='setsid -w coffer-check-low' patience=3600
    for ahead_step in clang sanitizers fuzz debian dist reproducible; do
      case " $wanted " in *" $ahead_step "*) ;; *) continue ;; esac
      ahead_status=0
      { cd "$top" && "make_$ahead_step"; } > "$work/ahead/$ahead_step.out" 2>&1 \
        || ahead_status=$?
      echo "$ahead_status" > "$work/ahead/$ahead_step.new"
      mv "$work/ahead/$ahead_step.new" "$work/ahead/$ahead_step"
    done
  ) &
  ahead=$!
}

ahead_lives () {
  case $(ps -o stat= -p "$ahead") in ''|Z*) return 1 ;; esac
}

# Who descends from these, and they.
below () { # PID...
  ps -e -o pid= -o ppid= | awk -v roots="$*" '
    BEGIN { n = split (roots, at); for (i = 1; i <= n; i++) root[at[i]] = 1 }
    { parent[$1] = $2 }
    END {
      for (pid in parent) {
        at_pid = pid
        for (steps = 0; at_pid > 1 && !(at_pid in root) && steps < 1000; steps++)
          at_pid = parent[at_pid]
        if (at_pid in root) print pid
      }
    }'
}

# Ends what goes on: first who begins the next, which a signal to the group of all
# has ended before, then what is below it and below this shell.
end_all () {
  [ -z "$ahead" ] || kill -KILL "$ahead" 2>/dev/null
  end_last=
  [ ! -s "$scratch/bin/coffer-check-low.pid" ] \
    || end_last=$(cat "$scratch/bin/coffer-check-low.pid")
  # An ordinary user may have written it: all there is lies below 1.
  case $end_last in 0*|1|*[!0-9]*) end_last= ;; esac
  end_pids=$(below $$ $end_last | grep -vx "$$")
  kill $end_pids 2>/dev/null
  end_tries=25
  while [ $((end_tries -= 1)) -ge 0 ]; do
    end_pids=$(ps -o pid= -o stat= -p "$(echo $end_pids | tr ' ' ',')" \
      2>/dev/null | awk '$2 !~ /^Z/ { print $1 }')
    [ -n "$end_pids" ] || break
    sleep 0.2
  done
  [ -z "$end_pids" ] || kill -KILL $end_pids 2>/dev/null
  ahead=
}

# The results of what was made ahead for a step; without that it is made now.
made () { # STEP
  if [ -z "$ahead" ]; then
    "make_$1"
    return
  fi
  until [ -e "$work/ahead/$1" ] || ! ahead_lives; do
    sleep 0.5
  done
  made_before=$failed
  while IFS= read -r made_line || [ -n "$made_line" ]; do
    case $made_line in
      "pass: "*) passed=$((passed + 1)) ;;
      "fail: "*) failed=$((failed + 1)) ;;
      "skip: "*) skipped=$((skipped + 1)) ;;
    esac
    printf '%s\n' "$made_line"
  done < "$work/ahead/$1.out"
  if [ ! -e "$work/ahead/$1" ]; then
    result fail "$1: is made to its end"
    return 1
  fi
  made_status=$(cat "$work/ahead/$1")
  [ "$made_status" -eq 0 ] || [ "$failed" -gt "$made_before" ] \
    || result fail "$1: is made" "exit $made_status, and nothing said why"
  return "$made_status"
}
