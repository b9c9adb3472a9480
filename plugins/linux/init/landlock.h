/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock as a function of the ABI number that a kernel reports: what is
 * asked of it, and what of that a place in a sandbox is granted.  Constants of
 * our own: the headers of the oldest systems that coffer is built on stop at
 * ABI 2.  No calls, no state; the unit test goes through every ABI. */

#ifndef INIT_LANDLOCK_H
#define INIT_LANDLOCK_H

#include <stddef.h>
#include <stdint.h>

enum {
  LL_EXECUTE = 0x1,
  LL_WRITE_FILE = 0x2,
  LL_READ_FILE = 0x4,
  LL_READ_DIR = 0x8,
  LL_MAKE_CHAR = 0x40,
  LL_MAKE_BLOCK = 0x800,
  LL_FIRST = 0x1fff,            /* all that ABI 1 knows */
  LL_REFER = 0x2000,            /* rename and link from folder to folder */
  LL_TRUNCATE = 0x4000,
  LL_IOCTL_DEV = 0x8000,
  LL_RESOLVE_UNIX = 0x10000,    /* sockets of others, by their path */
  LL_TCP = 0x3,                 /* bind and connect */
  LL_SCOPE_SOCKETS = 0x1,       /* abstract ones of others */
  LL_SCOPE_SIGNALS = 0x2,       /* to others */
  LL_SCOPES = 0x3
};

/* The kernel's struct landlock_ruleset_attr, as far as it is filled here. */
struct landlock_ruleset {
  uint64_t files, net, scoped;
};

struct landlock_shape {
  struct landlock_ruleset handled;
  size_t size;                  /* that this ABI has of it; 0: no Landlock */
};

/* What this code knows, cut to what the kernel says it knows.  What is handled
 * is denied unless a rule grants it; of TCP a sandbox has no rules, so it is
 * handled only where nothing speaks it, or whoever asks grants ports.  Between
 * ABI 6 and 9 come flags about logs and threads that are not used here, and what
 * is above 9 is not known here. */
static inline struct landlock_shape
landlock_negotiate (long abi, int without_tcp)
{
  struct landlock_shape shape = { { 0, 0, 0 }, 0 };

  if (abi < 1)
    return shape;
  shape.handled.files = LL_FIRST;
  shape.size = 8;
  if (abi >= 2)
    shape.handled.files |= LL_REFER;
  if (abi >= 3)
    shape.handled.files |= LL_TRUNCATE;
  if (abi >= 4) {
    shape.handled.net = without_tcp ? LL_TCP : 0;
    shape.size = 16;
  }
  if (abi >= 5)
    shape.handled.files |= LL_IOCTL_DEV;
  if (abi >= 6) {
    shape.handled.scoped = LL_SCOPES;
    shape.size = 24;
  }
  if (abi >= 9)
    shape.handled.files |= LL_RESOLVE_UNIX;
  return shape;
}

/* A process that was not started by the init has a domain beside the init's,
 * however alike, and an init that may signal only its own could not end it.
 * Where there can be one, the init is not held to that, and each command is by
 * a domain on top: what is taken out here. */
static inline struct landlock_shape
landlock_command_shape (struct landlock_shape *whole)
{
  struct landlock_shape command = { { 0, 0, 0 }, whole->size };

  command.handled.scoped = whole->handled.scoped & LL_SCOPE_SIGNALS;
  whole->handled.scoped &= ~(uint64_t) LL_SCOPE_SIGNALS;
  return command;
}

enum landlock_place {
  LANDLOCK_ROOT,                /* the root's own folder, and those in it */
  LANDLOCK_PROGRAMS,            /* of the host, read-only */
  LANDLOCK_DATA,                /* the sandbox's own, in memory */
  LANDLOCK_PROC,
  LANDLOCK_DEVICES,
  LANDLOCK_TERMINALS,           /* of the host, one of which a command has */
  LANDLOCK_SHOWN,               /* the caller's folders, read-only */
  LANDLOCK_SHOWN_FILE,
  LANDLOCK_SHARED,              /* the same, writable */
  LANDLOCK_SHARED_FILE
};

/* What a place is granted of what is handled.  Nothing anywhere may make a
 * device; of sockets only those that the sandbox itself made are reached, for
 * which no rule is needed: one in a folder of the host is somebody else's. */
static inline uint64_t
landlock_grant (enum landlock_place place, const struct landlock_shape *shape)
{
  const uint64_t read = LL_EXECUTE | LL_READ_FILE | LL_READ_DIR;
  const uint64_t file
    = LL_EXECUTE | LL_READ_FILE | LL_WRITE_FILE | LL_TRUNCATE;
  const uint64_t all = ~(uint64_t) (LL_MAKE_CHAR | LL_MAKE_BLOCK
                                    | LL_RESOLVE_UNIX);
  uint64_t access = 0;

  switch (place) {
  case LANDLOCK_ROOT:
    access = LL_READ_DIR;
    break;
  case LANDLOCK_PROGRAMS:
  case LANDLOCK_SHOWN:
    access = read;
    break;
  case LANDLOCK_PROC:
    access = LL_READ_FILE | LL_READ_DIR | LL_WRITE_FILE;
    break;
  case LANDLOCK_DEVICES:
    access = LL_READ_FILE | LL_READ_DIR | LL_WRITE_FILE | LL_TRUNCATE
             | LL_IOCTL_DEV;
    break;
  case LANDLOCK_TERMINALS:
    access = LL_READ_FILE | LL_WRITE_FILE | LL_IOCTL_DEV;
    break;
  case LANDLOCK_SHOWN_FILE:
    access = read & file;
    break;
  case LANDLOCK_SHARED_FILE:
    access = file;
    break;
  case LANDLOCK_DATA:
  case LANDLOCK_SHARED:
    access = all;
    break;
  }
  return access & shape->handled.files;
}

#endif /* INIT_LANDLOCK_H */
