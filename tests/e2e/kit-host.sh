# SPDX-License-Identifier: Apache-2.0
# The provider host keeps the contract: the whole kit, in a worker.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/e2e/kit-lib.sh"
roles both alike
needs python3
kit_conformant host
finish
