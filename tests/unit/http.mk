# SPDX-License-Identifier: Apache-2.0
# Tests of libcoffer-http.a.
HTTP_UNIT_LIBS = sdk/http/libcoffer-http.a $(SDK_UNIT_LIBS)

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
