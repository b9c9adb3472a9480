# SPDX-License-Identifier: Apache-2.0
# What fetches is a process of its own; the host runs it from libexec, and does
# not link libcurl.
pkglibexec_PROGRAMS += %D%/coffer-fetch
%C%_coffer_fetch_CPPFLAGS = $(AM_CPPFLAGS) $(CURL_CFLAGS)
%C%_coffer_fetch_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_fetch_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_fetch_SOURCES = %D%/confine.c %D%/fetch.h %D%/main.c
%C%_coffer_fetch_LDADD = core/base/libbase.a sdk/lib/libcoffer-provider.a \
  $(CURL_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS) $(MD_LIBS)
