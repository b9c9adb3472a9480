# SPDX-License-Identifier: Apache-2.0
UNIT_TESTS += %D%/test-contract %D%/test-codec
UNIT_CONTRACT_LIBS = core/contract/libcontract.a $(UNIT_BASE_LIBS) $(FFI_LIBS)

%C%_test_contract_SOURCES = %D%/test-contract.c %D%/contract-values.h \
  %D%/harness.h
%C%_test_contract_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_contract_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_contract_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_contract_LDADD = $(UNIT_CONTRACT_LIBS)

%C%_test_codec_SOURCES = %D%/test-codec.c %D%/contract-values.h %D%/harness.h
%C%_test_codec_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_codec_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_codec_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_codec_LDADD = $(UNIT_CONTRACT_LIBS)

UNIT_TESTS += %D%/test-layout
%C%_test_layout_SOURCES = %D%/test-layout.c %D%/harness.h
%C%_test_layout_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_layout_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_layout_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_layout_LDADD = $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-call
%C%_test_call_SOURCES = %D%/test-call.c %D%/harness.h
%C%_test_call_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_call_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_call_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_call_LDADD = core/cli/libcli.a $(UNIT_CONTRACT_LIBS)
