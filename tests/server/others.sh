# SPDX-License-Identifier: Apache-2.0
# What tokens of another tenant, or of fewer rights, reach of files, ports and
# providers: another's sandbox is not there, and the host's paths are not shown.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/server/lib.sh"
needs curl python3
needs_sandbox

other=$(coffer token create other --tenant team-b --rights run 2>"$err")
view=$(coffer token create view --rights view 2>"$err")
boss=$(coffer token create boss --tenant team-b --rights manage 2>"$err")
ops=$(coffer token create ops --rights operate 2>"$err")
may=$(coffer token create may --rights run 2>"$err")
mkdir -p "$COFFER_HOME/config/profiles"
sed 's/^name: .*/name: ours/' "$COFFER_SOURCE/manifests/profiles/offline-readonly.yaml" \
  >"$COFFER_HOME/config/profiles/ours.yaml"
chmod go-w "$COFFER_HOME/config" "$COFFER_HOME/config/profiles" \
  "$COFFER_HOME/config/profiles/ours.yaml"
serve_start || { ok "the daemon starts" false; finish; }
id=$(coffer sandbox create) && remember "$id"
box=/api/v1/sandboxes/$id
as () { # TOKEN METHOD PATH [CURL OPTION…]
  as_token=$1 as_method=$2 as_path=$3; shift 3
  tcp "$as_method" "$as_path" -H "Authorization: Bearer $as_token" "$@"
}
said () { printf '%s %s' "$code" "$(json "$out" 'd["error"]["code"]')"; }

as "$may" PUT "$box/files/mine" -d secret
is "a token writes for its tenant" "$code" 200
as "$may" GET "$box/files/mine"
is "and reads" "$code $(cat "$out")" "200 secret"
for what in 'GET files/mine' 'GET files/?op=list' 'PUT files/x' 'POST files/x?op=mkdir' \
    'DELETE files/mine' 'GET watch/' 'GET archive/' 'PUT archive/' 'GET ports/80' \
    'GET ports/80/' 'GET metrics'; do
  as "$other" "${what% *}" "$box/${what#* }"
  is "for another tenant it is not there: $what" "$(said)" "404 E2009"
  as "$view" "${what% *}" "$box/${what#* }"
  if [ "$what" = 'GET metrics' ]; then
    is "who may look sees $what" "$code" 200
  else
    is "who may look may not: $what" "$code" 403
  fi
done
as "$may" GET "$box/files/mine"
is "it is as it was" "$(cat "$out")" secret

as "$view" GET /api/v1/providers
is "who may look sees the providers" "$code" 200
as "$view" GET /api/v1/providers/linux
is "and one, but not where it lies" \
  "$code $(json "$out" 'd["id"], sorted (set (d) & {"manifest", "config", "operator_file", "receipt"})')" \
  "200 ('linux', [])"
as "$view" GET /api/v1/profiles/ours
is "nor where a profile does" "$code $(json "$out" 'd["name"], d["source"]')" \
  "200 ('ours', 'operator')"
as "$may" GET /api/v1/providers/linux/doctor
is "only for those who manage: what is wrong with one" "$code" 403
# A tenant's own manager changes nothing for the others.
for what in enable disable default kit; do
  to=providers/linux/$what
  [ "$what" != kit ] || to=kit/linux
  as "$boss" POST "/api/v1/$to"
  is "only for who operates: $what" "$code $(json "$out" 'd["error"]["code"]')" "403 E1004"
done
as "$boss" GET /api/v1/providers/linux/doctor
is "who manages sees what is wrong with one" "$code $(json "$out" 'd["id"]')" "200 linux"
as "$may" GET /api/v1/providers
is "and nothing was changed" \
  "$(json "$out" '[p["state"] for p in d["providers"] if p["id"] == "linux"]')" "['enabled']"
as "$ops" POST /api/v1/providers/linux/disable
is "who operates does so" "$code $(json "$out" 'd["state"]')" "200 disabled"
as "$ops" POST /api/v1/providers/linux/enable
is "and back" "$code $(json "$out" 'd["state"]')" "200 enabled"
tcp GET "$box/files/mine"
is "nothing without a token" "$code" 401

coffer sandbox kill "$id" >/dev/null
serve_stop
is "the daemon ends" "$status" 0
unlike "nothing broke in it" "$(cat "$T/serve.err") ." "AddressSanitizer|ThreadSanitizer|runtime error"
finish
