/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes as folders: found, made, let go of, ended.
 *
 * The set's folder is locked as long as the set lives: one that nobody holds is
 * of an instance that was killed, and is swept by the next. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>
#include <coffer/sandboxes.h>

#define NAMES_MAX 10000         /* of one process's folders */

struct box {
  struct coffer_sandbox sandbox;        /* first: what callers see */
  struct coffer_sandboxes *set;
  struct box *next;             /* the set's lock, and the two below */
  unsigned references;          /* the list's, and one each call */
  int linked;
  int lifeline;                 /* its end is the sandbox's; -1: none */
};

struct coffer_sandboxes {
  char *mark;
  int runtime, folder;
  char name[32];                /* of the folder in runtime; "": none yet */
  pthread_mutex_t lock;         /* never held while something waits */
  struct box *boxes;
  unsigned gone;                /* so many have ended */
};

static struct box *
box_of (struct coffer_sandbox *sandbox)
{
  return (struct box *) sandbox;
}

/* -- finding and letting go ---- */

static void
box_free (struct box *box)
{
  struct coffer_sandbox *sandbox = &box->sandbox;

  coffer_commands_free (sandbox->commands);
  coffer_fd_close (&sandbox->folder);
  coffer_fd_close (&box->lifeline);
  coffer_strings_free (&sandbox->env);
  coffer_strings_free (&sandbox->metadata);
  if (sandbox->workdir != sandbox->path)
    free ((char *) (uintptr_t) sandbox->workdir);
  free ((char *) (uintptr_t) sandbox->path);
  free ((char *) (uintptr_t) sandbox->id);
  free (box);
}

void
coffer_sandbox_put (struct coffer_sandbox *sandbox)
{
  struct box *box = box_of (sandbox);
  unsigned left;

  pthread_mutex_lock (&box->set->lock);
  left = --box->references;
  pthread_mutex_unlock (&box->set->lock);
  if (left == 0)
    box_free (box);
}

static struct box *
find_locked (const struct coffer_sandboxes *set, const char *id)
{
  struct box *box = set->boxes;

  while (box && strcmp (box->sandbox.id, id) != 0)
    box = box->next;
  return box;
}

/* The first of two that end one sandbox takes it out of the list, and its folder
 * out of the way of the next of that id: 1. */
static int
unlink_locked (struct box *box, char *gone, size_t size)
{
  struct coffer_sandboxes *set = box->set;
  struct box **at = &set->boxes;

  if (!box->linked)
    return 0;
  box->linked = 0;
  while (*at != box)
    at = &(*at)->next;
  *at = box->next;
  snprintf (gone, size, ".gone-%u", set->gone++);
  renameat (set->folder, box->sandbox.id, set->folder, gone);
  return 1;
}

/* Whoever asks for the end has it when this returns, the first or not. */
static int32_t
box_end (struct coffer_call *call, struct box *box)
{
  int32_t code = coffer_commands_end (call, box->sandbox.commands);
  char gone[32];
  int is_first;

  if (code != COFFER_OK)
    return code;
  pthread_mutex_lock (&box->set->lock);
  is_first = unlink_locked (box, gone, sizeof gone);
  pthread_mutex_unlock (&box->set->lock);
  if (is_first) {
    coffer_remove_beneath (box->set->folder, gone, 1, NULL);
    coffer_sandbox_put (&box->sandbox);
  }
  return COFFER_OK;
}

/* Commands end with their lifeline by themselves.  The folder is all that is
 * left, and goes when somebody asks for it. */
static int
lifeline_is_over (const struct box *box)
{
  struct pollfd end = {.fd = box->lifeline};

  return box->lifeline >= 0 && poll (&end, 1, 0) > 0;
}

