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
#include <sys/stat.h>
#include <sys/wait.h>
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
  if (coffer_http_upgrade (docker->http, call, "tcp", &request, &reply, fd)
      == COFFER_OK)
    return COFFER_OK;
  return reply.status >= 300 ? docker_fail (call, &reply, "attach")
                             : coffer_http_fail (call, &reply);
}

/* "DEVICE INODE TARGET": what the host opened, which a path may no longer name
 * by the time that the engine follows it. */
static void
add_mounts (struct coffer_buffer *out, const struct coffer_sandbox_spec *spec)
{
  for (size_t i = 0; spec->mounts && spec->mounts[i]; i++) {
    const struct coffer_mount *mount = spec->mounts[i];
    struct stat st;

    if (fstat (mount->source_fd, &st) < 0)
      continue;
    coffer_buffer_printf (out, "%llu %llu %s", (unsigned long long) st.st_dev,
                          (unsigned long long) st.st_ino, mount->target);
    coffer_buffer_add (out, "", 1);
  }
}

static int
add_told (struct coffer_buffer *out, const struct coffer_sandbox_spec *spec,
          int is_kernel_shared, int restores)
{
  const char *workdir = spec->workdir ? spec->workdir : "";
  struct inside_told told = {.restores = (uint32_t) restores};
  size_t size;

  coffer_buffer_add (out, &told, sizeof told);
  if (is_kernel_shared)
    add_mounts (out, spec);
  size = out->size;
  coffer_buffer_add (out, workdir, strlen (workdir) + 1);
  coffer_buffer_add_vector (out, spec->env);
  if (out->failed || size - sizeof told > INSIDE_TOLD_MOST
      || out->size - size > INSIDE_TOLD_MOST) {
    errno = out->failed ? ENOMEM : E2BIG;
    return -1;
  }
  told.mounts_size = (uint32_t) (size - sizeof told);
  told.given_size = (uint32_t) (out->size - size);
  memcpy (out->data, &told, sizeof told);
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

/* ---- the answer --------------------------------------------------------- */

/* The next bytes of the stream, without the eight that the engine puts before
 * each piece: 1, or 0 at its end, or -1. */
static int
read_piece (struct coffer_call *call, int fd, struct answer *answer)
{
  unsigned char bytes[512];
  ssize_t n;

  if (coffer_wait_fd (fd, POLLIN, call->deadline_ns, call->cancel_fd) <= 0)
    return -1;
  n = recv (fd, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n <= 0)
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 1 : n < 0 ? -1 : 0;
  for (ssize_t i = 0; i < n; i++)
    if (answer->head < 8) {
      answer->left = answer->left << 8 | bytes[i];
      answer->head++;
    } else {
      if (answer->size + 1 < sizeof answer->text)
        answer->text[answer->size++] = (char) bytes[i];
      if (--answer->left == 0)
        answer->head = 0;
    }
  answer->text[answer->size] = '\0';
  return 1;
}

/* The last line, once it is whole: one of the four words that end it. */
static const char *
last_line (struct answer *answer)
{
  static const char *const words[] = {"ok", "waits", "moved ", "ended ",
                                      "failed "};
  char *at = answer->text, *end;

  for (; (end = strchr (at, '\n')) != NULL; at = end + 1)
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
      if (strncmp (at, words[i], strlen (words[i])) == 0) {
        *end = '\0';
        return at;
      }
  return NULL;
}

static int32_t
fail_hold (struct coffer_call *call, const char *line)
{
  coffer_autobuffer struct coffer_buffer text = {0};
  int status;

  if (!line)
    return coffer_fail (call, COFFER_UNAVAILABLE, "the sandbox's first process "
                        "ended at once: the image may be of another "
                        "architecture, or the runtime refuses the program");
  if (strncmp (line, "moved ", 6) == 0) {
    coffer_buffer_add_string (&text, "mounts: the engine shows something else "
                              "than was opened at ");
    coffer_buffer_add_escaped (&text, line + 6, strlen (line + 6));
    return coffer_fail (call, COFFER_DENIED,
                        text.failed ? "a mount was moved" : text.data);
  }
  if (strncmp (line, "ended ", 6) != 0)
    return coffer_fail (call, COFFER_IO, "the sandbox's first process could "
                        "not begin");
  status = atoi (line + 6);
  coffer_buffer_printf (&text, "the entrypoint ended at once, %s %d: configure "
                        "one that goes on, or none", WIFSIGNALED (status)
                        ? "by signal" : "with", WIFSIGNALED (status)
                        ? WTERMSIG (status) : WEXITSTATUS (status));
  return coffer_fail (call, COFFER_INVALID,
                      text.failed ? "the entrypoint ended" : text.data);
}

/* Until it has said how it went: OK, or that it waits for the files. */
static int32_t
hear (struct coffer_call *call, int fd, struct answer *answer,
      const char *wanted)
{
  const char *line = NULL;
  int result = 1;

  while (result > 0 && !line) {
    result = read_piece (call, fd, answer);
    line = last_line (answer);
  }
  if (!line && result < 0 && errno != EPIPE && errno != ECONNRESET)
    return coffer_fail_errno (call, errno, "the sandbox's first process");
  return line && strcmp (line, wanted) == 0 ? COFFER_OK
                                            : fail_hold (call, line);
}

int32_t
docker_tell (struct coffer_call *call, int is_kernel_shared, int fd,
             const struct coffer_sandbox_spec *spec, int restores,
             struct answer *answer)
{
  coffer_autobuffer struct coffer_buffer told = {0};
  int result;

  memset (answer, 0, sizeof *answer);
  result = add_told (&told, spec, is_kernel_shared, restores) < 0
           ? -1 : send_all (call, fd, told.data, told.size);
  if (told.data)
    explicit_bzero (told.data, told.capacity);
  if (result < 0 && errno != EPIPE && errno != ECONNRESET)
    return coffer_fail_errno (call, errno, "the sandbox's first process");
  return result < 0 ? fail_hold (call, NULL)
                    : hear (call, fd, answer, restores ? "waits" : "ok");
}

int32_t
docker_tell_restored (struct coffer_call *call, int fd, struct answer *answer)
{
  struct answer rest = {.head = answer->head, .left = answer->left};

  if (send_all (call, fd, "r", 1) < 0)
    return coffer_fail_errno (call, errno, "the sandbox's first process");
  return hear (call, fd, &rest, "ok");
}

/* ---- lifelines ---------------------------------------------------------- */

#define STACK_BYTES (128 << 10)

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
  pthread_attr_t small;
  int failed;

  keeps_join (keeps_take (docker, 0));
  if (!keep)
    return -1;
  keep->stop = docker->stop;
  keep->lifeline = fcntl (lifeline, F_DUPFD_CLOEXEC, 3);
  keep->stream = coffer_fd_steal (stream);
  pthread_attr_init (&small);
  pthread_attr_setstacksize (&small, STACK_BYTES);
  failed = keep->lifeline < 0 ? errno
           : pthread_create (&keep->thread, &small, keep_run, keep);
  pthread_attr_destroy (&small);
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
