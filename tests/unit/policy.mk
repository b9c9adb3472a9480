# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test-profile
%C%_test_profile_SOURCES = %D%/test-profile.c %D%/harness.h
%C%_test_profile_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_profile_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_profile_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_profile_LDADD = core/policy/libpolicy.a $(UNIT_BASE_LIBS)
