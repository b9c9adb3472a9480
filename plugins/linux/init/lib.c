/* SPDX-License-Identifier: Apache-2.0 */
/* What a libc would give: memory, strings, packets. */

#include <stdarg.h>

#include "init.h"

#define SOL_SOCKET_ 1
#define SCM_RIGHTS_ 1
#define MSG_NOSIGNAL_ 0x4000
#define MSG_DONTWAIT_ 0x40
#define MSG_CMSG_CLOEXEC_ 0x40000000
#define MSG_TRUNC_ 0x20
#define MSG_CTRUNC_ 0x8

void *
memcpy (void *to, const void *from, size_t size)
{
  return memmove (to, from, size);
}

void *
memmove (void *to, const void *from, size_t size)
{
  volatile unsigned char *out = to;
  const unsigned char *in = from;
  size_t i;

  if (to <= from) {
    for (i = 0; i < size; i++)
      out[i] = in[i];
  } else {
    for (i = size; i > 0; i--)
      out[i - 1] = in[i - 1];
  }
  return to;
}

void *
memset (void *to, int c, size_t size)
{
  volatile unsigned char *out = to;
  size_t i;

  for (i = 0; i < size; i++)
    out[i] = (unsigned char) c;
  return to;
}

int
memcmp (const void *a, const void *b, size_t size)
{
  const unsigned char *x = a, *y = b;
  size_t i;

  for (i = 0; i < size; i++)
    if (x[i] != y[i])
      return x[i] < y[i] ? -1 : 1;
  return 0;
}

size_t
strlen (const char *s)
{
  const volatile char *end = s;

  while (*end != '\0')
    end++;
  return (size_t) ((const char *) end - s);
}

int
text_equal (const char *a, const char *b)
{
  size_t size = strlen (a);

  return size == strlen (b) && memcmp (a, b, size) == 0;
}

int
text_starts (const char *s, const char *prefix)
{
  size_t i;

  for (i = 0; prefix[i] != '\0'; i++)
    if (s[i] != prefix[i])
      return 0;
  return 1;
}

char *
text_join (char *out, size_t size, ...)
{
  const char *part;
  size_t at = 0;
  va_list ap;

  va_start (ap, size);
  while ((part = va_arg (ap, const char *)) != NULL)
    while (*part != '\0' && at + 1 < size)
      out[at++] = *part++;
  va_end (ap);
  out[at] = '\0';
  return out;
}

char *
text_number (char out[21], uint64_t value)
{
  char digits[20];
  size_t n = 0, i;

  do {
    digits[n++] = (char) ('0' + value % 10);
    value /= 10;
  } while (value != 0);
  for (i = 0; i < n; i++)
    out[i] = digits[n - 1 - i];
  out[n] = '\0';
  return out;
}

void
fd_close (int fd)
{
  if (fd >= 0)
    SYS (close, fd);
}

int64_t
clock_ns (int clock)
{
  struct sys_timespec now = { 0, 0 };

  SYS (clock_gettime, clock, &now);
  return now.s * 1000000000 + now.ns;
}

void
nap (void)
{
  const struct sys_timespec moment = { 0, 10000000 };

  SYS (nanosleep, &moment, 0);
}

void
poll_or_end (struct sys_pollfd *polls, size_t n,
             const struct sys_timespec *timeout)
{
  struct sys_timespec left = { 0, 0 };
  size_t i;
  long r;

  if (timeout != 0)
    left = *timeout;
  for (i = 0; i < n; i++)
    polls[i].revents = 0;
  r = SYS (ppoll, polls, n, timeout != 0 ? &left : 0, 0, 8);
  if (r == -ENOMEM_ || r == -EAGAIN_)
    nap ();
  else if (r < 0 && r != -EINTR_)
    init_exit_now (1);
  for (i = 0; i < n; i++) {
    if (r > 0 && (polls[i].revents & 0x20 /* POLLNVAL */))
      init_exit_now (1);
    if (r < 0)
      polls[i].revents = 0;
  }
}

void
init_exit_now (int code)
{
  for (;;)
    SYS (exit_group, code);
}

/* ---- packets ------------------------------------------------------------ */

static union {
  struct init_header header;
  char bytes[INIT_MESSAGE_MAX];
} incoming;

static union {
  struct sys_cmsghdr header;
  char bytes[sizeof (struct sys_cmsghdr) + INIT_FDS_MAX * sizeof (int) + 8];
} control;

static void
fds_collect (struct packet *packet, const struct sys_msghdr *message)
{
  size_t i, n;

  packet->n_fds = 0;
  if (message->control_size < sizeof control.header
      || control.header.level != SOL_SOCKET_
      || control.header.type != SCM_RIGHTS_)
    return;
  n = (control.header.size - sizeof control.header) / sizeof (int);
  for (i = 0; i < n && i < INIT_FDS_MAX; i++)
    memcpy (&packet->fds[i],
            control.bytes + sizeof control.header + i * sizeof (int),
            sizeof (int));
  packet->n_fds = i;
}

