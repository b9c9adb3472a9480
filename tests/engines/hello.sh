# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# An engine by itself, before any provider: a container of a made image says
# hello through a hijacked stream.  Sourced by the scenario of each engine.

json_value () { python3 -c 'import json, sys; print (json.load (sys.stdin)[sys.argv[1]])' "$1"; }

hello () {
  ok "$engine: an image is made" image hello:1
  id=$(api POST '/containers/create?name=hello' -H 'Content-Type: application/json' \
    -d '{"Image": "hello:1", "Cmd": ["sleep", "1000"],
         "HostConfig": {"NetworkMode": "none", "Init": false}}' | json_value Id)
  is "$engine: a container starts" \
    "$(api POST "/containers/$id/start" -o /dev/null -w '%{http_code}')" 204
  exec=$(api POST "/containers/$id/exec" -H 'Content-Type: application/json' \
    -d '{"Cmd": ["sh", "-c", "echo hello"], "AttachStdout": true}' | json_value Id)
  is "$engine: a command in it says hello, in a frame" \
    "$(api POST "/exec/$exec/start" -H 'Content-Type: application/json' -d '{}' \
      | od -An -c | tr -s ' ')" ' 001 \0 \0 \0 \0 \0 \0 006 h e l l o \n'
  is "$engine: it is removed" \
    "$(api DELETE "/containers/$id?force=1" -o /dev/null -w '%{http_code}')" 204
}
