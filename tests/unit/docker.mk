# SPDX-License-Identifier: Apache-2.0
# The docker provider against an engine that a test scripts: the module's own
# sources, with the functions of the HTTP library that it calls in the test.
DOCKER_UNIT_SOURCES = \
  plugins/docker/config.c plugins/docker/create.c \
  plugins/docker/credentials.c plugins/docker/engine.c \
  plugins/docker/files.c plugins/docker/hold.c plugins/docker/images.c \
  plugins/docker/kernel.c \
  plugins/docker/life.c plugins/docker/maker.c plugins/docker/metrics.c \
  plugins/docker/pieces.c plugins/docker/probe.c plugins/docker/program.c \
  plugins/docker/restore.c plugins/docker/sandbox.c plugins/docker/snapshot.c \
  plugins/docker/spec.c plugins/docker/stream.c

UNIT_TESTS += %D%/test-docker
%C%_test_docker_SOURCES = %D%/test-docker.c %D%/docker-engine.c \
  %D%/docker-engine.h %D%/docker-fixture.c %D%/docker-fixture.h \
  %D%/harness.h $(DOCKER_UNIT_SOURCES)
%C%_test_docker_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS) $(JANSSON_CFLAGS) \
  -I$(top_srcdir)/plugins/docker
%C%_test_docker_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_docker_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_docker_LDADD = %D%/libfakehost.a sdk/http/libcoffer-http.a \
  $(SDK_UNIT_LIBS) $(JANSSON_SHARED_LIBS) $(MD_SHARED_LIBS)

UNIT_TESTS += %D%/test-docker-kernel
%C%_test_docker_kernel_SOURCES = %D%/test-docker-kernel.c %D%/docker-engine.c \
  %D%/docker-engine.h %D%/docker-fixture.c %D%/docker-fixture.h \
  %D%/harness.h $(DOCKER_UNIT_SOURCES)
%C%_test_docker_kernel_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS) $(JANSSON_CFLAGS) \
  -I$(top_srcdir)/plugins/docker
%C%_test_docker_kernel_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_docker_kernel_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_docker_kernel_LDADD = %D%/libfakehost.a sdk/http/libcoffer-http.a \
  $(SDK_UNIT_LIBS) $(JANSSON_SHARED_LIBS) $(MD_SHARED_LIBS)

UNIT_TESTS += %D%/test-docker-pieces
%C%_test_docker_pieces_SOURCES = %D%/test-docker-pieces.c %D%/harness.h \
  plugins/docker/pieces.c
%C%_test_docker_pieces_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS) $(MD_CFLAGS) \
  -I$(top_srcdir)/plugins/docker
%C%_test_docker_pieces_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_docker_pieces_LDADD = $(SDK_UNIT_LIBS) $(MD_SHARED_LIBS)

# The program inside, as a child.
UNIT_TESTS += %D%/test-docker-inside
%C%_test_docker_inside_SOURCES = %D%/test-docker-inside.c %D%/harness.h
%C%_test_docker_inside_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS) \
  -I$(top_srcdir)/plugins/docker
%C%_test_docker_inside_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_docker_inside_LDADD = $(SDK_UNIT_LIBS)
