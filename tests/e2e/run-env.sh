# SPDX-License-Identifier: Apache-2.0
# coffer run: the environment inside, and where a command starts.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs_sandbox

SECRET_OF_MINE=outside; export SECRET_OF_MINE
run coffer run -- env
is "exactly these variables" "$(cut -d= -f1 "$out" | sort | tr '\n' ' ')" "HOME LANG PATH TMPDIR USER "
like "HOME is the workspace" "$(cat "$out")" '^HOME=/workspace$'
run coffer run -- pwd
is "a command starts in the workspace" "$(cat "$out")" /workspace
run coffer run --workdir /tmp -- pwd
is "--workdir" "$(cat "$out")" /tmp

run coffer run -e A=1 -e 'B=two words' -e EMPTY= -e SECRET_OF_MINE -e A=3=4 -- \
  sh -c 'printf "%s|" "$A" "$B" "${EMPTY-unset}" "$SECRET_OF_MINE"'
is "-e: values, from here, the last one counts" "$(cat "$out")" "3=4|two words||outside|"
run coffer run -e 'U=你好 ☃' -e "N=a
b" -- sh -c 'printf "%s|" "$U" "$N"'
is "-e: text and newlines" "$(cat "$out")" "你好 ☃|a
b|"
run coffer run -e "X=$(printf '\377\200')" -- sh -c 'printf %s "$X" | od -An -tx1'
is "-e: bytes that are no text" "$(tr -d ' \n' <"$out")" ff80
run coffer run -e PATH=/nowhere:/usr/bin -- sh -c 'echo $PATH'
is "-e goes over what the sandbox has" "$(cat "$out")" /nowhere:/usr/bin

printf '\357\273\277A=file\r\n# note\n\n  Q="kept"\nSECRET_OF_MINE\nB=b' >"$T/e.env"
run coffer run --env-file "$T/e.env" -e A=line -- sh -c 'printf "%s|" "$A" "$Q" "$SECRET_OF_MINE" "$B"'
is "--env-file, and -e over it" "$(cat "$out")" 'line|"kept"|outside|b|'

unset NOT_HERE || :
run coffer run -e NOT_HERE -- true
is "-e of what is not set here is refused" "$status" 125
like "by name" "$(head -1 "$err")" '^coffer: E6006: --env: NOT_HERE is not set here$'
printf 'A=1\nexport B=topsecret\n' >"$T/bad.env"
run coffer run --env-file "$T/bad.env" -- true
is "a bad line is refused" "$status" 125
like "by file and line" "$(head -1 "$err")" "^coffer: E6006: $T/bad.env:2: "
unlike "and without its value" "$(cat "$err")" topsecret
run coffer run --env-file "$T/none" -- true
like "a file that is not there" "$status $(head -1 "$err")" '^125 coffer: E6006: .*No such file'
head -c 1100000 /dev/zero | tr '\0' x >"$T/big.env"
run coffer run --env-file "$T/big.env" -- true
like "a file beyond its cap" "$status $(head -1 "$err")" '^125 coffer: E6006: '

finish
