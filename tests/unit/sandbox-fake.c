/* SPDX-License-Identifier: Apache-2.0 */
/* See sandbox-fake.h. */

#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "sandbox-fake.h"

struct fake fake;

struct provider {
  const struct registry_entry *entry;
  char *root;                   /* folder of sandboxes */
};

/* ---- the registry -------------------------------------------------------- */

static const char *const ids[] = { "fake", "other" };

static void
entry_fill (struct registry_entry *entry, const char *id)
{
  entry->id = strdup (id);
  entry->trust = TRUST_PACKAGED;
  entry->state = PROVIDER_ENABLED;
  entry->dir_fd = -1;
  entry->manifest = calloc (1, sizeof *entry->manifest);
  entry->manifest->id = strdup (id);
  entry->manifest->isolation_kind =
    strdup (fake.isolation ? fake.isolation : "namespaces");
}

static struct registry *
registry_new (const struct place *place, const char *only)
{
  struct registry *registry = calloc (1, sizeof *registry);
  size_t i;

  registry->entries = calloc (2, sizeof *registry->entries);
  for (i = 0; i < 2; i++)
    if (!only || strcmp (ids[i], only) == 0)
      entry_fill (&registry->entries[registry->count++], ids[i]);
  registry->default_provider = strdup ("fake");
  registry->default_source = "builtin";
  registry->place = place;
  registry->accept = (char **) fake.accept;
  registry->default_profile
    = fake.default_profile ? strdup (fake.default_profile) : NULL;
  return registry;
}

int
registry_load (const struct place *place, struct registry **out,
               struct error **err)
{
  (void) err;
  *out = registry_new (place, NULL);
  return 0;
}

int
registry_load_one (const struct place *place, const char *id,
                   struct registry **out, struct error **err)
{
  (void) err;
  *out = registry_new (place, id);
  return 0;
}

/* Nothing is ever changed. */
uint64_t
registry_stamp (const struct place *place, int64_t *newest_ns)
{
  (void) place;
  *newest_ns = 0;
  return 1;
}

int
registry_find (const struct registry *registry, const char *id,
               const struct registry_entry **out, struct error **err)
{
  size_t i;

  for (i = 0; i < registry->count; i++)
    if (strcmp (registry->entries[i].id, id) == 0) {
      *out = &registry->entries[i];
      return 0;
    }
  return error_set (err, E_UNKNOWN_PROVIDER, 0, "no provider %s", id);
}

void
registry_free (struct registry *registry)
{
  size_t i;

  if (!registry)
    return;
  for (i = 0; i < registry->count; i++) {
    free (registry->entries[i].id);
    free (registry->entries[i].manifest->id);
    free (registry->entries[i].manifest->isolation_kind);
    free (registry->entries[i].manifest);
  }
  free (registry->default_profile);
  free (registry->entries);
  free (registry->default_provider);
  free (registry);
}

/* ---- the provider -------------------------------------------------------- */

int
provider_open (const struct registry_entry *entry, const struct place *place,
               enum provider_mode mode, struct provider **out,
               struct error **err)
{
  struct provider *provider;

  (void) mode;
  fake.opens++;
  if (fake.open_fails)
    return error_set (err, E_PROVIDER_FAILED, 0, "it does not open");
  provider = calloc (1, sizeof *provider);
  provider->entry = entry;
  provider->root = text_printf ("%s/%s", place->runtime, entry->id);
  mkdir (place->runtime, 0700);
  mkdir (provider->root, 0700);
  *out = provider;
  return 0;
}

void
provider_close (struct provider *provider)
{
  if (provider)
    free (provider->root);
  free (provider);
}

int
provider_claims (const struct provider *provider, const char *capability)
{
  const char *const *p;

  (void) provider;
  for (p = fake.unclaimed; p && *p; p++)
    if (strcmp (*p, capability) == 0)
      return 0;
  return 1;
}

const char *
provider_id (const struct provider *provider)
{
  return provider->entry->id;
}

const struct manifest *
provider_manifest (const struct provider *provider)
{
  return provider->entry->manifest;
}

/* It has no worker. */
int
provider_is_idle (const struct provider *provider)
{
  (void) provider;
  return 0;
}

void
provider_rest (struct provider *provider)
{
  (void) provider;
}

