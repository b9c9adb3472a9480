# SPDX-License-Identifier: Apache-2.0
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
. "$COFFER_SOURCE/tests/engines/lib.sh"
. "$COFFER_SOURCE/tests/engines/hello.sh"
ok "docker: it comes up" engine_start docker
hello
engine_finish
