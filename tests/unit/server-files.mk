# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test-http1

%C%_test_http1_SOURCES = %D%/test-http1.c %D%/harness.h
%C%_test_http1_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_http1_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_http1_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_http1_LDADD = core/server/libserver.a $(UNIT_BASE_LIBS)
