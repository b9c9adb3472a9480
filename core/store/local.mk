# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libstore.a
%C%_libstore_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libstore_a_SOURCES = \
  %D%/template.c %D%/template.h

include core/store/archive/local.mk
