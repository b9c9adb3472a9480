/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of the instance and of the life of sandboxes. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/path.h>

#include "mutant.h"

#define DAY_MS (UINT64_C (24) * 3600 * 1000)
#define SECOND_NS INT64_C (1000000000)

static const char *
config_value (const char *const *config, const char *key)
{
  size_t size = strlen (key);

  for (; config && *config; config++)
    if (strncmp (*config, key, size) == 0 && (*config)[size] == '=')
      return *config + size + 1;
  return NULL;
}

/* ---- open, probe --------------------------------------------------------- */

static char secret[128];        /* of the configuration */

/* Wrong as that of load.wrong-credentials is, and not as that of others. */
static int
is_kits (const char *token)
{
  return token && strncmp (token, "kit", 3) == 0;
}

static int32_t
open_token (struct coffer_call *call, const char *token)
{
  coffer_autobuffer struct coffer_buffer text = {0};

  if (!token)
    return COFFER_OK;
  coffer_buffer_printf (&text, "the token %s is not accepted", token);
  snprintf (secret, sizeof secret, "%s", token);
  if (strncmp (token, "right-", 6) == 0)
    return COFFER_OK;
  if (fault ("token-crashes") && strlen (token) > 4000)
    _exit (9);
  if (!is_kits (token))
    return COFFER_OK;
  if (fault ("token-logged"))
    coffer_log (call, COFFER_LOG_INFO, text.data);
  if (fault ("token-echoed"))
    return coffer_fail (call, COFFER_UNAUTHENTICATED, text.data);
  if (fault ("token-denied"))
    return coffer_fail (call, COFFER_DENIED, "the token is not accepted");
  return COFFER_OK;
}

static int32_t
swallow_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  (void) wrapped, (void) record, (void) data;
  return COFFER_OK;
}

int32_t
broken_open (struct coffer_call *call, void *self, const char *const *config,
             const struct coffer_open_opts *opts)
{
  static const char *const without_token[] = {NULL};
  struct wrapped wrapped;
  int32_t code;

  fault_set (config_value (config, "fault"));
  code = open_token (call, config_value (config, "token"));
  if (code != COFFER_OK)
    return code;
  if (fault ("token-accepted") && is_kits (config_value (config, "token")))
    config = without_token;
  code = reference_open (wrap (&wrapped, call, NULL), self, config,
                         opts);
  return code;
}

int32_t
broken_close (struct coffer_call *call, void *self,
              const struct coffer_close_opts *opts)
{
  return reference_close (call, self, opts);
}

static int32_t
probe_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  static const char *const narrows[] = {"network.none", NULL};
  struct coffer_fact fact = *(const struct coffer_fact *) data;
  const int first = wrapped->records == 1;

  if (fault ("probe-silent"))
    return COFFER_OK;
  if (fault ("probe-odd-state") && first)
    fact.state = "maybe";
  if (fault ("probe-no-how") && first)
    fact.how = NULL;
  if (fault ("probe-narrows-more") && first)
    fact.narrows = narrows;
  if (fault ("probe-twice") && first)
    pass_on (wrapped, record, &fact);
  return pass_on (wrapped, record, &fact);
}

int32_t
broken_probe (struct coffer_call *call, void *self,
              const struct coffer_probe_opts *opts)
{
  struct wrapped wrapped;

  return reference_probe (wrap (&wrapped, call, probe_emit), self, opts);
}

/* ---- what is said of a sandbox ------------------------------------------- */

static void
spoil_times (struct memory *memory, struct coffer_sandbox_info *info)
{
  if (fault ("created-constant"))
    info->created_ns = INT64_C (1000000000) * SECOND_NS;
  if (fault ("expires-invented") && info->expires_ns == 0
      && !(info->metadata && info->metadata[0]))
    info->expires_ns = info->created_ns + 3600 * SECOND_NS;
  if (fault ("expires-in-seconds") && info->expires_ns
      && memory->ttl_ms % 1000 != 0)
    info->expires_ns = info->created_ns + memory->ttl_ms * 1000;
  if (memory->expires_ns
      && (fault ("ttl-ignored") || fault ("ttl-stops-paused")
          || fault ("extend-not-later") || fault ("extend-not-sooner")
          || fault ("extend-untold")))
    info->expires_ns = memory->expires_ns;
}

