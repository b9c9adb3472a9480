# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# The provider over an engine that was started: one list for all of them, after
# lib.sh.  `provider_setup` first; then each part by its name.

# $provider over the engine, with its image; an ordinary user's is used by that user.
provider_setup () {
  case $engine in
    docker|gvisor) provider=docker ;;
    *) provider=podman ;;
  esac
  provider_home "$COFFER_HOME"
  [ "$engine" != rootless ] || {
    as_user test -x "$COFFER_BUILD/coffer" \
      || skip_all "a build folder that an ordinary user can reach"
    chown -R "$E2E_UID:$E2E_UID" "$T/tmp"
    coffer () { as_user "$COFFER_BUILD/coffer" "$@"; }
  }
  ok "$engine: an image for sandboxes" image box:1
  [ "$engine" != rootless ] || ! lacks_cgroups || rootless_narrowed
}

# What it lacks it says it has: probe knows better, and with nothing given up says so.
rootless_narrowed () {
  file=$COFFER_HOME/config/providers.d/$provider.yaml
  cp -p "$file" "$T/given-up"
  sed -i '/^without/d' "$file"
  run coffer provider doctor "$provider" --json
  is "$engine: what there is none of without root is taken away" \
    "$(json "$out" 'sorted (w for f in d["facts"] for w in f.get ("narrows", []))')" \
    "['limit.cpu', 'limit.memory', 'limit.pids', 'metrics', 'pause']"
  cp -p "$T/given-up" "$file"
  run coffer sandbox create --mem 64M
  like "$engine: what is given up is refused when it is asked for" \
    "$status $(cat "$err")" '^[1-9] .*limit.memory'
}

# An ordinary user may make none of version 1.
lacks_cgroups () { [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; }

provider_home () { # FOLDER
  mkdir -p "$1/config/providers.d"
  printf 'require_conformance: false\ndefault_provider: %s\n' "$provider" \
    >"$1/config/coffer.yaml"
  # Of what is given up below, what protects is done without by the operator's word.
  case $engine in
    gvisor|rootless) echo 'accept: [limit.memory, limit.pids, limit.disk]' \
      >>"$1/config/coffer.yaml" ;;
  esac
  {
    printf 'config:\n  engine: "unix://%s"\n  image: box:1\n' "$socket"
    [ "$engine" != gvisor ] \
      || echo "without: [limit.memory, limit.pids, limit.cpu, limit.disk, exec.tty]"
    [ "$engine" != rootless ] || ! lacks_cgroups \
      || echo "without: [limit.memory, limit.cpu, limit.pids, pause, metrics]"
  } >"$1/config/providers.d/$provider.yaml"
  chmod -R go-w "$1" && chmod 700 "$1"
  [ "$engine" != rootless ] || chown -R "$E2E_UID:$E2E_UID" "$1"
}

# ---- one sandbox and what is done in it ----------------------------------------------

list_commands () {
  run coffer run -- sh -c 'echo out; echo err >&2; exit 7'
  is "$engine: run" \
    "$status $(cat "$out") $(grep -v '^coffer: warning: ' "$err")" "7 out err"
  run coffer sandbox create -e WHO=you
  id=$(cat "$out")
  like "$engine: create" "$status $id" '^0 sb-[0-9a-z]{26}$'
  run coffer sandbox exec "$id" -e X=y -- sh -c 'echo "$WHO $X $(id -u) $(pwd)"'
  is "$engine: exec has variables, a user and a folder" "$(cat "$out")" \
    "you y 60999 /workspace"
  printf 'caf\303\251\n\342\230\203\n\377\000x' >"$T/bytes"
  coffer sandbox exec -i "$id" -- cat <"$T/bytes" >"$out" 2>"$err"
  same "$engine: standard input, byte for byte, to its end" "$out" "$T/bytes"
  run coffer sandbox exec "$id" -- no-such
  is "$engine: what is not there" "$status" 127
  run coffer sandbox exec "$id" -- sh -c 'kill -TERM $$'
  is "$engine: a signal" "$status" 143
  run coffer sandbox exec "$id" -- sh -c 'sh -c "kill -STOP \$\$" &
    until grep -q "(.*) T " /proc/$!/stat; do :; done
    busybox true; busybox true; kill -9 $!; exit 9'
  is "$engine: one that stands still hangs nobody up" "$status" 9
}

list_files () {
  head -c 300000 /dev/urandom >"$T/upload" && chmod 644 "$T/upload"
  run coffer sandbox upload "$id" "$T/upload" 'deep/a "b".bin' -p
  is "$engine: upload" "$status" 0
  run coffer sandbox download "$id" 'deep/a "b".bin' -
  same "$engine: download has the same bytes" "$out" "$T/upload"
  run coffer sandbox exec "$id" -- sh -c 'ln -s /etc/passwd link; ln -s / up'
  run coffer sandbox download "$id" link -
  like "$engine: a link is not followed" "$status $(cat "$err")" '^[1-9] .*E4'
  run coffer sandbox upload "$id" "$T/upload" up/tmp/x
  like "$engine: nor one in the way" "$status $(cat "$err")" '^[1-9] .*E4'
}

