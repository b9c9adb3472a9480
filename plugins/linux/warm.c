/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters that stand ready, by their handles, and commands that are copies
 * of them.
 *
 * The copies of one have the layout of its memory and its seed of hashes, and
 * what one learns of these holds for the next: so an interpreter is replaced
 * after so many copies or so long, by one that is begun a little before.  The
 * handle stays, also when an interpreter has ended by itself. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "spawn.h"

#define NOTHING "no interpreter can be made ready here"
#define PROGRAM_MAX (1u << 20)
#define WARMS_MAX 16
#define WARM_NAME_SIZE 16
#define MODULES_MAX 64
#define MODULE_NAME_MAX 128
#define RUNS_MOST 1000
#define RUNS_LATE 900
#define AGE_MOST_NS INT64_C (600000000000)
#define AGE_LATE_NS INT64_C (540000000000)

/* ---- handles ------------------------------------------------------------ */

static void
warm_free (struct warm *warm)
{
  zygote_end (&warm->now);
  zygote_end (&warm->coming);
  zygote_end (&warm->going);
  coffer_fd_close (&warm->program_fd);
  coffer_buffer_free (&warm->program);
  coffer_strings_free (&warm->modules);
  pthread_mutex_destroy (&warm->busy);
  free (warm->profile);
  free (warm);
}

void
warm_fini (struct linux_provider *self)
{
  struct warm *warm;

  while ((warm = self->warms) != NULL) {
    self->warms = warm->next;
    warm_free (warm);
  }
}

/* First in the list, so that the last is the one which is longest unused. */
static void
warm_front_locked (struct linux_provider *self, struct warm *warm)
{
  struct warm **at = &self->warms;

  while (*at != warm && *at != NULL)
    at = &(*at)->next;
  if (*at != NULL)
    *at = warm->next;
  warm->next = self->warms;
  self->warms = warm;
}

static void
warm_name (const struct warm *warm, char out[WARM_NAME_SIZE])
{
  snprintf (out, WARM_NAME_SIZE, "%c%u", WARM_LETTER, warm->number);
}

/* A user of it, or NULL. */
static struct warm *
warm_use_locked (struct linux_provider *self, const char *handle)
{
  struct warm *warm;
  char name[WARM_NAME_SIZE];

  for (warm = self->warms; warm != NULL; warm = warm->next) {
    warm_name (warm, name);
    if (strcmp (name, handle) == 0) {
      warm->users++;
      return warm;
    }
  }
  return NULL;
}

static int32_t
warm_unknown (struct coffer_call *call, const char *handle)
{
  return fail_with (call, COFFER_NOT_FOUND,
                    "warm: nothing stands ready by the name %.32s", handle);
}

int32_t
warm_find (struct linux_provider *self, struct coffer_call *call,
           const char *handle, struct warm **out)
{
  struct warm *warm;

  if (zygote_python () == NULL)
    return coffer_fail (call, COFFER_UNSUPPORTED, "warm: " NOTHING);
  pthread_mutex_lock (&self->lock);
  warm = warm_use_locked (self, handle);
  if (warm != NULL)
    warm_front_locked (self, warm);
  pthread_mutex_unlock (&self->lock);
  if (warm == NULL)
    return warm_unknown (call, handle);
  *out = warm;
  return COFFER_OK;
}

void
warm_leave (struct linux_provider *self, struct warm *warm)
{
  if (warm == NULL)
    return;
  pthread_mutex_lock (&self->lock);
  warm->users--;
  pthread_mutex_unlock (&self->lock);
}

/* ---- what is asked for -------------------------------------------------- */

static int
name_fine (const char *name)
{
  size_t i;

  for (i = 0; name[i] != '\0'; i++)
    if (i == MODULE_NAME_MAX
        || !((name[i] >= 'a' && name[i] <= 'z')
             || (name[i] >= 'A' && name[i] <= 'Z') || name[i] == '_'
             || (i > 0 && ((name[i] >= '0' && name[i] <= '9')
                           || name[i] == '.'))))
      return 0;
  return i > 0;
}

