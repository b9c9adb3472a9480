# SPDX-License-Identifier: Apache-2.0
# `coffer provider install https:…` from a server on loopback with an authority of
# its own: pinned by a hash or refused, and whatever the server does.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both alike
needs python3 openssl
umask 022
without_conformance
providers=$COFFER_HOME/providers
unset https_proxy HTTPS_PROXY http_proxy all_proxy ALL_PROXY no_proxy NO_PROXY SSL_CERT_DIR CURL_CA_BUNDLE

mkdir "$T/www" "$T/parrot"
cp "$COFFER_BUILD/tests/e2e/modules/parrot.so" "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" "$T/parrot"
coffer seal "$T/parrot/parrot.yaml"
coffer provider pack "$T/parrot" --output "$T/www" >/dev/null
mv "$T/www/parrot-0.1.0-$(uname -m).tar.gz" "$T/www/good.tar.gz"
cp "$T/www/good.tar.gz" "$T/www/你好.tar.gz"
sum=$(sha256sum <"$T/www/good.tar.gz" | cut -c1-64)

# authority NAME, and what it says of HOST.
authority () {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
    -subj "/CN=$1" -keyout "$T/$1-ca.key" -out "$T/$1-ca.pem" 2>/dev/null
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" \
    -keyout "$T/$1.key" -out "$T/$1.csr" 2>/dev/null
  printf 'subjectAltName=%s\n' "$3" >"$T/$1.ext"
  openssl x509 -req -in "$T/$1.csr" -CA "$T/$1-ca.pem" -CAkey "$T/$1-ca.key" -CAcreateserial \
    -days 2 -extfile "$T/$1.ext" -out "$T/$1.pem" 2>/dev/null
}
authority ours localhost 'DNS:localhost,IP:127.0.0.1'
authority wrong elsewhere.example 'DNS:elsewhere.example'

# serve NAME: sets $port and $plain; the server ends with $T/$1-stop.
serve () {
  mkfifo "$T/$1-stop"
  python3 "$COFFER_SOURCE/tests/e2e/https.py" "$T/www" "$T/$1.pem" "$T/$1.key" \
    <"$T/$1-stop" >"$T/$1-ports" 2>"$T/$1-log" &
  eval "exec $2>\"$T/$1-stop\""
  soon 10 test -s "$T/$1-ports" || exit 1
  read -r port plain <"$T/$1-ports"
}
serve wrong 8; wrong=https://localhost:$port
serve ours 9; url=https://localhost:$port
refused () { # WHAT STATUS PATTERN CMD…
  refused_what=$1 refused_status=$2 refused_like=$3; shift 3
  run "$@"
  like "$refused_what" "$status $(cat "$err")" "^$refused_status coffer: $refused_like"
}
nothing_kept () { [ -z "$(ls -A "$providers" 2>/dev/null)" ]; }

refused "an authority that nobody named" 1 "E7002: .*(certificate|SSL)" \
  coffer provider install "$url/good.tar.gz" --sha256 "$sum"
like "and how to name one" "$(cat "$err")" 'hint: .*SSL_CERT_FILE'
SSL_CERT_FILE=$T/ours-ca.pem; export SSL_CERT_FILE
refused "unpinned" 2 "E8012: .*without --sha256" coffer provider install "$url/good.tar.gz"
refused "unpinned with --yes" 2 "E8012: " coffer provider install "$url/good.tar.gz" --yes
ok "nobody was asked for it" test ! -s "$T/requests"
run coffer provider install "$url/good.tar.gz" --sha256 "$sum" --json
is "pinned" "$status $(json "$out" 'd["trust"], d["receipt"]["source"]["kind"], d["receipt"]["source"]["sha256"]')" \
  "0 ('pinned', 'url', '$sum')"
is "where it came from" "$(json "$out" 'd["receipt"]["source"]["location"]')" "$url/good.tar.gz"
ok "and answers" coffer call parrot probe
run coffer provider upgrade parrot --json
is "upgrade asks there again" "$status $(json "$out" 'd["trust"], d["changed"]')" "0 ('pinned', False)"
coffer provider uninstall parrot >/dev/null
SSL_CERT_FILE='' CURL_CA_BUNDLE=$T/ours-ca.pem run coffer provider install "$url/once/good.tar.gz" --sha256 "$sum"
is "a redirect, and CURL_CA_BUNDLE" "$status" 0
coffer provider uninstall parrot >/dev/null
run coffer provider install "$url/%E4%BD%A0%E5%A5%BD.tar.gz" --sha256 "$sum"
is "a name in another script" "$status" 0
coffer provider uninstall parrot >/dev/null

