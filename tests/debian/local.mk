# SPDX-License-Identifier: Apache-2.0
# A template by debootstrap, which wants a mirror and half a minute for the tree:
# not of `make check`.
EXTRA_DIST += %D%/debootstrap.sh %D%/tree.sh

check-debian: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS=%D%/debootstrap.sh
.PHONY: check-debian
clean-local: clean-debian
clean-debian:
	-rm -rf debian
