# SPDX-License-Identifier: Apache-2.0
# All of the command line but main, so that unit tests can link it; and the two
# programs, which differ in nothing but the paths compiled in.
noinst_LIBRARIES += core/cli/libcli.a
core_cli_libcli_a_CFLAGS = $(HOST_CC_FLAGS)
core_cli_libcli_a_SOURCES = \
  %D%/cli.h %D%/commands.h %D%/output.h \
  %D%/commands.c %D%/explain.c %D%/help.c %D%/invocation.c %D%/options.c \
  %D%/output.c %D%/progress.c %D%/table.c
