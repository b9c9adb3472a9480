# SPDX-License-Identifier: Apache-2.0
# Tests of the linux provider: its vtable driven by a host of the tests' own.
LINUX_UNIT_CPP_FLAGS = $(MODULE_CPP_FLAGS) -D_GNU_SOURCE \
  -I$(top_srcdir)/tests/unit -I$(top_srcdir)/plugins/linux \
  -I$(top_builddir)/plugins/linux $(CMOCKA_CFLAGS)
LINUX_UNIT_LIBS = sdk/lib/libcoffer-provider.a $(CMOCKA_LIBS) -ldl -lpthread
LINUX_UNIT_HOST = %D%/linux-host.c %D%/linux-host.h %D%/linux-life.h \
  %D%/harness.h

UNIT_TESTS += %D%/test-linux-attack %D%/test-linux-calls \
  %D%/test-linux-confined %D%/test-linux-landlock \
  %D%/test-linux-filter %D%/test-linux-filter-other %D%/test-linux-ids %D%/test-linux-life
UNIT_TESTS += %D%/test-linux-life-kill
UNIT_TESTS += %D%/test-linux-life-sandbox
UNIT_TESTS += %D%/test-linux-life-pause
UNIT_TESTS += %D%/test-linux-life-ports
UNIT_TESTS += %D%/test-linux-life-files
UNIT_TESTS += %D%/test-linux-life-archive
UNIT_TESTS += %D%/test-linux-skeleton
UNIT_TESTS += %D%/test-linux-spare
UNIT_TESTS += %D%/test-linux-outside
UNIT_TESTS += %D%/test-linux-warm %D%/test-linux-warm-replace

# What runs inside: no sanitizer, which could not work there.
check_PROGRAMS += %D%/linux-payload %D%/linux-hostile
%C%_linux_payload_SOURCES = %D%/linux-payload.c
%C%_linux_payload_CPPFLAGS =
%C%_linux_payload_CFLAGS = -std=gnu11 $(WARN)
%C%_linux_hostile_SOURCES = %D%/linux-hostile.c
%C%_linux_hostile_CPPFLAGS = -I$(top_srcdir)/plugins/linux
%C%_linux_hostile_CFLAGS = -std=gnu11 $(WARN)

%C%_test_linux_attack_SOURCES = %D%/test-linux-attack.c $(LINUX_UNIT_HOST)
%C%_test_linux_attack_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_attack_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_attack_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_attack_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_warm_SOURCES = %D%/test-linux-warm.c \
  %D%/linux-warm.c %D%/linux-warm.h $(LINUX_UNIT_HOST)
%C%_test_linux_warm_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_warm_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_warm_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_warm_LDADD = $(LINUX_UNIT_LIBS)

UNIT_TESTS += %D%/test-linux-warm-held
%C%_test_linux_warm_held_SOURCES = %D%/test-linux-warm-held.c \
  %D%/linux-warm.c %D%/linux-warm.h $(LINUX_UNIT_HOST)
%C%_test_linux_warm_held_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_warm_held_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_warm_held_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_warm_held_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_warm_replace_SOURCES = %D%/test-linux-warm-replace.c \
  plugins/linux/warm.c
%C%_test_linux_warm_replace_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_warm_replace_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_warm_replace_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_warm_replace_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_calls_SOURCES = %D%/test-linux-calls.c $(LINUX_UNIT_HOST)
%C%_test_linux_calls_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS) $(SECCOMP_CFLAGS)
%C%_test_linux_calls_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_calls_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_calls_LDADD = $(LINUX_UNIT_LIBS) $(SECCOMP_LIBS)

%C%_test_linux_confined_SOURCES = %D%/test-linux-confined.c $(LINUX_UNIT_HOST)
%C%_test_linux_confined_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_confined_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_confined_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_confined_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_ids_SOURCES = %D%/test-linux-ids.c \
  plugins/linux/id-pool.c $(LINUX_UNIT_HOST)
