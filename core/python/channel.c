/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that talks with the runner while another one waits for its end:
 * neither side ever waits for the other to read. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "python/channel.h"

#define STACK_SIZE (256 << 10)
#define PIECE (64 << 10)

/* 1: there is more to send. */
static int
send_more (struct channel *channel)
{
  const struct coffer_buffer *request = &channel->request;
  ssize_t n;

  while (channel->sent < request->size) {
    n = send (channel->ours, request->data + channel->sent,
              request->size - channel->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      return 1;
    if (n < 0)                  /* nobody reads any more */
      break;
    channel->sent += (size_t) n;
  }
  channel->sent = request->size;
  shutdown (channel->ours, SHUT_WR);
  return 0;
}

/* 0: the end, of them or of what is taken from them. */
static int
receive_more (struct channel *channel, char *piece)
{
  ssize_t n = recv (channel->ours, piece, PIECE, MSG_DONTWAIT);

  if (n < 0)
    return errno == EAGAIN || errno == EINTR;
  if (n == 0)
    return 0;
  if (frames_add (&channel->frames, piece, (size_t) n) == 0)
    return 1;
  /* Who writes on is told so by EPIPE, and does not wait for a reader. */
  shutdown (channel->ours, SHUT_RDWR);
  return 0;
}

static void *
channel_run (void *data)
{
  struct channel *channel = data;
  int sending = send_more (channel);
  struct pollfd poll_fd = { .fd = channel->ours };
  char piece[PIECE];

  for (;;) {
    poll_fd.events = (short) (POLLIN | (sending ? POLLOUT : 0));
    if (poll (&poll_fd, 1, -1) < 0) {
      if (errno != EINTR)
        break;
      continue;
    }
    if (sending && poll_fd.revents & (POLLOUT | POLLERR | POLLHUP))
      sending = send_more (channel);
    if (poll_fd.revents & (POLLIN | POLLERR | POLLHUP)
        && !receive_more (channel, piece))
      break;
  }
  return NULL;
}

/* Signals are for the thread that waits. */
static int
thread_start (struct channel *channel)
{
  pthread_attr_t attr;
  sigset_t all, old;
  int code = pthread_attr_init (&attr);

  if (code != 0)
    return code;
  sigfillset (&all);
  pthread_attr_setstacksize (&attr, STACK_SIZE);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  code = pthread_create (&channel->thread, &attr, channel_run, channel);
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  pthread_attr_destroy (&attr);
  channel->started = code == 0;
  return code;
}

int
channel_begin (struct channel *channel, struct error **err)
{
  int ends[2], code;

  if (channel->request.failed)
    return error_set (err, E_NO_MEMORY, 0, "the request to the runner");
  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
    return error_set (err, E_IO, errno, "a channel to the runner");
  channel->ours = ends[0];
  channel->theirs = ends[1];
  code = thread_start (channel);
  return code ? error_set (err, E_INTERNAL, code, "a thread") : 0;
}

/* What was sent before is still read; nothing comes after. */
void
channel_end (struct channel *channel)
{
  coffer_fd_close (&channel->theirs);
  if (!channel->started)
    return;
  shutdown (channel->ours, SHUT_RDWR);
  pthread_join (channel->thread, NULL);
  channel->started = 0;
}

void
channel_reset (struct channel *channel)
{
  channel_end (channel);
  coffer_fd_close (&channel->ours);
  frames_fini (&channel->frames);
  memset (&channel->frames, 0, sizeof channel->frames);
  channel->sent = 0;
}

void
channel_fini (struct channel *channel)
{
  channel_end (channel);
  coffer_fd_close (&channel->ours);
  coffer_buffer_free (&channel->request);
  frames_fini (&channel->frames);
}
