# SPDX-License-Identifier: Apache-2.0
# Providers of test modules, in workers and in this process.
include tests/modules/hostile.mk

UNIT_TESTS += %D%/test-worker
%C%_test_worker_SOURCES = %D%/test-worker.c %D%/provider-fixture.c \
  %D%/provider-fixture.h %D%/harness.h
%C%_test_worker_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_worker_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_worker_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_worker_LDADD = $(UNIT_PROVIDER_LIBS)
%C%_test_worker_DEPENDENCIES = $(UNIT_PROVIDER_LIBS) $(TEST_MODULES) \
  core/provider/worker/coffer-worker