%C%_test_linux_ids_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_ids_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_ids_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_ids_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_landlock_SOURCES = %D%/test-linux-landlock.c $(LINUX_UNIT_HOST)
%C%_test_linux_landlock_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_landlock_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_landlock_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_landlock_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_life_SOURCES = %D%/test-linux-life.c $(LINUX_UNIT_HOST)
%C%_test_linux_life_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_life_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_life_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_life_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_outside_SOURCES = %D%/test-linux-outside.c $(LINUX_UNIT_HOST)
%C%_test_linux_outside_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_outside_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_outside_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_outside_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_life_pause_SOURCES = %D%/test-linux-life-pause.c $(LINUX_UNIT_HOST)
%C%_test_linux_life_pause_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_life_pause_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_life_pause_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_life_pause_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_life_ports_SOURCES = %D%/test-linux-life-ports.c $(LINUX_UNIT_HOST)
%C%_test_linux_life_ports_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_life_ports_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_life_ports_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_life_ports_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_life_files_SOURCES = %D%/test-linux-life-files.c $(LINUX_UNIT_HOST)
%C%_test_linux_life_files_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_life_files_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_life_files_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_life_files_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_life_archive_SOURCES = %D%/test-linux-life-archive.c $(LINUX_UNIT_HOST)
%C%_test_linux_life_archive_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_life_archive_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_life_archive_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_life_archive_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_life_sandbox_SOURCES = %D%/test-linux-life-sandbox.c \
  $(LINUX_UNIT_HOST)
%C%_test_linux_life_sandbox_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_life_sandbox_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_life_sandbox_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_life_sandbox_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_life_kill_SOURCES = %D%/test-linux-life-kill.c $(LINUX_UNIT_HOST)
%C%_test_linux_life_kill_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_life_kill_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_life_kill_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_life_kill_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_skeleton_SOURCES = %D%/test-linux-skeleton.c $(LINUX_UNIT_HOST)
%C%_test_linux_skeleton_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_skeleton_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_skeleton_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_skeleton_LDADD = $(LINUX_UNIT_LIBS)
%C%_test_linux_spare_SOURCES = %D%/test-linux-spare.c $(LINUX_UNIT_HOST)
%C%_test_linux_spare_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_spare_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_spare_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_spare_LDADD = $(LINUX_UNIT_LIBS)

%C%_test_linux_filter_SOURCES = %D%/test-linux-filter.c \
  %D%/bpf-run.h %D%/harness.h
%C%_test_linux_filter_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS) $(SECCOMP_CFLAGS)
%C%_test_linux_filter_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_filter_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_filter_LDADD = $(SECCOMP_LIBS) $(CMOCKA_LIBS)
%D%/test_linux_filter-test-linux-filter.$(OBJEXT): plugins/linux/init/filter.h

# The same of the programs for a machine that this one is not.
%C%_test_linux_filter_other_SOURCES = %D%/test-linux-filter.c \
  %D%/bpf-run.h %D%/harness.h
%C%_test_linux_filter_other_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS) \
  $(SECCOMP_CFLAGS) -DFILTER_OTHER -I$(top_builddir)/%D%
%C%_test_linux_filter_other_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_filter_other_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_filter_other_LDADD = $(SECCOMP_LIBS) $(CMOCKA_LIBS)
%D%/test_linux_filter_other-test-linux-filter.$(OBJEXT): %D%/filter-other.h
CLEANFILES += %D%/filter-other.h
%D%/filter-other.h: plugins/linux/filter-gen$(EXEEXT)
	$(AM_V_GEN)case $(host_cpu) in \
	  x86_64) other=aarch64;; \
	  *) other=x86_64;; \
	esac && \
	$(MKDIR_P) $(@D) && \
	plugins/linux/filter-gen$(EXEEXT) $$other > $@.tmp && mv $@.tmp $@

