# SPDX-License-Identifier: Apache-2.0
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/engines/lib.sh"
. "$COFFER_SOURCE/tests/engines/hello.sh"
ok "gvisor: it comes up" engine_start gvisor
hello
engine_finish
