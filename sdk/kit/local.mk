# SPDX-License-Identifier: Apache-2.0
# The conformance kit: cases, which see what any author sees, and the runner,
# which alone knows the host.
noinst_LIBRARIES += %D%/libkit-cases.a %D%/libkit-runner.a

%C%_libkit_cases_a_CPPFLAGS = -I$(top_srcdir)/sdk/include -D_GNU_SOURCE
%C%_libkit_cases_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libkit_cases_a_SOURCES = \
  %D%/kit.h \
  %D%/cases.c \
  %D%/case.h \
  %D%/case-archives.c \
  %D%/case-bytes.c \
  %D%/case-exec.c \
  %D%/case-exec-life.c \
  %D%/case-exec-more.c \
  %D%/case-exec-streams.c \
  %D%/case-files.c \
  %D%/case-files-names.c \
  %D%/case-files-tree.c \
  %D%/case-isolation.c \
  %D%/case-lib.c \
  %D%/case-limits.c \
  %D%/case-metrics.c \
  %D%/case-pause.c \
  %D%/case-ports.c \
  %D%/case-secrets.c \
  %D%/case-snapshots.c \
  %D%/case-ttl.c \
  %D%/case-codes.c \
  %D%/case-codes-reach.c \
  %D%/case-life.c \
  %D%/case-load.c \
  %D%/case-strain.c \
  %D%/case-time.c \
  %D%/case-warm.c

%C%_libkit_runner_a_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
%C%_libkit_runner_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libkit_runner_a_SOURCES = \
  %D%/runner/call.c \
  %D%/runner/case.c \
  %D%/runner/compare.c \
  %D%/runner/folders.c \
  %D%/runner/instance.c \
  %D%/runner/odd.c \
  %D%/runner/process.c \
  %D%/runner/record.c \
  %D%/runner/report.c \
  %D%/runner/run.c \
  %D%/runner/runner.h \
  %D%/runner/steps.c \
  %D%/runner/subject.c \
  %D%/runner/tap.c \
  %D%/runner/world.c

kit_archives = %D%/libkit-runner.a %D%/libkit-cases.a %D%/libkit-runner.a \
  core/provider/libprovider.a core/contract/libcontract.a \
  core/base/libbase.a
kit_libs = sdk/lib/libcoffer-provider.a $(FFI_LIBS) $(YAML_LIBS) \
  $(JANSSON_LIBS) $(SECCOMP_LIBS) $(MD_LIBS)

# --in-process stands for the worker.
kit_connect = core/provider/worker/connect.c

# As of `coffer` there are two programs, which differ in the paths compiled in:
# the one of the build tree takes the other's place in stage/.
pkglibexec_PROGRAMS += %D%/coffer-kit
%C%_coffer_kit_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
%C%_coffer_kit_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_kit_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_kit_SOURCES = %D%/runner/main.c $(kit_connect)
%C%_coffer_kit_LDADD = $(kit_archives) core/base/libplace-install.a \
  $(kit_libs)

noinst_PROGRAMS += %D%/runner/coffer-kit
stage_helpers += %D%/runner/coffer-kit
%C%_runner_coffer_kit_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
%C%_runner_coffer_kit_CFLAGS = $(HOST_CC_FLAGS)
%C%_runner_coffer_kit_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_runner_coffer_kit_SOURCES = %D%/runner/main.c $(kit_connect)
%C%_runner_coffer_kit_LDADD = $(kit_archives) core/base/libplace-build.a \
  $(kit_libs)
