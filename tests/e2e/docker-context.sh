# SPDX-License-Identifier: Apache-2.0
# Where the docker provider looks for its engine: what the docker command's own
# variables and files say, in that command's order, and which files are not believed.
# Asks no engine.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs python3 sha256sum
unset DOCKER_HOST DOCKER_CONTEXT DOCKER_TLS DOCKER_TLS_VERIFY DOCKER_CERT_PATH
DOCKER_CONFIG=$T/docker
export DOCKER_CONFIG
mkdir -p "$DOCKER_CONFIG" "$COFFER_HOME/config/providers.d"
operator=$COFFER_HOME/config/providers.d/docker.yaml

# KEY's value, and where it comes from.
of () { # KEY
  json "$T/info" "'%s %s' % next (((c.get ('value', '-'), c.get ('origin', '-')) for c in d['config'] if c['key'] == '$1'))"
}
engine () {
  coffer provider info docker --json >"$T/info" 2>"$err"
  of engine
}
refused () { # NAME ERE
  coffer provider info docker --json >"$out" 2>&1
  like "$1" "$(json "$out" 'd["error"]["error"]["message"] + " " + (d["error"]["error"].get ("hint") or "")' 2>&1)" "$2"
}
folder_of () { printf %s "$1" | sha256sum | cut -d ' ' -f 1; }
context () { # NAME HOST [MORE]
  meta=$DOCKER_CONFIG/contexts/meta/$(folder_of "$1")
  mkdir -p "$meta"
  printf '{"Name": "%s", "Metadata": {}, "Endpoints": {"docker": {"Host": "%s"%s}}}' \
    "$1" "$2" "${3:-}" >"$meta/meta.json"
}
certificates () { # FOLDER
  mkdir -p "$1"
  for name in ca cert key; do
    printf -- '-----BEGIN %s-----\nAA==\n-----END %s-----\n' $name $name >"$1/$name.pem"
  done
  chmod 600 "$1/key.pem"
}

is "nothing is said: the manifest's" "$(engine)" \
  "unix:///var/run/docker.sock default"
like "what it is given of secrets is told of" "$(coffer provider info docker)" \
  'may know +registry_auth, from docker.auths'
context far tcp://far.example:2376
context near unix:///run/near.sock
context plain tcp://plain.example
certificates "$DOCKER_CONFIG/contexts/tls/$(folder_of far)/docker"
echo '{"currentContext": "near", "auths": {}}' >"$DOCKER_CONFIG/config.json"
is "the current context" "$(engine)" "unix:///run/near.sock context:near"
is "has no certificates" "$(of ca)" "- -"
is "DOCKER_CONTEXT goes before it, and certificates make it TLS" \
  "$(DOCKER_CONTEXT=far engine)" "https://far.example:2376 env:DOCKER_CONTEXT"
is "they are its own" "$(of key)" \
  "- file:$DOCKER_CONFIG/contexts/tls/$(folder_of far)/docker/key.pem"
is "without them there is none, and a port" "$(DOCKER_CONTEXT=plain engine)" \
  "tcp://plain.example:2375 env:DOCKER_CONTEXT"
is "DOCKER_HOST goes before DOCKER_CONTEXT" \
  "$(DOCKER_CONTEXT=far DOCKER_HOST=unix:///run/other.sock engine)" \
  "unix:///run/other.sock env:DOCKER_HOST"
is "default is the default" "$(DOCKER_CONTEXT=default engine)" \
  "unix:///var/run/docker.sock default"

# -- TLS by variables
certificates "$T/certs"
is "DOCKER_TLS_VERIFY makes it TLS" \
  "$(DOCKER_HOST=tcp://a.example DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=$T/certs engine)" \
  "https://a.example:2376 env:DOCKER_HOST"
is "with the certificates of DOCKER_CERT_PATH" "$(of certificate)" \
  "- file:$T/certs/cert.pem"
chmod go+w "$T/certs"
DOCKER_HOST=tcp://a.example DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=$T/certs \
  refused "of a folder that others may write none is taken" 'certs is writable by others'
chmod go-w "$T/certs"
certificates "$DOCKER_CONFIG"
is "or those of the configuration" \
  "$(DOCKER_HOST='tcp://[::1]:99' DOCKER_TLS_VERIFY=1 engine; of ca)" \
  "https://[::1]:99 env:DOCKER_HOST
- file:$DOCKER_CONFIG/ca.pem"
is "without it there is no TLS" "$(DOCKER_HOST=tcp://a.example:5 engine; of ca)" \
  "tcp://a.example:5 env:DOCKER_HOST
- -"

