# SPDX-License-Identifier: Apache-2.0
# The host provider as a host sees it: its module, opened by dlopen, and its
# helper from the build tree.
UNIT_TESTS += %D%/test-host
%C%_test_host_SOURCES = %D%/test-host.c %D%/harness.h
%C%_test_host_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_host_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_host_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_host_LDADD = %D%/libfakehost.a $(SDK_UNIT_LIBS)
