/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that this worker relays.  Each has a thread that takes what comes from
 * it, and one that gives it its input, so that neither waits for the other.
 *
 * What is known of a command here is a copy: the sandbox keeps how it ended, and
 * whoever does not find it here asks there. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "execs.h"

#define ENDED_MAX 64            /* commands that ended, kept until they are old */
#define STACK_SIZE (256 << 10)
#define PIECE (64 << 10)

struct docker_execs {
  pthread_mutex_t lock;
  struct relay *first;          /* the newest */
  int threads;
};

struct relay {
  struct relay *next;
  char *sandbox;
  char id[WIRE_ID_MAX];
  int references;               /* list, threads, calls; below the lock */
  struct docker_execs *execs;

  int in, out, err;             /* copies of the host's; -1: none */
  int stop;                     /* eventfd: the input's thread ends */
  int drain;                    /* eventfd: what is there is the last of it */
  int begun;                    /* eventfd: it was started, or will never be */
  int done;                     /* eventfd: `end` is there, or it is lost */
  int64_t late_ns;              /* it should have been ended by then */
  uint64_t out_bytes, out_all;  /* that came; that there are in all */
  struct stream stream;
  struct wire_end end;          /* below the lock, as these: */
  int started, has_end, lost;
  int err_ended;                /* all of the error stream has come */
};

/* ---- the list ------------------------------------------------------------------ */

struct docker_execs *
docker_execs_new (void)
{
  struct docker_execs *execs = calloc (1, sizeof *execs);

  if (execs)
    pthread_mutex_init (&execs->lock, NULL);
  return execs;
}

static void
relay_close (struct relay *relay)
{
  stream_fini (&relay->stream);
  coffer_fd_close (&relay->in);
  coffer_fd_close (&relay->out);
  coffer_fd_close (&relay->err);
  coffer_fd_close (&relay->stop);
  coffer_fd_close (&relay->drain);
  coffer_fd_close (&relay->done);
}

static void
relay_free (struct relay *relay)
{
  relay_close (relay);
  coffer_fd_close (&relay->begun);
  free (relay->sandbox);
  free (relay);
}

/* What the list alone still has is how it ended: it needs no descriptors.  How
 * many references are left. */
static int
drop_locked (struct relay *relay)
{
  if (--relay->references == 1 && relay->lost)
    relay_close (relay);
  return relay->references;
}

void
relay_release (struct relay *relay)
{
  struct docker_execs *execs = relay->execs;
  int left;

  pthread_mutex_lock (&execs->lock);
  left = drop_locked (relay);
  pthread_mutex_unlock (&execs->lock);
  if (left == 0)
    relay_free (relay);
}

/* Takes it out; the list's reference is the caller's. */
static struct relay *
unlink_locked (struct docker_execs *execs, struct relay *which)
{
  for (struct relay **at = &execs->first; *at; at = &(*at)->next)
    if (*at == which) {
      *at = which->next;
      return which;
    }
  return NULL;
}

/* The oldest that has ended, when there are many. */
static struct relay *
surplus_locked (struct docker_execs *execs)
{
  struct relay *oldest = NULL;
  int n = 0;

  for (struct relay *relay = execs->first; relay; relay = relay->next)
    if (relay->has_end || relay->lost) {
      oldest = relay;
      n++;
    }
  return n > ENDED_MAX ? unlink_locked (execs, oldest) : NULL;
}

static void
relay_add (struct relay *relay)
{
  struct docker_execs *execs = relay->execs;
  struct relay *old;

  pthread_mutex_lock (&execs->lock);
  relay->references++;
  relay->next = execs->first;
  execs->first = relay;
  old = surplus_locked (execs);
  pthread_mutex_unlock (&execs->lock);
  if (old)
    relay_release (old);
}

