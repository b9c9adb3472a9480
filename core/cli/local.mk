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

# One that has the paths of the build tree and one with those of the
# installation.  What is called `coffer` there is either itself, or a small
# program with a C library that starts at once, which executes it.
if FRONT
noinst_PROGRAMS += %D%/build/coffer
stage_helpers += %D%/build/coffer
%C%_build_coffer_CFLAGS = $(HOST_CC_FLAGS)
%C%_build_coffer_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_build_coffer_SOURCES = $(coffer_sources)
%C%_build_coffer_LDADD = $(LINUX_BUILT_IN) $(cli_archives) \
  core/base/libplace-build.a $(cli_libs)
pkglibexec_PROGRAMS += %D%/coffer
else
noinst_PROGRAMS += coffer
coffer_CFLAGS = $(HOST_CC_FLAGS)
coffer_LDFLAGS = $(HOST_LINK_FLAGS)
coffer_SOURCES = $(coffer_sources)
coffer_LDADD = $(LINUX_BUILT_IN) $(cli_archives) core/base/libplace-build.a \
  $(cli_libs)
bin_PROGRAMS += %D%/coffer
endif
coffer_sources = %D%/main.c %D%/begun.h %D%/built-in.c %D%/built-in.h
%C%_coffer_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_SOURCES = $(coffer_sources)
%C%_coffer_LDADD = $(LINUX_BUILT_IN) $(cli_archives) \
  core/base/libplace-install.a $(cli_libs)

# Of the small one's objects what it does not need is left out when it is linked,
# with what only that would need.  Kernel headers and those of jansson are the
# system's, found after the C library's own.
front_own = %D%/front.c %D%/front-errors.c
EXTRA_DIST += $(front_own)
if FRONT
front_sources = %D%/front-errors.c $(LINUX_FRONT) core/base/place.c \
  core/base/text.c core/provider/integrity.c sdk/lib/buffer.c sdk/lib/fd.c \
  sdk/lib/packet.c
front_compile = $(MUSL_CC) -std=gnu11 $(FRONT_FLAGS) $(WARN) $(HARDEN) \
  -D_GNU_SOURCE= -I. -I$(top_srcdir)/core -I$(top_srcdir)/sdk/include
front_link = $(front_compile) $(place_defines) -static -s -Wl,--gc-sections \
  -Wl,-z,noexecstack -Wl,-z,relro $(srcdir)/%D%/front.c %D%/front.o
%D%/front.o: $(front_sources) $(coffer_sources) \
    $(plugins_linux_linux_so_SOURCES) $(core_base_libbase_a_SOURCES) \
    plugins/linux/coffer-init$(EXEEXT) plugins/linux/build-id
	$(AM_V_CC)rm -rf $@.parts && $(MKDIR_P) $@.parts && \
	for f in $(front_sources); do \
	  o=$${f##*/}; \
	  $(front_compile) -c -o $@.parts/$${o%.c}.o $(srcdir)/$$f || exit 1; \
	done && \
	$(LD) -r -o $@ $@.parts/*.o && rm -rf $@.parts
coffer: %D%/front.c %D%/front.o core/base/place-build.c
	$(AM_V_CCLD)$(front_link) -o $@.new $(srcdir)/core/base/place-build.c \
	  -DFRONT_PATH='"$(abs_top_builddir)/coffer"' && mv $@.new $@
%D%/front/coffer: %D%/front.c %D%/front.o core/base/place-install.c
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && \
	$(front_link) -o $@ $(srcdir)/core/base/place-install.c \
	  -DFRONT_PATH='"$(bindir)/coffer"'
bin_SCRIPTS = %D%/front/coffer
CLEANFILES += coffer %D%/front.o %D%/front/coffer
endif
