# SPDX-License-Identifier: Apache-2.0
# Container engines, each started by its scenario.  Not of `make check`, which
# needs none of them; contrib/check installs what they need.
ENGINES = %D%/docker.sh %D%/podman.sh %D%/rootless.sh %D%/gvisor.sh %D%/tls.sh
EXTRA_DIST += $(ENGINES) %D%/hang.py %D%/hang-lib.sh %D%/hello.sh %D%/lib.sh %D%/provider.sh %D%/registry.sh \
  %D%/trees.sh %D%/tls-lib.sh %D%/matrix.py %D%/bench.sh

check-engines: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(ENGINES)'

# The whole kit on each engine, on linux and on host: as root, on a quiet machine,
# half an hour.
update-providers: all
	rm -rf kit-reports && $(MKDIR_P) kit-reports/home
	for id in linux host; do \
	  COFFER_HOME=$(abs_top_builddir)/kit-reports/home ./coffer kit $$id --json \
	    > kit-reports/$$id.json || exit 1; done
	KIT_REPORTS=$(abs_top_builddir)/kit-reports CHECK_SCALE=10 \
	  $(MAKE) $(AM_MAKEFLAGS) -j1 check-engines
	./coffer kit --list --json > kit-reports/cases
	python3 $(srcdir)/%D%/matrix.py \
	  $(srcdir)/sdk/include/coffer/contract.h $(srcdir)/manifests \
	  kit-reports/cases kit-reports \
	  > kit-reports/providers.tsv
	cp kit-reports/providers.tsv $(srcdir)/core/man/providers.tsv
	rm -rf kit-reports
.PHONY: check-engines update-providers
