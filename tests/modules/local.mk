# SPDX-License-Identifier: Apache-2.0
# Modules with one thing wrong each; see bad.c.  `good.so` has nothing wrong,
# and `abort.so` only a constructor that aborts.
BAD_CPP = $(MODULE_CPP_FLAGS)
# Looked at and never run: as they are in a build without sanitizers.
BAD_CC = $(MODULE_CC_FLAGS) -fno-sanitize=all
BAD_LINK = $(MODULE_LINK_FLAGS) -fno-sanitize=all
bad_modules = %D%/good.so %D%/abort.so %D%/nonote.so %D%/twonotes.so \
  %D%/twosymbols.so %D%/datasymbol.so %D%/major.so %D%/minor.so %D%/needs.so \
  %D%/rpath.so %D%/runpath.so %D%/execstack.so %D%/library.so %D%/slash.so \
  %D%/strange.so %D%/textrel.so %D%/filter.so %D%/program.so
check_PROGRAMS += $(bad_modules)

%C%_good_so_SOURCES = %D%/bad.c
%C%_good_so_CPPFLAGS = $(BAD_CPP) -DQUIET
%C%_good_so_CFLAGS = $(BAD_CC)
%C%_good_so_LDFLAGS = $(BAD_LINK)
%C%_abort_so_SOURCES = %D%/bad.c
%C%_abort_so_CPPFLAGS = $(BAD_CPP)
%C%_abort_so_CFLAGS = $(BAD_CC)
%C%_abort_so_LDFLAGS = $(BAD_LINK)
%C%_nonote_so_SOURCES = %D%/bad.c
%C%_nonote_so_CPPFLAGS = $(BAD_CPP) -DNO_NOTE
%C%_nonote_so_CFLAGS = $(BAD_CC)
%C%_nonote_so_LDFLAGS = $(BAD_LINK)
%C%_twonotes_so_SOURCES = %D%/bad.c
%C%_twonotes_so_CPPFLAGS = $(BAD_CPP) -DTWO_NOTES
%C%_twonotes_so_CFLAGS = $(BAD_CC)
%C%_twonotes_so_LDFLAGS = $(BAD_LINK)
%C%_twosymbols_so_SOURCES = %D%/bad.c
%C%_twosymbols_so_CPPFLAGS = $(BAD_CPP) -DTWO_SYMBOLS
%C%_twosymbols_so_CFLAGS = $(BAD_CC)
%C%_twosymbols_so_LDFLAGS = $(BAD_LINK)
%C%_datasymbol_so_SOURCES = %D%/bad.c
%C%_datasymbol_so_CPPFLAGS = $(BAD_CPP) -DDATA_SYMBOL
%C%_datasymbol_so_CFLAGS = $(BAD_CC)
%C%_datasymbol_so_LDFLAGS = $(BAD_LINK)
%C%_major_so_SOURCES = %D%/bad.c
%C%_major_so_CPPFLAGS = $(BAD_CPP) -DBAD_MAJOR
%C%_major_so_CFLAGS = $(BAD_CC)
%C%_major_so_LDFLAGS = $(BAD_LINK)
%C%_minor_so_SOURCES = %D%/bad.c
%C%_minor_so_CPPFLAGS = $(BAD_CPP) -DBAD_MINOR
%C%_minor_so_CFLAGS = $(BAD_CC)
%C%_minor_so_LDFLAGS = $(BAD_LINK)
%C%_needs_so_SOURCES = %D%/bad.c
%C%_needs_so_CPPFLAGS = $(BAD_CPP) -DNEEDS=0x80000000u
%C%_needs_so_CFLAGS = $(BAD_CC)
%C%_needs_so_LDFLAGS = $(BAD_LINK)
%C%_rpath_so_SOURCES = %D%/bad.c
%C%_rpath_so_CPPFLAGS = $(BAD_CPP)
%C%_rpath_so_CFLAGS = $(BAD_CC)
%C%_rpath_so_LDFLAGS = $(BAD_LINK) -Wl,--disable-new-dtags,-rpath,/tmp
%C%_runpath_so_SOURCES = %D%/bad.c
%C%_runpath_so_CPPFLAGS = $(BAD_CPP)
%C%_runpath_so_CFLAGS = $(BAD_CC)
%C%_runpath_so_LDFLAGS = $(BAD_LINK) -Wl,--enable-new-dtags,-rpath,/tmp
%C%_execstack_so_SOURCES = %D%/bad.c
%C%_execstack_so_CPPFLAGS = $(BAD_CPP)
%C%_execstack_so_CFLAGS = $(BAD_CC)
%C%_execstack_so_LDFLAGS = $(BAD_LINK) -Wl,-z,execstack
%C%_library_so_SOURCES = %D%/bad.c
%C%_library_so_CPPFLAGS = $(BAD_CPP) -DLIBRARY -DQUIET
%C%_library_so_CFLAGS = $(BAD_CC)
%C%_library_so_LDFLAGS = $(BAD_LINK)
# A library without a soname is needed by the path it was linked by.
%C%_slash_so_SOURCES = %D%/bad.c
%C%_slash_so_CPPFLAGS = $(BAD_CPP) -DSTRANGE_LIBRARY
%C%_slash_so_CFLAGS = $(BAD_CC)
%C%_slash_so_LDFLAGS = $(BAD_LINK)
%C%_slash_so_LDADD = %D%/library.so
%C%_strange_so_SOURCES = %D%/bad.c
%C%_strange_so_CPPFLAGS = $(BAD_CPP) -DSTRANGE_LIBRARY
%C%_strange_so_CFLAGS = $(BAD_CC)
%C%_strange_so_LDFLAGS = $(BAD_LINK)
%C%_strange_so_LDADD = -L%D% -l:library.so
%C%_strange_so_DEPENDENCIES = %D%/library.so
%C%_textrel_so_SOURCES = %D%/bad.c
%C%_textrel_so_CPPFLAGS = $(BAD_CPP) -DTEXT_RELOCATION
%C%_textrel_so_CFLAGS = $(BAD_CC)
%C%_textrel_so_LDFLAGS = $(BAD_LINK) -Wl,-z,notext
%C%_filter_so_SOURCES = %D%/bad.c
%C%_filter_so_CPPFLAGS = $(BAD_CPP)
%C%_filter_so_CFLAGS = $(BAD_CC)
%C%_filter_so_LDFLAGS = $(BAD_LINK) -Wl,-f,libc.so.6
%C%_program_so_SOURCES = %D%/bad.c
%C%_program_so_CPPFLAGS = $(BAD_CPP) -DPROGRAM
%C%_program_so_CFLAGS = $(HOST_CC_FLAGS)
%C%_program_so_LDFLAGS = $(HOST_LINK_FLAGS)
