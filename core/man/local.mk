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

# coffer-provider(3): the rules by hand, the example and the reference from
# the files that a build and a test hold to the code.
nodist_man_MANS += %D%/coffer-provider.3
EXTRA_DIST += %D%/coffer-provider.3.in %D%/reference.awk
CLEANFILES += %D%/coffer-provider.3
%D%/coffer-provider.3: %D%/coffer-provider.3.in %D%/reference.awk \
    sdk/doc/operations.md sdk/doc/demo.c
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(SED) -e 1d -e 's/\\/\\e/g' -e "s/^[.']/\\\\\&&/" \
	  $(srcdir)/sdk/doc/demo.c > $@.example && \
	$(AWK) -f $(srcdir)/%D%/reference.awk \
	  $(srcdir)/sdk/doc/operations.md > $@.reference && \
	$(SED) -e '/^@EXAMPLE@$$/{r '$@.example -e 'd;}' \
	  -e '/^@REFERENCE@$$/{r '$@.reference -e 'd;}' \
	  $(srcdir)/%D%/coffer-provider.3.in > $@.tmp && \
	rm $@.example $@.reference && mv $@.tmp $@

# coffer-provider-lib(3): tests/build/reference.sh holds it to the headers.
dist_man_MANS += %D%/coffer-provider-lib.3

# coffer-manifest(5): a unit test holds it to the reader.
dist_man_MANS += %D%/coffer-manifest.5

# coffer-profile(5): likewise.
dist_man_MANS += %D%/coffer-profile.5

# coffer-docker(7): tests/engines holds it to the manifests.
dist_man_MANS += %D%/coffer-docker.7

# coffer.yaml(5): likewise.
dist_man_MANS += %D%/coffer.yaml.5

# coffer-serve(8): tests/server/serve-manual.sh holds it to the options.
dist_man_MANS += %D%/coffer-serve.8

# coffer-kit(1) has its list of cases from the program that runs them.  A cross
# build names one that runs on this machine.
COFFER_KIT = ./sdk/kit/runner/coffer-kit$(EXEEXT)
nodist_man_MANS += %D%/coffer-kit.1
EXTRA_DIST += %D%/coffer-kit.1.in %D%/kit.awk
CLEANFILES += %D%/coffer-kit.1
%D%/coffer-kit.1: %D%/coffer-kit.1.in %D%/kit.awk \
    sdk/kit/runner/coffer-kit$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(COFFER_KIT) --list > $@.list && \
	$(AWK) -f $(srcdir)/%D%/kit.awk $@.list > $@.cases && \
	$(SED) -e '/^@CASES@$$/{r '$@.cases -e 'd;}' \
	  $(srcdir)/%D%/coffer-kit.1.in > $@.tmp && \
	rm $@.list $@.cases && mv $@.tmp $@

# What providers have been seen to do, from reports of the kit (tests/engines).
nodist_man_MANS += %D%/coffer-providers.7
EXTRA_DIST += %D%/coffer-providers.7.in %D%/providers.awk %D%/providers.tsv
CLEANFILES += %D%/coffer-providers.7
%D%/coffer-providers.7: %D%/coffer-providers.7.in %D%/providers.awk \
    %D%/providers.tsv
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(AWK) -f $(srcdir)/%D%/providers.awk $(srcdir)/%D%/providers.tsv \
	  > $@.table && \
	$(SED) -e '/^@TABLE@$$/{r '$@.table -e 'd;}' \
	  $(srcdir)/%D%/coffer-providers.7.in > $@.tmp && \
	rm $@.table && mv $@.tmp $@
