# SPDX-License-Identifier: Apache-2.0
# Container engines, each started by its scenario.  Not of `make check`, which
# needs none of them; contrib/check installs what they need.
ENGINES = %D%/docker.sh %D%/podman.sh %D%/rootless.sh %D%/gvisor.sh
EXTRA_DIST += $(ENGINES) %D%/hello.sh %D%/lib.sh %D%/provider.sh %D%/registry.sh \
  %D%/trees.sh %D%/bench.sh

check-engines: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(ENGINES)'
.PHONY: check-engines
