# SPDX-License-Identifier: Apache-2.0
# Modules and hosts of different minors, meeting.

# -- major 0: the real contract ----------------------------------------------
UNIT_TESTS += %D%/test-minors
%C%_test_minors_SOURCES = %D%/test-minors.c tests/unit/harness.h
%C%_test_minors_CPPFLAGS = $(UNIT_CPP_FLAGS)
%C%_test_minors_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_minors_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_minors_LDADD = core/provider/libprovider.a $(UNIT_CONTRACT_LIBS)
EXTRA_%C%_test_minors_DEPENDENCIES = $(abi_modules)

abi_modules = %D%/witness-0-0.so %D%/witness-0-1.so %D%/witness-0-2.so
%C%_witness_0_0_so_SOURCES = %D%/witness.c
%C%_witness_0_0_so_CPPFLAGS = $(MODULE_CPP_FLAGS) -DCOFFER_CONTRACT_MINOR=0
%C%_witness_0_0_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_witness_0_0_so_LDFLAGS = $(MODULE_LINK_FLAGS)
%C%_witness_0_1_so_SOURCES = %D%/witness.c
%C%_witness_0_1_so_CPPFLAGS = $(MODULE_CPP_FLAGS)
%C%_witness_0_1_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_witness_0_1_so_LDFLAGS = $(MODULE_LINK_FLAGS)
# It says that it could live with an older host, which before 1.0 it cannot.
%C%_witness_0_2_so_SOURCES = %D%/witness.c
%C%_witness_0_2_so_CPPFLAGS = $(MODULE_CPP_FLAGS) -DCOFFER_CONTRACT_MINOR=2 \
  -DCOFFER_LEAST_MINOR=1
%C%_witness_0_2_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_witness_0_2_so_LDFLAGS = $(MODULE_LINK_FLAGS)

# -- major 1: a contract of the tests ----------------------------------------
GROWTH_INCLUDE = -I$(top_srcdir)/%D%/growth/include
abi_modules += %D%/growth/greeter-0.so %D%/growth/greeter-1.so \
  %D%/growth/greeter-1-only.so
%C%_growth_greeter_0_so_SOURCES = %D%/growth/greeter.c
%C%_growth_greeter_0_so_CPPFLAGS = $(GROWTH_INCLUDE) $(MODULE_CPP_FLAGS) \
  -DCOFFER_CONTRACT_MINOR=0
%C%_growth_greeter_0_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_growth_greeter_0_so_LDFLAGS = $(MODULE_LINK_FLAGS)
%C%_growth_greeter_1_so_SOURCES = %D%/growth/greeter.c
%C%_growth_greeter_1_so_CPPFLAGS = $(GROWTH_INCLUDE) $(MODULE_CPP_FLAGS) \
  -DCOFFER_LEAST_MINOR=0
%C%_growth_greeter_1_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_growth_greeter_1_so_LDFLAGS = $(MODULE_LINK_FLAGS)
%C%_growth_greeter_1_only_so_SOURCES = %D%/growth/greeter.c
%C%_growth_greeter_1_only_so_CPPFLAGS = $(GROWTH_INCLUDE) $(MODULE_CPP_FLAGS)
%C%_growth_greeter_1_only_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_growth_greeter_1_only_so_LDFLAGS = $(MODULE_LINK_FLAGS)
check_PROGRAMS += $(abi_modules)

# The host's own sources, compiled against that contract.
growth_host_sources = %D%/growth/test-growth.c \
  %D%/growth/include/coffer/contract.h tests/unit/harness.h \
  core/contract/calls.c core/contract/codec.c core/contract/copy.c \
  core/contract/table.c core/contract/values.c core/provider/elf.c \
  core/provider/elf-dynamic.c core/provider/elf-needed.c \
  core/provider/loader.c
# Of the archive only integrity.o is left to take.
growth_host_libs = core/provider/libprovider.a $(UNIT_BASE_LIBS) $(FFI_LIBS)
UNIT_TESTS += %D%/growth/test-host-0 %D%/growth/test-host-1
%C%_growth_test_host_0_SOURCES = $(growth_host_sources)
%C%_growth_test_host_0_CPPFLAGS = $(GROWTH_INCLUDE) $(UNIT_CPP_FLAGS) \
  -DCOFFER_CONTRACT_MINOR=0
%C%_growth_test_host_0_CFLAGS = $(UNIT_CC_FLAGS)
%C%_growth_test_host_0_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_growth_test_host_0_LDADD = $(growth_host_libs)
EXTRA_%C%_growth_test_host_0_DEPENDENCIES = $(abi_modules)
%C%_growth_test_host_1_SOURCES = $(growth_host_sources)
%C%_growth_test_host_1_CPPFLAGS = $(GROWTH_INCLUDE) $(UNIT_CPP_FLAGS)
%C%_growth_test_host_1_CFLAGS = $(UNIT_CC_FLAGS)
%C%_growth_test_host_1_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_growth_test_host_1_LDADD = $(growth_host_libs)
EXTRA_%C%_growth_test_host_1_DEPENDENCIES = $(abi_modules)

# -- what was released --------------------------------------------------------
EXTRA_DIST += \
  %D%/baseline-0.1-x86_64.abi \
  %D%/modules/README.md \
  %D%/modules/keep.sh \
  %D%/modules/x86_64/greeter-1.0.so \
  %D%/modules/x86_64/greeter-1.1.so \
  %D%/shape.c
.PHONY: update-abi
update-abi:
	COFFER_SOURCE=$(abs_srcdir) COFFER_BUILD=$(abs_builddir) \
	  $(SHELL) $(srcdir)/tests/build/abi.sh update
