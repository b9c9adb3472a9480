# SPDX-License-Identifier: Apache-2.0
include tests/unit/base.mk
include tests/unit/sdk.mk
include tests/unit/contract.mk
include tests/unit/manifest.mk
include tests/unit/worker.mk
include tests/unit/sandbox.mk
include tests/unit/cli.mk
include tests/e2e/local.mk
include tests/fuzz/local.mk
include tests/bench/local.mk
