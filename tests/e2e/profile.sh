# SPDX-License-Identifier: Apache-2.0
# Profiles: what is listed, what holds inside, what a caller may not change, and
# an operator's own.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3
needs_sandbox

profiles=$COFFER_HOME/config/profiles
mkdir -p "$profiles"
chmod 755 "$COFFER_HOME/config" "$profiles"

run coffer profile list --json
is "the shipped ones are listed" "$(json "$out" '" ".join (p["name"] for p in d)')" \
  "data-science default minimal network-basic network-extended offline-readonly"
run coffer profile show offline-readonly --json
is "one is shown" "$(json "$out" 'd["values"]["memory_bytes"], d["locked"]')" \
  "(268435456, ['network', 'mounts', 'root'])"
run coffer profile show offline-readonly
like "and for people" "$(cat "$out")" '^memory +256MiB'
run coffer profile show offline-redonly
is "one that is not there: status" "$status" 4
like "one that is not there: the nearest" "$(cat "$err")" "E9004.*|did you mean offline-readonly"

# What holds inside.
mkdir "$T/shown"; echo kept >"$T/shown/file"; chmod -R a+rwX "$T/shown"
run coffer run --profile offline-readonly -w "$T/shown" --json -- sh -c 'cat file; echo x >file'
is "read-only: what is shown can be read and not written" \
  "$(json "$out" 'd["stdout"]["data"].strip (), d["status"] != 0') $(cat "$T/shown/file")" \
  "('kept', True) kept"
is "the origin of each value is said" \
  "$(json "$out" '[d["applied"]["profile"]["values"][k]["origin"] for k in ("memory_bytes", "network")]')" \
  "['profile', 'profile']"

refused () { # what code field ARGUMENTS…
  what=$1 code=$2 field=$3; shift 3
  run coffer run --json "$@" -- touch "$T/shown/made"
  is "$what" "$status $(json "$out" 'd["error"]["code"], d["error"]["details"]["field"]')" \
    "125 ('$code', '$field')"
}
refused "locked: a writable folder" E2012 mounts --profile offline-readonly -w "$T/shown:rw"
refused "locked: the network" E2012 network --profile offline-readonly --net allow --allow a:1
refused "not listed: the host's network" E2012 network --profile default --net host
refused "a profile that is not there" E2001 profile --profile defaultt
is "nothing ran" "$(ls "$T/shown")" file

run coffer run --profile default --timeout 1h --json -- true
is "clamped: said in the JSON" \
  "$(json "$out" '[(c["field"], c["asked"], c["applied"]) for c in d["applied"]["profile"]["clamped"]], d["exit"]["timeout_ms"]')" \
  "([('timeout', 3600000, 120000)], 120000)"
is "clamped: said once" "$(grep -c 'timeout: 1h is more than profile default allows' "$err")" 1

# An operator's own.
cat >"$profiles/tight.yaml" <<'EOF'
profile: 1
name: tight
summary: limits of each process
address_space: 256MiB
file_size: 1MiB
open_files: 64
timeout: 1s
locked: [timeout]
EOF
run coffer run --profile tight --json -- sh -c 'ulimit -v; ulimit -n; head -c 2000000 /dev/zero >big; stat -c %s big'
is "limits of each process hold" "$(json "$out" 'd["stdout"]["data"].split ()')" \
  "['262144', '64', '1048576']"
is "and are read back" "$(json "$out" \
  'sorted (f["name"] for f in d["applied"]["facts"] if f["name"] in ("limit.address", "limit.file", "limit.open_files") and f["state"] == "ok")')" \
  "['limit.address', 'limit.file', 'limit.open_files']"
run coffer run --profile tight -- sleep 20
is "a command that says no timeout has the profile's" "$status" 124
run coffer run --profile tight --timeout 2s -- true
like "a timeout that is locked" "$status $(cat "$err")" "^125 .*E2012: timeout: profile tight locks it"
run coffer sandbox create --profile tight
id=$(cat "$out"); remember "$id"
run coffer sandbox exec "$id" -- sleep 20
is "in a sandbox that lives on as well" "$status" 124
run coffer sandbox exec "$id" --timeout 3s -- true
like "and locked there" "$status $(cat "$err")" "^125 .*E2012: timeout"
run coffer sandbox exec -d "$id" -- sleep 20
run coffer sandbox attach "$id" "$(cat "$out")"
is "and not left behind by going into the background" "$status" 124
run coffer sandbox kill "$id"

printf 'default_profile: tight\n' >"$COFFER_HOME/config/coffer.yaml"
run coffer run --json -- sh -c 'ulimit -n'
is "the operator's default applies to who names none" \
  "$(json "$out" 'd["stdout"]["data"].strip (), d["applied"]["profile"]["origin"]')" "('64', 'config')"
sed -i 's/open_files/open_flies/' "$profiles/tight.yaml"
run coffer run -- true
like "a key that is not known is never passed over" "$status $(cat "$err")" \
  'tight.yaml:6:1: unknown key "open_flies": did you mean "open_files"'
sed -i 's/open_flies/open_files/' "$profiles/tight.yaml"
chmod 666 "$profiles/tight.yaml"
run coffer run -- true
like "nor a file that others may write" "$(cat "$err")" 'E6005: .*tight.yaml is writable by others'
rm "$COFFER_HOME/config/coffer.yaml"

printf 'profile: 1\nname: brief\nsummary: s\nmax: {ttl: 1m}\n' >"$profiles/brief.yaml"
run coffer sandbox create --profile brief
id=$(cat "$out"); remember "$id"
run coffer sandbox extend "$id" 5d --json
is "no life is drawn out beyond the profile" "$status $(json "$out" \
  '0 < d["expires_ns"] - d["created_ns"] < 100 * 10**9')" "0 True"
like "which is said" "$(cat "$err")" "ttl: 5d is more than profile brief allows: it is 1m"
run coffer sandbox kill "$id"

# What is required and not there is a refusal.
printf 'profile: 1\nname: hard\nsummary: s\nmemory: 64MiB\nrequire: [quota.hard]\n' >"$profiles/hard.yaml"
run coffer run --profile hard -- true
is "a fact that is required and there" "$status" 0
mkdir "$T/uncapped"
run coffer run --profile hard -w "$T/uncapped:rw" -- true
like "a fact that is required and not to be had" "$status $(cat "$err")" \
  "^125 .*E2005: .*(quota.hard|id-mapped)"
rmdir "$T/uncapped"

finish
