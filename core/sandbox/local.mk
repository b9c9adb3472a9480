# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libsandbox.a
%C%_libsandbox_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libsandbox_a_SOURCES = \
  %D%/ids.c \
  %D%/owner.c %D%/owner.h \
  %D%/records.c %D%/records-open.c %D%/records.h %D%/records-private.h \
  %D%/sandbox.h
