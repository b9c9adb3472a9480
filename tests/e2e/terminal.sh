# SPDX-License-Identifier: Apache-2.0
# What is different on a terminal: colour, the width of tables, questions, the
# progress bar.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox

type_in () { run python3 "$COFFER_SOURCE/tests/e2e/type.py" "$@"; }
escape=$(printf '\033')

type_in '[]' "$COFFER_BUILD/coffer" verson
like "an error's code is coloured" "$(cat "$out")" "coffer: $escape\\[31mE6001$escape\\[0m: unknown"
type_in '[]' env NO_COLOR=1 "$COFFER_BUILD/coffer" verson
unlike "not with NO_COLOR" "$(cat "$out")" "$escape"
type_in '[]' env TERM=dumb "$COFFER_BUILD/coffer" verson
unlike "not on a dumb terminal" "$(cat "$out")" "$escape"
type_in '[]' "$COFFER_BUILD/coffer" --color never verson
unlike "not with --color never" "$(cat "$out")" "$escape"
run coffer provider list
unlike "not in a pipe" "$(cat "$out")" "$escape"
run coffer --color always provider list
like "but with --color always" "$(cat "$out")" "$escape\\[1mPROVIDER"

longest () {
  python3 -c 'import sys; print (max (len (l.rstrip ()) for l in open (sys.argv[1], encoding="utf-8") if l[:6] != "status"))' "$out"
}
run coffer explain
all=$(longest)
type_in '[]' sh -c "stty cols 40; exec '$COFFER_BUILD/coffer' explain --color never"
is "a table fits the terminal" "$(longest)" 40
like "what was cut ends in …" "$(cat "$out")" '…$'
is "a pipe gets all of it" "$((all > 40))" 1

id=$(coffer sandbox create); remember "$id"
type_in '[("[y/N]", "n\n")]' "$COFFER_BUILD/coffer" --color never sandbox kill --all
like "a question that is answered with no" "$(cat "$out")" 'E5001: kill 1 sandbox: answered with no'
is "does nothing" "$(coffer sandbox list | grep -c "$id")" 1

type_in '[]' sh -c "(head -c 300000 /dev/zero; sleep 1.3; head -c 300000 /dev/zero; sleep 0.2) |
  '$COFFER_BUILD/coffer' sandbox upload $id - f"
like "what takes over a second has a progress bar" "$(cat "$out")" "$escape\\[K.*[0-9.]+ [KM]iB"
run coffer sandbox upload "$id" "$COFFER_BUILD/coffer" f
is "which is for terminals" "$(grep -c "$escape" "$err")" 0

type_in '[("[y/N]", "y\n")]' "$COFFER_BUILD/coffer" sandbox kill --all
like "a question that is answered with yes" "$(cat "$out")" "^$id killed"

finish
