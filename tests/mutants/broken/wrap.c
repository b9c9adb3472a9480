/* SPDX-License-Identifier: Apache-2.0 */
/* What all mutants share: which one this is, calls whose records are looked at
 * on their way, and a memory of what was asked. */

#define _GNU_SOURCE

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "mutant.h"

static char chosen[64];

int
fault (const char *name)
{
  return strcmp (chosen, name) == 0;
}

void
fault_set (const char *name)
{
  snprintf (chosen, sizeof chosen, "%s", name ? name : "");
}

/* ---- calls --------------------------------------------------------------- */

static struct wrapped *
wrapped_of (struct coffer_call *call)
{
  return (struct wrapped *) call;       /* its first member */
}

static int32_t
on_emit (struct coffer_call *call, uint32_t record, const void *data)
{
  struct wrapped *wrapped = wrapped_of (call);

  wrapped->records++;
  return wrapped->emit ? wrapped->emit (wrapped, record, data) :
    pass_on (wrapped, record, data);
}

static int32_t
on_fail (struct coffer_call *call, int32_t code, int32_t retryable,
         const char *message, const char *details)
{
  struct coffer_call *real = wrapped_of (call)->real;

  return (real->host->fail) (real, code, retryable, message, details);
}

static void
on_log (struct coffer_call *call, int32_t level, const char *text)
{
  struct coffer_call *real = wrapped_of (call)->real;

  real->host->log (real, level, text);
}

static void
on_progress (struct coffer_call *call, uint64_t done, uint64_t total,
             const char *what)
{
  struct coffer_call *real = wrapped_of (call)->real;

  real->host->progress (real, done, total, what);
}

static int32_t
on_connect (struct coffer_call *call, const char *target)
{
  struct coffer_call *real = wrapped_of (call)->real;

  return real->host->connect (real, target);
}

static int32_t
on_opened (struct coffer_call *call, void *self)
{
  struct coffer_call *real = wrapped_of (call)->real;

  return real->host->opened (real, self);
}

static int32_t
on_file (struct coffer_call *call, const char *name)
{
  struct coffer_call *real = wrapped_of (call)->real;

  return real->host->file (real, name);
}

struct coffer_call *
wrap (struct wrapped *wrapped, struct coffer_call *call, wrapped_emit *emit)
{
  *wrapped = (struct wrapped) {
    .call = *call, .real = call, .emit = emit,
    .host = {.size = sizeof wrapped->host, .emit = on_emit, .fail = on_fail,
             .log = on_log, .progress = on_progress, .connect = on_connect,
             .opened = on_opened, .file = on_file},
  };
  wrapped->call.size = sizeof wrapped->call;
  wrapped->call.host = &wrapped->host;
  return &wrapped->call;
}

struct forward {
  int from, to;
  int64_t until_ns;
};

static void *
forward_run (void *data)
{
  struct forward *forward = data;

  if (coffer_wait_fd (forward->from, POLLIN, forward->until_ns, -1) == 1)
    coffer_write_all (forward->to, "", 1);
  else
    sleep (8);                  /* so that the other end stays silent */
  coffer_fd_close (&forward->from);
  coffer_fd_close (&forward->to);
  free (forward);
  return NULL;
}

void
wrap_endless (struct wrapped *wrapped)
{
  const int64_t left = wrapped->call.deadline_ns - coffer_now_ns ();
  struct forward *forward;
  int ends[2];

  /* Only of those that are short, as the others never come. */
  if (left < 150000000 || left > 600000000)
    return;
  forward = calloc (1, sizeof *forward);
  if (!forward || pipe2 (ends, O_CLOEXEC) < 0)
    abort ();
  *forward = (struct forward) {
    fcntl (wrapped->call.cancel_fd, F_DUPFD_CLOEXEC, 3), ends[1],
    wrapped->call.deadline_ns - 20000000,
  };
  wrapped->call.cancel_fd = ends[0];    /* with the process: one a run */
  wrapped->call.deadline_ns += INT64_C (3600) * 1000000000;
  if (thread_start (forward_run, forward))
    abort ();
}

int32_t
pass_on (struct wrapped *wrapped, uint32_t record, const void *data)
{
  return wrapped->real->host->emit (wrapped->real, record, data);
}

/* ---- memory -------------------------------------------------------------- */

#define MEMORY_MAX 4096

static struct memory *memories;
static size_t n_memories;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct memory *
memory_known (const char *sandbox)
{
  pthread_mutex_lock (&lock);
  for (size_t i = n_memories; i-- > 0;)
    if (strcmp (memories[i].sandbox, sandbox) == 0)
      return &memories[i];
  return NULL;
}

struct memory *
memory_of (const char *sandbox)
{
  struct memory *memory = memory_known (sandbox);

  if (memory)
    return memory;
  if (!memories)
    memories = calloc (MEMORY_MAX, sizeof *memories);
  if (!memories)
    abort ();
  memory = &memories[n_memories < MEMORY_MAX - 1 ? n_memories++ : n_memories];
  *memory = (struct memory) {0};
  snprintf (memory->sandbox, sizeof memory->sandbox, "%s", sandbox);
  return memory;
}

void
memory_done (void)
{
  pthread_mutex_unlock (&lock);
}

uint64_t
exec_bit (const char *exec)
{
  unsigned long number = exec && exec[0] ? strtoul (exec + 1, NULL, 10) : 0;

  return number < 64 ? UINT64_C (1) << number : 0;
}

static uint32_t last_op;
static char last_sandbox[80];

void
note_op (uint32_t op, const char *sandbox)
{
  pthread_mutex_lock (&lock);
  last_op = op;
  snprintf (last_sandbox, sizeof last_sandbox, "%s", sandbox);
  pthread_mutex_unlock (&lock);
}

/* Without the lock, which the caller may have: one who asks at the same time is
 * no one to be exact for. */
int
op_was (uint32_t op, const char *sandbox)
{
  return last_op == op && strcmp (last_sandbox, sandbox) == 0;
}

/* ---- processes ----------------------------------------------------------- */

pid_t
process_parent (pid_t pid)
{
  char path[32], text[512], *at;
  FILE *file;
  int parent = 0;
  size_t n;

  snprintf (path, sizeof path, "/proc/%d/stat", (int) pid);
  file = fopen (path, "re");
  if (!file)
    return 0;
  n = fread (text, 1, sizeof text - 1, file);
  text[n] = '\0';
  fclose (file);
  at = strrchr (text, ')');
  return at && sscanf (at + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

size_t
processes_below (pid_t pid, pid_t *out, size_t max)
{
  struct dirent *entry;
  DIR *proc = opendir ("/proc");
  size_t n = 0;

  while (proc && n < max && (entry = readdir (proc))) {
    pid_t own = (pid_t) strtol (entry->d_name, NULL, 10), up = own;

    for (int i = 0; own > 0 && i < 64 && up > 1 && up != pid; i++)
      up = process_parent (up);
    if (own > 0 && own != pid && up == pid)
      out[n++] = own;
  }
  if (proc)
    closedir (proc);
  return n;
}
