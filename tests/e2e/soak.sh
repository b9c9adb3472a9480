# SPDX-License-Identifier: Apache-2.0
# Many commands of coffer, of every kind and one in five hostile: what was there
# before is there afterwards, and nothing else.  30 a user, 2,500 with
# CHECK_SCALE 84 or more.  (tests/attack/soak does the same in one process.)
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs_sandbox

scale=${CHECK_SCALE:-1}
rounds=$((scale >= 84 ? 2500 : 30 * scale))

files () { (cd "$COFFER_HOME" && find . ! -name 'state.db-*' | sort); }
cgroups () { find /sys/fs/cgroup -type d -name '*sb-*' 2>/dev/null | sort; }
same_files () { files >"$T/files.now"; cmp -s "$T/files" "$T/files.now"; }
no_new_cgroups () {
  cgroups | comm -13 "$T/cgroups" - >"$T/cgroups.new"; [ ! -s "$T/cgroups.new" ]
}

# Each says what its exit code is.
want () { # CODES COMMAND…
  want_codes=$1; shift
  "$@" >"$T/out" 2>"$T/err" </dev/null
  want_code=$?
  case " $want_codes " in
    *" $want_code "*) ;;
    *) wrong="$wrong round $round: $want_code instead of $want_codes, $* $(head -c 200 "$T/err")"
  esac
}

quiet () { # ROUND
  case $(($1 % 4)) in
    0) want 0 coffer run -- true ;;
    1) want 7 coffer run -w "$T/shown:rw" -- sh -c 'echo x > new; rm new; exit 7' ;;
    2) want 0 coffer run --mem 64M -- sh -c 'head -c 100000 /dev/zero; sleep 0 & wait' ;;
    3) coffer sandbox create >"$T/made" 2>/dev/null
       id=$(head -1 "$T/made" | cut -d' ' -f1)
       remember "$id"
       want 0 coffer sandbox exec "$id" -- sh -c 'setsid sleep 60 >/dev/null 2>&1 & echo x > f'
       want 0 coffer sandbox kill "$id" ;;
  esac
}

hostile () { # ROUND
  case $(($1 % 6)) in
    0) want "0 1 2 137" coffer run --mem 64M -- sh -c \
         'i=0; while [ $i -lt 60 ]; do sleep 60 & i=$((i+1)); done; kill -9 -1' ;;
    1) want 124 coffer run --timeout 0.2s -- sh -c \
         'trap "" TERM INT HUP; (setsid sh -c "trap \"\" TERM; sleep 60" &); sleep 60' ;;
    2) want "137 139 134 143 1" coffer run -- sh -c 'kill -SEGV $$; kill -KILL $$' ;;
    3) coffer run -- sh -c 'while :; do echo flood; done' 2>/dev/null | head -c 300000 >/dev/null ;;
    4) want "0 1 2" coffer run -- sh -c \
         'cd /tmp; i=0; while [ $i -lt 300 ]; do ln -s / "l$i"; i=$((i+1)); done; ulimit -c unlimited 2>/dev/null; mount -t tmpfs x /mnt 2>/dev/null; true' ;;
    5) "$COFFER_BUILD/coffer" run -- sh -c '(setsid sleep 60 &) ; sleep 60' >/dev/null 2>&1 &
       victim=$!
       sleep 0.03
       kill -KILL "$victim"
       wait "$victim" 2>/dev/null ;;
  esac
}

mkdir "$T/shown" && chmod 777 "$T/shown"
wrong=
round=0
quiet 0; quiet 3; hostile 1; coffer sandbox prune --yes >/dev/null 2>&1
soon 5 none_of_ours
files >"$T/files"; cgroups >"$T/cgroups"; our_mounts >"$T/mounts"
while [ $round -lt $rounds ]; do
  round=$((round + 1))
  if [ $((round % 5)) -eq 0 ]; then hostile $((round / 5)); else quiet $round; fi
done
coffer sandbox prune --yes >/dev/null 2>&1
note "$rounds commands"
is "each command ended as it should" "$wrong" ""
ok "no process is left" soon 10 none_of_ours
none_of_ours || note "$(ours)"
our_mounts >"$T/mounts.now" || :
same "the mounts are the same" "$T/mounts" "$T/mounts.now"
ok "no control group is left" soon 10 no_new_cgroups
ok "no file is left" soon 5 same_files
same_files || note "$(diff "$T/files" "$T/files.now" | head -20)"
is "nothing is left in the folder that was shown" "$(ls -A "$T/shown")" ""

finish
