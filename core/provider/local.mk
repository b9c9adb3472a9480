# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libprovider.a

%C%_libprovider_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libprovider_a_SOURCES = \
  %D%/manifest.c %D%/manifest-sections.c %D%/manifest-words.c \
  %D%/manifest.h %D%/manifest-read.h