# In the place of the workspace's own memory.
list_shown () {
  mkdir "$T/shown" && chmod 755 "$T/shown" && echo shown >"$T/shown/file"
  chmod 644 "$T/shown/file"
  run coffer run -w "$T/shown" -- sh -c 'cat file && ! echo >file'
  is "$engine: a folder is shown as the workspace" "$status $(cat "$out")" "0 shown"
  made=$(coffer sandbox create -w "$T/shown" 2>"$err")
  run coffer call "$provider" snapshot_create sandbox="$made"
  like "$engine: of which no snapshot is made" "$status $(cat "$err")" \
    '^[1-9].*is a folder that is shown there'
  run coffer sandbox kill "$made"
}

# All that the command started ends with it, and nothing beside it.
list_timeout () {
  run coffer sandbox exec -d "$id" -- sleep 4001
  is "$engine: one in the background" "$status" 0
  run coffer sandbox exec --timeout 1s "$id" -- \
    sh -c 'sleep 4002 & (setsid sleep 4003 &) ; sleep 4004'
  is "$engine: a timeout" "$status" 124
  run coffer sandbox exec "$id" -- sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" " "'
  like "$engine: leaves what runs beside it" "$(cat "$out")" 'sleep 4001'
  unlike "$engine: and nothing of its own" "$(cat "$out")" 'sleep 400[234]'
}

list_background () {
  run coffer sandbox exec -d "$id" -- sh -c 'echo one; until [ -e go ]; do sleep 0.1
    done; echo two >&2; exit 5'
  command=$(cat "$out")
  run coffer sandbox exec "$id" -- touch go
  run coffer sandbox attach "$id" "$command"
  is "$engine: attach has what was written, and its end" \
    "$status $(cat "$out") $(cat "$err")" "5 one two"
}

