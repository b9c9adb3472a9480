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
EXTRA_%C%_test_worker_DEPENDENCIES = $(TEST_MODULES) \
  core/provider/worker/coffer-worker tests/modules/fake/coffer-worker

UNIT_TESTS += %D%/test-worker-start
%C%_test_worker_start_SOURCES = %D%/test-worker-start.c %D%/provider-fixture.c \
  %D%/provider-fixture.h %D%/harness.h
%C%_test_worker_start_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_worker_start_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_worker_start_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_worker_start_LDADD = $(UNIT_PROVIDER_LIBS)
EXTRA_%C%_test_worker_start_DEPENDENCIES = $(TEST_MODULES) \
  core/provider/worker/coffer-worker tests/modules/fake/coffer-worker

UNIT_TESTS += %D%/test-dispatch
%C%_test_dispatch_SOURCES = %D%/test-dispatch.c %D%/provider-fixture.c \
  %D%/provider-fixture.h %D%/harness.h
%C%_test_dispatch_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_dispatch_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_dispatch_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_dispatch_LDADD = $(UNIT_PROVIDER_LIBS)
EXTRA_%C%_test_dispatch_DEPENDENCIES = $(TEST_MODULES) \
  core/provider/worker/coffer-worker

UNIT_TESTS += %D%/test-broker
%C%_test_broker_SOURCES = %D%/test-broker.c %D%/provider-fixture.c \
  %D%/provider-fixture.h %D%/harness.h
%C%_test_broker_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_broker_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_broker_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_broker_LDADD = $(UNIT_PROVIDER_LIBS)
EXTRA_%C%_test_broker_DEPENDENCIES = $(TEST_MODULES) \
  core/provider/worker/coffer-worker

UNIT_TESTS += %D%/test-credentials
%C%_test_credentials_SOURCES = %D%/test-credentials.c %D%/provider-fixture.c \
  %D%/provider-fixture.h %D%/harness.h
%C%_test_credentials_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_credentials_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_credentials_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_credentials_LDADD = $(UNIT_PROVIDER_LIBS)
EXTRA_%C%_test_credentials_DEPENDENCIES = $(TEST_MODULES) \
  core/provider/worker/coffer-worker

UNIT_TESTS += %D%/test-redact
%C%_test_redact_SOURCES = %D%/test-redact.c %D%/provider-fixture.c \
  %D%/provider-fixture.h %D%/harness.h
%C%_test_redact_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_redact_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_redact_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_redact_LDADD = $(UNIT_PROVIDER_LIBS)
EXTRA_%C%_test_redact_DEPENDENCIES = $(TEST_MODULES) \
  core/provider/worker/coffer-worker

UNIT_TESTS += %D%/test-rights
%C%_test_rights_SOURCES = %D%/test-rights.c %D%/provider-fixture.c \
  %D%/provider-fixture.h %D%/harness.h
%C%_test_rights_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_rights_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_rights_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_rights_LDADD = $(UNIT_PROVIDER_LIBS) $(SECCOMP_LIBS)
EXTRA_%C%_test_rights_DEPENDENCIES = $(TEST_MODULES) \
  core/provider/worker/coffer-worker

UNIT_TESTS += %D%/test-hostile
%C%_test_hostile_SOURCES = %D%/test-hostile.c %D%/hostile-run.c \
  %D%/hostile-run.h %D%/hostile-world.c \
  %D%/hostile-world.h %D%/provider-fixture.c %D%/provider-fixture.h \
  %D%/harness.h
%C%_test_hostile_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_hostile_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_hostile_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_hostile_LDADD = $(UNIT_PROVIDER_LIBS)
EXTRA_%C%_test_hostile_DEPENDENCIES = $(TEST_MODULES) \
  core/provider/worker/coffer-worker

UNIT_TESTS += %D%/test-hostile-hangs
%C%_test_hostile_hangs_SOURCES = %D%/test-hostile-hangs.c %D%/hostile-run.c \
  %D%/hostile-run.h %D%/hostile-world.c \
  %D%/hostile-world.h %D%/provider-fixture.c %D%/provider-fixture.h \
  %D%/harness.h
%C%_test_hostile_hangs_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_hostile_hangs_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_hostile_hangs_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_hostile_hangs_LDADD = $(UNIT_PROVIDER_LIBS)
EXTRA_%C%_test_hostile_hangs_DEPENDENCIES = $(TEST_MODULES) \
  core/provider/worker/coffer-worker