int32_t
coffer_sandboxes_find (struct coffer_call *call, struct coffer_sandboxes *set,
                       const char *id, struct coffer_sandbox **out)
{
  struct box *box;

  pthread_mutex_lock (&set->lock);
  box = find_locked (set, id);
  if (box)
    box->references++;
  pthread_mutex_unlock (&set->lock);
  if (box && lifeline_is_over (box)) {
    box_end (call, box);
    coffer_sandbox_put (&box->sandbox);
    box = NULL;
  }
  if (!box)
    return coffer_fail (call, COFFER_NOT_FOUND, "no such sandbox");
  *out = &box->sandbox;
  return COFFER_OK;
}

/* All of them, each with a reference; NULL: out of memory. */
static struct box **
take_all (struct coffer_sandboxes *set)
{
  struct box **all, *box;
  size_t n = 0;

  pthread_mutex_lock (&set->lock);
  for (box = set->boxes; box; box = box->next)
    n++;
  all = calloc (n + 1, sizeof *all);
  for (box = all ? set->boxes : NULL; box; box = box->next) {
    box->references++;
    all[--n] = box;
  }
  pthread_mutex_unlock (&set->lock);
  return all;
}

int32_t
coffer_sandboxes_each (struct coffer_call *call, struct coffer_sandboxes *set,
                       coffer_sandbox_visit *visit)
{
  struct box **all = take_all (set);
  int32_t code = all ? COFFER_OK : coffer_fail_errno (call, ENOMEM, "a list");

  for (size_t i = 0; all && all[i]; i++) {
    if (lifeline_is_over (all[i]))
      box_end (call, all[i]);
    else if (code == COFFER_OK)
      code = visit (call, &all[i]->sandbox);
    coffer_sandbox_put (&all[i]->sandbox);
  }
  free (all);
  return code;
}

int32_t
coffer_sandboxes_kill (struct coffer_call *call, struct coffer_sandboxes *set,
                       const char *id)
{
  struct coffer_sandbox *sandbox;
  int32_t code = coffer_sandboxes_find (call, set, id, &sandbox);

  if (code != COFFER_OK)
    return code;
  code = box_end (call, box_of (sandbox));
  coffer_sandbox_put (sandbox);
  return code;
}

/* -- making one ---- */

static int
copy_vector (struct coffer_strings *to, const char *const *from)
{
  for (; from && *from; from++)
    coffer_strings_add (to, *from);
  return to->failed ? ENOMEM : 0;
}

static int
fill (struct box *box, const char *id, const struct coffer_sandbox_spec *spec)
{
  struct coffer_sandbox *sandbox = &box->sandbox;
  coffer_autobuffer struct coffer_buffer mark = {0};

  sandbox->created_ns = coffer_realtime_ns ();
  coffer_buffer_printf (&mark, "%s=%s", box->set->mark, id);
  if (mark.failed || copy_vector (&sandbox->env, spec->env)
      || copy_vector (&sandbox->metadata, spec->metadata)
      || !(sandbox->id = strdup (id))
      || (spec->workdir && !(sandbox->workdir = strdup (spec->workdir))))
    return ENOMEM;
  if (COFFER_HAS (spec, lifeline) && spec->lifeline >= 0
      && (box->lifeline = fcntl (spec->lifeline, F_DUPFD_CLOEXEC, 3)) < 0)
    return errno;
  sandbox->commands
    = coffer_commands_new (mark.data, box->lifeline,
                           COFFER_HAS (spec, single_exec)
                             && spec->single_exec != 0);
  return sandbox->commands ? 0 : ENOMEM;
}

/* With the lock held, so that a second create of the same id finds the whole
 * of the first. */
static int
link_locked (struct box *box)
{
  struct coffer_sandbox *sandbox = &box->sandbox;
  int keep;

  if (mkdirat (box->set->folder, sandbox->id, 0700) < 0)
    return errno;
  sandbox->folder = coffer_open_beneath (box->set->folder, sandbox->id,
                                         O_RDONLY | O_DIRECTORY, 0);
  if (sandbox->folder >= 0)
    sandbox->path = coffer_fd_path (sandbox->folder);
  if (!sandbox->path) {
    keep = errno;
    unlinkat (box->set->folder, sandbox->id, AT_REMOVEDIR);
    return keep;
  }
  if (!sandbox->workdir)
    sandbox->workdir = sandbox->path;
  box->linked = 1;
  box->next = box->set->boxes;
  box->set->boxes = box;
  return 0;
}

