/* SPDX-License-Identifier: Apache-2.0 */
/* Speaking with an init: packets out, packets in, each wait with an end.  What
 * an init sends is checked like anything that comes out of a sandbox. */

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "linux.h"

/* A peer that takes nothing any more holds nobody up beyond the deadline. */
static ssize_t
packet_give (int fd, const struct msghdr *message,
             const struct coffer_call *call)
{
  ssize_t r;

  for (;;) {
    r = coffer_send_message (fd, message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (r >= 0 || errno != EAGAIN)
      return r;
    if (coffer_wait_fd (fd, POLLOUT, call->deadline_ns, call->cancel_fd)
             <= 0)
      return -1;
  }
}

int
link_send (struct link *link, const struct request *request,
           const struct coffer_call *call)
{
  struct init_header header
    = { (uint32_t) (sizeof header + request->size + request->more_size),
        INIT_MAGIC, request->type, ++link->serial, 0 };
  struct iovec iov[3]
    = { { &header, sizeof header },
        { (void *) request->body, request->size },
        { (void *) request->more, request->more_size } };
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE (INIT_FDS_MAX * sizeof (int))];
  } rights;
  struct msghdr message = { .msg_iov = iov, .msg_iovlen = 3 };
  ssize_t r;

  if (request->n_fds > 0) {
    memset (&rights, 0, sizeof rights);
    message.msg_control = &rights;
    message.msg_controllen = CMSG_SPACE (request->n_fds * sizeof (int));
    rights.header.cmsg_level = SOL_SOCKET;
    rights.header.cmsg_type = SCM_RIGHTS;
    rights.header.cmsg_len = CMSG_LEN (request->n_fds * sizeof (int));
    memcpy (CMSG_DATA (&rights.header), request->fds,
            request->n_fds * sizeof (int));
  }
  r = packet_give (link->fd, &message, call);
  if (r < 0 && errno == EPIPE)
    errno = ECONNRESET;
  return r < 0 ? -1 : 0;
}

/* At most one descriptor is ever expected: others are closed. */
static void
rights_take (struct msghdr *message, struct reply *reply)
{
  struct cmsghdr *at;
  size_t i, n;
  int fd;

  for (at = CMSG_FIRSTHDR (message); at; at = CMSG_NXTHDR (message, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
      continue;
    n = (at->cmsg_len - CMSG_LEN (0)) / sizeof (int);
    for (i = 0; i < n; i++) {
      memcpy (&fd, CMSG_DATA (at) + i * sizeof fd, sizeof fd);
      coffer_fd_close (&reply->fd);
      reply->fd = fd;
    }
  }
}

static int
packet_take (struct link *link, struct reply *reply)
{
  struct iovec iov = { reply->bytes, sizeof reply->bytes - 1 };
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE (4 * sizeof (int))];
  } rights;
  struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1,
                            .msg_control = &rights,
                            .msg_controllen = sizeof rights };
  int reset = 0;
  ssize_t r;

  /* What it said last can still be read when it ended without reading what
   * it was asked meanwhile: that is told first, and once. */
  do
    r = recvmsg (link->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  while (r < 0 && (errno == EINTR || (errno == ECONNRESET && !reset++)));
  if (r < 0)
    return -1;
  rights_take (&message, reply);
  if (r == 0) {
    errno = ECONNRESET;
    return -1;
  }
  reply->bytes[r] = '\0';
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0
      || (size_t) r < sizeof reply->header) {
    errno = EPROTO;
    return -1;
  }
  memcpy (&reply->header, reply->bytes, sizeof reply->header);
  if (reply->header.magic != INIT_MAGIC || reply->header.size != (size_t) r) {
    errno = EPROTO;
    return -1;
  }
  reply->body = reply->bytes + sizeof reply->header;
  reply->size = (size_t) r - sizeof reply->header;
  return 0;
}

/* An EXIT that nobody asked for now, but will. */
static void
exit_keep (struct link *link, const struct reply *reply)
{
  struct sandbox *sb = link->sb;

  if (link->shared && sb->told_serial != 0
      && reply->header.serial == sb->told_serial
      && reply->header.type == INIT_EXIT
      && reply_body (reply, &sb->told, sizeof sb->told) == 0)
    sb->has_told = 1;
}

int
link_receive (struct link *link, struct reply *reply, int any,
              int64_t deadline_ns, int cancel_fd)
{
  int r;

  reply->fd = -1;
  for (;;) {
    r = coffer_wait_fd (link->fd, POLLIN, deadline_ns, cancel_fd);
    if (r <= 0)
      return -1;
    if (packet_take (link, reply) == -1) {
      if (errno == EAGAIN)
        continue;
      coffer_fd_close (&reply->fd);
      return -1;
    }
    /* An answer that an earlier caller did not wait for is dropped. */
    if (any || reply->header.serial == link->serial)
      return 0;
    exit_keep (link, reply);
    coffer_fd_close (&reply->fd);
    /* However many there are: what is always ready is never waited for. */
    if (coffer_now_ns () >= deadline_ns) {
      errno = ETIMEDOUT;
      return -1;
    }
  }
}

int
reply_body (const struct reply *reply, void *out, size_t size)
{
  uint32_t sent;

  memset (out, 0, size);
  if (reply->size < sizeof sent)
    goto malformed;
  memcpy (&sent, reply->body, sizeof sent);
  if (sent < sizeof sent || sent > reply->size)
    goto malformed;
  memcpy (out, reply->body, sent < size ? sent : size);
  return 0;
malformed:
  errno = EPROTO;
  return -1;
}

const char *
reply_rest (const struct reply *reply, size_t *size)
{
  uint32_t sent = 0;

  memcpy (&sent, reply->body, sizeof sent);
  *size = reply->size - sent;
  return reply->body + sent;
}

int
link_ask (struct link *link, const struct request *request,
          struct reply *reply, const struct coffer_call *call)
{
  reply->fd = -1;
  return link_send (link, request, call) == -1
           ? -1 : link_answer (link, request, reply, call);
}

int
link_answer (struct link *link, const struct request *request,
             struct reply *reply, const struct coffer_call *call)
{
  if (link_receive (link, reply, 0, call->deadline_ns, call->cancel_fd) == -1)
    return -1;
  if (reply->header.error != 0 || !request->takes_fd)
    coffer_fd_close (&reply->fd);
  if (reply->header.error == 0)
    return 0;
  errno = reply->header.error;
  return -1;
}

int
link_told (struct link *link, struct init_exit *exit,
           const struct coffer_call *call)
{
  coffer_unfilled struct reply reply;

  while (!link->sb->has_told) {
    if (link_receive (link, &reply, 1, call->deadline_ns, call->cancel_fd)
          == -1)
      return -1;
    coffer_fd_close (&reply.fd);
    exit_keep (link, &reply);
    if (!link->sb->has_told && coffer_now_ns () >= call->deadline_ns) {
      errno = ETIMEDOUT;
      return -1;
    }
  }
  *exit = link->sb->told;
  return 0;
}

void
link_close (struct link *link)
{
  if (link->shared) {
    /* The next user goes on counting where this one ended. */
    link->sb->serial = link->serial;
    pthread_mutex_unlock (&link->sb->busy);
  } else
    coffer_fd_close (&link->fd);
  if (link->sb != NULL)
    sandbox_unref (link->self, link->sb);
  link->sb = NULL;
  link->fd = -1;
  link->shared = 0;
}
