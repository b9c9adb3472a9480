# SPDX-License-Identifier: Apache-2.0
core_server_libserver_a_SOURCES += %D%/openapi.c
BUILT_SOURCES += %D%/openapi.h
CLEANFILES += %D%/openapi.h
EXTRA_DIST += %D%/openapi.json %D%/text.awk
%D%/openapi.h: %D%/text.awk %D%/openapi.json
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AWK) -f $(srcdir)/%D%/text.awk \
	  $(srcdir)/%D%/openapi.json > $@.tmp && mv $@.tmp $@
core/server/api/libserver_a-openapi.$(OBJEXT): %D%/openapi.h