struct relay *
relay_find (struct docker *docker, const char *sandbox, const char *id)
{
  struct docker_execs *execs = docker->execs;
  struct relay *relay;

  pthread_mutex_lock (&execs->lock);
  for (relay = execs->first; relay; relay = relay->next)
    if (strcmp (relay->id, id) == 0 && strcmp (relay->sandbox, sandbox) == 0) {
      relay->references++;
      break;
    }
  pthread_mutex_unlock (&execs->lock);
  return relay;
}

static void
wake (int fd)
{
  const uint64_t one = 1;

  (void) !write (fd, &one, sizeof one);
}

/* Its streams end, and with them its threads. */
static void
relay_cut (struct relay *relay)
{
  wake (relay->stop);
  shutdown (relay->stream.fd, SHUT_RDWR);
}

void
docker_execs_forget (struct docker *docker, const char *sandbox)
{
  struct docker_execs *execs = docker->execs;
  struct relay *relay, *next, *gone = NULL;

  if (!execs)
    return;
  pthread_mutex_lock (&execs->lock);
  for (relay = execs->first; relay; relay = next) {
    next = relay->next;
    if (strcmp (relay->sandbox, sandbox) == 0) {
      unlink_locked (execs, relay);
      relay->next = gone;
      gone = relay;
    }
  }
  pthread_mutex_unlock (&execs->lock);
  for (; gone; gone = next) {
    next = gone->next;
    relay_release (gone);
  }
}

/* Threads have some seconds for their last steps; one that waits for a reader of
 * its host's has as long as the process. */
void
docker_execs_free (struct docker_execs *execs)
{
  struct relay *relay, *next;
  int left = 1;

  if (!execs)
    return;
  pthread_mutex_lock (&execs->lock);
  for (relay = execs->first; relay; relay = relay->next)
    relay_cut (relay);
  pthread_mutex_unlock (&execs->lock);
  for (int i = 0; left && i < 300; i++) {
    pthread_mutex_lock (&execs->lock);
    left = execs->threads;
    pthread_mutex_unlock (&execs->lock);
    if (left)
      poll (NULL, 0, 10);
  }
  if (left)
    return;
  for (relay = execs->first; relay; relay = next) {
    next = relay->next;
    relay_free (relay);
  }
  pthread_mutex_destroy (&execs->lock);
  free (execs);
}

/* ---- what comes ------------------------------------------------------------------ */

/* Nothing more comes of it: engines may keep the stream for longer. */
static int
is_over (const struct relay *relay)
{
  return relay->has_end && relay->err_ended
             && relay->out_bytes >= relay->out_all
           ? STREAM_DONE : 0;
}

static int
take_out (void *data, const char *bytes, size_t size)
{
  struct relay *relay = data;

  if (relay->out >= 0 && coffer_write_all (relay->out, bytes, size) < 0)
    coffer_fd_close (&relay->out);      /* its reader has enough */
  relay->out_bytes += size;
  if (relay->out_bytes >= relay->out_all)
    coffer_fd_close (&relay->out);
  return is_over (relay);
}

static void
take_end (struct relay *relay, const void *bytes)
{
  pthread_mutex_lock (&relay->execs->lock);
  memcpy (&relay->end, bytes, sizeof relay->end);
  relay->has_end = 1;
  pthread_mutex_unlock (&relay->execs->lock);
  wake (relay->done);
}

static int
take_frame (void *data, uint32_t kind, const void *bytes, size_t size)
{
  struct relay *relay = data;

  if (kind == WIRE_ERR_BYTES) {
    if (relay->err >= 0 && coffer_write_all (relay->err, bytes, size) < 0)
      coffer_fd_close (&relay->err);
  } else if (kind == WIRE_ERR_ENDED) {
    coffer_fd_close (&relay->err);
    relay->err_ended = 1;
  } else if (kind == WIRE_OUT_ENDED && size == sizeof relay->out_all) {
    memcpy (&relay->out_all, bytes, size);
    take_out (relay, NULL, 0);
  } else if (kind == WIRE_STARTED && size == sizeof relay->end.info) {
    pthread_mutex_lock (&relay->execs->lock);
    memcpy (&relay->end.info, bytes, size);
    relay->started = 1;
    pthread_mutex_unlock (&relay->execs->lock);
    wake (relay->begun);
  } else if (kind == WIRE_ENDED && size == sizeof relay->end) {
    take_end (relay, bytes);
  }
  return is_over (relay);
}