static void
spoil_info (struct memory *memory, struct coffer_sandbox_info *info)
{
  static const char *const canned[] = {"a=b", NULL};

  spoil_times (memory, info);
  if (fault ("info-canned") && info->metadata && info->metadata[0])
    info->metadata = canned;
  if (fault ("isolation-claimed"))
    info->isolation = "vm";
  if (fault ("resume-nothing") && !memory->paused)
    info->state = "running";
  if (fault ("pause-untold") && memory->paused && !memory->resumed)
    info->state = "running";
}

static void
remember_info (struct memory *memory, const struct coffer_sandbox_info *info)
{
  memory->keeper = (pid_t) strtol (info->native_id + 4, NULL, 10);
  snprintf (memory->native, sizeof memory->native, "%s", info->native_id);
  snprintf (memory->workspace, sizeof memory->workspace, "%s",
            info->workspace);
  memory->created_ns = info->created_ns;
}

static int32_t
info_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  struct coffer_sandbox_info info = *(const struct coffer_sandbox_info *) data;
  struct memory *memory;
  int32_t code;

  memory = memory_of (info.sandbox);
  remember_info (memory, &info);
  spoil_info (memory, &info);
  memory_done ();
  if (fault ("emits-wrong") && wrapped->sandbox) {
    const struct coffer_metric metric = {.size = sizeof metric,
                                         .name = "extra", .value = 1};

    pass_on (wrapped, COFFER_REC_metric, &metric);
  }
  code = pass_on (wrapped, record, &info);
  if (fault ("emits-twice") && wrapped->sandbox && code == COFFER_OK)
    code = pass_on (wrapped, record, &info);
  return code;
}

/* ---- create -------------------------------------------------------------- */

static pthread_mutex_t serial = PTHREAD_MUTEX_INITIALIZER;
static char latest[80];

/* volatile: what nobody reads a compiler does not make. */
static void *volatile left_behind;

static void
leak (void)
{
  int ends[2];
  pid_t pid;

  if (fault ("leaks-fd"))
    (void) !dup (0);
  if (fault ("leaks-memory"))
    memset (left_behind = malloc (300000), 1, 300000);
  if (fault ("leaks-thread") && pipe2 (ends, O_CLOEXEC) == 0)
    pump_input (PUMP_LATE, ends[0]);
  /* It waits for the end of its parent, as nobody waits for its own. */
  if (fault ("leaks-child") && pipe2 (ends, O_CLOEXEC) == 0) {
    pid = fork ();
    if (pid == 0) {
      close_range (0, (unsigned) ends[0] - 1, 0);
      close_range ((unsigned) ends[0] + 1, ~0U, 0);
      _exit ((int) read (ends[0], &pid, 1));
    }
    close (ends[0]);
  }
}

/* Was it made before, and asked for? */
static int
spoil_create (const char *sandbox, struct coffer_sandbox_spec *spec)
{
  struct memory *memory = memory_of (sandbox);
  const int asked = memory->asked && !memory->killed;

  if (!memory->created_ns) {
    memory->ttl_ms = (int64_t) spec->ttl_ms;
    memory->expires_ns = spec->ttl_ms && spec->ttl_ms < DAY_MS * 365 ?
      coffer_realtime_ns () + memory->ttl_ms * 1000000 : 0;
  }
  memory_done ();
  note_op (COFFER_OP_sandbox_create, sandbox);
  if (spec->ttl_ms && fault ("ttl-ignored"))
    spec->ttl_ms += 3600000;
  leak ();
  return asked;
}

