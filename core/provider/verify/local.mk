# SPDX-License-Identifier: Apache-2.0
# Signatures are verified in a process of its own; the host runs it from
# libexec, and does not link libcrypto.
pkglibexec_PROGRAMS += %D%/coffer-verify
%C%_coffer_verify_CPPFLAGS = $(AM_CPPFLAGS) $(CRYPTO_CFLAGS)
%C%_coffer_verify_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_verify_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_verify_SOURCES = %D%/main.c %D%/verify.h
%C%_coffer_verify_LDADD = core/base/libbase.a sdk/lib/libcoffer-provider.a \
  $(CRYPTO_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS)
