/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that does what no provider should, on demand: the sandbox id of
 * sandbox_info is a word, or WORD:ARGUMENT: of how a call ends (hostile-ends.c),
 * of what no manifest gave (hostile-rights.c), of the channel's rules
 * (hostile-channel.c), of what is outside (hostile-reach.c) or of too much
 * (hostile-noise.c).  What a word finds out it emits as a fact: name is the word,
 * state "done" or "refused", value the errno's name or what was found.
 *
 * Built several times: HOSTILE_THREADS serial or parallel, HOSTILE_BIRTH a
 * constructor that hangs or dies. */

#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"

#ifndef HOSTILE_NAME
#define HOSTILE_NAME hostile
#endif
#ifndef HOSTILE_THREADS
#define HOSTILE_THREADS COFFER_THREADS_PARALLEL
#endif

#if defined HOSTILE_BIRTH_HANG
__attribute__ ((constructor)) static void
birth (void)
{
  for (;;)
    pause ();
}
#elif defined HOSTILE_BIRTH_ABORT
__attribute__ ((constructor)) static void
birth (void)
{
  static const char why[] = "constructor: no\n";

  if (write (2, why, sizeof why - 1) < 0)
    _exit (3);
  abort ();
}
#endif

int32_t
say (struct coffer_call *call, const char *name, const char *state,
     const char *value)
{
  struct coffer_fact fact = { .size = sizeof fact, .name = name,
                              .state = state, .value = value };

  return coffer_emit_fact (call, &fact);
}

/* What a system call came to. */
int32_t
report (struct coffer_call *call, const char *name, long result)
{
  return say (call, name, result < 0 ? "refused" : "done",
              result < 0 ? strerrorname_np (errno) : "");
}

void
wait_call (struct coffer_call *call, int ms)
{
  struct pollfd p = { .fd = call->cancel_fd, .events = POLLIN };

  poll (&p, 1, ms);
}

/* ---- operations ----------------------------------------------------------- */

static void
hang_in (const struct hostile *self, const char *what)
{
  while (self->hangs_in && strcmp (self->hangs_in, what) == 0)
    pause ();
}

static int32_t
hostile_open (struct coffer_call *call, const char *const *config,
              const struct coffer_open_opts *opts)
{
  struct hostile *self = calloc (1, sizeof *self);

  if (!self)
    return coffer_fail (call, COFFER_LIMIT, "no memory");
  self->runtime_dir = opts ? opts->runtime_dir : -1;
  self->state_dir = opts ? opts->state_dir : -1;
  self->kept = -1;
  for (; config && *config; config++) {
    if (strncmp (*config, "api_key=", 8) == 0)
      self->secret = strdup (*config + 8);
    if (strncmp (*config, "api_url=", 8) == 0)
      self->url = strdup (*config + 8);
    if (strcmp (*config, "mode=refuse") == 0)
      return coffer_fail (call, COFFER_UNAUTHENTICATED, "the key is wrong");
    if (strcmp (*config, "mode=crash") == 0)
      abort ();
    if (strncmp (*config, "mode=hang_", 10) == 0)
      self->hangs_in = strdup (*config + 10);
  }
  while (opts && opts->files && opts->files[self->n_files])
    self->n_files++;
  if (self->n_files > 0) {
    self->first_file = strdup (opts->files[0]->name);
    if (pread (opts->files[0]->fd, self->first_bytes,
               sizeof self->first_bytes - 1, 0) < 0)
      strcpy (self->first_bytes, "unreadable");
  }
  hang_in (self, "open");
  return coffer_opened (call, self);
}

static int32_t
op_open (struct coffer_call *call, void *self, const char *const *config,
         const struct coffer_open_opts *opts)
{
  (void) self;
  return hostile_open (call, config, opts);
}

static int32_t
op_close (struct coffer_call *call, void *self,
          const struct coffer_close_opts *opts)
{
  struct hostile *hostile = self;

  (void) call;
  (void) opts;
  hang_in (hostile, "close");
  free (hostile->hangs_in);
  free (hostile->secret);
  free (hostile->url);
  free ((char *) hostile->first_file);
  free (hostile);
  return COFFER_OK;
}

/* Narrows what it claims, and tries to widen. */
static int32_t
op_probe (struct coffer_call *call, void *self,
          const struct coffer_probe_opts *opts)
{
  static const char *const narrows[] = { "metrics", "snapshot", "nonsense",
                                         NULL };
  struct coffer_fact fact = { .size = sizeof fact, .name = "probe",
                              .state = "degraded", .value = "as built",
                              .how = "read", .narrows = narrows };

  (void) opts;
  hang_in (self, "probe");
  return coffer_emit_fact (call, &fact);
}

static int32_t
op_sandbox_create (struct coffer_call *call, void *self, const char *sandbox,
                   const struct coffer_sandbox_spec *spec,
                   const struct coffer_sandbox_create_opts *opts)
{
  (void) self;
  (void) sandbox;
  (void) spec;
  (void) opts;
  return coffer_fail (call, COFFER_UNAVAILABLE, "nothing is made here");
}

