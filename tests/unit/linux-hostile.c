/* SPDX-License-Identifier: Apache-2.0 */
/* An init as a payload would have it that took over the first process of a
 * sandbox.  It says READY without having made anything and then does to the
 * host what the variable HOSTILE of the plan names:
 *
 *   flood    answers everything with packets that nobody asked for
 *   list     lists commands without end
 *   deaf     reads nothing any more
 *   root     hands out a folder that is not its own as its root
 *   pipe     hands out a pipe as kept output, and boasts of its size
 *   litter   sends a descriptor with each answer
 *   boast    hands out a file as kept output, and boasts of its size
 *   listen   lets a process of no importance listen in its place
 *   lie      has not even limited its processes, which all others have
 *   few      has limited them to what a test asks for, and nothing else */

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol.h"

static char packet[INIT_MESSAGE_MAX];
static char mode[32];
static int listener = -1;

static int
packet_give (int fd, uint16_t type, uint32_t serial, const void *body,
             size_t size, int attach)
{
  struct init_header header
    = { (uint32_t) (sizeof header + size), INIT_MAGIC, type, serial, 0 };
  struct iovec iov[2] = { { &header, sizeof header },
                          { (void *) (uintptr_t) body, size } };
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE (sizeof (int))];
  } rights = { .header = { CMSG_LEN (sizeof (int)), SOL_SOCKET,
                           SCM_RIGHTS } };
  struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };

  if (attach >= 0) {
    memcpy (CMSG_DATA (&rights.header), &attach, sizeof attach);
    message.msg_control = &rights;
    message.msg_controllen = sizeof rights;
  }
  return sendmsg (fd, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* The plan, with its listener: the lifeline, if any, comes before. */
static int
plan_take (int fd)
{
  static const char name[] = "HOSTILE=";
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE (INIT_FDS_MAX * sizeof (int))];
  } rights;
  struct iovec iov = { packet, sizeof packet - 1 };
  struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1,
                            .msg_control = &rights,
                            .msg_controllen = sizeof rights };
  ssize_t n = recvmsg (fd, &message, 0);
  const char *at;

  if (n <= 0)
    return -1;
  at = memmem (packet, (size_t) n, name, sizeof name - 1);
  if (at != NULL)
    strncpy (mode, at + sizeof name - 1, sizeof mode - 1);
  if (message.msg_controllen >= CMSG_LEN (sizeof (int)))
    memcpy (&listener, CMSG_DATA (&rights.header), sizeof listener);
  return 0;
}

static void
spool_answer (int fd, uint32_t serial)
{
  struct init_spooled spooled = { sizeof spooled, 0, { 0, 0 }, { 0, 0 } };
  int ends[2] = { -1, -1 };

  if (strcmp (mode, "pipe") == 0 && pipe (ends) == 0)
    spooled.bytes[0] = 4096;
  else {
    ends[0] = memfd_create ("output", 0);
    if (ftruncate (ends[0], (off_t) 1 << 42) == 0)
      spooled.bytes[0] = (uint64_t) 1 << 42;
  }
  packet_give (fd, INIT_SPOOLED, serial, &spooled, sizeof spooled, ends[0]);
}

static void
request_answer (int fd, const struct init_header *request)
{
  struct init_exit command = { .size = sizeof command, .exec = 1,
                               .flags = EXIT_RUNNING };
  struct init_state state = { .size = sizeof state };
  const uint32_t serial = request->serial;
  int litter = -1;

  if (strcmp (mode, "litter") == 0)
    litter = open ("/dev/null", O_RDONLY);
  if (strcmp (mode, "flood") == 0)
    while (packet_give (fd, INIT_DONE, serial + 1000, NULL, 0, -1) == 0)
      ;
  else if (request->type == INIT_LIST)
    while (packet_give (fd, INIT_COMMAND, serial, &command, sizeof command,
                        -1) == 0)
      ;
  else if (request->type == INIT_ROOT)
    packet_give (fd, INIT_DONE, serial, NULL, 0,
                 open ("/usr", O_PATH | O_DIRECTORY));
  else if (request->type == INIT_SPOOL)
    spool_answer (fd, serial);
  else if (request->type == INIT_INFO)
    packet_give (fd, INIT_STATE, serial, &state, sizeof state, litter);
  else
    packet_give (fd, INIT_DONE, serial, NULL, 0, litter);
  if (litter >= 0)
    close (litter);
}

static void
serve (int fd)
{
  struct init_header header;
  ssize_t n;

  while ((n = recv (fd, packet, sizeof packet, 0)) > 0) {
    memcpy (&header, packet, sizeof header);
    request_answer (fd, &header);
  }
}

int
main (void)
{
  const struct init_hello hello = { sizeof hello, INIT_PROTOCOL, 0 };
  const struct init_ready ready = { .size = sizeof ready };
  const struct rlimit limit = { 1024, 1024 }, few = { 24, 24 };
  int fd;

  signal (SIGPIPE, SIG_IGN);
  packet_give (0, INIT_HELLO, 0, &hello, sizeof hello, -1);
  /* What to prepare comes before, and what of /etc. */
  if (recv (0, packet, sizeof packet, 0) <= 0
      || recv (0, packet, sizeof packet, 0) <= 0 || plan_take (0) == -1)
    return 1;
  if (strcmp (mode, "lie") != 0)
    setrlimit (RLIMIT_NPROC, strcmp (mode, "few") == 0 ? &few : &limit);
  if (strcmp (mode, "listen") == 0 && fork () == 0) {
    listen (listener, 4);
    packet_give (0, INIT_READY, 1, &ready, sizeof ready, -1);
    for (;;)
      pause ();
  }
  if (strcmp (mode, "listen") == 0) {
    /* Its end would tell that all of this lives on. */
    for (;;)
      pause ();
  }
  listen (listener, 4);
  packet_give (0, INIT_READY, 1, &ready, sizeof ready, -1);
  if (strcmp (mode, "deaf") == 0)
    for (;;)
      pause ();
  serve (0);
  while ((fd = accept (listener, NULL, NULL)) >= 0) {
    packet_give (fd, INIT_HELLO, 0, &hello, sizeof hello, -1);
    serve (fd);
    close (fd);
  }
  return 0;
}