# It has open, mkdir and access of its own, which the module then finds first.
UNIT_TESTS += %D%/test-linux-limits
check_PROGRAMS += %D%/linux-memory
%C%_linux_memory_SOURCES = %D%/linux-memory.c
%C%_linux_memory_CPPFLAGS = -D_GNU_SOURCE
%C%_linux_memory_CFLAGS = -std=gnu11 $(WARN)

%C%_test_linux_limits_SOURCES = %D%/test-linux-limits.c $(LINUX_UNIT_HOST)
%C%_test_linux_limits_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_limits_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_limits_LDFLAGS = $(HOST_LINK_FLAGS) -Wl,--export-dynamic
%C%_test_linux_limits_LDADD = $(LINUX_UNIT_LIBS)

# The files of control groups themselves, in a tree of the test's own.
UNIT_TESTS += %D%/test-linux-cgroup
%C%_test_linux_cgroup_SOURCES = %D%/test-linux-cgroup.c %D%/harness.h \
  plugins/linux/cgroup-place.c plugins/linux/cgroup-v1.c \
  plugins/linux/cgroup-v2.c plugins/linux/cgroup.c
%C%_test_linux_cgroup_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_cgroup_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_cgroup_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_cgroup_LDADD = $(LINUX_UNIT_LIBS)

# Parts of coffer-proxy, compiled for this build, sanitizers included.
UNIT_TESTS += %D%/test-linux-proxy
%C%_test_linux_proxy_SOURCES = %D%/test-linux-proxy.c $(LINUX_PROXY_PURE)
%C%_test_linux_proxy_CPPFLAGS = $(LINUX_PROXY_CPP_FLAGS) $(CMOCKA_CFLAGS)
%C%_test_linux_proxy_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_proxy_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_proxy_LDADD = $(LINUX_UNIT_LIBS)

UNIT_TESTS += %D%/test-linux-quota
%C%_test_linux_quota_SOURCES = %D%/test-linux-quota.c $(LINUX_UNIT_HOST)
%C%_test_linux_quota_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_quota_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_quota_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_quota_LDADD = $(LINUX_UNIT_LIBS)

# Its confinement, in which no sanitizer can work.
UNIT_TESTS += %D%/test-linux-proxy-confined
%C%_test_linux_proxy_confined_SOURCES = %D%/test-linux-proxy-confined.c \
  %D%/confined.h \
  plugins/linux/allow.c plugins/linux/rights.c \
  plugins/linux/proxy/confine.c plugins/linux/target.c sdk/lib/address.c
%C%_test_linux_proxy_confined_CPPFLAGS = $(LINUX_PROXY_CPP_FLAGS) \
  $(CMOCKA_CFLAGS)
%C%_test_linux_proxy_confined_CFLAGS = -std=gnu11 $(WARN)
%C%_test_linux_proxy_confined_LDADD = $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-linux-proxy-life
%C%_test_linux_proxy_life_SOURCES = %D%/test-linux-proxy-life.c \
  $(LINUX_UNIT_HOST)
%C%_test_linux_proxy_life_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_test_linux_proxy_life_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_linux_proxy_life_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_linux_proxy_life_LDADD = $(LINUX_UNIT_LIBS)

# The same of coffer-tar.
UNIT_TESTS += %D%/test-linux-tar-confined
%C%_test_linux_tar_confined_SOURCES = %D%/test-linux-tar-confined.c \
  %D%/bpf-run.h %D%/confined.h plugins/linux/allow.c \
  plugins/linux/rights.c plugins/linux/tar/confine.c
%C%_test_linux_tar_confined_CPPFLAGS = $(LINUX_TAR_CPP_FLAGS) \
  -I$(top_srcdir)/tests/unit $(CMOCKA_CFLAGS) $(SECCOMP_CFLAGS)
%C%_test_linux_tar_confined_CFLAGS = -std=gnu11 $(WARN)
%C%_test_linux_tar_confined_LDADD = $(SECCOMP_LIBS) $(CMOCKA_LIBS)