/* A file in memory, or a stream, to its end. */
static int32_t
program_read (struct coffer_call *call, struct warm *warm, int fd)
{
  coffer_autoclose int memory = memfd_create ("warm", MFD_CLOEXEC);
  char *bytes = NULL;
  uint64_t copied = 0;
  size_t size;

  if (memory < 0 || (lseek (fd, 0, SEEK_SET) == -1 && errno != ESPIPE)
      || coffer_copy (fd, memory, PROGRAM_MAX + 1, call->deadline_ns,
                      call->cancel_fd, &copied) < 0)
    return coffer_fail_errno (call, errno, "in");
  if (copied == 0)
    return coffer_fail (call, COFFER_INVALID, "in: it is empty");
  if (copied > PROGRAM_MAX)
    return fail_with (call, COFFER_LIMIT, "in: at most %u bytes",
                      PROGRAM_MAX);
  if (lseek (memory, 0, SEEK_SET) == -1
      || coffer_read_whole (memory, PROGRAM_MAX, &bytes, &size) == -1)
    return coffer_fail_errno (call, errno, "in");
  coffer_buffer_add (&warm->program, bytes, size);
  free (bytes);
  warm->program_fd = coffer_memfd_sealed ("warm", warm->program.data, size);
  if (warm->program_fd < 0 || warm->program.failed)
    return coffer_fail_errno (call, ENOMEM, "warm");
  return COFFER_OK;
}

static int32_t
wanted_read (struct coffer_call *call, struct warm *warm, const char *profile,
             int in, const struct coffer_warm_open_opts *opts)
{
  const char *const *modules = opts != NULL ? opts->modules : NULL;

  if (in < 0)
    return coffer_fail (call, COFFER_INVALID, "in: none is given");
  for (; modules != NULL && *modules != NULL; modules++) {
    if (!name_fine (*modules))
      return coffer_fail (call, COFFER_INVALID,
                          "modules: names of Python's modules");
    coffer_strings_add (&warm->modules, *modules);
  }
  if (warm->modules.count > MODULES_MAX)
    return fail_with (call, COFFER_LIMIT, "modules: at most %d", MODULES_MAX);
  warm->profile = strdup (profile);
  if (warm->profile == NULL || warm->modules.failed)
    return coffer_fail_errno (call, ENOMEM, "warm");
  return program_read (call, warm, in);
}

static int
warm_same (const struct warm *a, const struct warm *b)
{
  size_t i;

  if (strcmp (a->profile, b->profile) != 0
      || a->program.size != b->program.size
      || memcmp (a->program.data, b->program.data, a->program.size) != 0
      || a->modules.count != b->modules.count)
    return 0;
  for (i = 0; i < a->modules.count; i++)
    if (strcmp (a->modules.items[i], b->modules.items[i]) != 0)
      return 0;
  return 1;
}

/* Takes away the one that nobody has used for longest, where there are as many
 * as there can be. */
static struct warm *
warm_surplus_locked (struct linux_provider *self)
{
  struct warm **at, **last = NULL, *surplus;
  unsigned n = 0;

  for (at = &self->warms; *at != NULL; at = &(*at)->next, n++)
    if ((*at)->users == 0)
      last = at;
  if (n < WARMS_MAX || last == NULL)
    return NULL;
  surplus = *last;
  *last = surplus->next;
  return surplus;
}

/* The same again is the one that there is; NULL: there are too many. */
static struct warm *
warm_keep (struct linux_provider *self, struct warm *take_warm)
{
  struct warm *found, *surplus = NULL;
  unsigned n = 0;

  pthread_mutex_lock (&self->lock);
  for (found = self->warms; found != NULL && !warm_same (found, take_warm);
       found = found->next)
    n++;
  if (found == NULL) {
    surplus = warm_surplus_locked (self);
    if (surplus != NULL || n < WARMS_MAX) {
      take_warm->number = ++self->last_warm;
      found = take_warm;
    }
  }
  if (found != NULL) {
    found->users++;
    warm_front_locked (self, found);
  }
  pthread_mutex_unlock (&self->lock);
  if (surplus != NULL)
    warm_free (surplus);
  if (found != take_warm)
    warm_free (take_warm);
  return found;
}

