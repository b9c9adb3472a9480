# SPDX-License-Identifier: Apache-2.0
# Bad values for run and sandbox: one line with a code, a hint, a status, and
# nothing left behind.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both

refused () { # what status code ARGS
  what=$1 want=$2 code=$3; shift 3
  run coffer "$@"
  like "$what" "$status $(head -1 "$err")" "^$want coffer: $code: "
  is "$what: a line and a hint, nothing on stdout" \
    "$(wc -l <"$err") $(grep -c '^  hint: ' "$err") $(wc -c <"$out")" "2 1 0"
}

refused "--mem of nonsense" 125 E6006 run --mem lots -- true
refused "--mem of 0" 125 E6006 run --mem 0 -- true
refused "--mem below 0" 125 E6006 run --mem -5 -- true
refused "--mem that would wrap" 125 E6006 run --mem 16777216T -- true
refused "--mem with a fraction too large" 125 E6006 run --mem 1e300 -- true
refused "--disk of nonsense" 125 E6006 run --disk 1Q -- true
refused "--cpus of nonsense" 125 E6006 run --cpus two -- true
refused "--cpus of 0" 125 E6006 run --cpus 0 -- true
refused "--cpus not a number" 125 E6006 run --cpus nan -- true
refused "--cpus without end" 125 E6006 run --cpus inf -- true
refused "--pids of 0" 125 E6006 run --pids 0 -- true
refused "--pids that would wrap" 125 E6006 run --pids 4294967297 -- true
refused "--timeout of nonsense" 125 E6006 run --timeout soon -- true
refused "--timeout of 0" 125 E6006 run --timeout 0 -- true
refused "--timeout that would wrap" 125 E6006 run --timeout 99999999999999999999d -- true
refused "--net of nonsense" 125 E6006 run --net hots -- true
like "the nearest is named" "$(cat "$err")" 'did you mean --net host'
refused "--allow without --net allow" 125 E2001 run --allow a:80 -- true
refused "--workdir that is relative" 125 E6006 run --workdir x -- true
refused "run of nothing" 125 E6001 run
refused "an option of another command" 125 E6001 run --ttl 1h -- true
refused "the same option twice" 125 E6001 run --mem 1G --mem 2G -- true
refused "create: --ttl of nonsense" 2 E6006 sandbox create --ttl ever
refused "create: --metadata without a value" 2 E6006 sandbox create --metadata x
refused "create: an argument" 2 E6001 sandbox create x
refused "create: -i, which is for commands" 2 E6001 sandbox create -i
refused "--image of a provider that has none" 125 E8010 run --image a -- true
like "and who has them is said" "$(cat "$err")" 'docker and podman have images'
refused "create: the same" 2 E8010 sandbox create --image a
refused "--image and --python" 125 E6001 run --image a --python -
refused "info of nothing" 2 E6001 sandbox info
refused "kill of nothing" 2 E6001 sandbox kill
refused "exec of nothing" 125 E6001 sandbox exec
refused "ls: a depth beyond all" 2 E6006 sandbox ls --depth 1000 x
refused "a group alone" 2 E6001 sandbox
refused "an unknown command of a group" 2 E6001 sandbox exce x

# Without a folder that can be written, run goes on and the others say why not.
if [ "$(id -u)" -ne 0 ]; then
  mkdir "$T/locked" && chmod 500 "$T/locked"
  COFFER_HOME=$T/locked; export COFFER_HOME
  run coffer sandbox create
  like "create without a state folder is refused" "$status $(head -1 "$err")" '^[0-9]+ coffer: E(2011|6005|9001): '
  COFFER_HOME=$T/home
fi
COFFER_HOME=relative run coffer sandbox list
is "a COFFER_HOME that is relative is an error, not a crash" "$((status > 0 && status < 126))" 1
printf 'x' >"$T/file"
COFFER_HOME=$T/file run coffer sandbox list
is "a COFFER_HOME that is a file is an error, not a crash" "$((status > 0 && status < 126))" 1
is "and was not touched" "$(cat "$T/file")" x

finish