static int
emit (const struct provider_call *call, uint32_t id, void *record)
{
  const struct contract_record type = { .id = id };

  return call->sink.record ? call->sink.record (call->sink.data, &type, record)
                           : 0;
}

/* ---- sandboxes ----------------------------------------------------------- */

static const char *
sandbox_path (const struct provider *provider, const char *id,
              const char *below)
{
  static __thread char paths[4][1024];
  static __thread unsigned turn;
  char *path = paths[turn++ % 4];

  snprintf (path, sizeof paths[0], "%s/%s%s", provider->root, id, below);
  return path;
}

static int
check_exists (const struct provider *provider, const char *id,
              struct error **err)
{
  struct stat st;

  if (stat (sandbox_path (provider, id, ""), &st) == 0)
    return 0;
  return error_set (err, E_UNKNOWN_SANDBOX, 0, "fake: no %s", id);
}

static int
emit_info (const struct provider_call *call, const char *id)
{
  char native[64];
  struct coffer_sandbox_info info = {
    .size = sizeof info, .sandbox = id, .native_id = native,
    .state = "running", .isolation = "namespaces", .workspace = "/workspace"
  };

  if (fake.life_ns) {
    info.created_ns = coffer_realtime_ns ();
    info.expires_ns = info.created_ns + fake.life_ns;
  }
  snprintf (native, sizeof native, "native-%s", id);
  return emit (call, COFFER_REC_sandbox_info, &info);
}

static int
fake_create (struct provider *provider,
             const struct contract_args_sandbox_create *args,
             const struct provider_call *call, struct error **err)
{
  struct coffer_fact fact = { .size = sizeof fact, .name = "fake",
                              .state = "ok" };
  const char *path = sandbox_path (provider, args->sandbox, "");

  fake.creates++;
  fake.spec = *args->spec;
  if (args->spec->mounts && args->spec->mounts[0])
    fake.mount_fd_ok = (fcntl (args->spec->mounts[0]->source_fd, F_GETFL)
                        & O_PATH) != 0;
  if (fake.exit_before_create)
    _exit (77);
  if (!fake.create_fails || fake.create_leaves)
    mkdir (path, 0700);
  if (fake.exit_after_create)
    _exit (77);
  if (fake.create_fails)
    return error_set (err, E_PROVIDER_FAILED, 0, "fake: create fails");
  emit (call, COFFER_REC_fact, &fact);
  return emit_info (call, fake.create_misnames ? "sb-other" : args->sandbox);
}

static void
kill_commands (const char *sandbox);

static int
fake_kill (struct provider *provider, const char *id, struct error **err)
{
  char command[1200];

  fake.kills++;
  if (fake.exit_in_kill)
    _exit (77);
  if (fake.kill_fails)
    return error_set (err, E_PROVIDER_FAILED, 0, "fake: kill fails");
  if (check_exists (provider, id, err) < 0)
    return -1;
  kill_commands (id);
  snprintf (command, sizeof command, "rm -rf '%s'",
            sandbox_path (provider, id, ""));
  return system (command) == 0 ? 0 : error_set (err, E_IO, 0, "rm");
}

static int
fake_list (struct provider *provider, const struct provider_call *call)
{
  struct dirent *entry;
  DIR *dir;

  fake.lists++;
  if (fake.list_is_empty || !(dir = opendir (provider->root)))
    return 0;
  while ((entry = readdir (dir)))
    if (entry->d_name[0] != '.')
      emit_info (call, entry->d_name);
  closedir (dir);
  return 0;
}

/* ---- commands ------------------------------------------------------------ */

#define MAX_COMMANDS 64

static struct command {
  char sandbox[64];
  pid_t pid;
  uint64_t timeout_ms;
  int start_errno;
} commands[MAX_COMMANDS];
static int n_commands;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void
kill_commands (const char *sandbox)
{
  int i;

  pthread_mutex_lock (&lock);
  for (i = 0; i < n_commands; i++)
    if (strcmp (commands[i].sandbox, sandbox) == 0 && commands[i].pid > 0)
      kill (-commands[i].pid, SIGKILL);
  pthread_mutex_unlock (&lock);
}