/* ---- their processes ---------------------------------------------------- */

/* What is to replace it is begun before that is due, and awaited when it is.
 * Its failure is no reason to go on with the old one for ever.  Others may wait
 * for copies that the old one was asked for and has not made yet. */
static int32_t
warm_replace (struct linux_provider *self, struct coffer_call *call,
              struct warm *warm)
{
  const int64_t age_ns = coffer_now_ns () - warm->now.born_ns;
  const int due = warm->now.runs >= RUNS_MOST || age_ns >= AGE_MOST_NS;
  int32_t code = COFFER_OK;

  if (warm->now.runs < RUNS_LATE && age_ns < AGE_LATE_NS)
    return COFFER_OK;
  if (!zygote_lives (&warm->coming)) {
    zygote_end (&warm->coming);
    code = zygote_start (self, call, warm, &warm->coming);
  }
  if (code == COFFER_OK)
    code = zygote_await (call, &warm->coming, due);
  if (code != COFFER_OK || !warm->coming.ready)
    return code;
  zygote_end (&warm->going);
  warm->going = warm->now;
  zygote_dismiss (&warm->going);
  warm->now = warm->coming;
  warm->begun++;
  warm->coming = (struct zygote) ZYGOTE_NONE;
  return COFFER_OK;
}

/* With `busy` held: one that serves. */
static int32_t
warm_ready (struct linux_provider *self, struct coffer_call *call,
            struct warm *warm)
{
  int32_t code;

  if (warm->going.pid > 0 && !zygote_lives (&warm->going))
    zygote_end (&warm->going);
  if (zygote_lives (&warm->now) && warm->now.ready)
    return warm_replace (self, call, warm);
  zygote_end (&warm->now);
  code = zygote_start (self, call, warm, &warm->now);
  if (code == COFFER_OK)
    code = zygote_await (call, &warm->now, 1);
  if (code == COFFER_OK)
    warm->begun++;
  else
    zygote_end (&warm->now);
  return code;
}

static int32_t
warm_check (struct linux_provider *self, struct coffer_call *call,
            struct warm *warm)
{
  int32_t code;

  pthread_mutex_lock (&warm->busy);
  code = warm_ready (self, call, warm);
  pthread_mutex_unlock (&warm->busy);
  return code;
}

int32_t
linux_warm_open (struct coffer_call *call, void *data, const char *profile,
                 int32_t in, const struct coffer_warm_open_opts *opts)
{
  struct linux_provider *self = data;
  struct coffer_exec_info info = { sizeof info };
  struct warm *warm = calloc (1, sizeof *warm);
  char name[WARM_NAME_SIZE];
  int32_t code;

  if (warm == NULL)
    return coffer_fail_errno (call, ENOMEM, "warm");
  if (zygote_python () == NULL) {
    free (warm);
    return coffer_fail (call, COFFER_UNSUPPORTED, "warm: " NOTHING);
  }
  warm->program_fd = -1;
  warm->now = warm->coming = warm->going = (struct zygote) ZYGOTE_NONE;
  pthread_mutex_init (&warm->busy, NULL);
  code = wanted_read (call, warm, profile, in, opts);
  if (code != COFFER_OK) {
    warm_free (warm);
    return code;
  }
  warm = warm_keep (self, warm);
  if (warm == NULL)
    return fail_with (call, COFFER_LIMIT, "warm: at most %d at once",
                      WARMS_MAX);
  code = warm_check (self, call, warm);
  warm_name (warm, name);
  warm_leave (self, warm);
  if (code != COFFER_OK)
    return code;
  info.exec = name;
  info.state = "running";
  return coffer_emit_exec_info (call, &info);
}

/* ---- what they take ----------------------------------------------------- */

