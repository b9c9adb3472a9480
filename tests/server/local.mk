# SPDX-License-Identifier: Apache-2.0
# The daemon from outside, by curl and by sockets.
EXTRA_DIST += %D%/corpus.py %D%/exposition.py %D%/lib.sh %D%/peer.py %D%/sink.py \
  %D%/pulls-engine.py
EXTRA_DIST += %D%/client.py %D%/files-client.py %D%/folders-client.py \
  %D%/inside.py %D%/ports-client.py
SCENARIOS += \
  %D%/audit.sh \
  %D%/box.sh \
  %D%/box-socket.py \
  %D%/box-shapes.py \
  %D%/execute.sh \
  %D%/files.sh \
  %D%/folders.sh \
  %D%/folders-linux.sh \
  %D%/guard.py \
  %D%/limits.sh \
  %D%/login.sh \
  %D%/metrics.sh \
  %D%/operate.sh \
  %D%/otlp.sh \
  %D%/others.sh \
  %D%/ports.sh \
  %D%/providers.sh \
  %D%/pulls.sh \
  %D%/serve-manual.sh \
  %D%/serve.sh \
  %D%/upgrade.sh
SCENARIOS += \
  %D%/sandboxes.py %D%/execs.py %D%/execs-big.py \
  %D%/execs-keeper.py %D%/execs-kill.py %D%/hang.py %D%/revoke.py %D%/shares.py \
  %D%/tenants.py

# The daemon with surfaces that a test can steer: what HTTP does around handlers.
check_PROGRAMS += %D%/probe-serve
%C%_probe_serve_CPPFLAGS = $(AM_CPPFLAGS) $(MICROHTTPD_CFLAGS)
%C%_probe_serve_CFLAGS = $(HOST_CC_FLAGS)
%C%_probe_serve_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_probe_serve_SOURCES = core/server/main.c %D%/probe.c
%C%_probe_serve_LDADD = $(server_archives) core/base/libplace-build.a \
  $(server_libs)

UNIT_TESTS += %D%/test-server
%C%_test_server_SOURCES = %D%/test-server.c
%C%_test_server_CPPFLAGS = $(UNIT_CPP_FLAGS) $(MICROHTTPD_CFLAGS)
%C%_test_server_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_server_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_server_LDADD = $(server_archives) core/base/libplace-build.a \
  $(server_libs) $(CMOCKA_LIBS)