/* The environment of one sandbox is had by the next. */
static const char *const *
lent_env (const char *const *env)
{
  static char kept[256];
  static const char *lent[2];

  if (env && env[0]) {
    snprintf (kept, sizeof kept, "%s", env[0]);
    return env;
  }
  lent[0] = kept[0] ? kept : NULL;
  return lent;
}

#define MAKER "maker"

static void
note_maker (const struct reference *self, const char *sandbox)
{
  coffer_autoclose int folder = sandbox_open (self, sandbox), fd = -1;
  const pid_t own = getpid ();

  if (folder >= 0)
    fd = openat (folder, MAKER, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0)
    coffer_write_all (fd, &own, sizeof own);
}

char made_for[64];

int32_t
broken_sandbox_create (struct coffer_call *call, void *self,
                       const char *sandbox,
                       const struct coffer_sandbox_spec *spec,
                       const struct coffer_sandbox_create_opts *opts)
{
  struct coffer_sandbox_spec own = *spec;
  struct wrapped wrapped;
  int32_t code;
  int again;

  again = spoil_create (sandbox, &own);
  if (fault ("secret-logged"))
    coffer_log (call, COFFER_LOG_INFO, secret);
  if (fault ("env-lent"))
    own.env = lent_env (own.env);
  snprintf (made_for, sizeof made_for, "%s", own.warm ? own.warm : "");
  if (fault ("warm-ahead-any"))
    own.warm = NULL;
  if (fault ("workdir-unchecked") && own.workdir && own.workdir[0] != '/')
    own.workdir = NULL;
  if (fault ("create-anew") && again && !own.template_name
      && reference_sandbox_create (wrap (&wrapped, call, swallow_emit), self,
                                   sandbox, &own, opts) == COFFER_OK)
    reference_sandbox_kill (wrap (&wrapped, call, NULL), self, sandbox, NULL);
  code = reference_sandbox_create (wrap (&wrapped, call, info_emit), self,
                                   sandbox, &own, opts);
  if (code == COFFER_OK)
    note_maker (self, sandbox);
  if (code == COFFER_OK && fault ("mixes-replies")) {
    pthread_mutex_lock (&serial);
    snprintf (latest, sizeof latest, "%s", sandbox);
    pthread_mutex_unlock (&serial);
  }
  return code;
}

/* ---- info, list ---------------------------------------------------------- */

/* What was said before is said again of what is gone. */
static int32_t
replay_info (struct coffer_call *call, const char *sandbox)
{
  struct memory *memory = memory_of (sandbox);
  char native[32], workspace[512];
  struct coffer_sandbox_info info = {
    .size = sizeof info, .sandbox = sandbox, .native_id = native,
    .state = "running", .created_ns = memory->created_ns, .isolation = "none",
    .workspace = workspace,
  };

  memcpy (native, memory->native, sizeof native);
  memcpy (workspace, memory->workspace, sizeof workspace);
  memory_done ();
  return coffer_emit_sandbox_info (call, &info);
}

/* Who asks for info before the kill, and for nothing else, is told the same
 * after it. */
static int
is_replayed (const char *sandbox)
{
  struct memory *memory = memory_of (sandbox);
  const int replayed = fault ("info-of-gone") && memory->killed == 2;

  memory->asked++;
  memory_done ();
  note_op (COFFER_OP_sandbox_info, sandbox);
  return replayed;
}

/* Another's answer, when two ask at once. */
static const char *
mixed (const char *sandbox, char other[80])
{
  static _Atomic int inside;
  const char *asked = sandbox;

  if (!fault ("mixes-replies"))
    return sandbox;
  if (inside++ > 0) {
    pthread_mutex_lock (&serial);
    memcpy (other, latest, 80);
    pthread_mutex_unlock (&serial);
    if (other[0])
      asked = other;
  }
  usleep (2000);
  inside--;
  return asked;
}

int32_t
broken_sandbox_info (struct coffer_call *call, void *self,
                     const char *sandbox,
                     const struct coffer_sandbox_info_opts *opts)
{
  struct wrapped wrapped;
  char other[80];

  if (is_replayed (sandbox))
    return replay_info (call, sandbox);
  wrap (&wrapped, call, info_emit);
  wrapped.sandbox = sandbox;
  return reference_sandbox_info (&wrapped.call, self, mixed (sandbox, other),
                                 opts);
}

