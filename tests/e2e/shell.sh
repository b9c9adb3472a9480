# SPDX-License-Identifier: Apache-2.0
# coffer sandbox shell and run -t: a terminal inside, ours put back.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox

id=$(coffer sandbox create) || exit 1
remember "$id"

type_in () { run python3 "$COFFER_SOURCE/tests/e2e/type.py" "$@"; }

type_in '[("", "PS1=; stty size; test -t 0 && test -t 2 && echo through-tty >/dev/tty; echo \"got-$((6 * 7))\"\n"), ("got-42", "exit 5\n")]' \
  "$COFFER_BUILD/coffer" sandbox shell "$id"
like "shell: commands run" "$(cat "$out")" '^got-42'
like "shell: the terminal's size is ours" "$(cat "$out")" '37 100'
like "shell: it is a terminal, and the controlling one" "$(cat "$out")" '^through-tty'
like "shell: the exit status, and our terminal as it was" "$(cat "$out")" 'status 5 restored True'

type_in '[("", "PS1=; echo re\"\"ady\n"), ("ready", (20, 60)), ("", "until stty size | grep 20; do sleep 0.05; done; exit\n")]' \
  "$COFFER_BUILD/coffer" sandbox shell "$id"
like "shell: a new size is given on" "$(cat "$out")" '20 60'

type_in '[("", "PS1=; trap : INT; sh -c \"echo re\\\"\\\"ady; exec sleep 90\"; echo st-$?; exit 0\n"), ("ready", "\003")]' \
  "$COFFER_BUILD/coffer" sandbox shell "$id"
like "shell: ctrl-C ends the command inside" "$(cat "$out")" '^st-130'
like "shell: and is not taken by coffer" "$(cat "$out")" 'status 0 restored True'

type_in '[("ready", "abc\n\004")]' "$COFFER_BUILD/coffer" run -t -- \
  sh -c 'test -t 0 && test -t 1 && test -t 2 && echo ready && wc -c'
like "run -t: a terminal on all streams, and end of input" "$(cat "$out")" '^4$'
type_in '[]' "$COFFER_BUILD/coffer" run -t -- sh -c 'echo $TERM'
like "run -t: TERM is there" "$(cat "$out")" '^xterm'

run coffer sandbox shell "$id"
like "shell without a terminal is refused" "$status $(head -1 "$err")" '^125 coffer: E6001: .*terminal'
run coffer run -t -- true
like "run -t without a terminal is refused" "$status $(head -1 "$err")" '^125 coffer: E6001: .*terminal'

coffer sandbox kill "$id" >/dev/null
finish
