# SPDX-License-Identifier: Apache-2.0
# What sends spans is a process of its own, with the rights of coffer-fetch; the
# daemon runs it from libexec, and does not link libcurl.
pkglibexec_PROGRAMS += %D%/coffer-otlp
%C%_coffer_otlp_CPPFLAGS = $(AM_CPPFLAGS) $(CURL_CFLAGS)
%C%_coffer_otlp_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_otlp_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_otlp_SOURCES = %D%/encode.c %D%/main.c %D%/otlp.h \
  %D%/queue.c %D%/queue.h \
  core/provider/fetch/confine.c core/provider/fetch/fetch.h
%C%_coffer_otlp_LDADD = core/base/libbase.a sdk/lib/libcoffer-provider.a \
  $(CURL_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS) $(MD_LIBS)
