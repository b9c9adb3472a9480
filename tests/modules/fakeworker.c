/* SPDX-License-Identifier: Apache-2.0 */
/* A coffer-worker that keeps to nothing: what it does is the `mode` of the
 * configuration in its start frame.  No module is loaded. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHANNEL 3

static char frame[65536];

static void
put (const char *text)
{
  if (send (CHANNEL, text, strlen (text), MSG_NOSIGNAL) < 0)
    _exit (0);
}

/* With descriptors beside it. */
static void
put_with (const char *text, const int *fds, int n)
{
  char control[CMSG_SPACE (sizeof (int) * 64)];
  struct iovec iov = { (void *) text, strlen (text) };
  struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = CMSG_SPACE (sizeof (int) * n) };
  struct cmsghdr *cmsg = CMSG_FIRSTHDR (&header);

  memset (control, 0, sizeof control);
  cmsg->cmsg_level = SOL_SOCKET;
  cmsg->cmsg_type = SCM_RIGHTS;
  cmsg->cmsg_len = CMSG_LEN (sizeof (int) * n);
  memcpy (CMSG_DATA (cmsg), fds, sizeof (int) * n);
  if (sendmsg (CHANNEL, &header, MSG_NOSIGNAL) < 0)
    _exit (0);
}

/* The number behind "call": in the frame that came last. */
static long
call_id (void)
{
  const char *at = strstr (frame, "\"call\":");
  const char *next;

  if (!at)
    return -1;
  /* "kind":"call" comes first. */
  next = strstr (at + 1, "\"call\":");
  return strtol ((next ? next : at) + 7, NULL, 10);
}

static void
get (void)
{
  ssize_t n = recv (CHANNEL, frame, sizeof frame - 1, 0);

  if (n <= 0)
    _exit (0);
  frame[n] = '\0';
}

#define answer(fmt)                                                           \
  do {                                                                        \
    char text_[1024];                                                         \
    snprintf (text_, sizeof text_, fmt, call_id ());                          \
    put (text_);                                                              \
  } while (0)

#define DONE                                                                  \
  "{\"kind\":\"done\",\"call\":%ld,\"code\":0,\"retryable\":3}"

static void
payload (int sealed, size_t claim)
{
  static char blanks[100000];
  int fd = memfd_create ("fake", MFD_ALLOW_SEALING);
  char text[64];

  memset (blanks, ' ', sizeof blanks);
  memcpy (blanks, "{\"kind\":\"log\"}", 14);
  if (write (fd, blanks, sizeof blanks) < 0)
    _exit (9);
  if (sealed)
    fcntl (fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW
                            | F_SEAL_WRITE);
  snprintf (text, sizeof text, "{\"payload\":%zu}", claim);
  put_with (text, &fd, 1);
}

static void
misbehave (const char *mode)
{
  static char large[66000];
  int fds[64] = { 0 };

  if (strcmp (mode, "early") == 0) {
    answer (DONE);
    answer (DONE);
  } else if (strcmp (mode, "other") == 0) {
    put ("{\"kind\":\"done\",\"call\":12345,\"code\":0}");
  } else if (strcmp (mode, "negative") == 0) {
    put ("{\"kind\":\"done\",\"call\":-1,\"code\":0}");
  } else if (strcmp (mode, "truncated") == 0) {
    put ("{\"kind\":\"done\",\"call\":");
  } else if (strcmp (mode, "oversized") == 0) {
    memset (large, ' ', sizeof large - 1);
    memcpy (large, "{}", 2);
    put (large);
  } else if (strcmp (mode, "storm") == 0) {
    put_with ("{\"kind\":\"log\",\"call\":1}", fds, 60);
  } else if (strcmp (mode, "unsealed") == 0) {
    payload (0, 100000);
  } else if (strcmp (mode, "short") == 0) {
    payload (1, 100001);
  } else if (strcmp (mode, "huge") == 0) {
    payload (1, (size_t) 1 << 40);
  } else if (strcmp (mode, "endless") == 0) {
    for (;;)
      answer ("{\"kind\":\"log\",\"call\":%ld,\"level\":3,\"text\":\"x\"}");
  } else if (strcmp (mode, "progress") == 0) {
    answer ("{\"kind\":\"progress\",\"call\":%ld,\"done\":-5,\"total\":{},"
            "\"what\":7}");
    answer (DONE);
  } else if (strcmp (mode, "no_value") == 0) {
    answer ("{\"kind\":\"emit\",\"call\":%ld,\"record\":4}");
    answer (DONE);
  } else if (strcmp (mode, "no_record") == 0) {
    answer ("{\"kind\":\"emit\",\"call\":%ld,\"value\":{}}");
    answer (DONE);
  } else if (strcmp (mode, "codes") == 0) {
    answer ("{\"kind\":\"done\",\"call\":%ld,\"code\":99999999999999}");
  } else if (strcmp (mode, "silent") == 0) {
    for (;;)
      pause ();
  }
}

int
main (void)
{
  char mode[64] = "";
  const char *at;

  get ();
  at = strstr (frame, "mode=");
  if (at)
    sscanf (at, "mode=%63[a-z_]", mode);
  if (strcmp (mode, "never_ready") == 0)
    for (;;)
      get ();
  if (strcmp (mode, "not_ready") == 0)
    put ("{\"kind\":\"hello\"}");
  else if (strcmp (mode, "bad_ready") == 0)
    put ("ready");
  else if (strcmp (mode, "refused") == 0)
    put ("{\"kind\":\"refused\",\"code\":123456,\"message\":{\"b64\":\"//4=\"}}");
  else
    put ("{\"kind\":\"ready\"}");
  get ();
  answer (DONE);                /* open */
  for (;;) {
    get ();
    if (strstr (frame, "\"op\":\"close\""))
      answer (DONE);
    else
      misbehave (mode);
  }
}