static void
thread_ends (struct relay *relay)
{
  struct docker_execs *execs = relay->execs;
  int left;

  pthread_mutex_lock (&execs->lock);
  left = drop_locked (relay);
  execs->threads--;
  pthread_mutex_unlock (&execs->lock);
  if (left == 0)
    relay_free (relay);
}

static void *
output_main (void *data)
{
  struct relay *relay = data;
  const struct stream_sink sink = {take_out, take_frame, relay};

  int r;

  do
    r = stream_read (&relay->stream, &sink);
  while (r > 0 && r != STREAM_DONE);
  coffer_fd_close (&relay->out);
  coffer_fd_close (&relay->err);
  shutdown (relay->stream.fd, SHUT_RDWR);       /* nobody takes input now */
  pthread_mutex_lock (&relay->execs->lock);
  relay->lost = 1;
  pthread_mutex_unlock (&relay->execs->lock);
  wake (relay->begun);
  wake (relay->done);
  wake (relay->stop);
  thread_ends (relay);
  return NULL;
}

/* ---- what goes in ------------------------------------------------------------------ */

static int
send_all (int fd, const char *bytes, size_t size)
{
  ssize_t n;

  for (; size > 0; bytes += n, size -= (size_t) n) {
    n = send (fd, bytes, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR)
      n = 0;
    else if (n < 0)
      return -1;
  }
  return 0;
}

/* 1: there may be more. */
static int
pass_input (struct relay *relay, char *bytes)
{
  ssize_t n = read (relay->in, bytes, PIECE);

  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return 1;
  return n > 0 && send_all (relay->stream.fd, bytes, (size_t) n) == 0;
}

static void *
input_main (void *data)
{
  struct relay *relay = data;
  struct pollfd fds[3] = {{relay->in, POLLIN, 0}, {relay->drain, POLLIN, 0},
                          {relay->stop, POLLIN, 0}};
  coffer_unfilled char bytes[PIECE];
  int more = 1;

  while (more) {
    if (poll (fds, 3, -1) < 0 && errno != EINTR)
      break;
    if (fds[2].revents)
      break;
    if (fds[0].revents)
      more = pass_input (relay, bytes);
    else if (fds[1].revents)
      more = 0;
  }
  shutdown (relay->stream.fd, SHUT_WR);
  coffer_fd_close (&relay->in);         /* whoever writes there need not wait */
  thread_ends (relay);
  return NULL;
}

/* ---- the start ----------------------------------------------------------------------- */

static int
start_thread (struct relay *relay, void *(*body) (void *))
{
  struct docker_execs *execs = relay->execs;
  pthread_attr_t attributes;
  pthread_t thread;
  int r;

  pthread_mutex_lock (&execs->lock);
  relay->references++;
  execs->threads++;
  pthread_mutex_unlock (&execs->lock);
  pthread_attr_init (&attributes);
  pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize (&attributes, STACK_SIZE);
  r = pthread_create (&thread, &attributes, body, relay);
  pthread_attr_destroy (&attributes);
  if (r != 0)
    thread_ends (relay);
  return r;
}

static int
copy_of (int fd)
{
  return fd < 0 ? -1 : fcntl (fd, F_DUPFD_CLOEXEC, 3);
}

/* A terminal of the host's carries bytes here, and the one inside is the terminal. */
static void
make_raw (int fd)
{
  struct termios mode;

  if (tcgetattr (fd, &mode) == 0) {
    cfmakeraw (&mode);
    tcsetattr (fd, TCSANOW, &mode);
  }
}

