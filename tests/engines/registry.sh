# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Images from a registry that is one: a server of its own in the engine's network,
# which wants a password.  Sourced by the scenario of an engine, after provider_setup.

registry_start () {
  needs docker-registry perl
  registry=127.0.0.1:5000
  mkdir -p "$E/registry"
  # shellcheck disable=SC2016
  perl -e 'print "reader:", crypt ("a-long-password", q($2y$05$abcdefghijklmnopqrstuu)), "\n"' \
    >"$E/htpasswd"
  cat >"$E/registry.yml" <<YAML
version: 0.1
log: {accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: "$E/registry"}}
http: {addr: "$registry"}
auth: {htpasswd: {realm: coffer, path: "$E/htpasswd"}}
YAML
  inside_exec docker-registry serve "$E/registry.yml" >"$E/registry.log" 2>&1 &
  registry_pid=$!
  soon 30 registry_answers
}
registry_answers () {
  [ "$(inside curl -s -o /dev/null -w '%{http_code}' "http://$registry/v2/")" = 401 ]
}

registry_auth () { # USER PASSWORD
  printf '%s:%s' "$1" "$2" | base64 -w 0
}

# An image that has a layer of its own, pushed and then nowhere but in the registry.
registry_fill () {
  mkdir -p "$E/layer"
  head -c 20000000 /dev/urandom >"$E/layer/bytes"
  tar -C "$E/layer" -rf "$E/busybox.tar" --owner=0 --group=0 bytes
  rm -rf "$E/layer"
  image "$registry/fetched:1" || return 1
  digest=$(api POST "/images/$registry/fetched/push?tag=1" -H "X-Registry-Auth: $(
    printf '{"username": "reader", "password": "a-long-password"}' | base64 -w 0 \
      | tr '+/' '-_')" | sed -n 's/.*"Digest":"\(sha256:[0-9a-f]*\)".*/\1/p')
  registry_forget
  [ -n "$digest" ]
}
registry_forget () {
  api DELETE "/images/$registry/fetched:1?force=1" -o /dev/null
  [ "$(api GET "/images/$registry/fetched:1/json" -o /dev/null -w '%{http_code}')" = 404 ]
}

list_registry () {
  ok "$engine: a registry comes up, and wants a password" registry_start
  ok "$engine: an image is in it, and in it alone" registry_fill
  run coffer sandbox create --image "$registry/fetched:1"
  like "$engine: without one nothing is pulled, and that is said" \
    "$status $(cat "$err")" '^[1-9].* pull 127.0.0.1:5000/fetched:1: .*registry_auth'
  DOCKER_CONFIG=$T/docker
  export DOCKER_CONFIG
  mkdir -p "$DOCKER_CONFIG"
  printf '{"auths": {"%s": {"auth": "%s"}}}\n' "$registry" \
    "$(registry_auth reader wrong-password)" >"$DOCKER_CONFIG/config.json"
  run coffer sandbox create --image "$registry/fetched:1"
  like "$engine: nor with another" "$status $(cat "$err")" '^[1-9].*registry_auth'
  unlike "$engine: which is not shown" "$(cat "$err")" 'wrong-password'
  printf '{"auths": {"%s": {"auth": "%s"}, "other": {"auth": "eDphLWdvb2QtcGFzc3dvcmQ="}}}\n' "$registry" \
    "$(registry_auth reader a-long-password)" >"$DOCKER_CONFIG/config.json"
  run coffer sandbox create --image "$registry/fetched:no-such"
  like "$engine: what the registry has not" "$status $(cat "$err")" \
    '^[1-9].*pull 127.0.0.1:5000/fetched:no-such: '
  list_registry_pull
  list_registry_helper
  end "$registry_pid"
  unset DOCKER_CONFIG
}

registry_helper () { # WHAT IT DOES
  mkdir -p "$T/helpers"
  printf '#!/bin/sh\nread -r server\n%s\n' "$1" >"$T/helpers/docker-credential-trial"
  chmod 755 "$T/helpers/docker-credential-trial"
}

# A password that a credential helper keeps, and which is in no file of Docker's.
list_registry_helper () {
  path_was=$PATH PATH=$T/helpers:$PATH
  printf '{"auths": {"%s": {}}, "credHelpers": {"%s": "trial"}}\n' "$registry" \
    "$registry" >"$DOCKER_CONFIG/config.json"
  registry_helper 'echo the-secret-of-it; echo the-secret-of-it >&2; exit 1'
  run coffer sandbox create --image "$registry/fetched:1" --verbose
  like "$engine: a credential helper that fails" "$(cat "$err")" \
    "^coffer: E1006: docker-credential-trial failed for $registry, with 1"
  unlike "$engine: of which no word is shown" "$(cat "$err" "$out") -" 'the-secret-of-it'
  # shellcheck disable=SC2016
  registry_helper 'printf "{\"ServerURL\":\"$server\",\"Username\":\"reader\",\"Secret\":\"a-wrong-password\"}"'
  run coffer sandbox create --image "$registry/fetched:1" --verbose
  like "$engine: one that keeps what is not right" "$(cat "$err")" \
    'E1001: .* pull 127.0.0.1:5000/fetched:1: '
  unlike "$engine: of which the password is not shown" "$(cat "$err" "$out") -" \
    'a-wrong-password'
  # shellcheck disable=SC2016
  registry_helper 'printf "{\"ServerURL\":\"$server\",\"Username\":\"reader\",\"Secret\":\"a-long-password\"}"'
  run coffer sandbox create --image "$registry/fetched:1" --verbose
  is "$engine: with the right one the image is pulled" "$status" 0
  unlike "$engine: and nobody is told how" "$(cat "$err" "$out") -" 'a-long-password'
  run coffer sandbox kill "$(cat "$out")"
  PATH=$path_was
  ok "$engine: which is gone again" registry_forget
}

# By a daemon, whose events say how far it is, until it is there.
list_registry_events () {
  "$COFFER_BUILD/coffer" serve --listen none --json >"$T/serve.out" 2>"$T/serve.err" &
  serve=$!
  soon 30 grep -q '"socket"' "$T/serve.out"
  inside tc qdisc add dev lo root tbf rate 60mbit burst 256kb latency 1s
  curl -sS --max-time 100 -H 'Accept: application/x-ndjson' -d \
    "{\"provider\": \"$provider\", \"image\": \"$registry/fetched:1\"}" \
    --unix-socket "$(sed -n 's/.*"socket": *"\([^"]*\)".*/\1/p' "$T/serve.out")" \
    http://localhost/api/v1/sandboxes >"$T/events" 2>"$err"
  inside tc qdisc del dev lo root
  is "$engine: a daemon's events say what is pulled, and of how much" \
    "$(events '{l["what"] for l in lines[:-1]}, max (l["total"] for l in lines[:-1]) > 20000000')" \
    "({'pulling $registry/fetched:1'}, True)"
  is "$engine: more and more of it" \
    "$(events 'len ({l["done"] for l in lines[:-1] if l["total"] > 20000000}) >= 3')" True
  is "$engine: and the last has the sandbox" \
    "$(events 'lines[-1]["event"], lines[-1]["sandbox"]["state"]')" \
    "('created', 'running')"
  run coffer sandbox kill "$(events 'lines[-1]["sandbox"]["id"]')"
  is "$engine: which is one" "$status" 0
  end "$serve"
}
events () { # EXPRESSION over `lines`
  python3 -c 'import json, sys
lines = [json.loads (l) for l in open (sys.argv[1])]
print (eval (sys.argv[2]))' "$T/events" "$1"
}

# With the password of the docker command's own file, over a wire that takes some
# seconds for it.
list_registry_pull () {
  inside tc qdisc add dev lo root tbf rate 60mbit burst 256kb latency 1s
  python3 "$COFFER_SOURCE/tests/e2e/type.py" '[]' "$COFFER_BUILD/coffer" \
    sandbox create --image "$registry/fetched:1" >"$out" 2>&1
  inside tc qdisc del dev lo root
  like "$engine: what is pulled has a bar on a terminal" "$(cat "$out")" \
    'pulling 127.0.0.1:5000/fetched:1 .*[0-9] [KM]iB'
  id=$(grep -o 'sb-[0-9a-z]\{26\}' "$out" | tail -1)
  run coffer sandbox exec "$id" -- test -s /bytes
  is "$engine: and is there" "$status" 0
  api GET "/images/$registry/fetched:1/json" >"$T/image"
  is "$engine: the one that was pushed" "$(json "$T/image" \
    'd["RepoDigests"][0].split ("@")[1]')" "$digest"
  run coffer sandbox info "$id" --json
  is "$engine: and its sandbox says which" "$(json "$out" 'd["template"]')" \
    "$registry/fetched:1@$(json "$T/image" 'd["Id"]')"
  run coffer sandbox kill "$id"
  ok "$engine: it is gone again" registry_forget
  list_registry_events
  ok "$engine: it is gone once more" registry_forget
  run coffer sandbox create --image "$registry/fetched@$digest"
  is "$engine: an image is pulled by its digest" "$status" 0
  id=$(cat "$out")
  run coffer sandbox info "$id"
  like "$engine: and that is recorded" "$(cat "$out")" "fetched@$digest"
  run coffer sandbox kill "$id"
  api DELETE "/images/$registry/fetched@$digest?force=1" -o /dev/null
}
