# SPDX-License-Identifier: Apache-2.0
# A provider that is upgraded while a daemon has it open: what is made from then on
# is the new one's, and what there was lives on in the old one's worker, which ends
# once nothing of that is left.  Which one a sandbox is of shows in how many files
# its commands may open, as the manifest's limit has it.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3
umask 022
providers=$COFFER_HOME/providers config=$COFFER_HOME/config
without_conformance

# It is said to isolate and to last, or a daemon would not have it.
made () { # VERSION FILES
  mkdir "$T/$1"
  cp "$COFFER_BUILD/tests/e2e/modules/example.so" "$T/$1"
  sed -e "s/^version: .*/version: $1/" -e "s/files: 4096/files: $2/" \
      -e 's/kind: none/kind: container/' -e 's/exec.signal,/&durable,/' -e "s/arch: x86_64/arch: $(uname -m)/" \
    "$COFFER_SOURCE/sdk/template/example.yaml" >"$T/$1/example.yaml"
  coffer seal "$T/$1/example.yaml" >/dev/null
}
made 0.1.0 1111
made 0.2.0 1222
made 0.3.0 1333
coffer provider install "$T/0.1.0" >/dev/null 2>"$err" || note "$(cat "$err")"
serve_start || { ok "the daemon starts" false; finish; }

box () { # NAME: a sandbox, and its path in $NAME
  api POST /api/v1/sandboxes -d '{"provider": "example", "accept": ["network.none",
    "limit.memory", "limit.pids", "limit.disk", "user.unprivileged",
    "root.readonly"]}'
  box_id=$(json "$out" 'd["id"]') || note "$(cat "$out")"
  eval "$1=/api/v1/sandboxes/\$box_id"
}
files_in () { # PATH: how many files a command there may open, and its worker
  api POST "$1/execs?wait=1" -d '{"argv": ["/bin/sh", "-c", "ulimit -n; echo $PPID"]}'
  json "$out" 'd["stdout"]["data"].split ()[0]'
}
worker_of () { files_in "$1" >/dev/null; json "$out" 'd["stdout"]["data"].split ()[1]'; }
new_is () { # FILES: new sandboxes are
  box new
  new_files=$(files_in "$new")
  [ "$new_files" = "$1" ] || api DELETE "$new"
  [ "$new_files" = "$1" ]
}
has_ended () { # EXEC-PATH
  api GET "$1"
  [ "$(json "$out" 'd["state"]')" = exited ]
}
is_gone () { ! kill -0 "$1" 2>/dev/null; }
# Requests go on: who asks finds what is not needed any more.
old_is_gone () { api GET /api/v1/sandboxes; is_gone "$1"; }

box first
[ -n "$box_id" ] || finish
is "one of the first" "$(files_in "$first")" 1111
worker=$(worker_of "$first")
api POST "$first/execs" -d '{"argv": ["/bin/sh", "-c", "read word; echo $word; ulimit -n"], "stdin": true}'
waits=$first/execs/$(json "$out" 'd["exec"]')

run coffer provider upgrade example "$T/0.2.0"
is "it is upgraded" "$status" 0
ok "new sandboxes are of the new one" soon 30 new_is 1222
second=$new
is "an old one is of the old one" "$(files_in "$first")" 1111
is "in its worker" "$(worker_of "$first")" "$worker"
ok "which is not the new one's" test "$(worker_of "$second")" != "$worker"
api GET "$first"
is "it is there" "$code $(json "$out" 'd["state"]')" "200 running"
api GET /api/v1/sandboxes
is "both are listed" "$(json "$out" 'sorted ((s["id"], s["state"]) for s in d["sandboxes"]) == sorted ((i, "running") for i in "'"${first##*/} ${second##*/}"'".split ())')" True
api POST "$waits/stdin" --data-binary 'café
'
api POST "$waits/stdin/close"
ok "what ran goes on to its end" soon 30 has_ended "$waits"
api GET "$waits/stdout"
is "as the old one" "$(cat "$out")" "$(printf 'café\n1111')"

run coffer provider install "$T/0.3.0" --force --yes
is "it is installed by force" "$status" 0
ok "a second time, by install --force" soon 30 new_is 1333
is "three of them beside each other" "$(files_in "$first") $(files_in "$second") $(files_in "$new")" \
  "1111 1222 1333"
api DELETE "$first"
ok "a worker ends when nothing is left of it" soon 30 old_is_gone "$worker"
is "and no other does" "$(files_in "$second") $(files_in "$new")" "1222 1333"

coffer provider disable example >/dev/null
refused () { api GET "$1"; [ "$code" = 403 ]; }
ok "one that is disabled is for nobody" soon 30 refused "$new"
is "an old one neither" "$(refused "$second" && code_of)" E8002
coffer provider enable example >/dev/null
works () { [ "$(files_in "$1")" = "$2" ]; }
ok "enabled it is" soon 30 works "$new" 1333
is "and the old one" "$(files_in "$second")" 1222
api DELETE "$second"; api DELETE "$new"
serve_stop
is "the daemon ends" "$status" 0
finish