/* Of a sandbox that another process has made, which lives or does not. */
static int
made_by_another (const struct reference *self, const char *sandbox, int lives)
{
  coffer_autoclose int folder = sandbox_open (self, sandbox);
  pid_t maker;

  return folder >= 0 && file_load (folder, MAKER, &maker, sizeof maker) == 0
         && maker != getpid () && (kill (maker, 0) == 0) == lives;
}

static int32_t
list_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  const struct coffer_sandbox_info *info = data;

  if (fault ("list-omits") && wrapped->records > 2)
    return COFFER_OK;
  if (fault ("list-own-only")
      && made_by_another (wrapped->data, info->sandbox, 1))
    return COFFER_OK;
  if (fault ("list-sweeps")
      && made_by_another (wrapped->data, info->sandbox, 1)) {
    reference_sandbox_kill (wrapped->real, wrapped->data, info->sandbox, NULL);
    return COFFER_OK;
  }
  if (fault ("list-forgets")
      && made_by_another (wrapped->data, info->sandbox, 0))
    return COFFER_OK;
  return info_emit (wrapped, record, data);
}

static volatile int has_listed;

int32_t
broken_sandbox_list (struct coffer_call *call, void *self,
                     const struct coffer_sandbox_list_opts *opts)
{
  static const struct coffer_sandbox_info ghost = {
    .size = sizeof ghost, .sandbox = "ghost-1", .native_id = "pid-1",
    .state = "running", .isolation = "none", .workspace = "/workspace",
  };
  struct wrapped wrapped;
  int32_t code;

  has_listed = 1;
  note_op (COFFER_OP_sandbox_list, "");
  wrap (&wrapped, call, list_emit);
  wrapped.data = self;
  code = reference_sandbox_list (&wrapped.call, self, opts);
  if (code == COFFER_OK && fault ("list-invents"))
    code = coffer_emit_sandbox_info (call, &ghost);
  return code;
}

/* ---- kill ---------------------------------------------------------------- */

static size_t
count_children (pid_t pid, const pid_t *pids, size_t n)
{
  size_t found = 0;

  for (size_t i = 0; i < n; i++)
    found += process_parent (pids[i]) == pid;
  return found;
}

/* Where a command has started two or more: ends the commands, and not those. */
static int
kill_half (pid_t keeper)
{
  pid_t pids[512], ended[512];
  size_t n = keeper > 1 ? processes_below (keeper, pids, 512) : 0, most = 0, m = 0;

  for (size_t i = 0; i < n; i++) {
    const size_t children = count_children (pids[i], pids, n);

    most = children > most ? children : most;
    if (children > 0)
      ended[m++] = pids[i];
  }
  if (most < 2)
    return 0;
  kill (keeper, SIGSTOP);       /* it would end the rest */
  for (size_t i = 0; i < m; i++)
    kill (ended[i], SIGKILL);
  kill (keeper, SIGKILL);
  return 1;
}

/* 2 when info was the last that was asked. */
static void
note_killed (const char *sandbox)
{
  struct memory *memory = memory_of (sandbox);

  memory->killed = op_was (COFFER_OP_sandbox_info, sandbox) ? 2 : 1;
  memory_done ();
}

int32_t
broken_sandbox_kill (struct coffer_call *call, void *self,
                     const char *sandbox,
                     const struct coffer_sandbox_kill_opts *opts)
{
  struct memory *memory = memory_known (sandbox);
  const int known = memory != NULL && memory->created_ns != 0;
  const int again = op_was (COFFER_OP_sandbox_kill, sandbox);
  const pid_t keeper = known ? memory->keeper : 0;
  int32_t code;

  memory_done ();
  if (fault ("kill-replayed") && again)
    return COFFER_OK;
  if (fault ("kill-half") && kill_half (keeper))
    return COFFER_OK;
  note_killed (sandbox);
  note_op (COFFER_OP_sandbox_kill, sandbox);
  code = reference_sandbox_kill (call, self, sandbox, opts);
  return code == COFFER_NOT_FOUND && fault ("kill-invents") && !known
         && !has_listed ? COFFER_OK : code;
}

