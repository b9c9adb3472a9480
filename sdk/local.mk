# SPDX-License-Identifier: Apache-2.0
# What a provider's author gets: headers, helpers, a .pc file and an m4 macro.

lib_LIBRARIES += %D%/lib/libcoffer-provider.a
%C%_lib_libcoffer_provider_a_SOURCES = \
  %D%/lib/address.c \
  %D%/lib/archive.c \
  %D%/lib/buffer.c \
  %D%/lib/commands.c \
  %D%/lib/descendants.c \
  %D%/lib/escape.c \
  %D%/lib/fd.c \
  %D%/lib/files.c \
  %D%/lib/helper.c \
  %D%/lib/internal.h \
  %D%/lib/left.c \
  %D%/lib/merge.c \
  %D%/lib/name.c \
  %D%/lib/packet.c \
  %D%/lib/path.c \
  %D%/lib/process.c \
  %D%/lib/sandboxes.c \
  %D%/lib/spec.c \
  %D%/lib/tar-read.c \
  %D%/lib/tar.h \
  %D%/lib/tree.c \
  %D%/lib/watch.c
# -fPIC: modules are made of it as well as programs.
%C%_lib_libcoffer_provider_a_CPPFLAGS = -I$(top_srcdir)/sdk/include
%C%_lib_libcoffer_provider_a_CFLAGS = $(MODULE_CC_FLAGS)

cofferincludedir = $(includedir)/coffer
dist_cofferinclude_HEADERS = \
  %D%/include/coffer/address.h \
  %D%/include/coffer/buffer.h \
  %D%/include/coffer/commands.h \
  %D%/include/coffer/contract.h \
  %D%/include/coffer/descendants.h \
  %D%/include/coffer/fd.h \
  %D%/include/coffer/files.h \
  %D%/include/coffer/packet.h \
  %D%/include/coffer/path.h \
  %D%/include/coffer/process.h \
  %D%/include/coffer/provider.h \
  %D%/include/coffer/sandboxes.h \
  %D%/include/coffer/spec.h

m4macrosdir = $(datadir)/aclocal
dist_m4macros_DATA = %D%/coffer.m4

# Made here and not by configure, as its paths are only known to make.
pkgconfigdir = $(libdir)/pkgconfig
nodist_pkgconfig_DATA = %D%/coffer.pc
EXTRA_DIST += %D%/coffer.pc.in
CLEANFILES += %D%/coffer.pc
%D%/coffer.pc: %D%/coffer.pc.in %D%/include/coffer/contract.h Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	minor=`$(SED) -n 's/^#define COFFER_CONTRACT_MINOR //p' \
	  $(srcdir)/%D%/include/coffer/contract.h` && \
	$(SED) -e 's|@prefix[@]|$(prefix)|' \
	  -e 's|@exec_prefix[@]|$(exec_prefix)|' \
	  -e 's|@libdir[@]|$(libdir)|' \
	  -e 's|@includedir[@]|$(includedir)|' \
	  -e 's|@CONTRACT_MAJOR[@]|$(CONTRACT_MAJOR)|' \
	  -e "s|@CONTRACT_MINOR[@]|$$minor|" \
	  -e 's|@providersdir_pc[@]|$(providersdir)|' \
	  -e 's|@templatedir_pc[@]|$(templatedir)|' \
	  -e 's|@PACKAGE_VERSION[@]|$(PACKAGE_VERSION)|' \
	  -e 's|@SANITIZE[@]|$(SANITIZE)|;s| *$$||' \
	  $(srcdir)/%D%/coffer.pc.in > $@.tmp && mv $@.tmp $@

# The smallest module, which is also the example of coffer-provider(3); and
# the reference of operations: printed by the program, kept in the tree so
# that it can be read there.  tests/build/reference.sh compares the two.
dist_doc_DATA = \
  %D%/doc/catalogue.md \
  %D%/doc/debugging.md \
  %D%/doc/demo.c \
  %D%/doc/growth.md \
  %D%/doc/operations.md \
  %D%/doc/rules.md \
  %D%/doc/tutorial.md
.PHONY: update-operations
update-operations: coffer$(EXEEXT)
	./coffer contract --markdown > $(srcdir)/sdk/doc/operations.md

# A whole provider for an author to copy: built by a test from what is
# installed, and from nothing of this tree.
templatedir = $(datadir)/coffer/template
dist_template_DATA = \
  %D%/template/Makefile \
  %D%/template/README.md \
  %D%/template/check.sh \
  %D%/template/example.c \
  %D%/template/example.h \
  %D%/template/example.yaml \
  %D%/template/inside.c
templateautotoolsdir = $(templatedir)/autotools
dist_templateautotools_DATA = \
  %D%/template/autotools/Makefile.am \
  %D%/template/autotools/configure.ac

# The same contract from another language.
examplecxxdir = $(datadir)/coffer/examples/cxx
dist_examplecxx_DATA = \
  %D%/examples/cxx/Makefile \
  %D%/examples/cxx/shelf.cc \
  %D%/examples/cxx/shelf.map \
  %D%/examples/cxx/shelf.yaml
