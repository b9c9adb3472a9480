# SPDX-License-Identifier: Apache-2.0
# Who may do what: peers of the unix socket, tokens, nobody; and requests that a
# web page of somebody else's made.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3
SERVE_PROBE=1

# -- tokens as a command
run coffer token create ci --rights view --json
is "a token is made" "$status" 0
view=$(json "$out" 'd["token"]')
id=$(json "$out" 'd["id"]')
is "with what it is for" "$(json "$out" 'd["name"], d["tenant"], d["rights"], d["expires_ns"]')" \
  "('ci', 'default', 'view', None)"
like "and 256 bits" "$view" '^cft_[0-9a-z]{8}_[0-9a-z]{52}$'
run coffer token create other --tenant team-b --ttl 1h
other=$(cat "$out")
like "alone on a line for a pipe" "$other" '^cft_[0-9a-z]{8}_[0-9a-z]{52}$'
manage=$(coffer token create boss --rights manage 2>/dev/null)
operate=$(coffer token create ops --rights operate 2>/dev/null)
brief=$(coffer token create brief --ttl 1ms 2>/dev/null)
ok "what is kept is its user's alone" \
  test "$(stat -c %a "$COFFER_HOME/state/tokens.json")" = 600
secrets () {
  for secret in "$view" "$other" "$manage" "$operate"; do
    grep -rlF -e "${secret##*_}" "$@" 2>/dev/null
  done
}
is "and holds no secret" "$(secrets "$COFFER_HOME")" ""
run coffer token list --json
is "they are listed" "$(json "$out" '[t["name"] for t in d], "sha256" in d[0], "token" in d[0]')" \
  "(['ci', 'other', 'boss', 'ops', 'brief'], False, False)"
run coffer token create 'a b'
is "a name of other characters" "$status" 2
run coffer token create a --rights all
is "a right that is none" "$status" 2
run coffer token create a --tenant B
is "a tenant that is none" "$status" 2
run coffer token revoke nobody
is "a token that is none" "$status" 4

serve_start || { ok "the daemon starts" false; finish; }
bearer () { b_token=$1; shift; tcp "$@" -H "Authorization: Bearer $b_token"; }

# -- the unix socket
api GET /t/manage
is "the daemon's own user may do all" \
  "$code $(json "$out" 'd["name"], d["tenant"], d["rights"], d["local"]')" \
  "200 ('uid:$(id -u)', 'default', 15, True)"
api GET /t/run -H "Authorization: Bearer $view"
is "with a token, as much as the token" "$code $(code_of)" "403 E1004"
api GET /t/run -H "Authorization: Bearer x"
is "with a wrong one, nothing" "$code $(code_of)" "401 E1003"

# -- TCP
tcp GET /t/open
is "nobody gets what is open" "$code $(json "$out" 'd["name"], d["rights"]')" \
  "200 ('anonymous', 0)"
tcp GET /t/view
is "and nothing else" "$code $(code_of)" "401 E1003"
bearer "$view" GET /t/view
is "a token logs in" "$code $(json "$out" 'd["name"], d["tenant"], d["rights"]')" \
  "200 ('token:ci', 'default', 1)"
bearer "$view" GET /t/run
is "as far as its rights go" "$code $(code_of)" "403 E1004"
bearer "$other" GET /t/run
is "in its tenant" "$code $(json "$out" 'd["tenant"], d["rights"]')" "200 ('team-b', 3)"
bearer "$manage" GET /t/manage
is "manage implies the others" "$code $(json "$out" 'd["rights"]')" "200 7"
bearer "$operate" GET /t/manage
is "operate implies that too" "$code $(json "$out" 'd["rights"]')" "200 15"
bearer "$brief" GET /t/view
is "one that has expired" "$code" 401
for wrong in "${view}x" "${view%?}" "$(printf '%s' "$view" | sed 's/.$/!/')" "" cft_ \
  "$(printf '%s' "$view" | cut -c1-13)$(printf '%s' "$other" | cut -c14-)"; do
  bearer "$wrong" GET /t/open
  is "a wrong token is not nobody" "$code" 401
done
tcp GET /t/view -u user:password
is "another scheme" "$code" 401
coffer token revoke "$id" >/dev/null
bearer "$view" GET /t/view
is "one that was revoked ends at once" "$code" 401
new=$(coffer token create new 2>/dev/null)
bearer "$new" GET /t/run
is "and one that was made meanwhile counts" "$code" 200

# A list that cannot be read for want of descriptors is read as soon as it can be.
if command -v prlimit >/dev/null 2>&1; then
  peers
  lost=$(coffer token create lost 2>/dev/null)
  ask () {
    peer send held "HEAD /t/view HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Bearer $lost\\r\\n\\r\\n"
    peer status held
  }
  peer open held "${url#http://}"
  ask
  is "a token logs in" "$said" 200
  most=$(prlimit --pid "$server" --nofile --noheadings --output SOFT | tr -d ' ')
  coffer token revoke lost >/dev/null
  free=0
  while [ -h "/proc/$server/fd/$free" ]; do free=$((free + 1)); done
  prlimit --pid "$server" --nofile="$free:"
  ask
  prlimit --pid "$server" --nofile="$most:"
  is "without a descriptor for the list, those of before count" "$said" 200
  ask
  is "and with one the token that was revoked does not" "$said" 401
  peer close held
  peers_end
else
  skip "a list that cannot be read" prlimit
fi