# Fifty at once.
list_parallel () {
  for n in $(seq 50); do
    { coffer sandbox exec "$id" -- sh -c "echo $n; exit 3" >"$T/many.$n" 2>&1
      echo "$?" >>"$T/many.$n"; } &
    many="${many:-} $!"
  done
  # shellcheck disable=SC2086
  wait $many
  for n in $(seq 50); do
    [ "$(cat "$T/many.$n")" = "$n
3" ] || note "$n: $(cat "$T/many.$n")"
  done >"$T/wrong"
  is "$engine: fifty commands at once" "$(cat "$T/wrong")" ""
}

# ---- the engine is killed ----------------------------------------------------------------

# Whatever it was at, what the sandbox has afterwards is whole, and what was being made
# is not left.
list_crash () {
  run coffer sandbox upload "$id" "$T/bytes" whole
  coffer sandbox exec "$id" -- sh -c ': >at; until [ -e on ]; do sleep 0.1; done
    : >after; exit 6' >"$T/crash.out" 2>&1 &
  crashed=$!
  soon 10 coffer sandbox exec "$id" -- test -e at
  mkfifo "$T/slow"
  coffer sandbox upload "$id" - whole <"$T/slow" >"$T/upload.out" 2>&1 &
  upload=$!
  exec 9>"$T/slow"
  printf 'half' >&9
  ok "$engine: an upload has begun" soon 30 \
    coffer sandbox exec "$id" -- sh -c 'grep -q half .coffer-*'
  engine_kill
  coffer sandbox create >"$T/create.out" 2>&1
  like "$engine: create without an engine says so" "$(cat "$T/create.out")" 'E8'
  # That engine keeps what it inherits open, for as long as it lives.
  ok "$engine: it comes back" engine_again 9>&-
  exec 9>&-
  wait $upload
  is "$engine: the upload failed" "$([ $? -ne 0 ] && echo failed)" failed
  list_crash_after
}

# Docker's engine ends what it is to remove at its end when it comes back.
list_crash_after () {
  run coffer sandbox exec "$id" -- true
  if [ "$status" -ne 0 ] && [ "$provider" = docker ]; then
    like "$engine: a sandbox that it ended is gone, and that is said" \
      "$(cat "$err")" '^coffer: E2009: '
    wait $crashed
    like "$engine: also to who waited for a command" \
      "$(cat "$T/crash.out")" '^coffer: E'
    return
  fi
  run coffer sandbox download "$id" whole -
  same "$engine: and what was there is still whole" "$out" "$T/bytes"
  run coffer sandbox exec "$id" -- touch on
  is "$engine: the sandbox takes commands again" "$status" 0
  wait $crashed
  ok "$engine: the command went on" soon 10 coffer sandbox exec "$id" -- test -e after
}

# Killed while it makes one: afterwards there is none that nobody knows of.
list_crash_create () {
  coffer sandbox create >"$T/create.out" 2>"$T/create.err" &
  creating=$!
  sleep 0.2
  engine_kill
  wait $creating
  ok "$engine: it comes back again" engine_again
  run coffer sandbox prune
  engine_forgotten
  run coffer sandbox list --json
  api GET '/containers/json?all=1' >"$T/containers"
  is "$engine: as many containers as sandboxes" \
    "$(json "$T/containers" 'len (d)')" "$(json "$out" 'len (d)')"
}

# ---- images and entrypoints --------------------------------------------------------------

entrypoint () { # WORDS, or nothing
  sed -i '/^  entrypoint:/d' "$operator"
  [ -z "$1" ] || sed -i "s|^config:|&\n  entrypoint: \"$1\"|" "$operator"
}

# An image whose command ends at once is as good as any; what is asked for as an
# entrypoint is the sandbox's life, and one that ends at once is none.
list_images () {
  operator=$COFFER_HOME/config/providers.d/$provider.yaml
  image_changes='changes=CMD%20%5B%22true%22%5D'
  ok "$engine: an image whose command ends at once" image brief:1
  image_changes='changes=CMD%20%5B%22sleep%22%2C%221000%22%5D'
  ok "$engine: and one whose goes on" image lasting:1
  image_changes=
  in_image brief:1 echo lives
  is "$engine: what ends at once ends no sandbox" "$status $(cat "$out")" "0 lives"
  containers_were=$(api GET '/containers/json?all=1' | json_count)
  entrypoint image
  run coffer sandbox create --image brief:1
  like "$engine: as an entrypoint it fails the create, and that is said" \
    "$status $(cat "$err")" '^[1-9] .*entrypoint ended at once, with 0: configure'
  in_image lasting:1 sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" " "'
  like "$engine: one that goes on is run" "$status $(cat "$out")" '^0 .*sleep 1000'
  entrypoint 'sleep 1001'
  in_image lasting:1 sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" " "'
  like "$engine: an explicit one wins" "$status $(cat "$out")" '^0 .*sleep 1001'
  unlike "$engine: over the image's" "$(cat "$out") -" 'sleep 1000'
  entrypoint 'false'
  run coffer sandbox create
  like "$engine: one that fails at once" "$status $(cat "$err")" \
    '^[1-9] .*entrypoint ended at once, with 1'
  entrypoint ''
  run coffer run --image brief:1 -- sh -c 'echo once; exit 3'
  is "$engine: a run has the image that it names" "$status $(cat "$out")" "3 once"
  run coffer run --image brief:1 --template t -- true
  like "$engine: which is all of its root" "$status $(cat "$err")" \
    '^125 .*E2001: .*a template and an image: one of them'
  is "$engine: and nothing is left of any" \
    "$(api GET '/containers/json?all=1' | json_count)" "$containers_were"
  run coffer sandbox create --image no-such:1
  like "$engine: an image that is nowhere" "$status $(cat "$err")" '^[1-9] .*no-such:1'
}
# What a command in a sandbox of it prints, and how it ends.
in_image () { # IMAGE CMD…
  in_image=$1
  shift
  id=$(coffer sandbox create --image "$in_image" 2>"$err") || { status=125; return; }
  run coffer sandbox exec "$id" -- "$@"
  coffer sandbox kill "$id" >/dev/null 2>&1
}
json_count () { python3 -c 'import json, sys; print (len (json.load (sys.stdin)))'; }

# ---- two hosts -----------------------------------------------------------------------------

list_hosts () {
  other=$T/other
  provider_home "$other"
  theirs=$(COFFER_HOME=$other coffer sandbox create)
  run coffer sandbox list --json
  unlike "$engine: another host's sandbox is not listed" "$(cat "$out") -" "$theirs"
  run coffer sandbox prune
  run coffer sandbox kill --all --yes
  is "$engine: all of ours are killed" "$status" 0
  COFFER_HOME=$other coffer sandbox exec "$theirs" -- echo lives >"$out" 2>"$err"
  is "$engine: and the other host's lives" "$(cat "$out")" lives
  COFFER_HOME=$other coffer sandbox kill "$theirs" >"$out" 2>&1
}

# ---- the kit ---------------------------------------------------------------------------------

# All of it where there is time for it; else a part for each engine.
list_kit () { # GLOB
  if [ "${CHECK_SCALE:-1}" -ge 10 ]; then
    kit_conformant "$provider"
    return
  fi
  run coffer kit "$provider" --only "$1" --json
  is "$engine: no case of $1 fails" \
    "$(json "$out" '[c["id"] for c in d["cases"] if c["verdict"] == "failed"]')" "[]"
  is "$engine: and there are cases" \
    "$(json "$out" 'sum (c["verdict"] == "passed" for c in d["cases"]) > 1')" True
}

list_all () {
  list_commands
  list_files
  list_shown
  list_timeout
  list_background
  list_trees
  list_parallel
  list_crash
  list_crash_create
  list_hosts
  list_snapshots
}
