# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test-error %D%/test-text %D%/test-place

%C%_test_error_SOURCES = %D%/test-error.c %D%/harness.h
%C%_test_error_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_error_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_error_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_error_LDADD = $(UNIT_BASE_LIBS)

%C%_test_text_SOURCES = %D%/test-text.c %D%/harness.h
%C%_test_text_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_text_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_text_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_text_LDADD = $(UNIT_BASE_LIBS)

%C%_test_place_SOURCES = %D%/test-place.c %D%/harness.h
%C%_test_place_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_place_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_place_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_place_LDADD = $(UNIT_BASE_LIBS)

UNIT_TESTS += %D%/test-minisign
%C%_test_minisign_SOURCES = %D%/test-minisign.c %D%/harness.h
%C%_test_minisign_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_minisign_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_minisign_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_minisign_LDADD = $(UNIT_BASE_LIBS)

UNIT_TESTS += %D%/test-sha256
%C%_test_sha256_SOURCES = %D%/test-sha256.c %D%/harness.h
%C%_test_sha256_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_sha256_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_sha256_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_sha256_LDADD = $(UNIT_BASE_LIBS)
