# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libcontract.a
%C%_libcontract_a_SOURCES = \
  %D%/args.h \
  %D%/calls.c \
  %D%/codec.c \
  %D%/codec.h \
  %D%/contract.h \
  %D%/copy.c \
  %D%/decode.c \
  %D%/encode.c \
  %D%/reference.c \
  %D%/table.c \
  %D%/values.c \
  %D%/values.h
%C%_libcontract_a_CFLAGS = $(HOST_CC_FLAGS)
