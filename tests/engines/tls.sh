# SPDX-License-Identifier: Apache-2.0
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/engines/lib.sh"
. "$COFFER_SOURCE/tests/engines/provider.sh"
. "$COFFER_SOURCE/tests/engines/tls-lib.sh"
needs python3 openssl sha256sum
ok "certificates of both sides" certificates
tls_engine_of server
ok "docker: it comes up, on TCP with TLS" engine_start docker
provider_setup
tls_operator=$COFFER_HOME/config/providers.d/$provider.yaml
tls_coffer
folder_of "$T/folder" "$certs" "$certs"
tls_by_variables "$T/folder"
list_tls_way "by variables"
list_commands
list_files
list_timeout
list_background
list_parallel
run coffer sandbox kill --all --yes
tls_by_context "$T/folder"
list_tls_way "by a context"
tls_by_keys "$T/folder"
list_tls_way "by the provider's keys"
list_tls_secrets
list_tls_refused
engine_finish
