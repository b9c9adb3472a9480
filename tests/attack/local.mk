# SPDX-License-Identifier: Apache-2.0
# The attack corpus: the linux provider built once more, with switches that
# leave out a layer or make a call fail.  Nothing of it is installed.
check_PROGRAMS += %D%/linux-switches.so %D%/init-switches %D%/payload

UNIT_TESTS += %D%/attack %D%/faults %D%/soak

# Calls of the C library that a test makes fail (switches-wrap.c).
ATTACK_WRAP = -Wl,--wrap=access -Wl,--wrap=bind -Wl,--wrap=calloc \
  -Wl,--wrap=chmod -Wl,--wrap=clone -Wl,--wrap=connect -Wl,--wrap=fchmod \
  -Wl,--wrap=fchown -Wl,--wrap=fcntl -Wl,--wrap=fdopendir -Wl,--wrap=flock \
  -Wl,--wrap=fopen -Wl,--wrap=fstat -Wl,--wrap=fstatat -Wl,--wrap=fsync \
  -Wl,--wrap=linkat -Wl,--wrap=listen -Wl,--wrap=malloc -Wl,--wrap=mkdir \
  -Wl,--wrap=mkdirat -Wl,--wrap=open -Wl,--wrap=openat -Wl,--wrap=poll \
  -Wl,--wrap=ppoll -Wl,--wrap=pread -Wl,--wrap=pwrite -Wl,--wrap=read \
  -Wl,--wrap=readlink -Wl,--wrap=readlinkat -Wl,--wrap=realloc \
  -Wl,--wrap=recvmsg -Wl,--wrap=renameat -Wl,--wrap=sendmsg \
  -Wl,--wrap=socket -Wl,--wrap=socketpair -Wl,--wrap=strdup \
  -Wl,--wrap=symlinkat -Wl,--wrap=syscall -Wl,--wrap=write

%C%_linux_switches_so_SOURCES = $(plugins_linux_linux_so_SOURCES) \
  %D%/faults.h %D%/switches-host.c %D%/switches-wrap.c %D%/switches.h
%C%_linux_switches_so_CPPFLAGS = $(plugins_linux_linux_so_CPPFLAGS) \
  -DCOFFER_LAYER_SWITCHES -I$(top_srcdir)/%D%
# With the calls as they are written, and not as _FORTIFY_SOURCE has them.
%C%_linux_switches_so_CFLAGS = $(plugins_linux_linux_so_CFLAGS) \
  -U_FORTIFY_SOURCE
%C%_linux_switches_so_LDFLAGS = $(plugins_linux_linux_so_LDFLAGS) \
  $(ATTACK_WRAP)
%C%_linux_switches_so_LDADD = $(plugins_linux_linux_so_LDADD)

%C%_init_switches_SOURCES = $(plugins_linux_coffer_init_SOURCES) \
  %D%/switches-init.c %D%/switches.h
nodist_%C%_init_switches_SOURCES = $(nodist_plugins_linux_coffer_init_SOURCES)
%C%_init_switches_CPPFLAGS = -DCOFFER_LAYER_SWITCHES -I$(top_srcdir)/%D% \
  -I$(top_builddir)/plugins/linux/init
%C%_init_switches_CFLAGS = $(plugins_linux_coffer_init_CFLAGS)
%C%_init_switches_LDFLAGS = $(plugins_linux_coffer_init_LDFLAGS)
%C%_init_switches_LDADD =
plugins/linux/init/tests_attack_init_switches-filter.$(OBJEXT): \
  plugins/linux/init/filter.h

# The payload, without a libc as well.
%C%_payload_SOURCES = %D%/payload.c %D%/payload.h %D%/payload-files.c \
  %D%/payload-kernel.c %D%/payload-network.c %D%/payload-processes.c \
  plugins/linux/init/lib.c
%C%_payload_CPPFLAGS =
%C%_payload_CFLAGS = $(plugins_linux_coffer_init_CFLAGS)
%C%_payload_LDFLAGS = $(plugins_linux_coffer_init_LDFLAGS)
%C%_payload_LDADD =

ATTACK_CAGED = %D%/arena.c %D%/arena.h %D%/cage.c %D%/cage.h \
  %D%/inventory.c %D%/inventory.h $(LINUX_UNIT_HOST)

%C%_attack_SOURCES = %D%/attack.c %D%/arena.c %D%/arena.h %D%/cage.c \
  %D%/cage.h %D%/cases.c %D%/cases.h %D%/switches.h $(LINUX_UNIT_HOST)
%C%_attack_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_attack_CFLAGS = $(UNIT_CC_FLAGS)
%C%_attack_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_attack_LDADD = $(LINUX_UNIT_LIBS)

SCENARIOS += %D%/archives.sh %D%/release.sh %D%/strict.sh
EXTRA_DIST += %D%/archives-client.py %D%/http.tsv %D%/matrix.tsv %D%/matrix-merge.sh %D%/payload.py

%C%_faults_SOURCES = %D%/faults.c %D%/faults.h $(ATTACK_CAGED)
%C%_faults_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_faults_CFLAGS = $(UNIT_CC_FLAGS)
%C%_faults_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_faults_LDADD = $(LINUX_UNIT_LIBS)

%C%_soak_SOURCES = %D%/soak.c $(ATTACK_CAGED)
%C%_soak_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_soak_CFLAGS = $(UNIT_CC_FLAGS)
%C%_soak_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_soak_LDADD = $(LINUX_UNIT_LIBS)

# The table as it is here and for whoever runs this: only after a look at what
# has changed, and why.  `make update-matrix` as root and as an ordinary user.
update-matrix: %D%/attack $(check_PROGRAMS)
	for profile in general strict; do \
	  CHECK_SCALE=2 COFFER_BUILD=$(abs_top_builddir) \
	  COFFER_SOURCE=$(abs_top_srcdir) COFFER_ATTACK_WRITE=%D%/matrix.new \
	  %D%/attack $$profile > %D%/matrix.log; \
	  sh $(srcdir)/%D%/matrix-merge.sh $(srcdir)/%D%/matrix.tsv \
	    %D%/matrix.new || exit 1; \
	done
update-http-attacks: all
	COFFER_BUILD=$(abs_top_builddir) COFFER_SOURCE=$(abs_top_srcdir) \
	  ATTACK_WRITE=$(abs_top_srcdir)/%D%/http.tsv \
	  $(PY_LOG_COMPILER) $(srcdir)/tests/server/attacks.py
.PHONY: update-matrix update-http-attacks
CLEANFILES += %D%/matrix.new %D%/matrix.log
