# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libprovider.a

%C%_libprovider_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libprovider_a_SOURCES = \
  %D%/broker.c %D%/broker-unix.c %D%/broker.h \
  %D%/built-in.c %D%/built-in.h \
  %D%/conformance.c %D%/conformance-report.c %D%/conformance.h \
  %D%/credential-helper.c %D%/credential-helper.h \
  %D%/credentials.c %D%/credentials.h \
  %D%/dispatch.c %D%/dispatch.h \
  %D%/docker-client.c %D%/docker-client.h \
  %D%/gate.c %D%/gate.h \
  %D%/in-process.c \
  %D%/install.c %D%/install.h \
  %D%/invoke.c \
  %D%/journal.c %D%/journal.h \
  %D%/loader.c %D%/loader.h \
  %D%/opening.c %D%/opening.h \
  %D%/outcome.c %D%/outcome.h \
  %D%/pack.c %D%/pack.h \
  %D%/package.c %D%/package.h \
  %D%/proxy.c %D%/proxy.h \
  %D%/provider.c %D%/provider.h \
  %D%/redact.c %D%/redact.h \
  %D%/receipt.c %D%/receipt.h \
  %D%/registry.c %D%/registry.h %D%/registry-read.h \
  %D%/registry-check.c %D%/registry-config.c %D%/registry-edit.c \
  %D%/registry-narrow.c %D%/registry-operator.c \
  %D%/seal.c %D%/seal.h \
  %D%/signature.c %D%/signature.h \
  %D%/trust.c %D%/trust.h \
  %D%/writable.c %D%/writable.h \
  %D%/source.c %D%/source-env.c %D%/source-fetch.c %D%/source-git.c \
  %D%/source.h \
  %D%/stage.c %D%/stage.h \
  %D%/tool.c %D%/tool.h \
  %D%/trace.c %D%/trace.h \
  %D%/doctor.c %D%/doctor.h %D%/enable.c %D%/enable.h \
  %D%/registry-json.c %D%/registry-stamp.c \
  %D%/elf.c %D%/elf-dynamic.c %D%/elf-needed.c %D%/elf.h \
  %D%/integrity.c %D%/integrity.h \
  %D%/channel.c %D%/channel.h \
  %D%/process.c \
  %D%/worker.c %D%/worker-calls.c %D%/worker.h \
  %D%/manifest.c %D%/manifest-sections.c %D%/manifest-words.c \
  %D%/manifest.h %D%/manifest-read.h

include core/provider/fetch/local.mk
include core/provider/verify/local.mk
include core/provider/worker/local.mk
