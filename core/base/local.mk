# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libbase.a %D%/libplace-build.a %D%/libplace-install.a

%C%_libbase_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libbase_a_SOURCES = \
  %D%/cleanup.h \
  %D%/error.c %D%/error.h %D%/errors.def \
  %D%/helper.c %D%/helper.h \
  %D%/json.c %D%/json.h \
  %D%/log.c %D%/log.h \
  %D%/minisign.c %D%/minisign.h \
  %D%/number.c %D%/text.c %D%/text.h \
  %D%/place.c %D%/place.h \
  %D%/sha256.c %D%/sha256.h \
  %D%/yaml.c %D%/yaml-edit.c %D%/yaml-get.c %D%/yaml.h

# Where things live differs between the `coffer` of the build tree and the one
# that is installed, and nothing else does: a program links one of these.
place_cppflags = $(AM_CPPFLAGS) $(place_defines)
place_defines = \
  -DCONTRACT_MAJOR='"$(CONTRACT_MAJOR)"' \
  -DPLACE_STAGE='"$(abs_top_builddir)/stage"' \
  -DPLACE_SHIPPED='"$(providersdir)"' \
  -DPLACE_LIBEXEC='"$(libexecdir)/coffer"' \
  -DPLACE_SYSCONF='"$(sysconfdir)/coffer"' \
  -DPLACE_LOCALSTATE='"$(localstatedir)/lib/coffer"' \
  -DPLACE_RUN='"$(runstatedir)/coffer"'

%C%_libplace_build_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libplace_build_a_CPPFLAGS = $(place_cppflags)
%C%_libplace_build_a_SOURCES = %D%/place-build.c
%C%_libplace_install_a_CFLAGS = $(HOST_CC_FLAGS)
%C%_libplace_install_a_CPPFLAGS = $(place_cppflags)
%C%_libplace_install_a_SOURCES = %D%/place-install.c