struct relay *
relay_new (struct docker *docker, const char *sandbox, int in, int out, int err)
{
  struct relay *relay = calloc (1, sizeof *relay);
  uint64_t random = 0;

  if (!relay)
    return NULL;
  relay->execs = docker->execs;
  relay->references = 1;
  relay->stream.fd = -1;
  relay->out_all = out < 0 ? 0 : UINT64_MAX;
  relay->err_ended = err < 0;
  relay->late_ns = INT64_MAX;
  relay->in = copy_of (in);
  relay->out = copy_of (out);
  relay->err = copy_of (err);
  relay->stop = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  relay->drain = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  relay->begun = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  relay->done = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  relay->sandbox = strdup (sandbox);
  if (getrandom (&random, sizeof random, 0) < 0 || !relay->sandbox
      || relay->done < 0 || relay->begun < 0 || relay->drain < 0
      || relay->stop < 0 || (in >= 0 && relay->in < 0)
      || (out >= 0 && relay->out < 0) || (err >= 0 && relay->err < 0)) {
    relay_free (relay);
    return NULL;
  }
  snprintf (relay->id, sizeof relay->id, "x%016llx",
            (unsigned long long) random);
  return relay;
}

static int
look (struct relay *relay, struct wire_info *info, struct wire_end *end)
{
  int state;

  pthread_mutex_lock (&relay->execs->lock);
  state = relay->has_end ? RELAY_ENDED : relay->lost ? RELAY_LOST :
    relay->started ? RELAY_RUNS : RELAY_NONE;
  if (info)
    *info = relay->end.info;
  if (end)
    *end = relay->end;
  if (relay->lost && !relay->started && !relay->has_end)
    state = RELAY_NONE;
  pthread_mutex_unlock (&relay->execs->lock);
  return state;
}

int32_t
relay_start (struct coffer_call *call, struct docker *docker,
             struct relay *relay, struct wire_request *request,
             const struct coffer_buffer *block, struct wire_info *info)
{
  int32_t code;

  memcpy (request->id, relay->id, WIRE_ID_MAX);
  if (request->timeout_ms > 0 && request->timeout_ms < INT64_MAX / 2000000)
    relay->late_ns = coffer_now_ns () + RELAY_LATE_NS
                     + (int64_t) request->timeout_ms * 1000000;
  code = stream_open (call, docker, relay->sandbox, request, block,
                      &relay->stream);
  if (code != COFFER_OK)
    return code;
  if (request->flags & WIRE_TTY)
    make_raw (relay->in);
  if (start_thread (relay, output_main) != 0
      || (relay->in >= 0 && start_thread (relay, input_main) != 0)) {
    relay_cut (relay);
    return coffer_fail_errno (call, EAGAIN, "the command's threads");
  }
  if (coffer_wait_fd (relay->begun, POLLIN, call->deadline_ns, call->cancel_fd)
      != 1) {
    code = coffer_fail_errno (call, errno, "the command");
    relay_cut (relay);
    return code;
  }
  if (look (relay, info, NULL) == RELAY_NONE)
    return stream_fail_sandbox (call, docker, relay->sandbox, &relay->stream);
  relay_add (relay);
  return COFFER_OK;
}

/* ---- questions --------------------------------------------------------------------------- */

int
relay_wait (struct coffer_call *call, struct relay *relay,
            struct wire_end *end)
{
  const int64_t until = relay->late_ns < call->deadline_ns ? relay->late_ns
                                                           : call->deadline_ns;

  /* Whoever found it has a reference, so that `done` stays what it is. */
  if (relay->done < 0)
    return look (relay, NULL, end);
  if (coffer_wait_fd (relay->done, POLLIN, until, call->cancel_fd) == 1)
    return look (relay, NULL, end);
  if (errno == ETIMEDOUT && until == relay->late_ns) {
    relay->late_ns = INT64_MAX;
    return RELAY_LATE;
  }
  return -1;
}

const char *
relay_id (const struct relay *relay)
{
  return relay->id;
}

void
relay_close_input (struct relay *relay)
{
  wake (relay->drain);
}
