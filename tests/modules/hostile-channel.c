/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a hostile module that break the rules of its channel to the host. */

#define _GNU_SOURCE

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hostile.h"

static int32_t
do_garbage (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  if (send (CHANNEL, arg, strlen (arg), 0) < 0)
    return COFFER_IO;
  wait_call (call, 5000);
  return COFFER_OK;
}

static int32_t
do_oversized (struct coffer_call *call, struct hostile *self,
              const char *arg)
{
  static char bytes[100000];

  (void) self;
  (void) arg;
  memset (bytes, ' ', sizeof bytes);
  memcpy (bytes, "{\"kind\":\"log\"}", 14);
  if (send (CHANNEL, bytes, sizeof bytes, 0) < 0)
    return COFFER_IO;
  wait_call (call, 5000);
  return COFFER_OK;
}

/* ARG descriptors beside one frame. */
static int32_t
do_fd_storm (struct coffer_call *call, struct hostile *self, const char *arg)
{
  static const char text[] = "{\"kind\":\"log\",\"call\":1}";
  struct iovec iov = { (void *) text, sizeof text - 1 };
  char control[CMSG_SPACE (sizeof (int) * 200)];
  int i, n = atoi (arg), fds[200];
  struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = CMSG_SPACE (sizeof (int) * n) };
  struct cmsghdr *cmsg = CMSG_FIRSTHDR (&header);

  (void) self;
  for (i = 0; i < n; i++)
    fds[i] = 0;
  cmsg->cmsg_level = SOL_SOCKET;
  cmsg->cmsg_type = SCM_RIGHTS;
  cmsg->cmsg_len = CMSG_LEN (sizeof (int) * n);
  memcpy (CMSG_DATA (cmsg), fds, sizeof (int) * n);
  /* Those of all of a user's processes are counted together, and others of them
   * send descriptors too. */
  for (i = 0; sendmsg (CHANNEL, &header, 0) < 0; i++) {
    if (errno != ETOOMANYREFS || i == 1000)
      return COFFER_IO;
    wait_call (call, 5);
  }
  wait_call (call, 5000);
  return COFFER_OK;
}

static int32_t
do_close_fds (struct coffer_call *call, struct hostile *self,
              const char *arg)
{
  (void) self;
  (void) arg;
  syscall (SYS_close_range, 0, ~0U, 0);
  wait_call (call, 5000);
  for (;;)
    pause ();
  return COFFER_OK;
}

static int32_t
do_close_output (struct coffer_call *call, struct hostile *self,
                 const char *arg)
{
  (void) self;
  (void) arg;
  close (1);
  close (2);
  wait_call (call, 300);
  return say (call, "close_output", "done", "");
}

/* Never reads what is sent to it: there is nobody to. */
static int32_t
do_stop_all (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) call;
  (void) self;
  (void) arg;
  kill (0, SIGSTOP);
  for (;;)
    pause ();
  return COFFER_OK;
}

const struct word channel_words[] = {
  { "garbage", do_garbage }, { "oversized", do_oversized },
  { "fd_storm", do_fd_storm }, { "close_fds", do_close_fds },
  { "close_output", do_close_output }, { "stop_all", do_stop_all },
  { NULL, NULL }
};
