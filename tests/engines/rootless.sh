# SPDX-License-Identifier: Apache-2.0
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/engines/lib.sh"
. "$COFFER_SOURCE/tests/engines/hello.sh"
ok "rootless: it comes up" engine_start rootless
hello
engine_finish
