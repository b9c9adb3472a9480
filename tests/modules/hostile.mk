# SPDX-License-Identifier: Apache-2.0
# Modules for tests of the loader, dispatch and the worker.  One source that
# does what no provider should, on demand.
HOSTILE_SOURCES = %D%/hostile.c %D%/hostile-ends.c %D%/hostile-rights.c \
  %D%/hostile-channel.c %D%/hostile-reach.c %D%/hostile-noise.c \
  %D%/hostile.h
TEST_MODULES = %D%/hostile.so %D%/serial.so %D%/birth_hang.so \
  %D%/birth_abort.so
check_PROGRAMS += $(TEST_MODULES)

%C%_hostile_so_SOURCES = $(HOSTILE_SOURCES)
%C%_hostile_so_CPPFLAGS = $(MODULE_CPP_FLAGS)
%C%_hostile_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_hostile_so_LDFLAGS = $(MODULE_LINK_FLAGS)

%C%_serial_so_SOURCES = $(HOSTILE_SOURCES)
%C%_serial_so_CPPFLAGS = $(MODULE_CPP_FLAGS) -DHOSTILE_NAME=serial \
  -DHOSTILE_THREADS=COFFER_THREADS_SERIAL
%C%_serial_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_serial_so_LDFLAGS = $(MODULE_LINK_FLAGS)

%C%_birth_hang_so_SOURCES = $(HOSTILE_SOURCES)
%C%_birth_hang_so_CPPFLAGS = $(MODULE_CPP_FLAGS) -DHOSTILE_NAME=birth_hang \
  -DHOSTILE_BIRTH_HANG
%C%_birth_hang_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_birth_hang_so_LDFLAGS = $(MODULE_LINK_FLAGS)

%C%_birth_abort_so_SOURCES = $(HOSTILE_SOURCES)
%C%_birth_abort_so_CPPFLAGS = $(MODULE_CPP_FLAGS) \
  -DHOSTILE_NAME=birth_abort -DHOSTILE_BIRTH_ABORT
%C%_birth_abort_so_CFLAGS = $(MODULE_CC_FLAGS)
%C%_birth_abort_so_LDFLAGS = $(MODULE_LINK_FLAGS)

# Under the name, and in the place, of the real one.
check_PROGRAMS += %D%/fake/coffer-worker
%C%_fake_coffer_worker_SOURCES = %D%/fakeworker.c
%C%_fake_coffer_worker_CFLAGS = $(HOST_CC_FLAGS)
%C%_fake_coffer_worker_LDFLAGS = $(HOST_LINK_FLAGS)
