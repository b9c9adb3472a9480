/* SPDX-License-Identifier: Apache-2.0 */
/* The instance: what `open` is given, kept; and the table of operations. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "id-pool.h"
#include "spawn.h"

/* "net:[4026531833]": what is not followed needs no file to be made. */
int
namespaces_read (int proc, uint64_t inodes[7])
{
  static const char *const names[7]
    = { "ns/user", "ns/mnt", "ns/pid", "ns/net", "ns/ipc", "ns/uts",
        "ns/cgroup" };
  const char *at;
  char text[64];
  ssize_t n;
  int i;

  for (i = 0; i < 7; i++) {
    n = readlinkat (proc, names[i], text, sizeof text - 1);
    if (n <= 0)
      return -1;
    text[n] = '\0';
    at = strchr (text, '[');
    if (at == NULL)
      return -1;
    inodes[i] = strtoull (at + 1, NULL, 10);
  }
  return 0;
}

void
namespaces_note (struct linux_provider *self)
{
  uint64_t inodes[7] = { 0 };
  coffer_autoclose int proc = -1;

  pthread_mutex_lock (&self->lock);
  if (self->ns_inodes[0] == 0) {
    proc = open ("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc >= 0 && namespaces_read (proc, inodes) == 0)
      memcpy (self->ns_inodes, inodes, sizeof inodes);
  }
  pthread_mutex_unlock (&self->lock);
}

static int
file_take (const struct coffer_open_opts *opts, const char *name)
{
  size_t i;

  for (i = 0; opts != NULL && opts->files != NULL && opts->files[i] != NULL;
       i++)
    if (strcmp (opts->files[i]->name, name) == 0)
      return fcntl (opts->files[i]->fd, F_DUPFD_CLOEXEC, 3);
  errno = ENOENT;
  return -1;
}

static void
provider_free (struct linux_provider *self)
{
  int i;

  spare_fini (self);
  warm_fini (self);
  while (self->sandboxes != NULL)
    sandbox_forget (self, self->sandboxes->id);
  sandbox_reap (self, coffer_now_ns () + SETTLE_NS);
  pool_free (self->pool);
  coffer_fd_close (&self->init);
  for (i = 0; i < INIT_SLOTS; i++)
    coffer_fd_close (&self->slots[i]);
  coffer_fd_close (&self->runtime);
  coffer_fd_close (&self->skeleton);
  coffer_buffer_free (&self->etc_names);
  pthread_mutex_destroy (&self->lock);
  free (self);
}

static struct linux_provider *
provider_new (int take_init, int runtime_dir, const char *const *config)
{
  struct linux_provider *self = calloc (1, sizeof *self);
  int i;

  if (self == NULL) {
    coffer_fd_close (&take_init);
    return NULL;
  }
  pthread_mutex_init (&self->lock, NULL);
  /* The names that a worker before this one gave are nobody's here. */
  self->last_warm = (unsigned) (coffer_now_ns () >> 10);
  self->runtime = self->skeleton = -1;
  spare_init (self, config);
  self->init = take_init;
  for (i = 0; i < INIT_SLOTS; i++)
    self->slots[i] = self->init < 0
      ? -1 : fcntl (self->init, F_DUPFD_CLOEXEC, 3);
  if (runtime_dir >= 0)
    self->runtime = fcntl (runtime_dir, F_DUPFD_CLOEXEC, 3);
  return self;
}

static int32_t
linux_open (struct coffer_call *call, void *none, const char *const *config,
            const struct coffer_open_opts *opts)
{
  const int runtime = opts != NULL ? opts->runtime_dir : -1;
  struct linux_provider *self
    = provider_new (file_take (opts, "coffer-init"), runtime, config);
  int32_t code;

  (void) none;
  if (self == NULL)
    return coffer_fail (call, COFFER_INTERNAL, "no memory");
  if (self->init < 0) {
    provider_free (self);
    return coffer_fail (call, COFFER_INVALID,
                        "the manifest's file coffer-init was not given");
  }
  begun_take (self);
  code = coffer_opened (call, self);
  if (code != COFFER_OK)
    provider_free (self);
  return code;
}

static int32_t
linux_close (struct coffer_call *call, void *self,
             const struct coffer_close_opts *opts)
{
  (void) call;
  (void) opts;
  provider_free (self);
  return COFFER_OK;
}

static const struct coffer_operations operations = {
  .size = sizeof operations,
  .open = linux_open,
  .close = linux_close,
  .probe = linux_probe,
  .sandbox_create = linux_sandbox_create,
  .sandbox_info = linux_sandbox_info,
  .sandbox_list = linux_sandbox_list,
  .sandbox_kill = linux_sandbox_kill,
  .sandbox_extend = linux_sandbox_extend,
  .sandbox_pause = linux_sandbox_pause,
  .sandbox_resume = linux_sandbox_resume,
  .exec_start = linux_exec_start,
  .exec_wait = linux_exec_wait,
  .exec_list = linux_exec_list,
  .exec_attach = linux_exec_attach,
  .exec_signal = linux_exec_signal,
  .exec_resize = linux_exec_resize,
  .exec_stdin_close = linux_exec_stdin_close,
  .warm_open = linux_warm_open,
  .file_read = linux_file_read,
  .file_write = linux_file_write,
  .file_stat = linux_file_stat,
  .file_list = linux_file_list,
  .file_mkdir = linux_file_mkdir,
  .file_remove = linux_file_remove,
  .file_rename = linux_file_rename,
  .file_watch = linux_file_watch,
  .archive_export = linux_archive_export,
  .archive_import = linux_archive_import,
  .port_resolve = linux_port_resolve,
  .port_dial = linux_port_dial,
  .metrics = linux_metrics,
};

COFFER_PROVIDER (linux, COFFER_THREADS_PARALLEL, 0, operations)
