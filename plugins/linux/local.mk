# SPDX-License-Identifier: Apache-2.0
# The provider `linux` and the first process of its sandboxes.

providers_PROGRAMS += %D%/linux.so %D%/coffer-init %D%/coffer-proxy \
  %D%/coffer-tar
PROVIDER_MANIFESTS += manifests/linux.yaml
LINUX_WARM_CPP_FLAGS =
if WARM
providers_PROGRAMS += %D%/coffer-warm.so
LINUX_WARM_CPP_FLAGS += -DLINUX_WARM
else
# Lines of manifests that speak of what is not built.
SEAL_WITHOUT += coffer-warm.so exec.warm
endif
noinst_PROGRAMS += %D%/filter-gen

%C%_linux_so_SOURCES = \
  %D%/aftermath.c \
  %D%/archive.c \
  %D%/attach.c \
  %D%/begin.c \
  %D%/begin.h \
  %D%/begun.h \
  %D%/cgroup-place.c \
  %D%/cgroup-v1.c \
  %D%/cgroup-v2.c \
  %D%/cgroup.c \
  %D%/cgroup.h \
  %D%/clone.c \
  %D%/clone.h \
  %D%/denials.h \
  %D%/etc.c \
  %D%/etc-names.h \
  %D%/exec.c \
  %D%/facts.c \
  %D%/id-pool.c \
  %D%/id-pool.h \
  %D%/ids.c \
  %D%/image.c \
  %D%/info.c \
  %D%/inside.c \
  %D%/kernel.h \
  %D%/layer.h \
  %D%/limits.c \
  %D%/link.c \
  %D%/linux.c \
  %D%/linux.h \
  %D%/network.c \
  %D%/plan.c \
  %D%/probe.c \
  %D%/project.c \
  %D%/protocol.h \
  %D%/reach.c \
  %D%/require.c \
  %D%/root-names.h \
  %D%/sandbox.c \
  %D%/skeleton.c \
  %D%/spare.c \
  %D%/spawn.c \
  %D%/spawn.h \
  %D%/tar-protocol.h \
  %D%/target.c \
  %D%/target.h \
  %D%/template.c \
  %D%/warm.c \
  %D%/watch.c \
  %D%/zygote.c
%C%_linux_so_CPPFLAGS = $(MODULE_CPP_FLAGS) -D_GNU_SOURCE \
  $(LINUX_WARM_CPP_FLAGS)
%C%_linux_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_linux_so_LDFLAGS = $(MODULE_LINK_FLAGS)
%C%_linux_so_LDADD = sdk/lib/libcoffer-provider.a

# The same objects once more as one, for a program that has them in itself,
# which sees no name of theirs but those of begin.h: what a file of the module
# is called is no affair of the host's.
if BUILT_IN
%C%_linux_so_LDFLAGS += -Wl,--build-id
noinst_LIBRARIES += %D%/libbytes.a
%C%_libbytes_a_SOURCES = %D%/bytes.c
%C%_libbytes_a_CPPFLAGS = $(MODULE_CPP_FLAGS)
%C%_libbytes_a_CFLAGS = $(MODULE_CC_FLAGS)
%D%/libbytes_a-bytes.$(OBJEXT): %D%/coffer-init$(EXEEXT) %D%/build-id
%D%/build-id: %D%/linux.so
	$(AM_V_GEN)$(OBJCOPY) -O binary --only-section=.note.gnu.build-id \
	  %D%/linux.so $@.tmp && test -s $@.tmp && mv $@.tmp $@
LINUX_BUILT_IN = %D%/built-in.$(OBJEXT)
%D%/built-in.$(OBJEXT): $(plugins_linux_linux_so_OBJECTS) %D%/libbytes.a
	$(AM_V_GEN)$(CC) $(CFLAGS) -r -nostdlib -o $@.tmp \
	  $(plugins_linux_linux_so_OBJECTS) \
	  %D%/libbytes_a-bytes.$(OBJEXT) && \
	$(OBJCOPY) --rename-section .note.coffer=.rodata.note \
	  --wildcard --keep-global-symbol='coffer_linux_*' $@.tmp $@ && \
	rm -f $@.tmp
CLEANFILES += %D%/build-id %D%/built-in.$(OBJEXT)
else
LINUX_BUILT_IN =
endif

# And of these the part that begins an init, with another C library, where the
# program `coffer` is two (core/cli/local.mk).
LINUX_FRONT = %D%/front.c %D%/bytes.c %D%/clone.c %D%/etc.c %D%/id-pool.c \
  %D%/ids.c %D%/link.c %D%/plan.c %D%/skeleton.c %D%/spawn.c
EXTRA_DIST += %D%/front.c

# The filter is made of its table here, so that nothing compiles one at run
# time.  filter-gen runs on the machine that builds.
%C%_filter_gen_SOURCES = \
  %D%/filter-gen.c \
  %D%/filter-pack.c \
  %D%/filter-pack.h \
  %D%/filter-table.h
%C%_filter_gen_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
%C%_filter_gen_CFLAGS = $(HOST_CC_FLAGS)
%C%_filter_gen_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_filter_gen_LDADD = $(SECCOMP_LIBS)

BUILT_SOURCES += %D%/init/filter.h
CLEANFILES += %D%/init/filter.h
%D%/init/filter.h: %D%/filter-gen$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	%D%/filter-gen$(EXEEXT) $(host_cpu) > $@.tmp && mv $@.tmp $@

