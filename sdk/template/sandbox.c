/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes: made, told of, ended. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>

#include "example.h"

/* Of every list of sandboxes.  Never held while something waits. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* -- finding and letting go ---- */

static void
sandbox_free (struct sandbox *sandbox)
{
  coffer_commands_free (sandbox->commands);
  coffer_fd_close (&sandbox->folder);
  coffer_fd_close (&sandbox->lifeline);
  coffer_strings_free (&sandbox->env);
  coffer_strings_free (&sandbox->metadata);
  free (sandbox->workdir);
  free (sandbox->path);
  free (sandbox->id);
  free (sandbox);
}

void
sandbox_put (struct sandbox *sandbox)
{
  unsigned left;

  pthread_mutex_lock (&lock);
  left = --sandbox->references;
  pthread_mutex_unlock (&lock);
  if (left == 0)
    sandbox_free (sandbox);
}

static struct sandbox *
find_locked (const struct example *example, const char *id)
{
  struct sandbox *sandbox = example->sandboxes;

  while (sandbox && strcmp (sandbox->id, id) != 0)
    sandbox = sandbox->next;
  return sandbox;
}

/* The first of two that end one sandbox takes it out of the list. */
static void
unlink_one (struct example *example, struct sandbox *sandbox)
{
  struct sandbox **at = &example->sandboxes;
  int was_linked;

  pthread_mutex_lock (&lock);
  was_linked = sandbox->linked;
  sandbox->linked = 0;
  while (was_linked && *at != sandbox)
    at = &(*at)->next;
  if (was_linked)
    *at = sandbox->next;
  pthread_mutex_unlock (&lock);
  if (was_linked)
    sandbox_put (sandbox);
}

/* Whoever asks for the end has it when this returns, the first or not. */
static int32_t
sandbox_end (struct coffer_call *call, struct example *example,
             struct sandbox *sandbox)
{
  int32_t code = coffer_commands_end (call, sandbox->commands);

  if (code != COFFER_OK)
    return code;
  coffer_remove_beneath (example->folder, sandbox->id, 1, NULL);
  unlink_one (example, sandbox);
  return COFFER_OK;
}

/* The commands of a sandbox end with its lifeline by themselves.  Its folder
 * is all that is left, and goes when somebody asks for it. */
static int
lifeline_is_over (const struct sandbox *sandbox)
{
  struct pollfd end = {.fd = sandbox->lifeline};

  return sandbox->lifeline >= 0 && poll (&end, 1, 0) > 0;
}

struct sandbox *
sandbox_find (struct coffer_call *call, struct example *example,
              const char *id, int32_t *code)
{
  struct sandbox *sandbox;

  pthread_mutex_lock (&lock);
  sandbox = find_locked (example, id);
  if (sandbox)
    sandbox->references++;
  pthread_mutex_unlock (&lock);
  if (sandbox && lifeline_is_over (sandbox)) {
    sandbox_end (call, example, sandbox);
    sandbox_put (sandbox);
    sandbox = NULL;
  }
  if (!sandbox)
    *code = coffer_fail (call, COFFER_NOT_FOUND, "no such sandbox");
  return sandbox;
}

/* All of them, each with a reference; NULL: out of memory. */
static struct sandbox **
take_all (struct example *example)
{
  struct sandbox **all, *sandbox;
  size_t n = 0;

  pthread_mutex_lock (&lock);
  for (sandbox = example->sandboxes; sandbox; sandbox = sandbox->next)
    n++;
  all = calloc (n + 1, sizeof *all);
  for (sandbox = all ? example->sandboxes : NULL; sandbox;
       sandbox = sandbox->next) {
    sandbox->references++;
    all[--n] = sandbox;
  }
  pthread_mutex_unlock (&lock);
  return all;
}

void
sandbox_end_all (struct example *example)
{
  struct sandbox **all = take_all (example);

  for (size_t i = 0; all && all[i]; i++) {
    sandbox_end (NULL, example, all[i]);
    sandbox_put (all[i]);
  }
  free (all);
}

/* -- the beginning ---- */

/* Ids come from callers: never a part of a path before they were looked at. */
static int
id_is_valid (const char *id)
{
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  size_t size = strlen (id);

  return size > 0 && size <= 64 && strspn (id, allowed) == size;
}

/* A field that is not at its default is a demand: what cannot be done is
 * refused, never passed over. */
static int32_t
check_spec (struct coffer_call *call, const struct coffer_sandbox_spec *spec)
{
  const struct {
    int asked;
    const char *refusal;
  } table[] = {
    {spec->template_name || spec->image, "there is no root but the caller's"},
    {spec->profile || spec->filter, "profile, filter: nothing is confined"},
    {spec->require && spec->require[0], "require: nothing is confined"},
    {spec->user != NULL, "user: commands run as the caller"},
    {spec->memory_bytes || spec->cpu_millis || spec->pids || spec->disk_bytes
     || spec->inodes || spec->address_bytes || spec->file_bytes
     || spec->open_files, "there are no limits"},
    {spec->network || (spec->allow && spec->allow[0]), "network: no choice"},
    {spec->ports && spec->ports[0], "ports: none are forwarded"},
    {spec->mounts && spec->mounts[0], "mounts: nothing is shown elsewhere"},
    {spec->ttl_ms != 0, "ttl: a sandbox lives until it is killed"},
  };

  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (table[i].asked)
      return coffer_fail (call, COFFER_UNSUPPORTED, table[i].refusal);
  if (spec->workdir && spec->workdir[0] != '/')
    return coffer_fail (call, COFFER_INVALID, "workdir must be absolute");
  return COFFER_OK;
}

