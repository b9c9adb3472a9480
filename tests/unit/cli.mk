# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test-cli
%C%_test_cli_SOURCES = %D%/test-cli.c %D%/harness.h
%C%_test_cli_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_cli_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_cli_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_cli_LDADD = $(cli_archives) $(UNIT_BASE_LIBS) $(cli_libs)