/* One that is being made is waited for so long, by who only looks. */
#define LOOKS_MOST 30
#define LOOK_MS 10
#define ROLLUP_MAX 4096

/* Of a line "NAME:  N kB". */
static double
rollup_bytes (const char *text, const char *name)
{
  const char *line = strstr (text, name);

  return line == NULL ? 0
                      : (double) strtoull (line + strlen (name), NULL, 10)
                          * 1024;
}

/* A child that has not been waited for: its number is nobody else's. */
static void
memory_add (const struct zygote *zygote, double *share, double *resident)
{
  coffer_autoclose int fd = -1;
  char path[48], text[ROLLUP_MAX];
  ssize_t n;

  if (!zygote_lives (zygote))
    return;
  snprintf (path, sizeof path, "/proc/%d/smaps_rollup", (int) zygote->pid);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  n = fd < 0 ? -1 : coffer_read_all (fd, text, sizeof text - 1);
  if (n <= 0)
    return;
  text[n] = '\0';
  *share += rollup_bytes (text, "\nPss:");
  *resident += rollup_bytes (text, "\nRss:");
}

struct use {
  uint64_t copies, begun;
  int ready;
  double share, resident;
};

static int
use_read (struct warm *warm, struct use *use)
{
  int looks;

  for (looks = 0; pthread_mutex_trylock (&warm->busy) != 0; looks++)
    if (looks == LOOKS_MOST)
      return -1;
    else
      poll (NULL, 0, LOOK_MS);
  *use = (struct use){ warm->copies, warm->begun,
                       zygote_lives (&warm->now) && warm->now.ready, 0, 0 };
  memory_add (&warm->now, &use->share, &use->resident);
  memory_add (&warm->coming, &use->share, &use->resident);
  memory_add (&warm->going, &use->share, &use->resident);
  pthread_mutex_unlock (&warm->busy);
  return 0;
}

int
warm_is_handle (const char *name)
{
  return name[0] == WARM_LETTER && name[1] != '\0'
         && name[1 + strspn (name + 1, "0123456789")] == '\0';
}

int32_t
warm_metrics (struct linux_provider *self, struct coffer_call *call,
              const char *handle)
{
  struct warm *warm;
  struct use use;
  int r;

  pthread_mutex_lock (&self->lock);
  warm = warm_use_locked (self, handle);
  pthread_mutex_unlock (&self->lock);
  if (warm == NULL)
    return warm_unknown (call, handle);
  r = use_read (warm, &use);
  warm_leave (self, warm);
  if (r == -1)
    return coffer_fail (call, COFFER_BUSY, "warm: one is being made ready");

  const struct metric metrics[] = {
    { "ready", use.ready, 1 },
    { "copies_total", (double) use.copies, 1 },
    { "replaced_total", use.begun > 0 ? (double) (use.begun - 1) : 0, 1 },
    { "memory_bytes", use.share, use.share > 0 },
    { "memory_resident_bytes", use.resident, use.resident > 0 },
  };

  return metrics_emit (call, metrics, sizeof metrics / sizeof metrics[0]);
}

/* ---- copies ------------------------------------------------------------- */

static int32_t
warm_call (struct linux_provider *self, struct coffer_call *call,
           struct warm *warm, int init, int gate, pid_t *asked)
{
  int32_t code;
  int r = 0;

  pthread_mutex_lock (&warm->busy);
  code = warm_ready (self, call, warm);
  if (code == COFFER_OK) {
    r = zygote_fork (call, &warm->now, init, gate);
    /* It has ended just now. */
    if (r == -1 && (errno == EPIPE || errno == ECONNRESET)) {
      zygote_end (&warm->now);
      code = warm_ready (self, call, warm);
      if (code == COFFER_OK)
        r = zygote_fork (call, &warm->now, init, gate);
    }
  }
  *asked = warm->now.pid;
  warm->copies += code == COFFER_OK && r == 0;
  pthread_mutex_unlock (&warm->busy);
  if (code == COFFER_OK && r == -1)
    return coffer_fail_errno (call, errno, "warm: asking for a copy");
  return code;
}

