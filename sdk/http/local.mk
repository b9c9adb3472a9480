# SPDX-License-Identifier: Apache-2.0
# HTTP for authors of providers of services, an archive of its own: who does not
# need libcurl does not link it, and the readers of streams need no library.
# Objects of an archive are taken one by one, so that the daemon has its WebSocket
# from here and no libcurl.
lib_LIBRARIES += %D%/libcoffer-http.a
%C%_libcoffer_http_a_SOURCES = \
  %D%/client.h \
  %D%/digest.c \
  %D%/exchange.c \
  %D%/frames.c \
  %D%/helpers.c \
  %D%/http.c \
  %D%/http1.c \
  %D%/internal.h \
  %D%/lines.c \
  %D%/origin.c \
  %D%/pump.c \
  %D%/pump.h \
  %D%/reply.c \
  %D%/request.c \
  %D%/secrets.c \
  %D%/sse.c \
  %D%/transfer.c \
  %D%/upgrade.c \
  %D%/websocket-io.c \
  %D%/websocket-write.c \
  %D%/websocket.c
%C%_libcoffer_http_a_CPPFLAGS = -I$(top_srcdir)/sdk/include $(CURL_CFLAGS) \
  $(JANSSON_CFLAGS)
%C%_libcoffer_http_a_CFLAGS = $(MODULE_CC_FLAGS)

dist_cofferinclude_HEADERS += \
  sdk/include/coffer/frames.h \
  sdk/include/coffer/http.h \
  sdk/include/coffer/http1.h \
  sdk/include/coffer/websocket.h

nodist_pkgconfig_DATA += %D%/coffer-http.pc
EXTRA_DIST += %D%/coffer-http.pc.in
CLEANFILES += %D%/coffer-http.pc
%D%/coffer-http.pc: %D%/coffer-http.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(SED) -e 's|@prefix[@]|$(prefix)|' \
	  -e 's|@exec_prefix[@]|$(exec_prefix)|' \
	  -e 's|@libdir[@]|$(libdir)|' \
	  -e 's|@PACKAGE_VERSION[@]|$(PACKAGE_VERSION)|' \
	  $(srcdir)/%D%/coffer-http.pc.in > $@.tmp && mv $@.tmp $@
