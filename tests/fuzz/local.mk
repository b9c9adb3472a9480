# SPDX-License-Identifier: Apache-2.0
# Fuzz targets: fuzz-NAME.c with LLVMFuzzerTestOneInput, and what it starts
# from in seeds/NAME/.  In an ordinary build each is linked with standalone.c,
# which runs the seeds and some mutations of them in `make check`; with
# --enable-fuzzing libFuzzer drives them, and `make check-fuzz` runs them.
FUZZERS =
FUZZ_CC_FLAGS = $(HOST_CC_FLAGS)
if FUZZING
FUZZ_LINK_FLAGS = $(HOST_LINK_FLAGS) -fsanitize=fuzzer
FUZZ_MAIN =
else
FUZZ_LINK_FLAGS = $(HOST_LINK_FLAGS)
FUZZ_MAIN = %D%/standalone.c
endif
EXTRA_DIST += %D%/run.sh %D%/seeds %D%/standalone.c

FUZZERS += %D%/fuzz-json
%C%_fuzz_json_SOURCES = %D%/fuzz-json.c $(FUZZ_MAIN)
%C%_fuzz_json_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_json_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_json_LDADD = $(UNIT_BASE_LIBS)

FUZZERS += %D%/fuzz-minisign
%C%_fuzz_minisign_SOURCES = %D%/fuzz-minisign.c $(FUZZ_MAIN)
%C%_fuzz_minisign_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_minisign_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_minisign_LDADD = $(UNIT_BASE_LIBS)

FUZZERS += %D%/fuzz-codec
%C%_fuzz_codec_SOURCES = %D%/fuzz-codec.c $(FUZZ_MAIN)
%C%_fuzz_codec_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_codec_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_codec_LDADD = $(UNIT_CONTRACT_LIBS)

FUZZERS += %D%/fuzz-manifest
%C%_fuzz_manifest_SOURCES = %D%/fuzz-manifest.c $(FUZZ_MAIN)
%C%_fuzz_manifest_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_manifest_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_manifest_LDADD = $(UNIT_PROVIDER_LIBS)

FUZZERS += %D%/fuzz-yaml-edit
%C%_fuzz_yaml_edit_SOURCES = %D%/fuzz-yaml-edit.c $(FUZZ_MAIN)
%C%_fuzz_yaml_edit_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_yaml_edit_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_yaml_edit_LDADD = $(UNIT_BASE_LIBS)

FUZZERS += %D%/fuzz-elf
%C%_fuzz_elf_SOURCES = %D%/fuzz-elf.c $(FUZZ_MAIN)
%C%_fuzz_elf_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_elf_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_elf_LDADD = $(UNIT_PROVIDER_LIBS)

FUZZERS += %D%/fuzz-frame
%C%_fuzz_frame_SOURCES = %D%/fuzz-frame.c $(FUZZ_MAIN)
%C%_fuzz_frame_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_frame_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_frame_LDADD = $(UNIT_PROVIDER_LIBS)

FUZZERS += %D%/fuzz-runner
%C%_fuzz_runner_SOURCES = %D%/fuzz-runner.c $(FUZZ_MAIN)
%C%_fuzz_runner_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_runner_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_runner_LDADD = core/python/libpython.a $(SANDBOX_TEST_LIBS)

FUZZERS += %D%/fuzz-calls
%C%_fuzz_calls_SOURCES = %D%/fuzz-calls.c $(FUZZ_MAIN)
%C%_fuzz_calls_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_calls_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_calls_LDADD = $(UNIT_PROVIDER_LIBS)

FUZZERS += %D%/fuzz-proxy
%C%_fuzz_proxy_SOURCES = %D%/fuzz-proxy.c $(LINUX_PROXY_PURE) $(FUZZ_MAIN)
%C%_fuzz_proxy_CPPFLAGS = $(LINUX_PROXY_CPP_FLAGS)
%C%_fuzz_proxy_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_proxy_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_proxy_LDADD = $(UNIT_BASE_LIBS)

FUZZERS += %D%/fuzz-http1
%C%_fuzz_http1_SOURCES = %D%/fuzz-http1.c $(FUZZ_MAIN)
%C%_fuzz_http1_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_http1_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_http1_LDADD = sdk/http/libcoffer-http.a sdk/lib/libcoffer-provider.a

FUZZERS += %D%/fuzz-websocket
%C%_fuzz_websocket_SOURCES = %D%/fuzz-websocket.c $(FUZZ_MAIN)
%C%_fuzz_websocket_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_websocket_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_websocket_LDADD = sdk/http/libcoffer-http.a sdk/lib/libcoffer-provider.a

FUZZERS += %D%/fuzz-streams
%C%_fuzz_streams_SOURCES = %D%/fuzz-streams.c $(FUZZ_MAIN)
%C%_fuzz_streams_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_streams_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_streams_LDADD = sdk/http/libcoffer-http.a sdk/lib/libcoffer-provider.a

FUZZERS += %D%/fuzz-tar
%C%_fuzz_tar_SOURCES = %D%/fuzz-tar.c $(FUZZ_MAIN)
%C%_fuzz_tar_CPPFLAGS = $(MODULE_CPP_FLAGS)
%C%_fuzz_tar_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_tar_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_tar_LDADD = sdk/lib/libcoffer-provider.a

FUZZERS += %D%/fuzz-pieces
%C%_fuzz_pieces_SOURCES = %D%/fuzz-pieces.c plugins/docker/pieces.c $(FUZZ_MAIN)
%C%_fuzz_pieces_CPPFLAGS = $(MODULE_CPP_FLAGS) $(MD_CFLAGS) \
  -I$(top_srcdir)/plugins/docker
%C%_fuzz_pieces_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_pieces_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_pieces_LDADD = sdk/lib/libcoffer-provider.a $(MD_SHARED_LIBS)

FUZZERS += %D%/fuzz-snapshot
%C%_fuzz_snapshot_SOURCES = %D%/fuzz-snapshot.c plugins/docker/snapshot.c \
  $(FUZZ_MAIN)
%C%_fuzz_snapshot_CPPFLAGS = $(MODULE_CPP_FLAGS) $(JANSSON_CFLAGS) \
  -I$(top_srcdir)/plugins/docker
%C%_fuzz_snapshot_CFLAGS = $(FUZZ_CC_FLAGS)
%C%_fuzz_snapshot_LDFLAGS = $(FUZZ_LINK_FLAGS)
%C%_fuzz_snapshot_LDADD = sdk/lib/libcoffer-provider.a $(JANSSON_SHARED_LIBS)

EXTRA_PROGRAMS = $(FUZZERS)
CLEANFILES += $(FUZZERS)
if FUZZING
else
check_PROGRAMS += $(FUZZERS)
TESTS += $(FUZZERS)
endif

# 10000 runs each, times CHECK_SCALE.
check-fuzz: $(FUZZERS)
	COFFER_SOURCE='$(abs_top_srcdir)' $(SHELL) $(srcdir)/%D%/run.sh \
	  `expr 10000 '*' "$${CHECK_SCALE:-1}"` $(FUZZERS)
.PHONY: check-fuzz
clean-local: clean-fuzzing
clean-fuzzing:
	-rm -rf fuzzing
