# SPDX-License-Identifier: Apache-2.0
BENCHES += %D%/bench-registry
%C%_bench_registry_SOURCES = %D%/bench-registry.c
%C%_bench_registry_CFLAGS = $(HOST_CC_FLAGS)
%C%_bench_registry_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_bench_registry_LDADD = core/provider/libprovider.a \
  core/contract/libcontract.a core/base/libbase.a \
  core/base/libplace-build.a sdk/lib/libcoffer-provider.a $(FFI_LIBS) \
  $(YAML_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS) $(MD_LIBS)
