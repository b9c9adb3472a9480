# SPDX-License-Identifier: Apache-2.0
# The guarded interpreter: the host's side of a run, and the program that is
# given to the interpreter, one file made of two.
noinst_LIBRARIES += %D%/libpython.a
%C%_libpython_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libpython_a_SOURCES = \
  %D%/channel.c %D%/channel.h \
  %D%/contained.c %D%/contained.h \
  %D%/execute.c %D%/execute.h \
  %D%/frames.c \
  %D%/kept.c %D%/kept.h \
  %D%/reply.c %D%/reply.h \
  %D%/warm.c %D%/warm.h

RUNNER_PARTS = %D%/guard.py %D%/runner.py
EXTRA_DIST += $(RUNNER_PARTS)
pkglibexec_SCRIPTS += %D%/made/runner.py
CLEANFILES += %D%/made/runner.py
%D%/made/runner.py: $(RUNNER_PARTS)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	for f in $(RUNNER_PARTS); do \
	  if test -f $$f; then cat $$f; else cat $(srcdir)/$$f; fi; done > $@.tmp && \
	mv $@.tmp $@
