# SPDX-License-Identifier: Apache-2.0
# The attack corpus: the linux provider built once more, with switches that
# leave out a layer or make a call fail.  Nothing of it is installed.
check_PROGRAMS += %D%/linux-switches.so %D%/init-switches %D%/payload

UNIT_TESTS += %D%/attack

# Calls of the C library that a test makes fail.
ATTACK_WRAPPED = access bind calloc chmod clone connect fchmod fchown fcntl \
  fdopendir flock fopen fstat fstatat fstatfs fsync getgroups getrandom \
  getsockopt kill linkat lseek malloc memfd_create mkdir mkdirat open openat \
  poll ppoll pread read readlink readlinkat realloc recvmsg renameat \
  renameat2 rmdir send sendmsg socket socketpair splice strdup strndup \
  symlinkat syscall unlinkat waitid waitpid write

%C%_linux_switches_so_SOURCES = $(plugins_linux_linux_so_SOURCES) \
  %D%/switches-host.c %D%/switches.h
%C%_linux_switches_so_CPPFLAGS = $(plugins_linux_linux_so_CPPFLAGS) \
  -DCOFFER_LAYER_SWITCHES -I$(top_srcdir)/%D%
%C%_linux_switches_so_CFLAGS = $(plugins_linux_linux_so_CFLAGS)
%C%_linux_switches_so_LDFLAGS = $(plugins_linux_linux_so_LDFLAGS)
%C%_linux_switches_so_LDADD = $(plugins_linux_linux_so_LDADD)

%C%_init_switches_SOURCES = $(plugins_linux_coffer_init_SOURCES) \
  %D%/switches-init.c %D%/switches.h
nodist_%C%_init_switches_SOURCES = $(nodist_plugins_linux_coffer_init_SOURCES)
%C%_init_switches_CPPFLAGS = -DCOFFER_LAYER_SWITCHES -I$(top_srcdir)/%D% \
  -I$(top_builddir)/plugins/linux/init
%C%_init_switches_CFLAGS = $(plugins_linux_coffer_init_CFLAGS)
%C%_init_switches_LDFLAGS = $(plugins_linux_coffer_init_LDFLAGS)
%C%_init_switches_LDADD =

# The payload, without a libc as well.
%C%_payload_SOURCES = %D%/payload.c %D%/payload.h %D%/payload-files.c \
  %D%/payload-kernel.c %D%/payload-network.c %D%/payload-processes.c \
  plugins/linux/init/lib.c
%C%_payload_CPPFLAGS =
%C%_payload_CFLAGS = $(plugins_linux_coffer_init_CFLAGS)
%C%_payload_LDFLAGS = $(plugins_linux_coffer_init_LDFLAGS)
%C%_payload_LDADD =

%C%_attack_SOURCES = %D%/attack.c %D%/arena.c %D%/arena.h %D%/cage.c \
  %D%/cage.h %D%/cases.c %D%/cases.h %D%/switches.h $(LINUX_UNIT_HOST)
%C%_attack_CPPFLAGS = $(LINUX_UNIT_CPP_FLAGS)
%C%_attack_CFLAGS = $(UNIT_CC_FLAGS)
%C%_attack_LDFLAGS = $(HOST_LINK_FLAGS)
%C%_attack_LDADD = $(LINUX_UNIT_LIBS)

SCENARIOS += %D%/release.sh
EXTRA_DIST += %D%/matrix.tsv %D%/matrix-merge.sh %D%/payload.py

# The table as it is here and for whoever runs this: only after a look at what
# has changed, and why.  `make update-matrix` as root and as an ordinary user.
update-matrix: %D%/attack $(check_PROGRAMS)
	CHECK_SCALE=2 COFFER_BUILD=$(abs_top_builddir) \
	COFFER_SOURCE=$(abs_top_srcdir) COFFER_ATTACK_WRITE=%D%/matrix.new \
	%D%/attack > %D%/matrix.log; \
	sh $(srcdir)/%D%/matrix-merge.sh $(srcdir)/%D%/matrix.tsv %D%/matrix.new
.PHONY: update-matrix
CLEANFILES += %D%/matrix.new %D%/matrix.log
