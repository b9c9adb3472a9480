# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test-observe
%C%_test_observe_SOURCES = %D%/test-observe.c %D%/harness.h \
  core/server/otlp/encode.c
%C%_test_observe_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_observe_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_observe_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_observe_LDADD = core/server/libserver.a $(UNIT_BASE_LIBS) -lpthread