static int
copy_spec (struct sandbox *sandbox, const struct coffer_sandbox_spec *spec)
{
  for (size_t i = 0; spec->env && spec->env[i]; i++)
    coffer_strings_add (&sandbox->env, spec->env[i]);
  for (size_t i = 0; spec->metadata && spec->metadata[i]; i++)
    coffer_strings_add (&sandbox->metadata, spec->metadata[i]);
  if (spec->workdir && !(sandbox->workdir = strdup (spec->workdir)))
    return ENOMEM;
  if (spec->lifeline >= 0
      && (sandbox->lifeline = fcntl (spec->lifeline, F_DUPFD_CLOEXEC, 3)) < 0)
    return errno;
  return sandbox->env.failed || sandbox->metadata.failed ? ENOMEM : 0;
}

static int
fill (struct sandbox *sandbox, const char *id,
      const struct coffer_sandbox_spec *spec)
{
  coffer_autobuffer struct coffer_buffer mark = {0};
  int r = copy_spec (sandbox, spec);

  if (r)
    return r;
  coffer_buffer_printf (&mark, EXAMPLE_MARK "=%s", id);
  sandbox->id = strdup (id);
  sandbox->created_ns = coffer_realtime_ns ();
  if (mark.failed || !sandbox->id)
    return ENOMEM;
  sandbox->commands = coffer_commands_new (mark.data, sandbox->lifeline,
                                           spec->single_exec != 0);
  return sandbox->commands ? 0 : ENOMEM;
}

/* With the lock held, so that a second create of the same id finds the whole
 * of the first. */
static int
link_locked (struct example *example, struct sandbox *sandbox)
{
  if (mkdirat (example->folder, sandbox->id, 0700) < 0)
    return errno;
  sandbox->folder = coffer_open_beneath (example->folder, sandbox->id,
                                         O_RDONLY | O_DIRECTORY, 0);
  if (sandbox->folder >= 0)
    sandbox->path = coffer_fd_path (sandbox->folder);
  if (!sandbox->path) {
    int keep = errno;

    unlinkat (example->folder, sandbox->id, AT_REMOVEDIR);
    return keep;
  }
  sandbox->linked = 1;
  sandbox->next = example->sandboxes;
  example->sandboxes = sandbox;
  return 0;
}

/* The sandbox of this id, made now unless there is one, with a reference. */
static int
make (struct example *example, const char *id,
      const struct coffer_sandbox_spec *spec, struct sandbox **out)
{
  struct sandbox *sandbox = calloc (1, sizeof *sandbox), *old;
  int r;

  if (!sandbox)
    return ENOMEM;
  sandbox->folder = sandbox->lifeline = -1;
  sandbox->references = 2;
  r = fill (sandbox, id, spec);
  pthread_mutex_lock (&lock);
  old = r ? NULL : find_locked (example, id);
  if (old)
    old->references++;
  else if (!r)
    r = link_locked (example, sandbox);
  pthread_mutex_unlock (&lock);
  *out = old ? old : sandbox;
  if (old || r)
    sandbox_free (sandbox);
  return r;
}

/* -- the operations ---- */

static int32_t
emit_info (struct coffer_call *call, const struct sandbox *sandbox)
{
  static const char *const not_applied[] = {
    "network.none", "root.readonly", "limit.memory", "limit.cpu", "limit.pids",
    "limit.disk", "user.unprivileged", NULL,
  };
  const struct coffer_sandbox_info info = {
    .size = sizeof info, .sandbox = sandbox->id, .native_id = sandbox->path,
    .state = "running", .created_ns = sandbox->created_ns,
    .isolation = "none", .workspace = sandbox->path,
    .not_applied = not_applied,
    .metadata = coffer_strings_view (&sandbox->metadata),
  };

  return coffer_emit_sandbox_info (call, &info);
}

int32_t
sandbox_create (struct coffer_call *call, void *self, const char *id,
                const struct coffer_sandbox_spec *spec,
                const struct coffer_sandbox_create_opts *opts)
{
  int32_t code = check_spec (call, spec);
  struct sandbox *sandbox;
  int r;

  (void) opts;
  if (code != COFFER_OK)
    return code;
  if (!id_is_valid (id))
    return coffer_fail (call, COFFER_INVALID, "an id is 1 to 64 letters, "
                        "digits, dashes and underlines");
  r = make (self, id, spec, &sandbox);
  if (r)
    return coffer_fail_errno (call, r, "the sandbox");
  code = emit_info (call, sandbox);
  sandbox_put (sandbox);
  return code;
}

int32_t
sandbox_info (struct coffer_call *call, void *self, const char *id,
              const struct coffer_sandbox_info_opts *opts)
{
  int32_t code;
  struct sandbox *sandbox = sandbox_find (call, self, id, &code);

  (void) opts;
  if (!sandbox)
    return code;
  code = emit_info (call, sandbox);
  sandbox_put (sandbox);
  return code;
}

int32_t
sandbox_list (struct coffer_call *call, void *self,
              const struct coffer_sandbox_list_opts *opts)
{
  struct sandbox **all = take_all (self);
  int32_t code = all ? COFFER_OK : coffer_fail_errno (call, ENOMEM, "a list");

  (void) opts;
  for (size_t i = 0; all && all[i]; i++) {
    if (lifeline_is_over (all[i]))
      sandbox_end (call, self, all[i]);
    else if (code == COFFER_OK)
      code = emit_info (call, all[i]);
    sandbox_put (all[i]);
  }
  free (all);
  return code;
}

int32_t
sandbox_kill (struct coffer_call *call, void *self, const char *id,
              const struct coffer_sandbox_kill_opts *opts)
{
  int32_t code;
  struct sandbox *sandbox = sandbox_find (call, self, id, &code);

  (void) opts;
  if (!sandbox)
    return code;
  code = sandbox_end (call, self, sandbox);
  sandbox_put (sandbox);
  return code;
}