void
packet_close_fds (struct packet *packet)
{
  size_t i;

  for (i = 0; i < packet->n_fds; i++)
    fd_close (packet->fds[i]);
  packet->n_fds = 0;
}

int
packet_receive (int fd, int wait, struct packet *packet)
{
  struct sys_iovec iov = { incoming.bytes, sizeof incoming.bytes - 1 };
  struct sys_msghdr message = { .iov = &iov, .iov_count = 1,
                                .control = control.bytes,
                                .control_size = sizeof control.bytes };
  long r;

  do
    r = SYS (recvmsg, fd, &message,
             MSG_CMSG_CLOEXEC_ | (wait ? 0 : MSG_DONTWAIT_));
  while (r == -EINTR_);
  if (r < 0)
    return (int) r;
  fds_collect (packet, &message);
  if (r == 0) {
    packet_close_fds (packet);
    return 0;
  }
  packet->header = &incoming.header;
  packet->size = (size_t) r;
  incoming.bytes[r] = '\0';
  if ((message.flags & (MSG_TRUNC_ | MSG_CTRUNC_)) != 0
      || packet->size < sizeof incoming.header
      || incoming.header.size != packet->size
      || incoming.header.magic != INIT_MAGIC) {
    packet_close_fds (packet);
    return -EPROTO_;
  }
  return 1;
}

/* Into memory of the caller's: the plan is still being read. */
long
names_receive (int fd, char *out, size_t size)
{
  struct {
    struct init_header header;
    struct init_names body;
  } head;
  struct sys_iovec iov[2] = { { &head, sizeof head }, { out, size } };
  struct sys_msghdr message = { .iov = iov, .iov_count = 2 };
  long r;

  do
    r = SYS (recvmsg, fd, &message, 0);
  while (r == -EINTR_);
  if (r < 0)
    return r;
  if (r < (long) sizeof head || (message.flags & MSG_TRUNC_) != 0
      || head.header.magic != INIT_MAGIC || head.header.type != INIT_NAMES
      || head.header.size != (uint32_t) r || head.body.size != sizeof head.body)
    return -EPROTO_;
  return r - (long) sizeof head;
}

const void *
packet_body (const struct packet *packet, void *copy, size_t need)
{
  const char *body = (const char *) packet->header + sizeof *packet->header;
  size_t have = packet->size - sizeof *packet->header;
  uint32_t size;

  memset (copy, 0, need);
  if (have < sizeof size)
    return NULL;
  memcpy (&size, body, sizeof size);
  if (size < sizeof size || size > have)
    return NULL;
  memcpy (copy, body, size < need ? size : need);
  return body + size;
}

const char *
packet_string (const struct packet *packet, uint32_t offset)
{
  const char *bytes = (const char *) packet->header;

  /* Beyond the packet there is always a NUL (packet_receive). */
  if (offset >= packet->size
      || offset + strlen (bytes + offset) >= packet->size)
    return NULL;
  return bytes + offset;
}

int
packet_send (int fd, uint16_t type, uint32_t serial, int error,
             const void *body, size_t size, const void *more,
             size_t more_size, int attach)
{
  struct init_header header
    = { (uint32_t) (sizeof header + size + more_size), INIT_MAGIC, type,
        serial, error };
  struct sys_iovec iov[3] = { { &header, sizeof header },
                              { (void *) body, size },
                              { (void *) more, more_size } };
  union {
    struct sys_cmsghdr header;
    char bytes[sizeof (struct sys_cmsghdr) + 8];
  } rights;
  struct sys_msghdr message = { .iov = iov, .iov_count = 3 };
  long r;

  if (attach >= 0) {
    memset (&rights, 0, sizeof rights);
    rights.header.size = sizeof rights.header + sizeof (int);
    rights.header.level = SOL_SOCKET_;
    rights.header.type = SCM_RIGHTS_;
    memcpy (rights.bytes + sizeof rights.header, &attach, sizeof attach);
    message.control = &rights;
    message.control_size = sizeof rights;
  }
  do
    r = SYS (sendmsg, fd, &message, MSG_NOSIGNAL_ | MSG_DONTWAIT_);
  while (r == -EINTR_);
  /* A peer that is not told would wait for its deadline: what ends its
   * connection, it notices.  The kernel charges a packet to this sandbox's
   * memory, so that this is no accident. */
  if (r < 0)
    SYS (shutdown, fd, 2);  /* both ways */
  return r < 0 ? (int) r : 0;
}
