/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors for `coffer call`: each is a pipe of ours, with a thread that
 * copies between it and the caller's file. */

#include <config.h>

#include "cli/call.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <coffer/fd.h>

void
call_streams_init (struct call_streams *streams)
{
  *streams = (struct call_streams){ .cancel_fd = -1, .any_fd = -1 };
}

/* "in" is read by the operation; what is called otherwise, it writes. */
static int
file_open (struct call_streams *streams, const char *name, const char *value,
           int reads)
{
  int fd, own = reads ? STDIN_FILENO
                      : strcmp (name, "err") ? STDOUT_FILENO : STDERR_FILENO;

  if (!strcmp (value, "-")) {
    fd = fcntl (own, F_DUPFD_CLOEXEC, 3);
    if (own == STDOUT_FILENO)
      streams->writes_stdout = 1;
    return fd;
  }
  return open (value,
               O_CLOEXEC | O_NOCTTY
                 | (reads ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC), 0666);
}

static int
cancel_add (struct call_streams *streams, int fd)
{
  struct epoll_event readable = { .events = EPOLLIN };

  return epoll_ctl (streams->any_fd, EPOLL_CTL_ADD, fd, &readable);
}

static int
cancel_make (struct call_streams *streams)
{
  if (streams->any_fd >= 0)
    return 0;
  streams->cancel_fd = eventfd (0, EFD_CLOEXEC);
  streams->any_fd = epoll_create1 (EPOLL_CLOEXEC);
  return streams->cancel_fd < 0 || streams->any_fd < 0
         ? -1 : cancel_add (streams, streams->cancel_fd);
}

int
call_streams_add (struct call_streams *streams, const char *name,
                  const char *value, int *index, struct error **err)
{
  int reads = !strcmp (name, "in"), ends[2];
  coffer_autoclose int file = -1;
  struct call_stream *stream;

  if (streams->fds.count == CONTRACT_MAX_FDS)
    return error_set (err, E_INVALID, 0, "%s: more than %d descriptors", name,
                      CONTRACT_MAX_FDS);
  file = file_open (streams, name, value, reads);
  if (file < 0)
    return error_set (err, E_IO, errno, "%s: open %s", name, value);
  if (cancel_make (streams) < 0 || pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "%s: a pipe", name);
  *index = streams->fds.count++;
  stream = &streams->stream[*index];
  streams->fds.fd[*index] = ends[reads ? 0 : 1];
  *stream = (struct call_stream){
    .file = coffer_fd_steal (&file), .ours = ends[reads ? 1 : 0],
    .reads = reads, .name = name, .streams = streams
  };
  return 0;
}

static void *
stream_copy (void *data)
{
  struct call_stream *stream = data;
  int from = stream->reads ? stream->file : stream->ours;
  int to = stream->reads ? stream->ours : stream->file;
  int any = stream->streams->any_fd;
  uint64_t copied;

  if (coffer_copy (from, to, 0, INT64_MAX, any, &copied) < 0
      && errno != ECANCELED && !(stream->reads && errno == EPIPE))
    stream->sys_errno = errno;
  /* The end of the input is the end of the operation's. */
  coffer_fd_close (&stream->ours);
  return NULL;
}

int
call_streams_start (struct call_streams *streams, int cancel_fd,
                    struct error **err)
{
  int i, r;

  if (streams->any_fd >= 0 && cancel_fd >= 0
      && cancel_add (streams, cancel_fd) < 0)
    return error_set (err, E_IO, errno, "watching for signals");

  for (i = 0; i < streams->fds.count; i++) {
    r = pthread_create (&streams->stream[i].thread, NULL, stream_copy,
                        &streams->stream[i]);
    if (r)
      return error_set (err, E_IO, r, "%s: a thread",
                        streams->stream[i].name);
    streams->stream[i].running = 1;
  }
  return 0;
}

static void
cancel (const struct call_streams *streams)
{
  const uint64_t one = 1;

  if (streams->cancel_fd >= 0)
    coffer_write_all (streams->cancel_fd, &one, sizeof one);
}

/* How many there were. */
static int
join (struct call_streams *streams, int reads)
{
  int i, count = 0;

  for (i = 0; i < streams->fds.count; i++) {
    struct call_stream *stream = &streams->stream[i];

    if (!stream->running || stream->reads != reads)
      continue;
    pthread_join (stream->thread, NULL);
    stream->running = 0;
    count++;
  }
  return count;
}

int
call_streams_finish (struct call_streams *streams, int failed,
                     struct error **err)
{
  int i;

  for (i = 0; i < streams->fds.count; i++)
    coffer_fd_close (&streams->fds.fd[i]);
  if (failed)
    cancel (streams);
  if (join (streams, 0))
    cancel (streams);
  join (streams, 1);
  for (i = 0; i < streams->fds.count; i++)
    if (streams->stream[i].sys_errno)
      return error_set (err, E_IO, streams->stream[i].sys_errno, "copying %s",
                        streams->stream[i].name);
  return 0;
}

void
call_streams_fini (struct call_streams *streams)
{
  int i;

  cancel (streams);
  join (streams, 0);
  join (streams, 1);
  for (i = 0; i < streams->fds.count; i++) {
    coffer_fd_close (&streams->fds.fd[i]);
    coffer_fd_close (&streams->stream[i].ours);
    coffer_fd_close (&streams->stream[i].file);
  }
  coffer_fd_close (&streams->any_fd);
  coffer_fd_close (&streams->cancel_fd);
}