static void
child (const struct contract_args_exec_start *args, int report)
{
  int fds[3] = { args->in, args->out, args->err }, i;
  int code;

  setsid ();
  for (i = 0; i < 3; i++)
    if (fds[i] < 0)
      fds[i] = open ("/dev/null", O_RDWR | O_CLOEXEC);
  if (args->opts->tty) {
    fds[2] = fds[1];
    ioctl (fds[0], TIOCSCTTY, 0);
  }
  for (i = 0; i < 3; i++)
    dup2 (fds[i], i);
  execvp (args->argv[0], (char *const *) args->argv);
  code = errno;
  if (write (report, &code, sizeof code) < 0)
    _exit (126);
  _exit (127);
}

static int
fake_exec_start (struct provider *provider,
                 const struct contract_args_exec_start *args,
                 const struct provider_call *call, struct error **err)
{
  struct coffer_exec_info info = { .size = sizeof info, .state = "running" };
  struct command *command;
  char name[16];
  int report[2], code = 0;

  if (check_exists (provider, args->sandbox, err) < 0)
    return -1;
  if (pipe2 (report, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "pipe");
  pthread_mutex_lock (&lock);
  command = &commands[n_commands];
  snprintf (name, sizeof name, "%d", n_commands++);
  snprintf (command->sandbox, sizeof command->sandbox, "%s", args->sandbox);
  command->timeout_ms = args->opts->timeout_ms;
  command->pid = fork ();
  if (command->pid == 0)
    child (args, report[1]);
  pthread_mutex_unlock (&lock);
  close (report[1]);
  if (read (report[0], &code, sizeof code) == sizeof code)
    command->start_errno = code;
  close (report[0]);
  info.exec = name;
  return emit (call, COFFER_REC_exec_info, &info);
}

static int
fake_exec_wait (const struct contract_args_exec_wait *args,
                const struct provider_call *call, struct error **err)
{
  struct command *command = &commands[atoi (args->exec)];
  struct coffer_exec_exit ended = { .size = sizeof ended, .exec = args->exec,
                                    .code = -1 };
  int64_t end = command->timeout_ms
                  ? coffer_now_ns () + (int64_t) command->timeout_ms * 1000000
                  : call->deadline_ns;
  int fd = (int) syscall (SYS_pidfd_open, command->pid, 0);
  int status, waited;

  if (fake.ignores_timeout)
    end = call->deadline_ns;
  waited = coffer_wait_fd (fd, POLLIN, end, call->cancel_fd);
  if (waited == 0 && errno == ECANCELED) {
    close (fd);
    return error_set (err, E_EXEC_CANCELLED, 0, "fake: cancelled");
  }
  if (waited == 0) {
    ended.timed_out = 1;
    kill (-command->pid, SIGKILL);
  }
  close (fd);
  waitpid (command->pid, &status, 0);
  if (WIFEXITED (status))
    ended.code = WEXITSTATUS (status);
  else
    ended.signal = WTERMSIG (status);
  if (command->start_errno) {
    ended.failure = "not started";
    ended.failure_errno = command->start_errno;
  }
  return emit (call, COFFER_REC_exec_exit, &ended);
}

/* ---- files --------------------------------------------------------------- */

static const char *
file_path (const struct provider *provider, const char *sandbox,
           const char *path)
{
  char below[800];

  snprintf (below, sizeof below, "/%s", *path == '/' ? path + 1 : path);
  return sandbox_path (provider, sandbox, below);
}

static int
emit_stat (const struct provider_call *call, const char *path, int fd,
           uint64_t moved)
{
  struct stat st;
  struct coffer_file_stat stat = { .size = sizeof stat, .path = path,
                                   .kind = "file", .moved_bytes = moved };

  if (fd >= 0 && fstat (fd, &st) == 0) {
    stat.size_bytes = (uint64_t) st.st_size;
    stat.mode = st.st_mode & 07777;
  }
  return emit (call, COFFER_REC_file_stat, &stat);
}

static int
fake_file_write (struct provider *provider,
                 const struct contract_args_file_write *args,
                 const struct provider_call *call, struct error **err)
{
  const char *path = file_path (provider, args->sandbox, args->path);
  coffer_autoclose int fd = -1;
  char *bytes = NULL;
  size_t size = 0;

  fd = open (path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0)
    return error_set (err, E_FILE_NOT_FOUND, errno, "fake: write");
  if (!fake.write_early
      && coffer_read_whole (args->in, 1 << 30, &bytes, &size) < 0)
    return error_set (err, E_IO, errno, "fake: read");
  if (fake.write_flips && size)
    bytes[size / 2] ^= 1;
  if (fake.write_drops && size >= fake.write_drops)
    coffer_write_all (fd, bytes, size - fake.write_drops);
  else
    coffer_write_all (fd, bytes, size);
  free (bytes);
  return emit_stat (call, args->path, fd, size);
}

static int
fake_file_read (struct provider *provider,
                const struct contract_args_file_read *args,
                const struct provider_call *call, struct error **err)
{
  const char *path = file_path (provider, args->sandbox, args->path);
  coffer_autoclose int fd = open (path, O_RDONLY | O_CLOEXEC);
  struct stat st;
  uint64_t copied = 0, limit;

  if (fd < 0 || fstat (fd, &st) < 0)
    return error_set (err, E_FILE_NOT_FOUND, errno, "fake: read");
  limit = (uint64_t) st.st_size;
  if (fake.read_drops && limit > fake.read_drops) {
    limit -= fake.read_drops;
    fake.read_drops = 0;        /* once */
  }
  if (limit && coffer_copy (fd, args->out, limit, call->deadline_ns,
                            call->cancel_fd, &copied) < 0)
    return error_set (err, E_IO, errno, "fake: copy");
  return emit_stat (call, args->path, fd, (uint64_t) st.st_size);
}

static int
fake_file_rename (struct provider *provider,
                  const struct contract_args_file_rename *args,
                  struct error **err)
{
  fake.renames++;
  if (rename (file_path (provider, args->sandbox, args->from),
              file_path (provider, args->sandbox, args->to)) < 0)
    return error_set (err, E_FILE_KIND, errno, "fake: rename");
  return 0;
}

static int
fake_file_remove (struct provider *provider,
                  const struct contract_args_file_remove *args,
                  struct error **err)
{
  if (unlink (file_path (provider, args->sandbox, args->path)) < 0)
    return error_set (err, E_FILE_NOT_FOUND, errno, "fake: remove");
  return 0;
}

static int
fake_file_stat (struct provider *provider,
                const struct contract_args_file_stat *args,
                const struct provider_call *call, struct error **err)
{
  coffer_autoclose int fd = open (file_path (provider, args->sandbox,
                                             args->path), O_PATH | O_CLOEXEC);

  if (fd < 0)
    return error_set (err, E_FILE_NOT_FOUND, errno, "fake: stat");
  return emit_stat (call, args->path, fd, 0);
}

/* ---- all of them --------------------------------------------------------- */

int
provider_invoke_args (struct provider *provider, uint32_t op, const void *args,
                      const struct provider_call *call, struct error **err)
{
  /* Every operation but open begins with the sandbox's id. */
  const char *id = op == COFFER_OP_sandbox_list
                     ? NULL : *(const char *const *) args;

  switch (op) {
  case COFFER_OP_sandbox_create:
    return fake_create (provider, args, call, err);
  case COFFER_OP_sandbox_kill:
    return fake_kill (provider, id, err);
  case COFFER_OP_sandbox_list:
    return fake_list (provider, call);
  case COFFER_OP_sandbox_info:
  case COFFER_OP_sandbox_extend:
    fake.infos++;
    return check_exists (provider, id, err) < 0 ? -1 : emit_info (call, id);
  case COFFER_OP_exec_start:
    return fake_exec_start (provider, args, call, err);
  case COFFER_OP_exec_wait:
    return fake_exec_wait (args, call, err);
  case COFFER_OP_exec_signal: {
    const struct contract_args_exec_signal *signal = args;

    kill (-commands[atoi (signal->exec)].pid, signal->signal);
    return 0;
  }
  case COFFER_OP_exec_resize:
    return 0;
  case COFFER_OP_file_write:
    return fake_file_write (provider, args, call, err);
  case COFFER_OP_file_read:
    return fake_file_read (provider, args, call, err);
  case COFFER_OP_file_rename:
    return fake_file_rename (provider, args, err);
  case COFFER_OP_file_remove:
    return fake_file_remove (provider, args, err);
  case COFFER_OP_file_stat:
    return fake_file_stat (provider, args, call, err);
  default:
    return error_set (err, E_CAPABILITY, 0, "fake: no operation %u", op);
  }
}
