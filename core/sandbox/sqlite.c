/* SPDX-License-Identifier: Apache-2.0 */
/* See sqlite.h. */

#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "sandbox/sqlite.h"

#define SONAME "libsqlite3.so.0"

/* What packaging tools read instead of DT_NEEDED: the FDO note on libraries
 * that are opened at run time. */
#define NOTE                                                                  \
  "[{\"feature\":\"records\",\"description\":\"Records of sandboxes\","         \
  "\"priority\":\"required\",\"soname\":[\"" SONAME "\"]}]"

static const struct {
  uint32_t name_size, size, type;
  char name[4];
  char text[(sizeof NOTE + 3) / 4 * 4];
} note __attribute__ ((section (".note.dlopen"), used, aligned (4)))
= { 4, sizeof NOTE, 0x407c0c0a, "FDO", NOTE };

struct sqlite sqlite;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int loaded;

static int
function_find (void *library, const char *name, void *out,
               struct error **err)
{
  void *function = dlsym (library, name);

  if (!function)
    return error_set (err, E_RECORDS, 0, "%s has no %s", SONAME, name);
  memcpy (out, &function, sizeof function);
  return 0;
}

static int
load_locked (struct error **err)
{
  void *library = dlopen (SONAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

  if (!library)
    return error_set (err, E_RECORDS, 0, "SQLite is missing: %s",
                      dlerror ());
#define X(name)                                                               \
  if (function_find (library, "sqlite3_" #name, &sqlite.name, err) < 0)       \
    return -1;
  SQLITE_FUNCTIONS (X)
#undef X
  loaded = 1;
  return 0;
}

int
sqlite_load (struct error **err)
{
  int bad;

  pthread_mutex_lock (&lock);
  bad = loaded ? 0 : load_locked (err);
  pthread_mutex_unlock (&lock);
  return bad;
}
