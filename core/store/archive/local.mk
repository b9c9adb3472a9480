# SPDX-License-Identifier: Apache-2.0
# Archives are read and written in a process of its own; the host runs it from
# libexec, and does not link libarchive.
pkglibexec_PROGRAMS += %D%/coffer-archive
%C%_coffer_archive_CPPFLAGS = $(AM_CPPFLAGS) $(ARCHIVE_CFLAGS) -D_GNU_SOURCE
%C%_coffer_archive_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_archive_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_archive_SOURCES = \
  %D%/archive.h \
  %D%/confine.c %D%/main.c %D%/pack.c %D%/unpack.c
%C%_coffer_archive_LDADD = core/base/libbase.a sdk/lib/libcoffer-provider.a \
  $(ARCHIVE_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS) $(MD_LIBS)
