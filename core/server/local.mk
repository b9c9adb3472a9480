# SPDX-License-Identifier: Apache-2.0
# The daemon, a program of libexec: `coffer` does not link what it needs besides.
# A surface adds its files to core_server_libserver_a_SOURCES in a fragment of
# its own, and its table to surfaces.c.
noinst_LIBRARIES += %D%/libserver.a
%C%_libserver_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir)/core \
  $(MICROHTTPD_CFLAGS)
%C%_libserver_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libserver_a_SOURCES = \
  %D%/auth.c %D%/auth.h \
  %D%/connections.c %D%/connections.h \
  %D%/exchange.h %D%/head.c %D%/head.h %D%/http.c %D%/http.h %D%/reply.c %D%/request.c \
  %D%/listen.c %D%/listen.h \
  %D%/root.c \
  %D%/route.c %D%/route.h \
  %D%/routes.c %D%/routes.h \
  %D%/runs.c %D%/runs.h \
  %D%/serve-config.c %D%/serve-config.h %D%/serve-read.c %D%/serve-read.h \
  %D%/server.c %D%/server.h \
  %D%/surfaces.h \
  %D%/systemd.c %D%/systemd.h

include core/server/api/files.mk

# Apart, so that a test can link the rest with surfaces of its own.
server_surfaces = %D%/surfaces.c
server_archives = %D%/libserver.a core/python/libpython.a core/sandbox/libsandbox.a \
  core/store/libstore.a core/policy/libpolicy.a \
  core/provider/libprovider.a core/contract/libcontract.a core/base/libbase.a
server_libs = sdk/http/libcoffer-http.a sdk/lib/libcoffer-provider.a $(MICROHTTPD_LIBS) $(FFI_LIBS) \
  $(YAML_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS) $(MD_LIBS)

# As of `coffer` there are two programs, which differ in the paths compiled in:
# the one of the build tree takes the other's place in stage/.
pkglibexec_PROGRAMS += %D%/coffer-serve
%C%_coffer_serve_CPPFLAGS = $(AM_CPPFLAGS) $(MICROHTTPD_CFLAGS)
%C%_coffer_serve_CFLAGS = $(HOST_CC_FLAGS)
%C%_coffer_serve_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_coffer_serve_SOURCES = %D%/main.c $(server_surfaces)
%C%_coffer_serve_LDADD = $(server_archives) core/base/libplace-install.a \
  $(server_libs)

noinst_PROGRAMS += %D%/build/coffer-serve
stage_helpers += %D%/build/coffer-serve
%C%_build_coffer_serve_CPPFLAGS = $(AM_CPPFLAGS) $(MICROHTTPD_CFLAGS)
%C%_build_coffer_serve_CFLAGS = $(HOST_CC_FLAGS)
%C%_build_coffer_serve_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_build_coffer_serve_SOURCES = %D%/main.c $(server_surfaces)
%C%_build_coffer_serve_LDADD = $(server_archives) core/base/libplace-build.a \
  $(server_libs)

include core/server/api/sandboxes.mk