int32_t
coffer_sandboxes_create (struct coffer_call *call,
                         struct coffer_sandboxes *set, const char *id,
                         const struct coffer_sandbox_spec *spec,
                         struct coffer_sandbox **out)
{
  struct box *box = calloc (1, sizeof *box), *old = NULL;
  int r = box ? 0 : ENOMEM;

  if (box) {
    *box = (struct box) {.set = set, .references = 2, .lifeline = -1,
                         .sandbox.folder = -1};
    r = fill (box, id, spec);
  }
  pthread_mutex_lock (&set->lock);
  old = r ? NULL : find_locked (set, id);
  if (old)
    old->references++;
  else if (!r)
    r = link_locked (box);
  pthread_mutex_unlock (&set->lock);
  if (box && (old || r))
    box_free (box);
  if (r)
    return coffer_fail_errno (call, r, "the sandbox");
  *out = old ? &old->sandbox : &box->sandbox;
  return COFFER_OK;
}

/* -- the set ---- */

static int
sweep_one (void *data, const char *path, int dir, const char *name,
           const struct stat *st)
{
  coffer_autoclose int folder = -1;

  (void) data, (void) path;
  if (!S_ISDIR (st->st_mode))
    return 0;
  folder = coffer_open_beneath (dir, name, O_RDONLY | O_DIRECTORY, 0);
  if (folder >= 0 && flock (folder, LOCK_EX | LOCK_NB) == 0)
    coffer_remove_beneath (dir, name, 1, NULL);
  return 0;
}

/* With the runtime folder locked, so that nobody sweeps what is just made. */
static int
make_folder (struct coffer_sandboxes *set)
{
  coffer_autoclose int runtime = openat (set->runtime, ".", O_RDONLY
                                         | O_DIRECTORY | O_CLOEXEC);
  int r = -1;

  if (runtime < 0 || flock (runtime, LOCK_EX) < 0)
    return -1;
  coffer_walk (runtime, "/", 1, sweep_one, NULL);
  errno = EEXIST;
  for (unsigned n = 0; r < 0 && errno == EEXIST && n < NAMES_MAX; n++) {
    snprintf (set->name, sizeof set->name, "%ld-%u", (long) getpid (), n);
    r = mkdirat (runtime, set->name, 0700);
  }
  if (r < 0) {
    set->name[0] = '\0';
    return -1;
  }
  set->folder = coffer_open_beneath (runtime, set->name,
                                     O_RDONLY | O_DIRECTORY, 0);
  return set->folder < 0 ? -1 : flock (set->folder, LOCK_EX | LOCK_NB);
}

struct coffer_sandboxes *
coffer_sandboxes_new (int runtime, const char *mark)
{
  struct coffer_sandboxes *set = calloc (1, sizeof *set);
  int keep;

  if (!set)
    return NULL;
  set->folder = -1;
  pthread_mutex_init (&set->lock, NULL);
  set->runtime = fcntl (runtime, F_DUPFD_CLOEXEC, 3);
  if (set->runtime >= 0 && (set->mark = strdup (mark))
      && make_folder (set) == 0)
    return set;
  keep = errno;
  coffer_sandboxes_free (set);
  errno = keep;
  return NULL;
}

void
coffer_sandboxes_free (struct coffer_sandboxes *set)
{
  struct box **all;

  if (!set)
    return;
  all = take_all (set);
  for (size_t i = 0; all && all[i]; i++) {
    box_end (NULL, all[i]);
    coffer_sandbox_put (&all[i]->sandbox);
  }
  free (all);
  if (set->name[0])
    coffer_remove_beneath (set->runtime, set->name, 1, NULL);
  coffer_fd_close (&set->folder);
  coffer_fd_close (&set->runtime);
  pthread_mutex_destroy (&set->lock);
  free (set->mark);
  free (set);
}
