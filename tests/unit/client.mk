# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test-client
%C%_test_client_SOURCES = %D%/test-client.c %D%/harness.h
%C%_test_client_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_client_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_client_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_client_LDADD = core/client/libclient.a $(UNIT_BASE_LIBS)
