/* SPDX-License-Identifier: Apache-2.0 */
/* Whether anything that the registry is read from has changed: a number over
 * names, inodes, sizes and times of the files, without reading one. */

#include <config.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "provider/conformance.h"
#include "provider/registry.h"

#define BASIS UINT64_C (14695981039346656037)
#define PRIME UINT64_C (1099511628211)
#define NAMES_MAX 4096          /* in one folder */

struct stamp {
  uint64_t value;
  int64_t newest_ns;            /* of the changes, since the epoch */
};

static void
add (struct stamp *stamp, const void *bytes, size_t size)
{
  const unsigned char *p = bytes;

  for (; size > 0; size--)
    stamp->value = (stamp->value ^ *p++) * PRIME;
}

static int64_t
time_ns (const struct timespec *time)
{
  return (int64_t) time->tv_sec * 1000000000 + time->tv_nsec;
}

/* What is not there counts as that.  1: it is a folder. */
static int
add_file (struct stamp *stamp, int dir, const char *name)
{
  struct stat st = { 0 };
  int64_t facts[5];

  if (fstatat (dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
    memset (&st, 0, sizeof st);
  facts[0] = (int64_t) st.st_ino;
  facts[1] = st.st_size;
  facts[2] = time_ns (&st.st_mtim);
  facts[3] = time_ns (&st.st_ctim);
  facts[4] = (int64_t) st.st_mode << 32 | (int64_t) st.st_uid;
  add (stamp, name, strlen (name) + 1);
  add (stamp, facts, sizeof facts);
  if (facts[3] > stamp->newest_ns)
    stamp->newest_ns = facts[3];
  return S_ISDIR (st.st_mode);
}

/* The files that decide about one that is installed. */
static void
add_provider (struct stamp *stamp, int dir, const char *id)
{
  static const char *const files[] = { RECEIPT_FILE, CONFORMANCE_FILE };
  char name[320];
  size_t i;

  snprintf (name, sizeof name, "%s/%s.yaml", id, id);
  add_file (stamp, dir, name);
  for (i = 0; i < sizeof files / sizeof files[0]; i++) {
    snprintf (name, sizeof name, "%s/%s", id, files[i]);
    add_file (stamp, dir, name);
  }
}

/* A folder and what lies in it; providers: a folder in it is one. */
static void
add_folder (struct stamp *stamp, const char *path, int providers)
{
  int fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), names = 0;
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *item;

  add (stamp, path, strlen (path) + 1);
  if (!stream) {
    if (fd >= 0)
      close (fd);
    return;
  }
  add_file (stamp, fd, ".");
  while ((item = readdir (stream)) && names++ < NAMES_MAX)
    if (item->d_name[0] != '.' && add_file (stamp, fd, item->d_name)
        && providers && text_is_id (item->d_name))
      add_provider (stamp, fd, item->d_name);
  closedir (stream);
}

static void
add_below (struct stamp *stamp, const char *path, const char *name,
           int providers)
{
  auto_free char *below = text_printf ("%s/%s", path, name);

  if (below)
    add_folder (stamp, below, providers);
}

static void
add_config (struct stamp *stamp, const char *config)
{
  add_folder (stamp, config, 0);
  add_below (stamp, config, "providers.d", 0);
  add_below (stamp, config, "trusted.d", 0);
}

uint64_t
registry_stamp (const struct place *place, int64_t *newest_ns)
{
  struct stamp stamp = { .value = BASIS };

  add_folder (&stamp, place->shipped, 0);
  add_folder (&stamp, place->installed, 1);
  add_config (&stamp, place->config);
  if (!place->home_override
      && strcmp (place->config, place_builtin_sysconf) != 0) {
    add_below (&stamp, place_builtin_localstate, "providers", 1);
    add_config (&stamp, place_builtin_sysconf);
  }
  *newest_ns = stamp.newest_ns;
  return stamp.value;
}
