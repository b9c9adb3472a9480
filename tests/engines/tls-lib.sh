# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Docker's engine where Docker's own command would reach it on another machine: on
# TCP, by TLS, each side with a certificate of an authority made here.  Sourced by
# the scenario, after lib.sh and provider.sh.

certs=$T/certs
tls_engine=tcp://127.0.0.1:2376

# ---- certificates -------------------------------------------------------------------

authority () { # FOLDER
  mkdir -p "$1" && chmod 755 "$1"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -keyout "$1/ca-key.pem" -out "$1/ca.pem" -days 2 -subj "/CN=${1##*/}" 2>"$err"
}
# NAME.pem and NAME-key.pem of the authority in FOLDER.
certificate () { # FOLDER NAME USAGE SUBJECT-ALT-NAME [DAYS]
  printf 'extendedKeyUsage=%s\nsubjectAltName=%s\n' "$3" "$4" >"$T/extensions"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -keyout "$1/$2-key.pem" -out "$T/request.pem" -subj "/CN=$2" 2>"$err" \
    && openssl x509 -req -in "$T/request.pem" -CA "$1/ca.pem" \
      -CAkey "$1/ca-key.pem" -set_serial "0x$(openssl rand -hex 8)" \
      -days "${5:-2}" -extfile "$T/extensions" -out "$1/$2.pem" 2>"$err" \
    && chmod 600 "$1/$2-key.pem"
}
certificates () {
  authority "$certs" && authority "$T/strange" \
    && certificate "$certs" server serverAuth IP:127.0.0.1 \
    && certificate "$certs" expired serverAuth IP:127.0.0.1 -1 \
    && certificate "$certs" named serverAuth DNS:other.example \
    && certificate "$certs" client clientAuth DNS:client \
    && certificate "$T/strange" client clientAuth DNS:client
}

# As that command wants them to be called.
folder_of () { # FOLDER CA-FOLDER [CLIENT-FOLDER]
  mkdir -p "$1" && cp "$2/ca.pem" "$1/ca.pem"
  [ -z "${3:-}" ] || {
    cp "$3/client.pem" "$1/cert.pem"
    cp -p "$3/client-key.pem" "$1/key.pem"
  }
}

# ---- the engine ---------------------------------------------------------------------

tls_engine_of () { # CERTIFICATE
  engine_more="--tlsverify --tlscacert $certs/ca.pem --tlscert $certs/$1.pem
    --tlskey $certs/$1-key.pem --host $tls_engine"
}
# Begun anew with another certificate.
tls_again () { # CERTIFICATE
  tls_engine_of "$1"
  engine_kill
  engine_again
}

# Its addresses are in its network.
tls_coffer () {
  coffer () {
    nsenter ${holder:+-t "$holder" -n} -- "$COFFER_BUILD/coffer" "$@"
  }
}

# ---- the three ways to say it --------------------------------------------------------

tls_by_nothing () {
  unset DOCKER_HOST DOCKER_TLS_VERIFY DOCKER_CERT_PATH DOCKER_CONTEXT
  DOCKER_CONFIG=$T/no-such
  export DOCKER_CONFIG
  sed -i '/^  \(engine\|ca\|certificate\|key\):/d' "$tls_operator"
}
tls_by_variables () { # FOLDER
  tls_by_nothing
  DOCKER_HOST=$tls_engine DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=$1
  export DOCKER_HOST DOCKER_TLS_VERIFY DOCKER_CERT_PATH
}
tls_by_context () { # FOLDER
  tls_by_nothing
  DOCKER_CONFIG=$T/docker DOCKER_CONTEXT=away
  export DOCKER_CONFIG DOCKER_CONTEXT
  tls_name=$(printf away | sha256sum | cut -d ' ' -f 1)
  mkdir -p "$T/docker/contexts/meta/$tls_name" \
    "$T/docker/contexts/tls/$tls_name"
  printf '{"Name": "away", "Endpoints": {"docker": {"Host": "%s"}}}' \
    "$tls_engine" >"$T/docker/contexts/meta/$tls_name/meta.json"
  rm -rf "$T/docker/contexts/tls/$tls_name/docker"
  cp -rp "$1" "$T/docker/contexts/tls/$tls_name/docker"
}
tls_by_keys () { # FOLDER
  tls_by_nothing
  sed -i "s|^config:|&\n  engine: \"https://127.0.0.1:2376\"\n  ca: \"file:$1/ca.pem\"\n  certificate: \"file:$1/cert.pem\"\n  key: \"file:$1/key.pem\"|" \
    "$tls_operator"
}

# ---- what is done over it -------------------------------------------------------------