printf 'no JSON' >"$COFFER_HOME/state/tokens.json"
bearer "$new" GET /t/run
is "a list that cannot be read leaves those of before" "$code" 200
like "and is said" "$(cat "$T/serve.err")" 'those of before still count'
rm "$COFFER_HOME/state/tokens.json"
bearer "$new" GET /t/run
is "one that is gone ends them all" "$code" 401

# -- browsers
port=${url##*:}
for host in evil.example "evil.example:$port" 127.0.0.1.evil.example localhost.evil.example \
  "[::1].evil.example" "" "127.1" "localhost@evil.example"; do
  tcp GET /t/open -H "Host: $host"
  case $host in
    "") continue ;;             # curl sends none: no browser does that
  esac
  is "asked as $host" "$code $(code_of)" "403 E1005"
done
for host in localhost "localhost:$port" LocalHost 127.0.0.1 "[::1]:8000" 10.0.0.1; do
  tcp GET /t/open -H "Host: $host"
  is "asked as $host" "$code" 200
done
for origin in null http://evil.example https://127.0.0.1:1 "https://127.0.0.1:$port" \
  "http://127.0.0.1:${port}0" "http://localhost:$port"; do
  tcp POST /t/echo -H "Origin: $origin" -d '{}'
  is "from a page of $origin" "$code $(code_of)" "403 E1005"
done
tcp POST /t/echo -H "Origin: http://127.0.0.1:$port" -d '{}'
is "from a page of its own" "$code" 200
tcp GET /t/open -H 'Sec-Fetch-Site: cross-site'
is "a link on a page elsewhere" "$code" 403
tcp GET /t/open -H 'Sec-Fetch-Site: none'
is "typed by somebody" "$code" 200
serve_stop
is "no token is in the log" "$(secrets "$T/serve.err" "$T/serve.out")" ""

# -- addresses that others reach
run coffer serve --check --listen 0.0.0.0:0
is "without a token they are refused" "$status" 2
like "in words" "$(cat "$err")" 'E6003: 0.0.0.0:0 can be reached from elsewhere'
run coffer serve --check --listen '[::]:0' --anonymous execute
is "for anybody, without a name, too" "$status" 2
run coffer serve --check --anonymous everything --listen none
is "more than execute is not to be had" "$status" 2
serve_start --listen 0.0.0.0:0 --anonymous execute --allow-host box.example
like "for anybody it warns" "$(cat "$T/serve.err")" 'warning: serve: 0.0.0.0:[0-9]+: .* open to anybody'
out_port=$(json_first "$T/serve.out" 'd["listen"][1]')
url=http://127.0.0.1:${out_port##*:}
tcp GET /t/open -H 'Host: box.example'
is "what is open is" "$code" 200
tcp GET /t/open -H 'Host: BOX.example:80'
is "by its name in any case" "$code" 200
tcp GET /t/view
is "all else is not" "$code" 401
tcp GET /t/open -H 'Host: other.example'
is "by another name it is not" "$code" 403
serve_stop
address=$(ip -4 -o addr show scope global 2>/dev/null | awk '{ sub ("/.*", "", $4); print $4; exit }')
coffer token create one >/dev/null 2>&1
if [ -n "$address" ]; then
  serve_start --listen "$address:0"
  outside=$(json_first "$T/serve.out" 'd["listen"][1]')
  url=http://$outside
  tcp GET /t/open
  is "elsewhere nothing is open that was not opened" "$code $(code_of)" "401 E1003"
  serve_stop
else
  skip "elsewhere nothing is open that was not opened" "a network"
fi

# -- other users of the socket
if [ "$(id -u)" -eq 0 ]; then
  as () { a_user=$1; shift
    setpriv --reuid "$a_user" --regid "$a_user" "$@" ; }
  user=$E2E_UID group=$((E2E_UID + 5000))
  mkdir "$T/open"; chmod 755 "$T/open"
  serve_config <<Y
serve:
  socket:
    path: $T/open/serve.sock
    users: [{name: $user, tenant: team-a, rights: view}]
    groups: [{name: $group, tenant: team-g}]
Y
  serve_start
  ask_as () { # UID GROUPS PATH
    setpriv --reuid "$1" --regid "$1" --groups "$2" curl -sS -o "$T/u/out" \
      -w '%{http_code}' --unix-socket "$socket" "http://localhost$3"
  }
  mkdir "$T/u"; chmod 777 "$T/u"; out=$T/u/out
  is "a user that is listed" "$(ask_as "$user" "$user" /t/view) $(json "$out" 'd["name"], d["tenant"], d["rights"]')" \
    "200 ('uid:$user', 'team-a', 1)"
  is "has no more than that" "$(ask_as "$user" "$group" /t/run) $(code_of)" "403 E1004"
  rm -f "$out"
  is "one of a group" "$(ask_as $((user + 1)) "$group" /t/run) $(json "$out" 'd["tenant"]')" \
    "200 team-g"
  rm -f "$out"
  is "and a stranger" "$(ask_as $((user + 2)) $((user + 2)) /t/open) $(code_of)" "403 E1004"
  out=$T/out
  serve_stop
  printf 'serve: {socket: {users: [{name: %s}]}}\n' "$user" | serve_config
  run coffer serve --listen none
  is "users who cannot reach the socket are an error" "$status" 2
  printf 'serve: {host_provider: true}\n' | serve_config
  run coffer serve --check
  is "root's daemon never has the provider host" "$status" 2
fi
finish
