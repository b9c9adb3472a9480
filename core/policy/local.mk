# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libpolicy.a
%C%_libpolicy_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir)/%D%
%C%_libpolicy_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libpolicy_a_SOURCES = \
  %D%/bounds.h \
  %D%/profile.h \
  %D%/profile.c \
  %D%/profile-find.c \
  %D%/profile-read.c \
  %D%/rights.c %D%/rights.h \
  %D%/shares.c %D%/shares.h \
  %D%/token.c %D%/token-file.c %D%/token-file.h %D%/token-verify.c \
  %D%/token.h
nodist_%C%_libpolicy_a_SOURCES = %D%/shipped.h

# The shipped profiles, as they are written: the reader is the same for all.
BUILT_SOURCES += %D%/shipped.h
CLEANFILES += %D%/shipped.h
EXTRA_DIST += %D%/shipped.awk
%D%/shipped.h: %D%/shipped.awk $(PROFILES)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	for f in $(PROFILES); do \
	  if test -f $$f; then echo $$f; else echo $(srcdir)/$$f; fi; done \
	  | xargs $(AWK) -f $(srcdir)/%D%/shipped.awk > $@.tmp && mv $@.tmp $@
%D%/libpolicy_a-profile-find.$(OBJEXT): %D%/shipped.h
