/* SPDX-License-Identifier: Apache-2.0 */
/* The names in the host's /etc that a sandbox shows.  A folder of some hundred
 * entries takes a twentieth of a creation to read: so it is read while the init
 * is at other work, and again only when it has changed. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "etc-names.h"
#include "spawn.h"

static int
name_wanted (const char *name)
{
  size_t i;

  for (i = 0; i < sizeof etc_names / sizeof etc_names[0]; i++)
    if (strcmp (name, etc_names[i]) == 0)
      return 1;
  for (i = 0; i < sizeof etc_prefixes / sizeof etc_prefixes[0]; i++)
    if (strncmp (name, etc_prefixes[i], strlen (etc_prefixes[i])) == 0)
      return 1;
  return 0;
}

static int
names_read (DIR *dir, struct coffer_buffer *names)
{
  struct dirent *entry;

  for (;;) {
    errno = 0;
    entry = readdir (dir);
    if (entry == NULL)
      return errno == 0 && !names->failed ? 0 : -1;
    if (!name_wanted (entry->d_name))
      continue;
    coffer_buffer_add (names, entry->d_name, strlen (entry->d_name) + 1);
    if (names->size > ETC_NAMES_BYTES) {
      errno = E2BIG;
      return -1;
    }
  }
}

int
etc_names_renew (struct linux_provider *self)
{
  int fd = open ("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat now;
  DIR *dir;
  int r;

  if (fd < 0 || fstat (fd, &now) == -1) {
    coffer_fd_close (&fd);
    return -1;
  }
  if (self->etc_read && now.st_ino == self->etc.st_ino
      && now.st_dev == self->etc.st_dev
      && memcmp (&now.st_mtim, &self->etc.st_mtim, sizeof now.st_mtim) == 0) {
    close (fd);
    return 0;
  }
  self->etc_read = 0;
  coffer_buffer_free (&self->etc_names);
  dir = fdopendir (fd);
  if (dir == NULL) {
    close (fd);
    return -1;
  }
  r = names_read (dir, &self->etc_names);
  closedir (dir);
  if (r == 0) {
    self->etc = now;
    self->etc_read = 1;
  }
  return r;
}

int
etc_names_copy (struct linux_provider *self, struct coffer_buffer *out)
{
  int r;

  pthread_mutex_lock (&self->lock);
  r = etc_names_renew (self);
  if (r == 0)
    coffer_buffer_add (out, self->etc_names.data, self->etc_names.size);
  pthread_mutex_unlock (&self->lock);
  return r == 0 && !out->failed ? 0 : -1;
}

int
etc_send (struct linux_provider *self, int control,
          const struct coffer_call *call)
{
  /* It has no answer: nobody is ever to take one for another's. */
  struct link link = { .fd = control, .serial = UINT32_MAX };
  struct init_names body = { sizeof body, 0 };
  struct request request
    = { .type = INIT_NAMES, .body = &body, .size = sizeof body };
  int r;

  pthread_mutex_lock (&self->lock);
  r = etc_names_renew (self);
  if (r == 0) {
    request.more = self->etc_names.data;
    request.more_size = self->etc_names.size;
    r = link_send (&link, &request, call);
  }
  pthread_mutex_unlock (&self->lock);
  return r;
}