# No libc, no start files, nothing of the hardening that needs one: the program
# is small, static and has one thread.  It is copied and hashed for every host
# process, so it carries no symbols.
%C%_coffer_init_SOURCES = \
  %D%/init/confine.c \
  %D%/init/dial.c \
  %D%/init/exec.c \
  %D%/init/filter.c \
  %D%/init/init.h \
  %D%/init/landlock.c \
  %D%/init/landlock.h \
  %D%/init/lib.c \
  %D%/init/limits.c \
  %D%/init/main.c \
  %D%/init/namespaces.c \
  %D%/init/network.c \
  %D%/init/pause.c \
  %D%/init/plan.c \
  %D%/init/proc.c \
  %D%/init/process.c \
  %D%/init/request.c \
  %D%/init/setup.c \
  %D%/init/spool.c \
  %D%/init/sweep.c \
  %D%/init/sys.h \
  %D%/init/tags.c \
  %D%/init/template.c \
  %D%/init/usage.c \
  %D%/init/warm.c \
  %D%/etc-names.h \
  %D%/layer.h \
  %D%/protocol.h \
  %D%/root-names.h
nodist_%C%_coffer_init_SOURCES = %D%/init/filter.h
%C%_coffer_init_CPPFLAGS = -I$(top_builddir)/%D%/init
%C%_coffer_init_CFLAGS = -std=gnu11 $(WARN) -ffreestanding \
  -fno-stack-protector -fno-pie -fno-asynchronous-unwind-tables \
  -fno-strict-aliasing -fvisibility=hidden -U_FORTIFY_SOURCE
%C%_coffer_init_LDFLAGS = -static -nostdlib -nostartfiles \
  -Wl,-z,noexecstack -Wl,--build-id=none -Wl,-s
%C%_coffer_init_LDADD =
%D%/init/coffer_init-filter.$(OBJEXT): %D%/init/filter.h

# Part of an interpreter that knows nothing of a sanitizer, and whose functions
# are found where it is loaded.
%C%_coffer_warm_so_SOURCES = \
  %D%/protocol.h \
  %D%/warm/enter.c \
  %D%/warm/enter.h \
  %D%/warm/module.c
%C%_coffer_warm_so_CPPFLAGS = $(PYTHON_CFLAGS:-I%=-isystem %) -D_GNU_SOURCE
%C%_coffer_warm_so_CFLAGS = -std=gnu11 $(WARN) $(HARDEN) -fPIC
%C%_coffer_warm_so_LDFLAGS = -shared $(HARDEN_LD)
%C%_coffer_warm_so_LDADD =

# An ordinary program, but without a sanitizer: its own limits leave no room for
# one.  What it reads and decides is tested with one (tests/unit, tests/fuzz).
LINUX_PROXY_PURE = %D%/proxy/http.c %D%/proxy/http.h %D%/proxy/socks.c \
  %D%/proxy/socks.h %D%/target.c %D%/target.h
LINUX_PROXY_CPP_FLAGS = $(MODULE_CPP_FLAGS) -I$(top_srcdir)/%D% \
  -I$(top_srcdir)/%D%/init -I$(top_srcdir)/%D%/proxy -D_GNU_SOURCE
%C%_coffer_proxy_SOURCES = $(LINUX_PROXY_PURE) \
  %D%/allow.c \
  %D%/allow.h \
  %D%/init/landlock.h \
  %D%/rights.c \
  %D%/rights.h \
  %D%/proxy/confine.c \
  %D%/proxy/connection.c \
  %D%/denials.h \
  %D%/proxy/denied.c \
  %D%/proxy/main.c \
  %D%/proxy/proxy.h \
  %D%/proxy/resolve.c \
  sdk/lib/address.c
%C%_coffer_proxy_CPPFLAGS = $(LINUX_PROXY_CPP_FLAGS)
%C%_coffer_proxy_CFLAGS = -std=gnu11 $(WARN) $(HARDEN) -fPIE
%C%_coffer_proxy_LDFLAGS = -pie $(HARDEN_LD)
%C%_coffer_proxy_LDADD =

# Beside the module, which is copied and hashed for each run.
%C%_coffer_tar_SOURCES = \
  %D%/allow.c \
  %D%/allow.h \
  %D%/init/landlock.h \
  %D%/rights.c \
  %D%/rights.h \
  %D%/tar/confine.c \
  %D%/tar/confine.h \
  %D%/tar/main.c \
  %D%/tar-protocol.h
LINUX_TAR_CPP_FLAGS = $(MODULE_CPP_FLAGS) -I$(top_srcdir)/%D% \
  -I$(top_srcdir)/%D%/init -I$(top_srcdir)/%D%/tar -D_GNU_SOURCE
%C%_coffer_tar_CPPFLAGS = $(LINUX_TAR_CPP_FLAGS)
%C%_coffer_tar_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_tar_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_tar_LDADD = sdk/lib/libcoffer-provider.a

# What holds a program where there are no namespaces; the host runs it.
pkglibexec_PROGRAMS += %D%/coffer-contained
%C%_coffer_contained_SOURCES = %D%/contained/main.c %D%/init/landlock.h
nodist_%C%_coffer_contained_SOURCES = %D%/init/filter.h
%C%_coffer_contained_CPPFLAGS = -I$(top_builddir)/%D%/init \
  -I$(top_srcdir)/%D%/init -D_GNU_SOURCE
%C%_coffer_contained_CFLAGS = -std=gnu11 $(WARN) $(HARDEN) -fPIE
%C%_coffer_contained_LDFLAGS = -pie $(HARDEN_LD)
%C%_coffer_contained_LDADD =
%D%/contained/coffer_contained-main.$(OBJEXT): %D%/init/filter.h
