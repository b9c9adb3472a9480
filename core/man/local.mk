# SPDX-License-Identifier: Apache-2.0
# coffer(1) has its list of error codes from the one table there is.
nodist_man_MANS += %D%/coffer.1
EXTRA_DIST += %D%/coffer.1.in
CLEANFILES += %D%/coffer.1
%D%/coffer.1: %D%/coffer.1.in core/base/errors.def
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(SED) -n 's/^E (\([0-9]*\), [A-Z_]*, "\([^"]*\)".*/.It E\1\n\2/p' \
	  $(srcdir)/core/base/errors.def > $@.list && \
	$(SED) -e '/^@ERRORS@$$/{r '$@.list -e 'd;}' $(srcdir)/%D%/coffer.1.in \
	  > $@.tmp && rm $@.list && mv $@.tmp $@
