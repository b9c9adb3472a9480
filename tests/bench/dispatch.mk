# SPDX-License-Identifier: Apache-2.0
BENCHES += %D%/bench-dispatch
%C%_bench_dispatch_SOURCES = %D%/bench-dispatch.c %D%/place.c %D%/place.h
%C%_bench_dispatch_CFLAGS = $(HOST_CC_FLAGS)
%C%_bench_dispatch_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_bench_dispatch_LDADD = core/provider/libprovider.a \
  core/contract/libcontract.a core/base/libbase.a \
  core/base/libplace-build.a sdk/lib/libcoffer-provider.a $(FFI_LIBS) \
  $(YAML_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS) $(MD_LIBS)
EXTRA_%C%_bench_dispatch_DEPENDENCIES = tests/e2e/modules/parrot.so
