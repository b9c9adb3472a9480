# SPDX-License-Identifier: Apache-2.0
# coffer on other kernels: QEMU and user-mode-linux.  Not of `make check`,
# which needs neither; contrib/check fetches what they need.
GUESTS = %D%/qemu.sh %D%/uml.sh
GUEST_SCENARIOS = %D%/inside/basics.sh %D%/inside/cgroup.sh \
  %D%/inside/cgroup-without.sh %D%/inside/landlock.sh \
  %D%/inside/network.sh %D%/inside/pause.sh %D%/inside/quota.sh \
  %D%/inside/core.sh
EXTRA_DIST += $(GUESTS) $(GUEST_SCENARIOS) %D%/boot.sh %D%/image.sh \
  %D%/init.sh %D%/jobs.sh %D%/kernel.sh %D%/scope.sh %D%/scenarios %D%/units

check-guests: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(GUESTS)'
.PHONY: check-guests
clean-local: clean-guests
clean-guests:
	-rm -rf guest
