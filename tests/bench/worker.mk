# SPDX-License-Identifier: Apache-2.0
BENCHES += %D%/bench-worker
%C%_bench_worker_SOURCES = %D%/bench-worker.c %D%/place.c %D%/place.h
%C%_bench_worker_CFLAGS = $(HOST_CC_FLAGS)
%C%_bench_worker_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_bench_worker_LDADD = core/provider/libprovider.a \
  core/contract/libcontract.a core/base/libbase.a \
  core/base/libplace-build.a sdk/lib/libcoffer-provider.a $(FFI_LIBS) \
  $(YAML_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS) $(MD_LIBS)
EXTRA_%C%_bench_worker_DEPENDENCIES = tests/modules/hostile.so \
  core/provider/worker/coffer-worker
