# SPDX-License-Identifier: Apache-2.0
# Measurements: a program prints "NAME VALUE" lines and exits 1 when it is
# slower than it may be.  Not part of `make check`, which shares its machine.
BENCHES =
include tests/bench/dispatch.mk
EXTRA_PROGRAMS += $(BENCHES)
CLEANFILES += $(BENCHES)
