/* SPDX-License-Identifier: Apache-2.0 */
/* Where the libraries that a module needs come from: only the system's own
 * folders, which belong to root and which nobody else can write. */

#include <config.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "provider/elf.h"

#if defined __x86_64__
#define TRIPLET "x86_64-linux-gnu"
#elif defined __aarch64__
#define TRIPLET "aarch64-linux-gnu"
#elif defined __i386__
#define TRIPLET "i386-linux-gnu"
#elif defined __arm__
#define TRIPLET "arm-linux-gnueabihf"
#elif defined __riscv
#define TRIPLET "riscv64-linux-gnu"
#elif defined __powerpc64__
#define TRIPLET "powerpc64le-linux-gnu"
#elif defined __s390x__
#define TRIPLET "s390x-linux-gnu"
#else
#define TRIPLET "loongarch64-linux-gnu"
#endif

/* Where Debian, Fedora, Arch, openSUSE and Alpine keep them. */
static const char *const folders[] = {
  "/usr/lib/" TRIPLET, "/lib/" TRIPLET, "/usr/lib64", "/lib64", "/usr/lib",
  "/lib", "/usr/local/lib/" TRIPLET, "/usr/local/lib64", "/usr/local/lib",
};

static int
is_roots (const struct stat *st)
{
  return st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* 1: it is there and root's; 0: it is not there; -1: it is not root's. */
static int
look_in (const char *folder, const char *soname)
{
  coffer_autoclose int dir = -1;
  struct stat st;

  dir = open (folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0 || fstat (dir, &st) < 0)
    return 0;
  if (!is_roots (&st))
    return faccessat (dir, soname, F_OK, 0) == 0 ? -1 : 0;
  /* Links are the rule there: libz.so.1 -> libz.so.1.2.13. */
  if (fstatat (dir, soname, &st, 0) < 0)
    return 0;
  return S_ISREG (st.st_mode) && is_roots (&st) ? 1 : -1;
}

int
elf_check_needed (const struct elf_image *image, const char *soname,
                  struct error **err)
{
  size_t i;
  int found;

  for (i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    found = look_in (folders[i], soname);
    if (found > 0)
      return 0;
    if (found < 0)
      return elf_refuse (image, err,
                         "needs %s, and %s/%s can be changed by others than "
                         "root", soname, folders[i], soname);
  }
  return elf_refuse (image, err, "needs %s, which is in no system folder",
                     soname);
}
