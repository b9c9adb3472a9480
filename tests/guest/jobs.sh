#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What runs inside of a guest, some at a time: jobs.sh KERNEL SCALE [GLOB]
#
#   inside/*.sh        scenarios of the guests' own, for the installed coffer
#   scenarios          those of tests/e2e that are worth it here
#   units              unit tests, as root and as an ordinary user
#
# A line `# kernels: NAME…` in a scenario, or after a name in the two lists,
# says which kernels; without it all of them.  With the word `long` it is for
# runs of CHECK_SCALE 10 and more, where all has more time.  Each TAP goes to
# /results/NAME.tap, its exit status to NAME.status.
here=$(cd "$(dirname "$0")" && pwd)
kernel=$1 scale=${2:-1} only=${3:-*}
build=$(cat /guest/build)
patience=500
[ "$scale" -lt 10 ] || patience=900

# COFFER_BUILD for scenarios: the installed coffer.
job () { # NAME PROGRAM...
  job_name=$1
  shift
  # shellcheck disable=SC2254
  case $job_name in $only) ;; *) return ;; esac
  {
    printf '#!/bin/sh\ncd /tmp\n'
    printf 'COFFER_SOURCE=/guest/source COFFER_BUILD=%s GUEST_KERNEL=%s\n' \
      "$job_build" "$kernel"
    printf 'CMOCKA_MESSAGE_OUTPUT=TAP CHECK_SCALE=1\n'
    printf 'export COFFER_SOURCE COFFER_BUILD GUEST_KERNEL CHECK_SCALE\n'
    printf 'export CMOCKA_MESSAGE_OUTPUT\nstart=$(date +%%s)\n'
    printf '. /guest/source/tests/guest/scope.sh\n'
    printf 'scope_named "%s" %s && in_scope_from_here\n' "$job_name" "$job_uid"
    printf 'timeout -k 5 %s %s >"/results/%s.tap" 2>"/results/%s.log" </dev/null\n' \
      "$patience" "$*" "$job_name" "$job_name"
    printf 'echo $? >"/results/%s.status"\n' "$job_name"
    printf 'echo "guest: %s: $(($(date +%%s) - start)) s"\n' "$job_name"
  } >"/run/jobs/$job_name"
  echo "/run/jobs/$job_name" >>/run/jobs.list
}

# Whether a list's or a scenario's words name this kernel.
here_too () { # WORDS
  here_kernels=
  for here_word in $1; do
    case $here_word in
      long) [ "$scale" -ge 10 ] || return 1 ;;
      *) here_kernels="$here_kernels $here_word" ;;
    esac
  done
  case " ${here_kernels:-$kernel} " in *" $kernel "*) return 0 ;; esac
  return 1
}

mkdir -p /run/jobs
: >/run/jobs.list
job_build=/guest/installed job_uid=0
for scenario in "$here"/inside/*.sh; do
  here_too "$(sed -n 's/^# kernels: //p' "$scenario")" || continue
  job "$(basename "$scenario" .sh)" sh "$scenario"
done
while read -r name words; do
  case $name in '#'*|'') continue ;; esac
  here_too "$words" || continue
  job "e2e-$name" sh "/guest/source/tests/e2e/$name.sh"
done <"$here/scenarios"
job_build=$build
while read -r name words; do
  case $name in '#'*|'') continue ;; esac
  here_too "$words" || continue
  run="sh /guest/source/tests/unit/run.sh '$build/tests/unit/$name'"
  job "unit-$name" "$run"
  job_uid=61500
  job "unit-$name-user" "setpriv --reuid 61500 --regid 61500 --clear-groups \
--inh-caps=-all --bounding-set=-all --no-new-privs env HOME=/tmp $run"
  job_uid=0
done <"$here/units"
xargs -P "$(nproc)" -n 1 sh </run/jobs.list