# A sandbox's life in short.
list_tls_way () { # NAME
  run coffer sandbox create
  id=$(cat "$out")
  like "$1: create" "$status $id" '^0 sb-[0-9a-z]{26}$'
  printf 'caf\303\251\n\377\000x' >"$T/bytes"
  coffer sandbox exec -i "$id" -- sh -c 'cat; echo err >&2; exit 7' \
    <"$T/bytes" >"$out" 2>"$err"
  is "$1: a command's end, and its standard error apart" "$? $(cat "$err")" "7 err"
  same "$1: standard input to its end, and output, byte for byte" "$out" "$T/bytes"
  python3 "$COFFER_SOURCE/tests/e2e/type.py" '[("ready", "typed\n")]' \
    nsenter -t "$holder" -n -- "$COFFER_BUILD/coffer" sandbox exec -t "$id" -- \
    sh -c 'echo ready; read line; echo "got $line"; stty size' >"$out" 2>"$err"
  like "$1: a terminal" "$(tr '\n' ' ' <"$out")" 'got typed 37 100 .*status 0'
  head -c 3000000 /dev/urandom >"$T/upload"
  run coffer sandbox upload "$id" "$T/upload" up
  run coffer sandbox download "$id" up -
  same "$1: upload and download" "$out" "$T/upload"
  run coffer call "$provider" snapshot_create sandbox="$id" name=tls
  snap=$(sed -n 's/.*"snapshot":"\(snap-[0-9a-f]*\)".*/\1/p' "$out")
  like "$1: a snapshot" "$status $snap" '^0 snap-'
  run coffer sandbox create --template "$snap"
  made=$(cat "$out")
  run coffer sandbox download "$made" up -
  same "$1: and a sandbox of it" "$out" "$T/upload"
  run coffer call "$provider" snapshot_delete snapshot="$snap"
  is "$1: which is deleted" "$status" 0
  run coffer sandbox kill "$id" "$made"
  is "$1: destroy" "$status $(api GET '/containers/json?all=1' | json_count)" "0 0"
}

# One line, with a code, and the exit status of what failed.
tls_refused () { # NAME PATTERN
  run coffer sandbox create
  like "$1" "$status $(grep -cv '^  hint: ' "$err") $(cat "$err")" \
    "^1 1 coffer: E8005: .*$2"
  cat "$err" >>"$T/said"
}

list_tls_refused () {
  folder_of "$T/wrong-ca" "$T/strange" "$certs"
  folder_of "$T/none" "$certs"
  folder_of "$T/wrong-client" "$certs" "$T/strange"
  tls_by_variables "$T/wrong-ca"
  tls_refused "an engine that another authority vouches for" 'is not believed .*issuer certificate'
  tls_by_context "$T/wrong-ca"
  tls_refused "in a context as well" 'is not believed .*issuer certificate'
  tls_by_variables "$T/none"
  tls_refused "no certificate of ours" 'may want a client.s certificate'
  tls_by_variables "$T/wrong-client"
  tls_refused "one that the engine does not believe" 'may want a client.s certificate'
  unlike "whatever fails, nothing is tried without TLS" "$(cat "$E/engine.log") -" \
    'HTTP request to an HTTPS server'
  tls_by_nothing
  DOCKER_HOST=$tls_engine tls_refused "an engine that is asked without TLS" 'speaks TLS: set DOCKER_TLS_VERIFY=1'
  ok "an engine whose certificate has expired" tls_again expired
  tls_by_variables "$T/folder"
  tls_refused "is refused" 'is not believed .*has expired'
  ok "one whose certificate is another's" tls_again named
  tls_refused "is refused, too" 'is not believed .*target host name'
  is "and nothing was made anywhere, nor is remembered" \
    "$(api GET '/containers/json?all=1' | json_count) $(coffer sandbox list --json)" \
    "0 []"
}

# What of the keys is in FILE: their lines of base64.
keys_in () { # FILE…
  for key in "$certs"/*-key.pem "$T"/strange/*-key.pem; do
    grep -v -- ----- "$key" | head -n 1
  done >"$T/secrets"
  grep -aFf "$T/secrets" "$@"
}
list_tls_secrets () {
  tls_by_keys "$T/folder"
  COFFER_LOG=trace coffer sandbox create >"$out" 2>"$T/said.log"
  id=$(cat "$out")
  COFFER_LOG=trace coffer sandbox exec "$id" -- \
    sh -c ': >at; until [ -e on ]; do sleep 0.1; done' 2>"$T/said.exec" &
  running=$!
  soon 30 coffer sandbox exec "$id" -- test -e at
  for pid in $(ours | awk '/coffer/ { print $1 }'); do
    cat "/proc/$pid/cmdline" "/proc/$pid/environ"
  done >"$T/said.argv" 2>"$err"
  run coffer sandbox exec "$id" -- touch on
  wait "$running"
  coffer provider info docker --json >"$T/said.info" 2>&1
  coffer provider doctor docker --json >"$T/said.doctor" 2>&1
  like "what is looked at is what was running" "$(tr '\0' ' ' <"$T/said.argv")" \
    'coffer sandbox exec'
  is "no key is in words, environments, logs or errors" \
    "$(keys_in "$T"/said*)" ""
  is "nor in what is kept" \
    "$(find "$COFFER_HOME" -type f -exec cat {} + >"$T/kept"; keys_in "$T/kept")" ""
  run coffer sandbox kill --all --yes
}
