/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the pipes of commands in the background while their daemon is away: see
 * exec-keeper.h.  Standard input is the socket to listen on.  It ends when there
 * is nothing to hold and nobody connected. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/packet.h>

#include "sandbox/exec-keeper.h"

/* A daemon that was started connects at once. */
#define FIRST_MS 10000
#define CHUNK (1 << 20)
#define BACKLOG 64

struct kept {
  struct keeper_message name;
  int fds[KEEPER_FDS];
};

static struct kept *entries;
static size_t n_entries, room;
static int listener = STDIN_FILENO, daemon_fd = -1, null_fd = -1;

/* ---- what is held --------------------------------------------------------- */

static struct kept *
entry_find (const struct keeper_message *name)
{
  size_t i;

  for (i = 0; i < n_entries; i++)
    if (strcmp (entries[i].name.sandbox, name->sandbox) == 0
        && strcmp (entries[i].name.exec, name->exec) == 0)
      return &entries[i];
  return NULL;
}

static void
entry_remove (struct kept *entry)
{
  int i;

  for (i = 0; i < KEEPER_FDS; i++)
    coffer_fd_close (&entry->fds[i]);
  *entry = entries[--n_entries];
}

/* Takes the descriptors, which came in the order of the bits. */
static void
entry_add (const struct keeper_message *message, int *fds, size_t n)
{
  struct kept *grown, *entry = entry_find (message);
  size_t at = 0;
  int i;

  if (entry)
    entry_remove (entry);
  if (n_entries == room) {
    grown = reallocarray (entries, room ? room * 2 : 16, sizeof *entries);
    if (!grown)
      return;
    entries = grown;
    room = room ? room * 2 : 16;
  }
  entry = &entries[n_entries++];
  entry->name = *message;
  for (i = 0; i < KEEPER_FDS; i++)
    entry->fds[i] = message->has & (1u << i) && at < n
                      ? coffer_fd_steal (&fds[at++]) : -1;
}

/* ---- the rest of a command that has ended -------------------------------- */

/* In its place, of which a full disk has room; the daemon tells of it. */
static void
dropped_count (const struct kept *entry, int stream, uint64_t bytes)
{
  const off_t at = KEEPER_DROPPED_AT + stream * (off_t) sizeof bytes;
  const int index = entry->fds[KEEPER_INDEX_FILE];
  uint64_t before;

  if (index < 0 || bytes == 0
      || pread (index, &before, sizeof before, at) != (ssize_t) sizeof before)
    return;
  before += bytes;
  if (pwrite (index, &before, sizeof before, at) < 0)
    return;                     /* there is nobody to tell */
}

