# SPDX-License-Identifier: Apache-2.0
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/engines/lib.sh"
. "$COFFER_SOURCE/tests/engines/hello.sh"
. "$COFFER_SOURCE/tests/engines/provider.sh"
. "$COFFER_SOURCE/tests/engines/registry.sh"
. "$COFFER_SOURCE/tests/engines/hang-lib.sh"
. "$COFFER_SOURCE/tests/engines/trees.sh"
. "$COFFER_SOURCE/tests/e2e/kit-lib.sh"
needs python3
engine_own=yes
ok "docker: it comes up" engine_start docker
hello
provider_setup
list_all
list_images
list_registry
list_hang
list_kit 'exec.t*'
engine_finish
