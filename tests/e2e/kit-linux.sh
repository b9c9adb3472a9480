# SPDX-License-Identifier: Apache-2.0
# The provider linux keeps the contract: the whole kit, in a worker.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/e2e/kit-lib.sh"
roles both
needs python3
needs_sandbox
kit_conformant linux
finish
