/* SPDX-License-Identifier: Apache-2.0 */
/* What comes to be written, which must be whole.
 *
 * Standard input comes in pieces with a size each, the last of which is 0.  An end
 * without that is no end: what was begun is given up, and the old stays. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "work.h"

#define DRAIN_SECONDS 5

struct feed {
  int out, cancel;
};

static void *
feed_main (void *data)
{
  struct feed *feed = data;
  static char bytes[WIRE_PIECE_MAX];
  uint32_t size;

  for (;;) {
    if (coffer_read_all (0, &size, sizeof size) != sizeof size
        || size > sizeof bytes
        || coffer_read_all (0, bytes, size) != (ssize_t) size)
      break;
    if (size == 0) {
      coffer_fd_close (&feed->out);
      return NULL;
    }
    if (coffer_write_all (feed->out, bytes, size) < 0)
      continue;                 /* it has failed, which is said elsewhere */
  }
  coffer_fd_close (&feed->cancel);
  return NULL;
}

/* An engine that cannot give a command its input any more gives up what the command
 * has said (Podman does): so the rest is read, until who was answered is gone. */
static void
drain (pthread_t thread, int unread)
{
  struct timespec until;

  close (unread);
  clock_gettime (CLOCK_REALTIME, &until);
  until.tv_sec += DRAIN_SECONDS;
  pthread_timedjoin_np (thread, NULL, &until);
}

int32_t
fed (struct coffer_call *call, const char *what,
     int32_t (*take) (struct coffer_call *call, int in, void *data),
     void *data)
{
  static struct feed feed;      /* the thread may outlive this function */
  int pieces[2], cancel[2];
  pthread_t thread;
  int32_t code;

  if (pipe2 (pieces, O_CLOEXEC) < 0 || pipe2 (cancel, O_CLOEXEC) < 0)
    return coffer_fail_errno (call, errno, what);
  feed = (struct feed) {pieces[1], cancel[1]};
  if (pthread_create (&thread, NULL, feed_main, &feed) != 0)
    return coffer_fail_errno (call, EAGAIN, what);
  call->cancel_fd = cancel[0];
  code = take (call, pieces[0], data);
  if (code != COFFER_OK)
    drain (thread, pieces[0]);
  return code;
}
