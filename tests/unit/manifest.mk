# SPDX-License-Identifier: Apache-2.0
UNIT_PROVIDER_LIBS = core/provider/libprovider.a $(UNIT_CONTRACT_LIBS) \
  $(SECCOMP_LIBS)
EXTRA_DIST += tests/corpus

UNIT_TESTS += %D%/test-yaml
%C%_test_yaml_SOURCES = %D%/test-yaml.c %D%/harness.h
%C%_test_yaml_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_yaml_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_yaml_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_yaml_LDADD = $(UNIT_BASE_LIBS)

UNIT_TESTS += %D%/test-yaml-edit
%C%_test_yaml_edit_SOURCES = %D%/test-yaml-edit.c %D%/harness.h
%C%_test_yaml_edit_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_yaml_edit_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_yaml_edit_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_yaml_edit_LDADD = $(UNIT_BASE_LIBS)

UNIT_TESTS += %D%/test-manifest
%C%_test_manifest_SOURCES = %D%/test-manifest.c %D%/harness.h
%C%_test_manifest_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_manifest_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_manifest_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_manifest_LDADD = $(UNIT_PROVIDER_LIBS)

UNIT_TESTS += %D%/test-elf
%C%_test_elf_SOURCES = %D%/test-elf.c %D%/harness.h
%C%_test_elf_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_elf_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_elf_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_elf_LDADD = $(UNIT_PROVIDER_LIBS)
EXTRA_%C%_test_elf_DEPENDENCIES = $(bad_modules)

UNIT_TESTS += %D%/test-integrity
%C%_test_integrity_SOURCES = %D%/test-integrity.c %D%/harness.h
%C%_test_integrity_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_integrity_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_integrity_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_integrity_LDADD = $(UNIT_PROVIDER_LIBS)

UNIT_TESTS += %D%/test-registry %D%/test-registry-values
%C%_test_registry_values_SOURCES = %D%/test-registry-values.c \
  %D%/registry-fixture.c %D%/registry-fixture.h %D%/harness.h
%C%_test_registry_values_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_registry_values_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_registry_values_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_registry_values_LDADD = $(UNIT_PROVIDER_LIBS)
%C%_test_registry_SOURCES = %D%/test-registry.c %D%/registry-fixture.c \
  %D%/registry-fixture.h %D%/harness.h
%C%_test_registry_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_registry_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_registry_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_registry_LDADD = $(UNIT_PROVIDER_LIBS)

UNIT_TESTS += %D%/test-tool
%C%_test_tool_SOURCES = %D%/test-tool.c %D%/harness.h
%C%_test_tool_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_tool_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_tool_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_tool_LDADD = $(UNIT_PROVIDER_LIBS)

UNIT_TESTS += %D%/test-receipt
%C%_test_receipt_SOURCES = %D%/test-receipt.c %D%/harness.h
%C%_test_receipt_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_receipt_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_receipt_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_receipt_LDADD = $(UNIT_PROVIDER_LIBS)

UNIT_TESTS += %D%/test-seal
%C%_test_seal_SOURCES = %D%/test-seal.c %D%/harness.h
%C%_test_seal_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_seal_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_seal_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_seal_LDADD = $(UNIT_PROVIDER_LIBS)
EXTRA_%C%_test_seal_DEPENDENCIES = $(bad_modules)

UNIT_TESTS += %D%/test-manifest-docs
%C%_test_manifest_docs_SOURCES = %D%/test-manifest-docs.c %D%/harness.h
%C%_test_manifest_docs_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_manifest_docs_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_manifest_docs_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_manifest_docs_LDADD = $(UNIT_PROVIDER_LIBS)