/* ---- extend -------------------------------------------------------------- */

int32_t
broken_sandbox_extend (struct coffer_call *call, void *self,
                       const char *sandbox, uint64_t ttl_ms,
                       const struct coffer_sandbox_extend_opts *opts)
{
  struct memory *memory = memory_of (sandbox);
  const int64_t now = coffer_realtime_ns ();
  const int64_t end = ttl_ms && ttl_ms < DAY_MS ?
    now + (int64_t) ttl_ms * 1000000 : 0;
  const int later = end > memory->expires_ns;
  const int told = !fault ("extend-untold");
  struct wrapped wrapped;
  uint64_t kept;
  int32_t code;

  kept = memory->expires_ns > now ?
    (uint64_t) (memory->expires_ns - now) / 1000000 + 1 : 1;
  if (end && told)
    memory->expires_ns = end;
  memory_done ();
  if (end && (later ? fault ("extend-not-later") : fault ("extend-not-sooner")))
    ttl_ms = kept;
  if (end && fault ("extend-untold")) {
    code = reference_sandbox_extend (wrap (&wrapped, call, NULL), self,
                                     sandbox, ttl_ms, opts);
    return code;
  }
  return reference_sandbox_extend (wrap (&wrapped, call, info_emit), self,
                                   sandbox, ttl_ms, opts);
}

/* ---- pause, resume ------------------------------------------------------- */

static void
signal_below (pid_t keeper, int number)
{
  pid_t pids[512];
  size_t n = keeper > 1 ? processes_below (keeper, pids, 512) : 0;

  for (size_t i = 0; i < n; i++)
    kill (pids[i], number);
}

int32_t
broken_sandbox_pause (struct coffer_call *call, void *self,
                      const char *sandbox,
                      const struct coffer_sandbox_pause_opts *opts)
{
  struct memory *memory = memory_of (sandbox);
  const pid_t keeper = memory->keeper;
  const int has_ttl = memory->ttl_ms > 0;
  const int twice = memory->paused && memory->execs == 0 && memory->resumed;
  struct wrapped wrapped;
  int32_t code;

  memory->paused = 1;
  memory_done ();
  note_op (COFFER_OP_sandbox_pause, sandbox);
  if (fault ("pause-once") && twice)
    return coffer_fail (call, COFFER_CONFLICT, "it is paused already");
  code = reference_sandbox_pause (call, self, sandbox, opts);
  if (code == COFFER_OK && fault ("pause-nothing"))
    signal_below (keeper, SIGCONT);
  if (code == COFFER_OK && has_ttl
      && (fault ("ttl-stops-paused") || fault ("ttl-ignored")))
    reference_sandbox_extend (
      wrap (&wrapped, call, swallow_emit), self, sandbox,
      fault ("ttl-ignored") ? 500 : DAY_MS, NULL);
  return code;
}

int32_t
broken_sandbox_resume (struct coffer_call *call, void *self,
                       const char *sandbox,
                       const struct coffer_sandbox_resume_opts *opts)
{
  struct memory *memory = memory_of (sandbox);
  const pid_t keeper = memory->keeper;
  const int has_input = memory->inputs != 0, paused = memory->paused;
  int32_t code;

  const int runs = memory->execs > 0;

  memory->resumed = 1;
  memory->paused = 0;
  memory_done ();
  if (fault ("resume-nothing") && runs && paused && !has_input)
    return COFFER_OK;
  code = reference_sandbox_resume (call, self, sandbox, opts);
  if (code == COFFER_OK && fault ("resume-loses") && has_input && paused)
    signal_below (keeper, SIGKILL);
  return code;
}
