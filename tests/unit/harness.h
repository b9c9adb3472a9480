/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test program starts with: cmocka's headers in the order it
 * wants, the vectors that every layer must carry, and a folder of its own. */

#ifndef UNIT_HARNESS_H
#define UNIT_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file name and a body that break what is careless with bytes. */
#define VECTOR_NAME "你好 世界/'q\".txt"
#define VECTOR_BODY "café\n☃\n"

/* Skips a test, and says what it needed. */
#define skip_missing(what)                                                    \
  do {                                                                        \
    print_message ("# SKIP missing: %s\n", what);                             \
    skip ();                                                                  \
  } while (0)

/* What must happen is waited for as long as a machine may need that has much
 * else to do, and what must not hang has ended by then; what would end by itself
 * lasts longer.  How quick something is, a benchmark says. */
#define HARNESS_PATIENCE_MS 20000
#define HARNESS_PATIENCE_NS (HARNESS_PATIENCE_MS * INT64_C (1000000))

/* `count` times CHECK_SCALE: 1 in `make check`, 100 in `make check-long`. */
__attribute__ ((unused)) static unsigned long
harness_scaled (unsigned long count)
{
  const char *scale = getenv ("CHECK_SCALE");
  unsigned long factor = scale ? strtoul (scale, NULL, 10) : 1;

  return count * (factor < 1 ? 1 : factor > 1000 ? 1000 : factor);
}

static int
harness_remove_one (const char *path, const struct stat *st, int kind,
                    struct FTW *ftw)
{
  (void) st;
  (void) kind;
  (void) ftw;
  return remove (path);
}

/* Group set-up and teardown: *state is the path of an empty folder. */
__attribute__ ((unused)) static int
harness_folder_new (void **state)
{
  char path[] = "/tmp/coffer-unit-XXXXXX";

  if (!mkdtemp (path))
    return -1;
  *state = strdup (path);
  return *state ? 0 : -1;
}

__attribute__ ((unused)) static int
harness_folder_free (void **state)
{
  int r = nftw (*state, harness_remove_one, 16, FTW_DEPTH | FTW_PHYS);

  free (*state);
  return r;
}

/* "DIR/NAME", valid until sixteen more were asked for. */
__attribute__ ((unused)) static const char *
harness_path (const char *dir, const char *name)
{
  static char *paths[16];
  static unsigned turn;
  char *path;

  if (asprintf (&path, "%s/%s", dir, name) < 0)
    abort ();
  turn = (turn + 1) % 16;
  free (paths[turn]);
  paths[turn] = path;
  return path;
}

#endif /* UNIT_HARNESS_H */
