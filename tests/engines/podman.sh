# SPDX-License-Identifier: Apache-2.0
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/engines/lib.sh"
. "$COFFER_SOURCE/tests/engines/hello.sh"
. "$COFFER_SOURCE/tests/engines/provider.sh"
. "$COFFER_SOURCE/tests/engines/trees.sh"
. "$COFFER_SOURCE/tests/e2e/kit-lib.sh"
needs python3
engine_own=yes
ok "podman: it comes up" engine_start podman
hello
provider_setup
list_all
list_images
list_kit 'load.*'
engine_finish
