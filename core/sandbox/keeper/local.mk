# SPDX-License-Identifier: Apache-2.0
# Holds the pipes of commands in the background for a daemon that is killed or
# started anew; the host runs it from libexec.
pkglibexec_PROGRAMS += %D%/coffer-keeper
%C%_coffer_keeper_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
%C%_coffer_keeper_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_keeper_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_keeper_SOURCES = %D%/main.c core/sandbox/exec-keeper.h
%C%_coffer_keeper_LDADD = sdk/lib/libcoffer-provider.a
