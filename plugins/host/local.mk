# SPDX-License-Identifier: Apache-2.0
# The module, and the program that holds one sandbox of it.
providers_PROGRAMS += %D%/host.so %D%/coffer-keeper
PROVIDER_MANIFESTS += manifests/host.yaml

%C%_host_so_CPPFLAGS = $(MODULE_CPP_FLAGS)
%C%_host_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_host_so_LDFLAGS = $(MODULE_LINK_FLAGS)
%C%_host_so_LDADD = sdk/lib/libcoffer-provider.a
%C%_host_so_SOURCES = \
  %D%/host.h %D%/protocol.h \
  %D%/client.c %D%/exec.c %D%/facts.c %D%/files.c %D%/host.c \
  %D%/sandbox.c %D%/spawn.c

%C%_coffer_keeper_CPPFLAGS = $(MODULE_CPP_FLAGS)
%C%_coffer_keeper_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_keeper_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_keeper_LDADD = sdk/lib/libcoffer-provider.a
%C%_coffer_keeper_SOURCES = \
  %D%/protocol.h %D%/keeper/keeper.h %D%/keeper/state.h \
  %D%/keeper/execs.c %D%/keeper/keeper.c %D%/keeper/minder.c \
  %D%/keeper/requests.c
