/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts at files: of the host, of folders that are shown, and at space. */

#include "payload.h"

#define S_IFREG_ 0100000
#define S_IFCHR_ 0020000
#define S_IFIFO_ 0010000
#define O_PATH__ 010000000

void
try_read (char **args)
{
  for (; *args != NULL; args++)
    say_file (*args);
}

/* ARGS: a link to make, what it points to. */
void
try_symlink (char **args)
{
  SYS (symlinkat, args[1], AT_CWD, args[0]);
  say_file (args[0]);
}

void
try_write (char **args)
{
  spill (args[0], "fallen", 0);
  SYS (truncate, args[0], 3);
}

/* By its name, by a descriptor that may only read, by the newer call. */
void
try_chmod (char **args)
{
  const long fd = SYS (openat, AT_CWD, args[0], RDONLY, 0);

  SYS (fchmodat, AT_CWD, args[0], 0600);
  SYS (fchmod, fd, 0600);
  SYS (fchmodat2, AT_CWD, args[0], 0600, 0);
}

/* ARGS: a mount, a file below it.  Writable again, by each of the two ways. */
void
try_remount (char **args)
{
  struct {
    uint64_t set, clear, propagation, userns;
  } attributes = { 0, 1 /* RDONLY */, 0, 0 };

  SYS (mount_setattr, AT_CWD, args[0], 0, &attributes, sizeof attributes);
  SYS (mount, 0, args[0], 0, 0x1020 /* REMOUNT | BIND */, 0);
  spill (args[1], "fallen", 0);
}

void
try_setuid_bit (char **args)
{
  char path[128];
  long fd;

  text_join (path, sizeof path, args[0], "-new", NULL);
  spill (args[0], "#!/bin/sh\n", CREATE);
  SYS (fchmodat, AT_CWD, args[0], 06755);
  fd = SYS (openat, AT_CWD, args[0], RDONLY, 0);
  SYS (fchmod, fd, 06755);
  SYS (fchmodat2, AT_CWD, args[0], 06755, 0);
  SYS (umask, 0);
  SYS (openat, AT_CWD, path, WRONLY | CREATE, 06755);
  SYS (mknodat, AT_CWD, path, S_IFREG_ | 06755, 0);
}

void
try_setuid_high (char **args)
{
  spill (args[0], "#!/bin/sh\n", CREATE);
  SYS (fchmodat, AT_CWD, args[0], 06755 | HIGH);
}

/* The mode is where no filter looks. */
void
try_setuid_openat2 (char **args)
{
  struct {
    uint64_t flags, mode, resolve;
  } how = { WRONLY | CREATE, 06755, 0 };

  SYS (umask, 0);
  SYS (openat2, AT_CWD, args[0], &how, sizeof how);
}

/* What hides a file of a lower layer, where the folder is one of an overlay. */
void
try_whiteout (char **args)
{
  SYS (mknodat, AT_CWD, args[0], S_IFCHR_ | 0600, 0);
}

/* A new name for a file may leave the same under the old one. */
void
try_whiteout_rename (char **args)
{
  char path[128];

  text_join (path, sizeof path, args[0], "-renamed", NULL);
  spill (args[0], "whole", CREATE);
  SYS (renameat2, AT_CWD, args[0], AT_CWD, path, 4 /* RENAME_WHITEOUT */);
}

/* ARGS: this program with the set-user-ID bit of root, a file that only root
 * reads. */
void
try_setuid_program (char **args)
{
  char *const argv[] = { args[0], (char *) (uintptr_t) "read", args[1], NULL };
  char *const none[] = { NULL };

  SYS (execve, args[0], argv, none);
}

/* ARGS: a file, MiB. */
void
try_disk (char **args)
{
  static char block[65536];
  long fd = SYS (openat, AT_CWD, args[0], WRONLY | CREATE, 0600), i;

  for (i = 0; fd >= 0 && i < number (args[1]) * 16; i++)
    if (SYS (write, fd, block, sizeof block) <= 0)
      break;
  SYS (fallocate, fd, 0, 0, number (args[1]) << 20);
}

/* ARGS: a control group that is not this sandbox's. */
void
try_escape (char **args)
{
  spill (args[0], "0", 0);
}

/* By the descriptor of one that was opened for nothing. */
void
try_reopen (char **args)
{
  long fd = SYS (openat, AT_CWD, args[0], O_PATH__, 0);
  char path[40], digits[21];

  text_join (path, sizeof path, "/proc/self/fd/",
             text_number (digits, (uint64_t) fd), NULL);
  if (fd >= 0)
    spill (path, "fallen", 0);
}

/* ARGS: a file that is shown, another name for it where one may write. */
void
try_link (char **args)
{
  SYS (linkat, AT_CWD, args[0], AT_CWD, args[1], 0);
}

void
try_fifo (char **args)
{
  SYS (mknodat, AT_CWD, args[0], S_IFIFO_ | 0600, 0);
}

/* What two that may only read can tell each other by. */
void
try_lock (char **args)
{
  long fd = SYS (openat, AT_CWD, args[0], RDONLY, 0);

  SYS (flock, fd, 2 /* LOCK_EX */);
}

void
try_watch (char **args)
{
  long fd = SYS (inotify_init1, 0);

  SYS (inotify_add_watch, fd, args[0], 0xfff);
}
