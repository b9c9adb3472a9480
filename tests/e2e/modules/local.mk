# SPDX-License-Identifier: Apache-2.0
# Provider modules that scenarios install for themselves.
check_PROGRAMS += %D%/parrot.so
%C%_parrot_so_SOURCES = %D%/parrot.c
%C%_parrot_so_CPPFLAGS = $(MODULE_CPP_FLAGS)
%C%_parrot_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_parrot_so_LDFLAGS = $(MODULE_LINK_FLAGS)
EXTRA_DIST += %D%/parrot.yaml

# The manual's example.
check_PROGRAMS += %D%/demo.so
%C%_demo_so_SOURCES = sdk/doc/demo.c
%C%_demo_so_CPPFLAGS = $(MODULE_CPP_FLAGS)
%C%_demo_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_demo_so_LDFLAGS = $(MODULE_LINK_FLAGS)

# What the SDK's template is made into, as its own Makefile does it.
check_PROGRAMS += %D%/example.so
%C%_example_so_SOURCES = sdk/template/example.c sdk/template/inside.c
%C%_example_so_CPPFLAGS = $(MODULE_CPP_FLAGS)
%C%_example_so_CFLAGS = $(MODULE_CC_FLAGS) -pthread
%C%_example_so_LDFLAGS = $(MODULE_LINK_FLAGS)
%C%_example_so_LDADD = sdk/lib/libcoffer-provider.a
