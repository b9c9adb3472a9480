/* SPDX-License-Identifier: Apache-2.0 */
/* Archives and watched folders, by the program inside, as the sandbox's user: an
 * engine's own archives do not see what is in memory, and would be unpacked as
 * root. */

#define _GNU_SOURCE

#include <string.h>

#include "stream.h"

int32_t
docker_archive_export (struct coffer_call *call, void *self,
                       const char *sandbox, const char *path, int32_t out,
                       const struct coffer_archive_export_opts *opts)
{
  struct wire_request request;

  (void) opts;
  stream_request (&request, WIRE_EXPORT);
  return docker_work (call, self, sandbox, &request, path, NULL, out);
}

int32_t
docker_archive_import (struct coffer_call *call, void *self,
                       const char *sandbox, const char *path, int32_t in,
                       const struct coffer_archive_import_opts *opts)
{
  struct wire_request request;

  (void) opts;
  stream_request (&request, WIRE_IMPORT);
  return docker_work_in (call, self, sandbox, &request, path, in);
}

/* ---- watches -------------------------------------------------------------------- */

/* Each is a process inside and a connection here. */
#define WATCHES_MAX 16          /* of one sandbox, at once */

struct watching {
  struct watching *next;
  const char *sandbox;
};

static int
watch_enter (struct docker *docker, struct watching *mine)
{
  unsigned n = 0;

  pthread_mutex_lock (&docker->lock);
  for (const struct watching *at = docker->watching; at; at = at->next)
    n += strcmp (at->sandbox, mine->sandbox) == 0;
  if (n < WATCHES_MAX) {
    mine->next = docker->watching;
    docker->watching = mine;
  }
  pthread_mutex_unlock (&docker->lock);
  return n < WATCHES_MAX ? 0 : -1;
}

static void
watch_leave (struct docker *docker, struct watching *mine)
{
  struct watching **at;

  pthread_mutex_lock (&docker->lock);
  for (at = &docker->watching; *at != mine; at = &(*at)->next)
    ;
  *at = mine->next;
  pthread_mutex_unlock (&docker->lock);
}

int32_t
docker_file_watch (struct coffer_call *call, void *self, const char *sandbox,
                   const char *path, const struct coffer_file_watch_opts *opts)
{
  struct watching mine = {.sandbox = sandbox};
  struct wire_request request;
  int32_t code;

  (void) opts;
  if (watch_enter (self, &mine) < 0)
    return coffer_fail (call, COFFER_LIMIT, "the sandbox has 16 watches "
                        "already");
  stream_request (&request, WIRE_WATCH);
  code = docker_work (call, self, sandbox, &request, path, NULL, -1);
  watch_leave (self, &mine);
  return code;
}
