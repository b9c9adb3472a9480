# SPDX-License-Identifier: Apache-2.0
# Measurements: a program prints "NAME VALUE" lines and exits 1 when it is
# slower than it may be.  Not part of `make check`, which shares its machine.
BENCHES =
include tests/bench/dispatch.mk
include tests/bench/registry.mk
include tests/bench/worker.mk
include tests/bench/sandbox.mk
EXTRA_PROGRAMS += $(BENCHES) %D%/pairs
CLEANFILES += $(BENCHES) %D%/pairs bench.json

%C%_pairs_SOURCES = %D%/pairs.c
%C%_pairs_CFLAGS = $(HOST_CC_FLAGS)
%C%_pairs_LDFLAGS = $(HOST_LINK_FLAGS)

# What `coffer serve` does in a second, for the script.
EXTRA_PROGRAMS += %D%/http-driver
CLEANFILES += %D%/http-driver
%C%_http_driver_SOURCES = %D%/http-driver.c
%C%_http_driver_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
%C%_http_driver_CFLAGS = $(HOST_CC_FLAGS)
%C%_http_driver_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_http_driver_LDADD = sdk/lib/libcoffer-provider.a -lpthread

EXTRA_DIST += %D%/bench.sh %D%/pss.py %D%/serve.py

# BENCH_RUNS, BENCH_ONLY: see the script.
bench: all $(BENCHES) $(SANDBOX_BENCHES) %D%/pairs %D%/http-driver
	@COFFER_BUILD='$(abs_top_builddir)' COFFER_SOURCE='$(abs_top_srcdir)' \
	  BENCH_PROGRAMS='$(BENCHES)' $(SHELL) $(srcdir)/%D%/bench.sh
.PHONY: bench