# On a terminal what takes a while says how far it is; with --json nothing does.
python3 - "$COFFER_BUILD/coffer" "$url/slow/good.tar.gz" "$sum" "$T" <<'PY'
import os, pty, sys
coffer, url, sum, top = sys.argv[1:]
for name, more in (("bar", []), ("quiet", ["--json"])):
    pid, fd = pty.fork ()
    if pid == 0:
        os.execv (coffer, [coffer, "provider", "install", url, "--sha256", sum, "--force", "--yes", *more])
    text = b""
    try:
        while True: text += os.read (fd, 4096)
    except OSError:
        pass
    os.close (fd)
    if os.waitpid (pid, 0)[1] == 0: open (f"{top}/{name}", "wb").write (text)
PY
like "a bar on a terminal" "$(tr '\r' '\n' <"$T/bar")" \
  'fetching  \[#+\.+\] +[0-9]+%  [0-9.]+ ?[KM]?i?B of [0-9.]+ ?[KM]?i?B, [0-9.]+ ?[KM]?i?B/s'
like "which is gone before what is said" "$(tr '\r' '\n' <"$T/bar" | cat -v)" '^\^\[\[Kparrot '
unlike "none with --json" "$(cat "$T/quiet")" 'fetching|\[#'
run coffer provider install "$url/slow/good.tar.gz" --sha256 "$sum" --force --yes
unlike "none without a terminal" "$status $(cat "$out" "$err")" 'fetching|\[#'
coffer provider uninstall parrot >/dev/null

refused "another hash" 1 "E8006: .*not what --sha256 says" \
  coffer provider install "$url/good.tar.gz" --sha256 "$(printf %064d 0)"
refused "no such file" 1 "E7002: .*404" coffer provider install "$url/none.tar.gz" --sha256 "$sum"
refused "a redirect to http" 1 "E7002: .*[Pp]rotocol" coffer provider install "$url/to-http" --sha256 "$sum"
refused "a redirect to a file" 1 "E7002: .*[Pp]rotocol" coffer provider install "$url/to-file" --sha256 "$sum"
refused "redirects without end" 1 "E7002: .*redirects" coffer provider install "$url/loop" --sha256 "$sum"
refused "less than it says" 1 "E7002: " coffer provider install "$url/short" --sha256 "$sum"
refused "for another host" 1 "E7002: .*(subject|SSL|certificate)" env SSL_CERT_FILE="$T/wrong-ca.pem" \
  "$COFFER_BUILD/coffer" provider install "$wrong/good.tar.gz" --sha256 "$sum"
refused "http:" 2 "E6006: http:" coffer provider install "http://localhost:$plain/good.tar.gz" --sha256 "$sum"
refused "a password in it" 2 "E6006: https://localhost:$port/good.tar.gz: .*password" \
  coffer provider install "https://user:s3cret-word@localhost:$port/good.tar.gz" --sha256 "$sum"
ok "which is not repeated" sh -c "! grep -r s3cret-word '$err' '$out' '$COFFER_HOME'"
refused "nobody listens" 1 "E7002: " coffer provider install "https://127.0.0.1:1/x.tar.gz" --sha256 "$sum"
refused "--ref with an address" 2 "E6001: " coffer provider install "$url/good.tar.gz" --ref main --sha256 "$sum"
refused "half a hash" 2 "E6001: " coffer provider install "$url/good.tar.gz" --sha256 abc
is "nobody was told anything" "$(grep -vc -- ' -$' "$T/requests")" 0
ok "nothing of them is kept" nothing_kept

# The program itself: a cap, a deadline, and an end when nobody waits any more.
fetch () { # URL BYTES SECONDS
  ASAN_OPTIONS=detect_leaks=0 "$COFFER_BUILD/core/provider/fetch/coffer-fetch" "$@" >"$T/got" 4>"$T/report"
}
fetch "$url/endless" 1000000 20
is "more than is taken" "$? $(json "$T/report" 'd["error"]')" "1 it is larger than 0 MiB"
ok "of which no more is written" test "$(stat -c %s "$T/got")" -le 1000000
fetch "$url/silent" 1000000 1
like "longer than is waited" "$? $(cat "$T/report")" '^1 .*(time|Time)'
fetch "$url/good.tar.gz" 1000000 20
is "and one that is well" "$? $(sha256sum <"$T/got" | cut -c1-64)" "0 $sum"
asked=$(grep -c silent "$T/requests")
asks () { [ "$(grep -c silent "$T/requests")" -gt "$asked" ]; }
"$COFFER_BUILD/coffer" provider install "$url/silent" --sha256 "$sum" >/dev/null 2>&1 &
pid=$!
soon 10 asks
kill -9 $pid; wait $pid 2>/dev/null
fetching () { ours | grep -q '[c]offer-fetch'; }
not_fetching () { ! fetching; }
ok "no fetching goes on without its coffer" soon 5 not_fetching
run coffer provider install "$url/good.tar.gz" --sha256 "$sum"
is "what that left is gone" "$status $(ls -A "$providers")" "0 parrot"
coffer provider uninstall parrot >/dev/null

exec 8>&- 9>&-
wait
finish
