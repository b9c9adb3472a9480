# SPDX-License-Identifier: Apache-2.0
# Tests of libcoffer-http.a.
HTTP_UNIT_LIBS = sdk/http/libcoffer-http.a $(SDK_UNIT_LIBS)
HTTP_CLIENT_LIBS = %D%/libfakehost.a sdk/http/libcoffer-http.a \
  $(SDK_UNIT_LIBS) $(CURL_LIBS) $(JANSSON_LIBS) $(SECCOMP_LIBS) -lpthread
HTTP_CLIENT_CPP_FLAGS = $(SDK_UNIT_CPP_FLAGS) $(JANSSON_CFLAGS) \
  $(SECCOMP_CFLAGS)

UNIT_TESTS += %D%/test-http-frames %D%/test-http-http1 %D%/test-http-websocket

%C%_test_http_frames_SOURCES = %D%/test-http-frames.c %D%/harness.h
%C%_test_http_frames_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_http_frames_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_http_frames_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_http_frames_LDADD = $(HTTP_UNIT_LIBS)

%C%_test_http_http1_SOURCES = %D%/test-http-http1.c %D%/harness.h
%C%_test_http_http1_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_http_http1_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_http_http1_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_http_http1_LDADD = $(HTTP_UNIT_LIBS)

%C%_test_http_websocket_SOURCES = %D%/test-http-websocket.c %D%/harness.h
%C%_test_http_websocket_CPPFLAGS = $(SDK_UNIT_CPP_FLAGS)
%C%_test_http_websocket_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_http_websocket_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_http_websocket_LDADD = $(HTTP_UNIT_LIBS)

UNIT_TESTS += %D%/test-http-client

# A module's libcurl finds the worker's connect, and so does a test's.
HTTP_PEER = %D%/http-peer.c %D%/http-peer.h core/provider/worker/connect.c

%C%_test_http_client_SOURCES = %D%/test-http-client.c $(HTTP_PEER) \
  %D%/harness.h
%C%_test_http_client_CPPFLAGS = $(HTTP_CLIENT_CPP_FLAGS)
%C%_test_http_client_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_http_client_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_http_client_LDADD = $(HTTP_CLIENT_LIBS)

UNIT_TESTS += %D%/test-http-faults

%C%_test_http_faults_SOURCES = %D%/test-http-faults.c $(HTTP_PEER) \
  %D%/harness.h
%C%_test_http_faults_CPPFLAGS = $(HTTP_CLIENT_CPP_FLAGS)
%C%_test_http_faults_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_http_faults_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_http_faults_LDADD = $(HTTP_CLIENT_LIBS)

UNIT_TESTS += %D%/test-http-streams

%C%_test_http_streams_SOURCES = %D%/test-http-streams.c $(HTTP_PEER) \
  %D%/harness.h
%C%_test_http_streams_CPPFLAGS = $(HTTP_CLIENT_CPP_FLAGS)
%C%_test_http_streams_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_http_streams_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_http_streams_LDADD = $(HTTP_CLIENT_LIBS)

UNIT_TESTS += %D%/test-http-tls

%C%_test_http_tls_SOURCES = %D%/test-http-tls.c core/provider/worker/connect.c \
  %D%/harness.h
%C%_test_http_tls_CPPFLAGS = $(HTTP_CLIENT_CPP_FLAGS)
%C%_test_http_tls_CFLAGS = $(UNIT_CC_FLAGS)
%C%_test_http_tls_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_test_http_tls_LDADD = $(HTTP_CLIENT_LIBS)
EXTRA_DIST += %D%/http-tls-peer.py
