/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that stand ready: here each start is one of the interpreter, which
 * prepares the program anew.  What is promised holds: a copy is only faster. */

#define _GNU_SOURCE

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>

#include "reference.h"

#define PROGRAM_MAX (1u << 20)
#define NAME_SIZE 16

struct reference_warm {
  struct reference_warm *next;
  char handle[NAME_SIZE];
  char *program;
  struct coffer_strings modules;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void
warm_free (struct reference_warm *warm)
{
  coffer_strings_free (&warm->modules);
  free (warm->program);
  free (warm);
}

void
warm_forget (struct reference *self)
{
  struct reference_warm *warm;

  while ((warm = self->warms) != NULL) {
    self->warms = warm->next;
    warm_free (warm);
  }
}

static void
warm_keep (struct reference *self, struct reference_warm *warm)
{
  pthread_mutex_lock (&lock);
  snprintf (warm->handle, sizeof warm->handle, "r%u", ++self->n_warms);
  warm->next = self->warms;
  self->warms = warm;
  pthread_mutex_unlock (&lock);
}

int32_t
reference_warm_open (struct coffer_call *call, void *self,
                     const char *profile, int32_t in,
                     const struct coffer_warm_open_opts *opts)
{
  struct coffer_exec_info info = {.size = sizeof info, .state = "running"};
  const char *const *modules = OPTION (opts, modules);
  struct reference_warm *warm;
  size_t size;

  (void) profile;
  if (in < 0)
    return coffer_fail (call, COFFER_INVALID, "in: none is given");
  warm = calloc (1, sizeof *warm);
  if (!warm)
    return coffer_fail_errno (call, ENOMEM, "the program");
  lseek (in, 0, SEEK_SET);
  if (coffer_read_whole (in, PROGRAM_MAX, &warm->program, &size) < 0) {
    warm_free (warm);
    return coffer_fail (call, COFFER_INVALID, "in cannot be read");
  }
  for (; modules && *modules; modules++)
    coffer_strings_add (&warm->modules, *modules);
  warm_keep (self, warm);
  info.exec = warm->handle;
  return coffer_emit_exec_info (call, &info);
}

static void
argv_build (const struct reference_warm *warm, const char *before,
            struct coffer_strings *argv)
{
  coffer_autobuffer struct coffer_buffer text = {0};
  static const char *const words[] = {"python3", "-I", "-S", "-c"};

  coffer_buffer_printf (&text, "%s\nprepare([", warm->program);
  for (size_t i = 0; i < warm->modules.count; i++)
    coffer_buffer_printf (&text, "'%s',", warm->modules.items[i]);
  coffer_buffer_printf (&text, "])\n%srun()\n", before);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    coffer_strings_add (argv, words[i]);
  coffer_strings_add (argv, text.data ? text.data : "");
  argv->failed |= text.failed;
}

int
warm_is_known (const struct reference *self, const char *handle)
{
  const struct reference_warm *warm;

  pthread_mutex_lock (&lock);
  for (warm = self->warms; warm; warm = warm->next)
    if (strcmp (warm->handle, handle) == 0)
      break;
  pthread_mutex_unlock (&lock);
  return warm != NULL;
}

int
warm_command (struct reference *self, const char *handle, const char *before,
              struct coffer_strings *argv)
{
  struct reference_warm *warm;

  pthread_mutex_lock (&lock);
  for (warm = self->warms; warm; warm = warm->next)
    if (strcmp (warm->handle, handle) == 0)
      break;
  if (warm)
    argv_build (warm, before, argv);
  pthread_mutex_unlock (&lock);
  return warm ? 0 : -1;
}
