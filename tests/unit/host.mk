# SPDX-License-Identifier: Apache-2.0
# The host provider as a host sees it: its module, opened by dlopen, and its
# helper from the build tree.
HOST_UNIT = %D%/host-provider.c %D%/host-provider.h %D%/harness.h

UNIT_TESTS += %D%/test-host
%C%_test_host_SOURCES = %D%/test-host.c $(HOST_UNIT)
%C%_test_host_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_host_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_host_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_host_LDADD = %D%/libfakehost.a $(SDK_UNIT_LIBS)

UNIT_TESTS += %D%/test-host-ends
%C%_test_host_ends_SOURCES = %D%/test-host-ends.c $(HOST_UNIT)
%C%_test_host_ends_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_host_ends_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_host_ends_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_host_ends_LDADD = %D%/libfakehost.a $(SDK_UNIT_LIBS)

UNIT_TESTS += %D%/test-host-life
%C%_test_host_life_SOURCES = %D%/test-host-life.c $(HOST_UNIT)
%C%_test_host_life_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_host_life_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_host_life_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_host_life_LDADD = %D%/libfakehost.a $(SDK_UNIT_LIBS)
