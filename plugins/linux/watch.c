/* SPDX-License-Identifier: Apache-2.0 */
/* Watched folders.  The kernel's queue is this process's and nobody's inside;
 * a sandbox's files are not held open for it, and its end is the watch's. */

#include <errno.h>
#include <string.h>

#include "linux.h"

#define WATCHES_MAX 16          /* of one sandbox, at once */

struct watching {
  struct watching *next;
  const char *sandbox;
};

static int
watch_enter (struct linux_provider *self, struct watching *mine)
{
  const struct watching *at;
  unsigned n = 0;

  pthread_mutex_lock (&self->lock);
  for (at = self->watching; at != NULL; at = at->next)
    n += strcmp (at->sandbox, mine->sandbox) == 0;
  if (n < WATCHES_MAX) {
    mine->next = self->watching;
    self->watching = mine;
  }
  pthread_mutex_unlock (&self->lock);
  return n < WATCHES_MAX ? 0 : -1;
}

static void
watch_leave (struct linux_provider *self, struct watching *mine)
{
  struct watching **at;

  pthread_mutex_lock (&self->lock);
  for (at = &self->watching; *at != mine; at = &(*at)->next)
    ;
  *at = mine->next;
  pthread_mutex_unlock (&self->lock);
}

static int32_t
watch_run (struct linux_provider *self, struct coffer_call *call,
           const char *sandbox, const char *path)
{
  coffer_autoclose int watch = -1, ended = -1;
  int32_t code = inside_watch (self, call, sandbox, path, &watch);

  if (code != COFFER_OK)
    return code;
  ended = sandbox_pidfd (self, sandbox);
  if (ended < 0)
    return fail_with (call, COFFER_NOT_FOUND, "sandbox %s is not there",
                      sandbox);
  return coffer_files_watch (call, watch, ended);
}

int32_t
linux_file_watch (struct coffer_call *call, void *self, const char *sandbox,
                  const char *path, const struct coffer_file_watch_opts *opts)
{
  struct watching mine = { .sandbox = sandbox };
  int32_t code;

  (void) opts;
  if (watch_enter (self, &mine) == -1)
    return fail_with (call, COFFER_LIMIT, "sandbox %s has %d watches already",
                      sandbox, WATCHES_MAX);
  code = watch_run (self, call, sandbox, path);
  watch_leave (self, &mine);
  return code;
}
