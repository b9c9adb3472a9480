# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libclient.a
%C%_libclient_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libclient_a_SOURCES = \
  %D%/call.c \
  %D%/client.h \
  %D%/connect.c \
  %D%/frame.c %D%/frame.h \
  %D%/private.h \
  %D%/reply.c