static int32_t
op_sandbox_info (struct coffer_call *call, void *self, const char *sandbox,
                 const struct coffer_sandbox_info_opts *opts)
{
  const struct word *const tables[] = {
    ends_words, rights_words, channel_words, reach_words, noise_words
  };
  size_t i, size = strcspn (sandbox, ":");
  const char *arg = sandbox[size] ? sandbox + size + 1 : "";
  const struct word *word;

  (void) opts;
  for (i = 0; i < sizeof tables / sizeof tables[0]; i++)
    for (word = tables[i]; word->word; word++)
      if (strlen (word->word) == size
          && strncmp (word->word, sandbox, size) == 0)
        return word->run (call, self, arg);
  return coffer_fail (call, COFFER_NOT_FOUND, "no such word");
}

static int32_t
op_sandbox_list (struct coffer_call *call, void *self,
                 const struct coffer_sandbox_list_opts *opts)
{
  (void) call;
  (void) self;
  (void) opts;
  return COFFER_OK;
}

static int32_t
op_sandbox_kill (struct coffer_call *call, void *self, const char *sandbox,
                 const struct coffer_sandbox_kill_opts *opts)
{
  (void) call;
  (void) self;
  (void) sandbox;
  (void) opts;
  return COFFER_NOT_FOUND;
}

static int32_t
op_exec_start (struct coffer_call *call, void *self, const char *sandbox,
               const char *const *argv, const char *const *env,
               const char *cwd, int32_t in, int32_t out, int32_t err,
               const struct coffer_exec_start_opts *opts)
{
  struct coffer_exec_info info = { .size = sizeof info, .exec = "ex-1",
                                   .state = "running", .argv = argv };
  struct hostile *hostile = self;
  size_t i;

  (void) sandbox;
  (void) env;
  (void) cwd;
  (void) in;
  (void) err;
  (void) opts;
  for (i = 0; argv[i] && out >= 0; i++)
    if (write (out, argv[i], strlen (argv[i])) < 0
        || write (out, "\n", 1) < 0)
      return coffer_fail (call, COFFER_IO, "write");
  if (strcmp (argv[0], "keep") == 0)
    hostile->kept = dup (out);
  return coffer_emit_exec_info (call, &info);
}

/* Waits, which holds no lock of a serial module. */
static int32_t
op_exec_wait (struct coffer_call *call, void *self, const char *sandbox,
              const char *exec, const struct coffer_exec_wait_opts *opts)
{
  struct coffer_exec_exit ended = { .size = sizeof ended, .exec = exec };

  (void) self;
  (void) sandbox;
  (void) opts;
  wait_call (call, atoi (exec));
  return coffer_emit_exec_exit (call, &ended);
}

static int32_t
op_exec_list (struct coffer_call *call, void *self, const char *sandbox,
              const struct coffer_exec_list_opts *opts)
{
  (void) call;
  (void) self;
  (void) sandbox;
  (void) opts;
  return COFFER_OK;
}

static int32_t
op_metrics (struct coffer_call *call, void *self, const char *sandbox,
            const struct coffer_metrics_opts *opts)
{
  struct coffer_metric metric = { .size = sizeof metric, .name = "calls",
                                  .value = 0.5 };

  (void) self;
  (void) sandbox;
  (void) opts;
  return coffer_emit_metric (call, &metric);
}

/* A pipe's end with a line in it. */
static int32_t
op_port_dial (struct coffer_call *call, void *self, const char *sandbox,
              uint32_t port, const struct coffer_port_dial_opts *opts)
{
  struct coffer_stream stream = { .size = sizeof stream };
  int ends[2];
  int32_t code;

  (void) self;
  (void) sandbox;
  (void) port;
  (void) opts;
  if (pipe (ends) < 0)
    return COFFER_LIMIT;
  stream.fd = ends[0];
  code = write (ends[1], "dialled\n", 8) == 8
         ? coffer_emit_stream (call, &stream) : COFFER_IO;
  close (ends[0]);
  close (ends[1]);
  return code;
}

static int32_t
op_port_resolve (struct coffer_call *call, void *self, const char *sandbox,
                 uint32_t port, const struct coffer_port_resolve_opts *opts)
{
  (void) call;
  (void) self;
  (void) sandbox;
  (void) port;
  (void) opts;
  return COFFER_NOT_FOUND;
}

static const struct coffer_operations operations = {
  .size = sizeof operations, .open = op_open, .close = op_close,
  .probe = op_probe, .sandbox_create = op_sandbox_create,
  .sandbox_info = op_sandbox_info, .sandbox_list = op_sandbox_list,
  .sandbox_kill = op_sandbox_kill, .exec_start = op_exec_start,
  .exec_wait = op_exec_wait, .exec_list = op_exec_list,
  .metrics = op_metrics, .port_dial = op_port_dial,
  .port_resolve = op_port_resolve
};

#define HOSTILE_PROVIDER(name, threads, vtable)                               \
  COFFER_PROVIDER (name, threads, 0, vtable)
HOSTILE_PROVIDER (HOSTILE_NAME, HOSTILE_THREADS, operations)
