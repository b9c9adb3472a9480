/* SPDX-License-Identifier: Apache-2.0 */
/* What commands leave in a folder of the sandbox, and questions about them: in it
 * lies a socket for each that runs, and how each ended that has.
 *
 * Its files are of the sandbox's user, who can change them: what comes of them is
 * said from inside, about nothing but that sandbox. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/packet.h>
#include <coffer/provider.h>

#include "work.h"

#define LOOK_MS 20              /* for more output of one in the background */
#define ANSWER_NS (INT64_C (10) * 1000000000)
#define COPY_SIZE (64 << 10)

int
kept_open (void)
{
  return open (INSIDE_KEPT, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

void
kept_name (char name[WIRE_ID_MAX + 8], const char *id, const char *suffix)
{
  snprintf (name, WIRE_ID_MAX + 8, "%s%s%s", id, suffix ? "." : "",
            suffix ? suffix : "");
}

/* Whole, or not there. */
int
kept_end_write (int folder, const struct wire_end *end)
{
  char name[WIRE_ID_MAX + 8], whole[WIRE_ID_MAX + 8];
  coffer_autoclose int fd = -1;

  kept_name (name, end->info.id, "new");
  kept_name (whole, end->info.id, "end");
  fd = openat (folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
                               | O_NOFOLLOW, 0600);
  if (fd < 0 || coffer_write_all (fd, end, sizeof *end) < 0)
    return -1;
  return renameat (folder, name, folder, whole);
}

static int
read_end (int folder, const char *name, struct wire_end *end)
{
  coffer_autoclose int fd = openat (folder, name, O_RDONLY | O_CLOEXEC
                                                    | O_NOFOLLOW | O_NONBLOCK);

  if (fd < 0)
    return -1;
  return coffer_read_all (fd, end, sizeof *end) == sizeof *end ? 0 : -1;
}

int
kept_end_read (int folder, const char *id, struct wire_end *end)
{
  char name[WIRE_ID_MAX + 8];

  kept_name (name, id, "end");
  return read_end (folder, name, end);
}

/* ---- questions to one that runs -------------------------------------------------- */

/* Whoever asked has gone when standard input ends. */
static ssize_t
ask (int folder, const char *id, const struct order *order, void *answer,
     size_t size, int64_t deadline_ns)
{
  coffer_autoclose int peer = coffer_socket_connect (folder, id, 0);

  if (peer < 0
      || coffer_packet_send (peer, order, sizeof *order, NULL, 0) < 0
      || coffer_wait_fd (peer, POLLIN, deadline_ns, 0) != 1)
    return -1;
  return coffer_packet_receive (peer, answer, size, NULL, NULL);
}

/* A command without a socket and without an end: what supervised it was ended
 * from inside.  What is known is that it no longer runs as a command. */
static int
lost_end (int folder, const char *id, struct wire_end *end)
{
  struct stat st;

  if (fstatat (folder, id, &st, AT_SYMLINK_NOFOLLOW) < 0)
    return -1;
  memset (end, 0, sizeof *end);
  snprintf (end->info.id, sizeof end->info.id, "%s", id);
  end->code = -1;
  end->signal = 9;
  return 0;
}

static int
find_end (int folder, const struct wire_request *request, struct wire_end *end)
{
  const struct order order = {.op = WIRE_WAIT};

  if (kept_end_read (folder, request->id, end) == 0
      || ask (folder, request->id, &order, end, sizeof *end,
              work_end_ns (request))
           == sizeof *end
      || kept_end_read (folder, request->id, end) == 0)
    return 0;
  return lost_end (folder, request->id, end);
}

static void
no_such (void)
{
  say_failed (COFFER_NOT_FOUND, COFFER_RETRY_NO, "no such command");
}

static void
wait_for (int folder, const struct wire_request *request)
{
  struct wire_end end;

  if (find_end (folder, request, &end) < 0)
    no_such ();
  else
    say (WIRE_ENDED, &end, sizeof end);
}

static void
tell (int folder, const struct wire_request *request)
{
  const struct order order = {.op = WIRE_TELL, .signal = request->signal,
                              .rows = request->rows,
                              .columns = request->columns};
  struct wire_end end;
  int32_t answer = ESRCH;

  if (ask (folder, request->id, &order, &answer, sizeof answer,
           coffer_now_ns () + ANSWER_NS) != sizeof answer
      && kept_end_read (folder, request->id, &end) < 0
      && lost_end (folder, request->id, &end) < 0)
    no_such ();
  else if (answer == ESRCH)
    say_failed (COFFER_CONFLICT, COFFER_RETRY_NO, "the command has ended");
  else if (answer == ENOTTY)
    say_failed (COFFER_CONFLICT, COFFER_RETRY_NO,
                "the command has no terminal");
  else if (answer != 0)
    say_failed (COFFER_INVALID, COFFER_RETRY_NO, strerror (answer));
}

/* ---- lists ------------------------------------------------------------------------- */

static void
list_one (int folder, const char *name)
{
  const struct order order = {.op = WIRE_LIST};
  const char *dot = strrchr (name, '.');
  struct wire_info info;
  struct wire_end end;

  if (dot && strcmp (dot, ".end") == 0) {
    if (read_end (folder, name, &end) == 0) {
      end.info.running = 0;
      say (WIRE_INFO, &end.info, sizeof end.info);
    }
  } else if (!dot && kept_end_read (folder, name, &end) < 0
             && ask (folder, name, &order, &info, sizeof info,
                     coffer_now_ns () + ANSWER_NS) == sizeof info) {
    say (WIRE_INFO, &info, sizeof info);
  }
}

static void
list (int folder)
{
  DIR *entries = fdopendir (fcntl (folder, F_DUPFD_CLOEXEC, 3));
  struct dirent *entry;

  if (!entries)
    return;
  while ((entry = readdir (entries)))
    if (entry->d_name[0] != '.')
      list_one (folder, entry->d_name);
  closedir (entries);
}

/* ---- output that was kept ------------------------------------------------------------- */

static int
open_output (int folder, const char *id, const char *suffix)
{
  char name[WIRE_ID_MAX + 8];

  kept_name (name, id, suffix);
  return openat (folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/* What there is now: how many bytes, or -1 when nobody takes them. */
static ssize_t
pass (int fd, int error_stream, uint64_t *total)
{
  static char bytes[COPY_SIZE];
  ssize_t n, all = 0;

  while ((n = coffer_read_all (fd, bytes, sizeof bytes)) > 0) {
    if (error_stream)
      say (WIRE_ERR_BYTES, bytes, (size_t) n);
    else if (coffer_write_all (1, bytes, (size_t) n) < 0)
      return -1;
    all += n;
  }
  *total += (uint64_t) all;
  return n < 0 ? -1 : all;
}

/* 1: the provider has gone. */
static int
is_left (void)
{
  struct pollfd in = {.fd = 0, .events = POLLIN};

  return poll (&in, 1, LOOK_MS) > 0;
}

static void
follow (int folder, const struct wire_request *request, int out, int err)
{
  const struct order order = {.op = WIRE_LIST};
  uint64_t totals[2] = {0, 0};
  struct wire_info info;
  struct wire_end end;
  int last;

  do {
    last = kept_end_read (folder, request->id, &end) == 0
           && ask (folder, request->id, &order, &info, sizeof info,
                   coffer_now_ns () + ANSWER_NS) < 0;
    if (pass (out, 0, &totals[0]) < 0 || pass (err, 1, &totals[1]) < 0)
      return;
  } while (!last && !is_left ());
  say (WIRE_OUT_ENDED, &totals[0], sizeof totals[0]);
  say (WIRE_ERR_ENDED, &totals[1], sizeof totals[1]);
}

static void
attach (int folder, const struct wire_request *request)
{
  coffer_autoclose int out = open_output (folder, request->id, "out");
  coffer_autoclose int err = open_output (folder, request->id, "err");
  struct wire_end end;
  struct stat st;

  if (out >= 0 && err >= 0)
    follow (folder, request, out, err);
  else if (kept_end_read (folder, request->id, &end) == 0
           || fstatat (folder, request->id, &st, AT_SYMLINK_NOFOLLOW) == 0)
    say_failed (COFFER_CONFLICT, COFFER_RETRY_NO,
                "the command is not in the background");
  else
    no_such ();
}

int
kept_work (const struct wire_request *request)
{
  coffer_autoclose int folder = kept_open ();

  if (folder < 0) {
    say_failed (COFFER_IO, COFFER_RETRY_UNKNOWN,
                "what commands leave in the sandbox cannot be read");
    return INSIDE_FAILED;
  }
  switch (request->op) {
  case WIRE_WAIT:
    wait_for (folder, request);
    break;
  case WIRE_TELL:
    tell (folder, request);
    break;
  case WIRE_LIST:
    list (folder);
    break;
  default:
    attach (folder, request);
  }
  say (WIRE_DONE, NULL, 0);
  return INSIDE_OK;
}
