# SPDX-License-Identifier: Apache-2.0
# The provider for engines, and its program inside their containers.

providers_PROGRAMS += %D%/docker.so %D%/coffer-inside
PROVIDER_MANIFESTS += manifests/docker.yaml manifests/podman.yaml

%C%_docker_so_CPPFLAGS = $(MODULE_CPP_FLAGS) $(JANSSON_CFLAGS) \
  $(MD_CFLAGS)
%C%_docker_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_docker_so_LDFLAGS = $(MODULE_LINK_FLAGS)
%C%_docker_so_LDADD = sdk/http/libcoffer-http.a \
  sdk/lib/libcoffer-provider.a $(CURL_LIBS) $(JANSSON_SHARED_LIBS) $(MD_SHARED_LIBS)
%C%_docker_so_SOURCES = \
  %D%/archive.c \
  %D%/config.c \
  %D%/create.c \
  %D%/credentials.c \
  %D%/docker.c \
  %D%/docker.h \
  %D%/engine.c \
  %D%/exec.c \
  %D%/execs.c \
  %D%/execs.h \
  %D%/files.c \
  %D%/hold.c \
  %D%/images.c \
  %D%/inside.h \
  %D%/kernel.c \
  %D%/life.c \
  %D%/maker.c \
  %D%/metrics.c \
  %D%/pieces.c \
  %D%/pieces.h \
  %D%/ports.c \
  %D%/probe.c \
  %D%/program.c \
  %D%/restore.c \
  %D%/sandbox.c \
  %D%/save.c \
  %D%/snapshot.c \
  %D%/snapshot.h \
  %D%/spec.c \
  %D%/stream.c \
  %D%/stream.h \
  %D%/wire.h

# Static, and without a sanitizer: it runs in images of anybody.  So are the files
# of the library that it needs.
%C%_coffer_inside_CPPFLAGS = $(MODULE_CPP_FLAGS) -D_GNU_SOURCE=
%C%_coffer_inside_CFLAGS = -std=gnu11 $(WARN) $(HARDEN) -fno-pie
%C%_coffer_inside_LDFLAGS = -static
%C%_coffer_inside_LDADD =
%C%_coffer_inside_SOURCES = \
  %D%/inside.h \
  %D%/inside/dial.c \
  %D%/inside/feed.c \
  %D%/inside/files.c \
  %D%/inside/hold.c \
  %D%/inside/inside.h \
  %D%/inside/kept.c \
  %D%/inside/main.c \
  %D%/inside/run.c \
  %D%/inside/say.c \
  %D%/inside/still.c \
  %D%/inside/told.c \
  %D%/inside/trees.c \
  %D%/inside/work.c \
  %D%/inside/work.h \
  %D%/wire.h \
  sdk/lib/archive.c \
  sdk/lib/buffer.c \
  sdk/lib/descendants.c \
  sdk/lib/escape.c \
  sdk/lib/fd.c \
  sdk/lib/files.c \
  sdk/lib/left.c \
  sdk/lib/merge.c \
  sdk/lib/name.c \
  sdk/lib/packet.c \
  sdk/lib/path.c \
  sdk/lib/process.c \
  sdk/lib/tar-read.c \
  sdk/lib/tree.c \
  sdk/lib/watch.c
