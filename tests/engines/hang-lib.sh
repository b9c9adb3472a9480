# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Images that never come: pull_timeout ends what a registry does not, and nothing
# is left of it, here or in the engine.  Sourced by the scenario, after registry.sh.

hang_port=5010
hang_answers () {
  inside curl -s -o /dev/null --max-time 5 "http://127.0.0.1:$hang_port/v2/"
}
hang_start () {
  mkdir -p "$T/hung-up"
  inside_exec python3 "$COFFER_SOURCE/tests/engines/hang.py" "$hang_port" \
    "$T/hung-up" >"$T/hang.log" 2>&1 &
  hang_pid=$!
  soon 30 hang_answers
}

hang_pull () { # TIMEOUT
  sed -i '/^  pull_timeout:/d' "$hang_operator"
  sed -i "s/^config:/&\n  pull_timeout: $1/" "$hang_operator"
}

# What there is in the engine, and what there is known of here.
hang_left () {
  api GET '/containers/json?all=1' | json_count
  api GET '/images/json?all=1' | json_count
  coffer sandbox list
}

hang_refused () { # NAME IMAGE PATTERN
  status=0
  timeout 60 "$COFFER_BUILD/coffer" sandbox create --image "$2" \
    >"$out" 2>"$err" || status=$?
  like "$engine: $1" "$status $(grep -cv '^  hint: ' "$err") $(cat "$err")" \
    "^1 1 coffer: E8022: .*$3"
}

list_hang () {
  hang_operator=$COFFER_HOME/config/providers.d/$provider.yaml
  ok "$engine: a registry whose images never come" hang_start
  hang_left >"$T/hang-left"
  hang_pull 3s
  hang_refused "one that takes connections and says nothing" \
    "127.0.0.1:$((hang_port + 1))/deaf:1" 'pull .*deaf:1: not there in time'
  hang_refused "one that does not answer a question" \
    "127.0.0.1:$hang_port/silent:1" 'pull .*silent:1: not there in time'
  # A bar first, of what has come.
  python3 "$COFFER_SOURCE/tests/e2e/type.py" '[]' "$COFFER_BUILD/coffer" \
    sandbox create --image "127.0.0.1:$hang_port/drip:1" >"$out" 2>&1
  like "$engine: a layer that drips has a bar" "$(tr '\r' '\n' <"$out")" \
    'pulling 127.0.0.1:.*/drip:1  \[#*\.*\] .* of 3.8 MiB'
  like "$engine: until its time is over" \
    "$(tr '\r' '\n' <"$out")" 'pull .*drip:1: not there in time'
  ok "$engine: and then the engine gives it up" soon 30 test -e "$T/hung-up/drip"
  hang_pull 12s
  hang_refused "one that breaks off" "127.0.0.1:$hang_port/cut:1" \
    'pull .*cut:1: .*not there in time'
  hang_left >"$T/hang-now"
  same "$engine: nothing is left of any, here or there" "$T/hang-now" "$T/hang-left"
  sed -i '/^  pull_timeout:/d' "$hang_operator"
  end "$hang_pid"
}
