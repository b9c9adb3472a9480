/* SPDX-License-Identifier: Apache-2.0 */
/* The stream to the first process of a container.
 *
 * By it a sandbox's environment and working folder come to memory inside instead
 * of into the engine's files, and by it a lifeline reaches the container: the
 * engine closes the first process's standard input when the stream ends, also
 * where the end is that of this worker. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "docker.h"

int32_t
docker_attach (struct coffer_call *call, struct docker *docker,
               const char *name, int *fd)
{
  coffer_autobuffer struct coffer_buffer path = {0};
  coffer_autoreply struct coffer_http_reply reply = {0};
  struct coffer_http_request request = {.method = "POST"};

  docker_path (docker, &path,
               "/containers/%s/attach?stream=1&stdin=1&stdout=1", name);
  if (path.failed)
    return coffer_fail_errno (call, ENOMEM, "a request");
  request.path = path.data;
  return coffer_http_upgrade (docker->http, call, "tcp", &request, &reply, fd)
         == COFFER_OK ? COFFER_OK : docker_fail (call, &reply, "attach");
}

/* Length, then strings with their NULs (INSIDE_GIVEN). */
static int
add_given (struct coffer_buffer *out, const struct coffer_sandbox_spec *spec)
{
  const char *workdir = spec->workdir ? spec->workdir : "";
  uint32_t size = 0;

  coffer_buffer_add (out, &size, sizeof size);
  coffer_buffer_add (out, workdir, strlen (workdir) + 1);
  coffer_buffer_add_vector (out, spec->env);
  if (out->failed || out->size - sizeof size > INSIDE_GIVEN_MOST) {
    errno = out->failed ? ENOMEM : E2BIG;
    return -1;
  }
  size = (uint32_t) (out->size - sizeof size);
  memcpy (out->data, &size, sizeof size);
  return 0;
}

static int
send_all (struct coffer_call *call, int fd, const char *bytes, size_t size)
{
  while (size > 0) {
    ssize_t n;

    if (coffer_wait_fd (fd, POLLOUT, call->deadline_ns, call->cancel_fd) <= 0)
      return -1;
    n = send (fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
      return -1;
    bytes += n > 0 ? n : 0;
    size -= n > 0 ? (size_t) n : 0;
  }
  return 0;
}

/* Eight bytes of the engine's before what it says. */
#define ACK_SIZE (8 + sizeof INSIDE_ACK - 1)

static int
wait_ack (struct coffer_call *call, int fd)
{
  char bytes[ACK_SIZE];
  size_t size = 0;

  while (size < sizeof bytes) {
    ssize_t n;

    if (coffer_wait_fd (fd, POLLIN, call->deadline_ns, call->cancel_fd) <= 0)
      return -1;
    n = recv (fd, bytes + size, sizeof bytes - size, MSG_DONTWAIT);
    if (n == 0)
      errno = EPIPE;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
      return -1;
    size += n > 0 ? (size_t) n : 0;
  }
  errno = EPROTO;
  return memcmp (bytes + 8, INSIDE_ACK, sizeof INSIDE_ACK - 1) == 0 ? 0 : -1;
}

int32_t
docker_tell (struct coffer_call *call, int fd,
             const struct coffer_sandbox_spec *spec)
{
  coffer_autobuffer struct coffer_buffer given = {0};
  int failed = add_given (&given, spec) < 0
               || send_all (call, fd, given.data, given.size) < 0
               || wait_ack (call, fd) < 0;
  int sys_errno = errno;

  if (given.data)
    explicit_bzero (given.data, given.capacity);
  if (!failed)
    return COFFER_OK;
  return sys_errno == EPIPE || sys_errno == EPROTO || sys_errno == ECONNRESET
         ? coffer_fail (call, COFFER_UNAVAILABLE, "the sandbox's first process "
                        "ended at once: the engine's own log may say why")
         : coffer_fail_errno (call, sys_errno, "the sandbox's first process");
}

/* ---- lifelines ------------------------------------------------------------------ */

struct keep {
  pthread_t thread;
  int stream, lifeline, stop;
  int has_ended;                /* atomic */
  struct keep *next;
};

/* 1: both ends are as they were. */
static int
keep_step (const struct keep *keep)
{
  struct pollfd waits[3] = {
    {keep->lifeline, POLLIN, 0}, {keep->stream, POLLIN, 0},
    {keep->stop, POLLIN, 0},
  };
  char bytes[512];

  if (poll (waits, 3, -1) < 0)
    return errno == EINTR;
  if (waits[2].revents)
    return 0;
  if (waits[0].revents && read (keep->lifeline, bytes, sizeof bytes) <= 0
      && errno != EAGAIN)
    return 0;
  return !waits[1].revents
         || recv (keep->stream, bytes, sizeof bytes, MSG_DONTWAIT) > 0
         || errno == EAGAIN;
}

static void *
keep_run (void *data)
{
  struct keep *keep = data;

  while (keep_step (keep))
    ;
  shutdown (keep->stream, SHUT_RDWR);
  coffer_fd_close (&keep->stream);
  coffer_fd_close (&keep->lifeline);
  __atomic_store_n (&keep->has_ended, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void
keep_join (struct keep *keep)
{
  pthread_join (keep->thread, NULL);
  free (keep);
}

/* Takes those out of the list that have ended, or all; the caller joins. */
static struct keep *
keeps_take (struct docker *docker, int all)
{
  struct keep *taken = NULL, **at = &docker->keeps;

  pthread_mutex_lock (&docker->lock);
  while (*at) {
    struct keep *keep = *at;

    if (!all && !__atomic_load_n (&keep->has_ended, __ATOMIC_ACQUIRE)) {
      at = &keep->next;
      continue;
    }
    *at = keep->next;
    keep->next = taken;
    taken = keep;
  }
  pthread_mutex_unlock (&docker->lock);
  return taken;
}

static void
keeps_join (struct keep *keeps)
{
  while (keeps) {
    struct keep *next = keeps->next;

    keep_join (keeps);
    keeps = next;
  }
}

void
docker_keeps_end (struct docker *docker)
{
  uint64_t one = 1;

  if (docker->stop >= 0 && write (docker->stop, &one, sizeof one) < 0)
    return;
  keeps_join (keeps_take (docker, 1));
}

int
docker_keep (struct docker *docker, int *stream, int lifeline)
{
  struct keep *keep = calloc (1, sizeof *keep);
  int failed;

  keeps_join (keeps_take (docker, 0));
  if (!keep)
    return -1;
  keep->stop = docker->stop;
  keep->lifeline = fcntl (lifeline, F_DUPFD_CLOEXEC, 3);
  keep->stream = coffer_fd_steal (stream);
  failed = keep->lifeline < 0 ? errno
           : pthread_create (&keep->thread, NULL, keep_run, keep);
  if (failed) {
    coffer_fd_close (&keep->lifeline);
    coffer_fd_close (&keep->stream);
    free (keep);
    errno = failed;
    return -1;
  }
  pthread_mutex_lock (&docker->lock);
  keep->next = docker->keeps;
  docker->keeps = keep;
  pthread_mutex_unlock (&docker->lock);
  return 0;
}