/* How many of them the file took. */
static size_t
write_some (int to, const char *bytes, size_t size)
{
  size_t done = 0;
  ssize_t n;

  while (done < size) {
    n = write (to, bytes + done, size - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    done += (size_t) n;
  }
  return done;
}

/* By splice as long as it goes, else by copying; 0: nothing more. */
static ssize_t
move (const struct kept *entry, int stream, int from, int to)
{
  char bytes[8192];
  ssize_t n = splice (from, NULL, to, NULL, CHUNK, SPLICE_F_NONBLOCK);

  if (n >= 0 || errno == EAGAIN)
    return n;
  /* What no file takes any more is read all the same, to its end. */
  n = read (from, bytes, sizeof bytes);
  if (n > 0)
    dropped_count (entry, stream,
                   (size_t) n - write_some (to, bytes, (size_t) n));
  return n;
}

static void
rest_move (const struct kept *entry, int which)
{
  const int stream = which == KEEPER_ERR, from = entry->fds[which];
  const int to = entry->fds[stream ? KEEPER_ERR_FILE : KEEPER_OUT_FILE];

  while (from >= 0 && move (entry, stream, from, to >= 0 ? to : null_fd) > 0)
    ;
}

/* Who wrote is gone: 1 when nothing of the command is left. */
static int
stream_end (struct kept *entry, int which)
{
  int *fds = entry->fds;

  if (which == KEEPER_MASTER) {
    rest_move (entry, KEEPER_OUT);
    rest_move (entry, KEEPER_MASTER);
    return 1;
  }
  rest_move (entry, which);
  coffer_fd_close (&fds[which]);
  return fds[KEEPER_OUT] < 0 && fds[KEEPER_ERR] < 0;
}

/* ---- the daemon ----------------------------------------------------------- */

static void
entry_tell (const struct kept *entry)
{
  struct keeper_message message = entry->name;
  int fds[KEEPER_FDS], i;
  size_t n = 0;

  message.kind = KEEPER_KEPT;
  message.has = 0;
  for (i = 0; i < KEEPER_FDS; i++)
    if (entry->fds[i] >= 0) {
      message.has |= 1u << i;
      fds[n++] = entry->fds[i];
    }
  coffer_packet_send (daemon_fd, &message, sizeof message, fds, n);
}

static void
list_tell (void)
{
  const struct keeper_message end = { .size = sizeof end,
                                      .version = KEEPER_VERSION,
                                      .kind = KEEPER_END };
  size_t i;

  for (i = 0; i < n_entries; i++)
    entry_tell (&entries[i]);
  coffer_packet_send (daemon_fd, &end, sizeof end, NULL, 0);
}

static void
message_take (struct keeper_message *message, int *fds, size_t n)
{
  struct kept *entry;

  message->sandbox[sizeof message->sandbox - 1] = '\0';
  message->exec[sizeof message->exec - 1] = '\0';
  if (message->kind == KEEPER_KEEP) {
    entry_add (message, fds, n);
    return;
  }
  if (message->kind == KEEPER_LIST)
    list_tell ();
  entry = entry_find (message);
  if (entry && message->kind == KEEPER_FORGET)
    entry_remove (entry);
  else if (entry && message->kind == KEEPER_FORGET_IN)
    coffer_fd_close (&entry->fds[KEEPER_IN]);
}

static void
daemon_hear (void)
{
  struct keeper_message message = { 0 };
  int fds[COFFER_PACKET_FDS_MAX];
  size_t n = COFFER_PACKET_FDS_MAX, i;
  ssize_t size = coffer_packet_receive (daemon_fd, &message, sizeof message,
                                        fds, &n);

  if (size < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (size <= 0) {
    coffer_fd_close (&daemon_fd);
    return;
  }
  if (size >= (ssize_t) sizeof message)
    message_take (&message, fds, n);
  for (i = 0; i < n; i++)
    coffer_fd_close (&fds[i]);
}

/* The latest counts: one before it is dead, or will be. */
static void
daemon_accept (void)
{
  int fd = coffer_socket_accept (listener);

  if (fd < 0)
    return;
  coffer_fd_close (&daemon_fd);
  daemon_fd = fd;
}

/* ---- the loop ------------------------------------------------------------- */

static const int watched[] = { KEEPER_MASTER, KEEPER_OUT, KEEPER_ERR };
#define N_WATCHED (sizeof watched / sizeof watched[0])

/* Only that nobody writes any more is waited for, and by nobody who has a
 * daemon that does. */
static size_t
polls_fill (struct pollfd *polls)
{
  size_t i, k, n = 2;

  polls[0] = (struct pollfd){ .fd = listener, .events = POLLIN };
  polls[1] = (struct pollfd){ .fd = daemon_fd, .events = POLLIN };
  for (i = 0; i < n_entries && daemon_fd < 0; i++)
    for (k = 0; k < N_WATCHED; k++)
      polls[n++] = (struct pollfd){ .fd = entries[i].fds[watched[k]] };
  return n;
}

static void
ends_handle (const struct pollfd *polls, size_t n)
{
  size_t i = (n - 2) / N_WATCHED, k;

  /* From the last on, as a removed one is replaced by the last. */
  while (i-- > 0)
    for (k = 0; k < N_WATCHED; k++)
      if (polls[2 + i * N_WATCHED + k].revents
          && stream_end (&entries[i], watched[k])) {
        entry_remove (&entries[i]);
        break;
      }
}

static int
loop_once (int timeout_ms)
{
  struct pollfd *polls = reallocarray (NULL, 2 + n_entries * N_WATCHED,
                                       sizeof *polls);
  size_t n;
  int ready;

  if (!polls)
    return -1;
  n = polls_fill (polls);
  ready = poll (polls, n, timeout_ms);
  if (ready > 0) {
    ends_handle (polls, n);
    if (polls[1].revents)
      daemon_hear ();
    if (polls[0].revents)
      daemon_accept ();
  }
  free (polls);
  return ready == 0 || (ready < 0 && errno != EINTR) ? -1 : 0;
}

int
main (void)
{
  struct rlimit files;

  setsid ();
  signal (SIGPIPE, SIG_IGN);
  signal (SIGXFSZ, SIG_IGN);
  signal (SIGHUP, SIG_IGN);
  if (getrlimit (RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit (RLIMIT_NOFILE, &files);
  }
  close (4);                    /* nothing to report */
  /* From here on it is this process that listens, for who asks whose it is. */
  listen (listener, BACKLOG);
  null_fd = open ("/dev/null", O_WRONLY | O_CLOEXEC);
  if (loop_once (FIRST_MS) < 0)
    return 1;
  while (daemon_fd >= 0 || n_entries > 0)
    if (loop_once (-1) < 0)
      return 1;
  return 0;
}
