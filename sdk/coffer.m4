# SPDX-License-Identifier: Apache-2.0
# coffer.m4 serial 1
#
# COFFER_PROVIDER([MAJOR], [MINOR])
# ---------------------------------
# For the configure.ac of a provider module.  Finds coffer's headers for the
# contract named, at least that minor, and sets (by AC_SUBST):
#   COFFER_CFLAGS         for the module's sources
#   COFFER_MODULE_CFLAGS  to make a module of them
#   COFFER_LIBS           the helpers (libcoffer-provider.a)
#   COFFER_MODULE_LDFLAGS to link one: nothing unresolved, never unloaded
#   COFFER_PROVIDERSDIR   where modules of this contract are installed, unless
#                         the caller of configure names another folder
AC_DEFUN([COFFER_PROVIDER], [
  AC_REQUIRE([PKG_PROG_PKG_CONFIG])
  PKG_CHECK_MODULES([COFFER], [coffer])
  AC_MSG_CHECKING([for contract $1.$2 of coffer])
  coffer_major=`$PKG_CONFIG --variable=contract_major coffer`
  coffer_minor=`$PKG_CONFIG --variable=contract_minor coffer`
  AS_IF([test "x$coffer_major" = "x$1" && test "$coffer_minor" -ge "$2"],
    [AC_MSG_RESULT([yes, $coffer_major.$coffer_minor])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([coffer's headers are for contract $coffer_major.$coffer_minor, and this module needs $1.$2: install the matching development package])])
  COFFER_MODULE_CFLAGS="-fPIC -fvisibility=hidden"
  COFFER_MODULE_LDFLAGS="-shared -Wl,-z,defs -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack"
  AC_ARG_VAR([COFFER_PROVIDERSDIR], [where the module is installed])
  AS_IF([test -z "$COFFER_PROVIDERSDIR"],
    [COFFER_PROVIDERSDIR=`$PKG_CONFIG --variable=providersdir coffer`])
  AC_SUBST([COFFER_MODULE_CFLAGS])
  AC_SUBST([COFFER_MODULE_LDFLAGS])
])