static int32_t
warm_ahead (struct linux_provider *self, struct coffer_call *call,
            struct warm *warm, struct link *link, int init, pid_t *asked)
{
  coffer_autoclose int theirs = -1, ours = -1;
  struct request request = { .type = INIT_AHEAD, .fds = &ours, .n_fds = 1 };
  int pair[2];

  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
    return coffer_fail_errno (call, errno, "socketpair");
  ours = pair[0];
  theirs = pair[1];
  if (link_send (link, &request, call) == -1)
    return coffer_fail_errno (call, errno, "asking the sandbox's init");
  return warm_call (self, call, warm, init, theirs, asked);
}

/* ---- into a sandbox that is being made ---------------------------------- */

/* As its init sees it (init/warm.c), which comes too late: by then the copy is
 * on its way into it. */
int
copy_may (const struct making *making)
{
  const struct coffer_sandbox_spec *spec = making->spec;

  return spec->filter != NULL && strcmp (spec->filter, "strict") == 0
         && spec->template_name == NULL && making->network != NETWORK_HOST;
}

/* A copy of what stands ready begins to come in. */
int32_t
copy_begin (struct making *making)
{
  struct link link = { .fd = making->control, .serial = 1 };

  return warm_ahead (making->self, making->call, making->warm, &link,
                     making->pidfd, &making->asked);
}

int32_t
copy_permit (struct making *making)
{
  int32_t code;

  if (making->spec->warm == NULL)
    return COFFER_OK;
  code = warm_find (making->self, making->call, making->spec->warm,
                    &making->warm);
  if (code == COFFER_OK && !copy_may (making))
    code = coffer_fail (making->call, COFFER_CONFLICT, WARM_INTO);
  return code;
}

/* ---- into one that there is ---------------------------------------------- */

/* 1: the init has said there what is to come in; 0: it has refused, or gone, and
 * its answer says so. */
static int
gate_opens (const struct link *link, int gate, const struct coffer_call *call)
{
  struct pollfd fds[3] = { { gate, POLLIN, 0 }, { link->fd, POLLIN, 0 },
                           { call->cancel_fd, POLLIN, 0 } };
  const int64_t left = call->deadline_ns - coffer_now_ns ();
  char byte;
  int r;

  do
    r = poll (fds, 3, left > 0 ? (int) (left / 1000000) : 0);
  while (r < 0 && errno == EINTR);
  return r > 0 && recv (gate, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

int32_t
warm_fits (struct coffer_call *call, const struct sandbox *sb)
{
  if (sb == NULL)
    return coffer_fail (call, COFFER_CONFLICT,
                        "warm: only into a sandbox that the same host process "
                        "has made");
  return sb->joinable ? COFFER_OK
                      : coffer_fail (call, COFFER_CONFLICT, WARM_INTO);
}

/* Only once the init has not refused it is anybody sent for, who has rights over
 * the sandbox. */
int32_t
warm_send (struct linux_provider *self, struct coffer_call *call,
           struct warm *warm, struct link *link, struct request *request,
           int *fds, pid_t *asked)
{
  coffer_autoclose int theirs = -1;
  int pair[2], r;
  int32_t code = warm_check (self, call, warm);

  if (code != COFFER_OK)
    return code;
  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
    return coffer_fail_errno (call, errno, "socketpair");
  theirs = pair[0];
  fds[request->n_fds++] = pair[1];
  r = link_send (link, request, call);
  close (pair[1]);
  if (r == -1)
    return sandbox_ask_failed (call, "asking the sandbox's init");
  return gate_opens (link, theirs, call)
    ? warm_call (self, call, warm, link->sb->pidfd, theirs, asked)
    : COFFER_OK;
}

void
warm_stuck (struct warm *warm, pid_t asked)
{
  pthread_mutex_lock (&warm->busy);
  if (warm->now.pid == asked)
    zygote_end (&warm->now);
  pthread_mutex_unlock (&warm->busy);
}
