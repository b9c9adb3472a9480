# SPDX-License-Identifier: Apache-2.0
# All of the command line but main, so that unit tests can link it; and the two
# programs, which differ in nothing but the paths compiled in.
noinst_LIBRARIES += core/cli/libcli.a
core_cli_libcli_a_CFLAGS = $(HOST_CC_FLAGS)
core_cli_libcli_a_SOURCES = \
  %D%/call.h \
  %D%/cli.h \
  %D%/commands.h \
  %D%/env.h \
  %D%/host.h \
  %D%/kit.h \
  %D%/libexec.h \
  %D%/operation.h \
  %D%/output.h \
  %D%/provider.h \
  %D%/run-python.h \
  %D%/scope.h \
  %D%/spec.h \
  %D%/work.h \
  %D%/call.c \
  %D%/call-streams.c \
  %D%/call-values.c \
  %D%/commands.c \
  %D%/contract.c \
  %D%/env.c \
  %D%/exec.c \
  %D%/explain.c \
  %D%/help.c \
  %D%/hint.c \
  %D%/host.c \
  %D%/invocation.c \
  %D%/kit.c \
  %D%/libexec.c \
  %D%/mount.c \
  %D%/operation.c \
  %D%/options.c \
  %D%/output.c \
  %D%/profile.c \
  %D%/progress.c \
  %D%/provider.c \
  %D%/provider-doctor.c \
  %D%/provider-info.c \
  %D%/provider-enable.c \
  %D%/provider-state.c \
  %D%/provider-install.c \
  %D%/run.c \
  %D%/run-python.c \
  %D%/sandbox.c \
  %D%/scope.c \
  %D%/sandbox-exec.c \
  %D%/sandbox-files.c \
  %D%/sandbox-life.c \
  %D%/sandbox-metrics.c \
  %D%/sandbox-port.c \
  %D%/sandbox-ps.c \
  %D%/seal.c \
  %D%/serve.c \
  %D%/spec.c \
  %D%/table.c \
  %D%/template.c \
  %D%/token.c \
  %D%/work.c \
  %D%/work-create.c \
  %D%/work-exec.c \
  %D%/work-files.c

# In the order in which they need each other.
cli_archives = %D%/libcli.a core/client/libclient.a \
  core/python/libpython.a \
  core/sandbox/libsandbox.a \
  core/store/libstore.a core/policy/libpolicy.a \
  core/provider/libprovider.a core/contract/libcontract.a core/base/libbase.a
cli_libs = sdk/lib/libcoffer-provider.a $(FFI_LIBS) $(YAML_LIBS) \
  $(JANSSON_LIBS) $(SECCOMP_LIBS) $(MD_LIBS)

noinst_PROGRAMS += coffer
coffer_CFLAGS = $(HOST_CC_FLAGS)
coffer_LDFLAGS = $(HOST_LINK_FLAGS)
coffer_SOURCES = %D%/main.c %D%/built-in.c %D%/built-in.h
coffer_LDADD = $(LINUX_BUILT_IN) $(cli_archives) core/base/libplace-build.a $(cli_libs)

bin_PROGRAMS += %D%/coffer
%C%_coffer_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_SOURCES = $(coffer_SOURCES)
%C%_coffer_LDADD = $(LINUX_BUILT_IN) $(cli_archives) core/base/libplace-install.a $(cli_libs)
