# SPDX-License-Identifier: Apache-2.0
# One provider module in a process of its own; the host runs it from libexec.
pkglibexec_PROGRAMS += %D%/coffer-worker
%C%_coffer_worker_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_worker_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_worker_SOURCES = \
  %D%/main.c \
  %D%/connect.c \
  %D%/filter.c %D%/hold.c %D%/landlock.c %D%/rights.c \
  %D%/rights.h \
  %D%/serve.c %D%/title.c %D%/serve.h
%C%_coffer_worker_LDADD = core/provider/libprovider.a \
  core/contract/libcontract.a core/base/libbase.a \
  sdk/lib/libcoffer-provider.a $(FFI_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS)
