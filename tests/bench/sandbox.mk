# SPDX-License-Identifier: Apache-2.0
# bench.sh runs this one itself: it needs arguments.
SANDBOX_BENCHES = %D%/bench-idle %D%/bench-sandbox %D%/bench-warm \
  %D%/floor-init
EXTRA_PROGRAMS += $(SANDBOX_BENCHES)
CLEANFILES += $(SANDBOX_BENCHES)

%C%_bench_sandbox_SOURCES = %D%/bench-sandbox.c %D%/floor.c %D%/floor.h \
  %D%/quiet.c %D%/quiet.h
%C%_bench_sandbox_CFLAGS = $(HOST_CC_FLAGS)
%C%_bench_sandbox_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_bench_sandbox_LDADD = $(cli_archives) core/base/libplace-build.a $(cli_libs)

%C%_bench_idle_SOURCES = %D%/bench-idle.c
%C%_bench_idle_CFLAGS = $(HOST_CC_FLAGS)
%C%_bench_idle_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_bench_idle_LDADD = $(cli_archives) core/base/libplace-build.a $(cli_libs)

%C%_bench_warm_SOURCES = %D%/bench-warm.c
%C%_bench_warm_CFLAGS = $(HOST_CC_FLAGS)
%C%_bench_warm_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_bench_warm_LDADD = core/python/libpython.a $(cli_archives) \
  core/base/libplace-build.a $(cli_libs)

# Without a libc, as the init that it is compared with.
%C%_floor_init_SOURCES = %D%/floor-init.c plugins/linux/init/lib.c
%C%_floor_init_CFLAGS = $(plugins_linux_coffer_init_CFLAGS)
%C%_floor_init_LDFLAGS = $(plugins_linux_coffer_init_LDFLAGS)
%C%_floor_init_LDADD =
