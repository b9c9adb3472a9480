# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test-python
%C%_test_python_SOURCES = %D%/test-python.c %D%/harness.h
%C%_test_python_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_python_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_python_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_python_LDADD = core/python/libpython.a $(SANDBOX_TEST_LIBS)
