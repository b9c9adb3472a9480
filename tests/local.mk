# SPDX-License-Identifier: Apache-2.0
# A unit test is a program in UNIT_TESTS; a scenario is a script in SCENARIOS.
# Both are listed once, here both run and are shipped.
UNIT_TESTS =
SCENARIOS =
UNIT_CPP_FLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit $(CMOCKA_CFLAGS)
UNIT_CC_FLAGS = $(HOST_CC_FLAGS)
# What a test of core/base links; tests of upper layers put theirs before it.
UNIT_BASE_LIBS = core/base/libbase.a core/base/libplace-build.a \
  sdk/lib/libcoffer-provider.a \
  $(YAML_LIBS) $(JANSSON_LIBS) $(MD_LIBS) $(CMOCKA_LIBS)

include tests/unit/base.mk
include tests/unit/sdk.mk
include tests/unit/http.mk
include tests/unit/docker.mk
include tests/unit/host.mk
include tests/unit/linux.mk
include tests/attack/local.mk
include tests/unit/contract.mk
include tests/unit/manifest.mk
include tests/unit/worker.mk
include tests/unit/policy.mk
include tests/unit/sandbox.mk
include tests/unit/python.mk
include tests/unit/client.mk
include tests/unit/cli.mk
include tests/unit/observe.mk
include tests/modules/local.mk
include tests/abi/local.mk
include tests/build/local.mk
include tests/docs/local.mk
include tests/e2e/local.mk
include tests/server/local.mk
include tests/server/document.mk
include tests/e2e/modules/local.mk
include tests/mutants/local.mk
include tests/fuzz/local.mk
include tests/guest/local.mk
include tests/engines/local.mk
include tests/debian/local.mk
include tests/bench/local.mk

if HAVE_CMOCKA
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
else
TESTS += %D%/unit/no-cmocka.sh
endif
TESTS += $(SCENARIOS)
EXTRA_DIST += $(SCENARIOS) %D%/unit/no-cmocka.sh %D%/unit/run.sh
EXTRA_DIST += %D%/skips.allow
EXTRA_DIST += %D%/long.sh

# The full counts: soaks, guests of other kernels, fuzzing under ASan.
check-long: all
	COFFER_BUILD='$(abs_top_builddir)' COFFER_SOURCE='$(abs_top_srcdir)' \
	  CHECK_SCALE="$${CHECK_SCALE:-100}" $(SHELL) $(srcdir)/%D%/long.sh '$(MAKE)'
.PHONY: check-long