# -- the operator's word
cat >"$operator" <<YAML
config: {engine: "unix:///run/mine.sock", ca: "file:$T/certs/ca.pem"}
YAML
is "the operator's word goes before the current context" "$(engine)" \
  "unix:///run/mine.sock config"
is "with certificates from anywhere" "$(of ca)" "- file:$T/certs/ca.pem"
is "and the variables before that" "$(DOCKER_CONTEXT=near engine)" \
  "unix:///run/near.sock env:DOCKER_CONTEXT"
echo '{"currentContext": "gone"}' >"$DOCKER_CONFIG/config.json"
is "a context that is not there is not asked for then" "$(engine)" \
  "unix:///run/mine.sock config"
rm "$operator"

# -- what is refused
refused "a context that is not there" 'context gone is not there.*docker context ls'
context shell ssh://user@far.example
echo '{"currentContext": "shell"}' >"$DOCKER_CONFIG/config.json"
refused "ssh" 'context shell names an engine behind ssh.*ssh -nNT -L'
DOCKER_HOST=ssh://far refused "ssh by DOCKER_HOST" 'DOCKER_HOST names an engine behind ssh'
context open tcp://a.example:2376 ', "SkipTLSVerify": true'
DOCKER_CONTEXT=open refused "TLS that believes anybody" 'SkipTLSVerify'
DOCKER_CONTEXT=../x refused "a name that is a path" 'has no name of a context'
context false unix:///x
sed -i 's/"Name": "false"/"Name": "other"/' \
  "$DOCKER_CONFIG/contexts/meta/$(folder_of false)/meta.json"
DOCKER_CONTEXT=false refused "a folder of another name" 'names no engine'
near=$DOCKER_CONFIG/contexts/meta/$(folder_of near)
chmod go+w "$near/meta.json"
DOCKER_CONTEXT=near refused "a file that others may write" 'meta.json is writable by others'
chmod go-w "$near/meta.json"
chmod go+w "$near"
DOCKER_CONTEXT=near refused "a folder that others may write" 'is writable by others'
chmod go-w "$near"
mv "$near/meta.json" "$T/elsewhere" && ln -s "$T/elsewhere" "$near/meta.json"
DOCKER_CONTEXT=near refused "a link" 'meta.json'
rm "$near/meta.json"
head -c 70000 /dev/zero | tr '\0' ' ' >"$near/meta.json"
DOCKER_CONTEXT=near refused "a large file" 'larger than 64 KiB'
head -c 2000 /dev/zero | tr '\0' '[' >"$near/meta.json"
DOCKER_CONTEXT=near refused "JSON that is deep" 'at most [0-9]* levels'
mkdir "$DOCKER_CONFIG/empty" && DOCKER_CONFIG=$DOCKER_CONFIG/empty
is "a provider that is not asked for is not in the way" \
  "$(DOCKER_CONTEXT=gone coffer provider info linux --json | json /dev/stdin 'd["id"]')" \
  linux

# -- credentials
DOCKER_CONFIG=$T/docker
printf '{\n\t"auths": {\n\t\t"r.example": {"auth": "dTpwYXNzd29yZA=="}},\n "credsStore": "x"}\n' \
  >"$DOCKER_CONFIG/config.json"
is "credentials of registries are the docker command's" \
  "$(engine >/dev/null; of registry_auth)" "- auths:$DOCKER_CONFIG/config.json"
unlike "and are not shown" "$(cat "$T/info")" dTpw
coffer provider info podman --json >"$T/info"
is "podman's too, where it has none of its own" "$(of registry_auth)" \
  "- auths:$DOCKER_CONFIG/config.json"
echo '{"auths": {"q.example": {"auth": "dTpwYXNzd29yZA=="}}}' >"$T/auth.json"
REGISTRY_AUTH_FILE=$T/auth.json coffer provider info podman --json >"$T/info"
is "else podman's own" "$(of registry_auth)" "- auths:$T/auth.json"
echo '{"auths": {"r.example": {"auth": dTpwYXNzd29yZA==}}}' >"$DOCKER_CONFIG/config.json"
refused "a file that is no JSON" 'not JSON: line 1, column [0-9]*'
unlike "of which nothing is quoted" "$(cat "$out") -" 'dTpw'

# -- no engine
DOCKER_CONFIG=$DOCKER_CONFIG/empty
without_conformance
DOCKER_HOST=unix://$T/no.sock run coffer sandbox create --provider docker --image x
is "without an engine the create says so, and no more" \
  "$status $(grep -v '^  hint: ' "$err" | cut -d : -f 1-5)" \
  "1 coffer: E8005: docker: sandbox_create: no engine answers at unix"
is "and nothing of it is remembered" "$(coffer sandbox list --json)" '[]'
finish
