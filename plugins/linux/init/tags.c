/* SPDX-License-Identifier: Apache-2.0 */
/* Telling the processes of one command from those of another.
 *
 * Each command is started with a tag that its descendants inherit and none can
 * change into another's: two hard limits that nobody uses, one of base plus the
 * command's number and one of base less that number.  Without capabilities a
 * hard limit only goes down, so whoever lowers one of them no longer names one
 * command but a range, in which its own number always lies.  What is killed
 * with a command is every process whose range holds its number: all that is
 * the command's, and nothing of another's that has left its limits alone.
 *
 * A tag needs neither a right nor a process to watch over it, and this process
 * can read it of everybody here, dumpable or not.  A UTS namespace for each
 * command would need a capability to make, and cannot be read of a process that
 * has made itself undumpable. */

#include "init.h"

#define O_CLOEXEC_ 02000000
#define TAG_ROOM ((uint64_t) 1 << 33)   /* more than there are numbers */
#define TAG_MOST ((uint64_t) 1 << 62)

struct limit {
  uint64_t soft, hard;
};

static int kinds[2];
static uint64_t bases[2];

void
tags_prepare (void)
{
  /* Locks, real-time processor time, resident pages: the first means nothing
   * since Linux 2.4, the second only to real-time processes, which there are
   * none of, the third nothing again. */
  static const int candidates[] = { 10, 15, 5 };
  struct limit now;
  size_t i, n = 0;

  for (i = 0; i < sizeof candidates / sizeof candidates[0] && n < 2; i++) {
    must ("command tags", SYS (prlimit64, 0, candidates[i], 0, &now));
    if (now.hard < 2 * TAG_ROOM)
      continue;
    kinds[n] = candidates[i];
    bases[n++] = (now.hard < TAG_MOST ? now.hard : TAG_MOST) - TAG_ROOM;
  }
  if (n < 2)
    setup_fail ("command tags: locks, rttime and rss are limited", -EPERM_);
}

long
tag_take (uint32_t id)
{
  struct limit up = { bases[0] + id, bases[0] + id };
  struct limit down = { bases[1] - id, bases[1] - id };
  long r = SYS (prlimit64, 0, kinds[0], &up, 0);

  return r < 0 ? r : SYS (prlimit64, 0, kinds[1], &down, 0);
}

void
tag_note (uint32_t id, struct init_join *join)
{
  join->limits[kinds[0]].soft = join->limits[kinds[0]].hard = bases[0] + id;
  join->limits[kinds[1]].soft = join->limits[kinds[1]].hard = bases[1] - id;
}

/* The commands that it may belong to; 0: it is gone.  What cannot be read may
 * belong to any. */
static int
tag_range (int pid, int64_t range[2])
{
  struct limit up, down;
  long r = SYS (prlimit64, pid, kinds[0], 0, &up);

  if (r >= 0)
    r = SYS (prlimit64, pid, kinds[1], 0, &down);
  if (r == -ESRCH_)
    return 0;
  range[0] = r < 0 ? 0 : (int64_t) (up.hard - bases[0]);
  range[1] = r < 0 ? INT64_MAX : (int64_t) (bases[1] - down.hard);
  return 1;
}

int
tag_covers (int pid, uint32_t id)
{
  int64_t range[2];

  return tag_range (pid, range) && range[0] <= (int64_t) id
         && (int64_t) id <= range[1];
}

uint32_t
tag_of (int pid)
{
  int64_t range[2];

  return tag_range (pid, range) && range[0] == range[1] && range[0] > 0
           && range[0] <= UINT32_MAX
         ? (uint32_t) range[0] : 0;
}

/* ---- all processes ------------------------------------------------------ */

long
processes_visit (void (*visit) (int pid, void *data), void *data)
{
  /* A few at a time: what flees from its number has a higher one by then, and
   * is met again before the end.  A list of all would be of yesterday. */
  char entries[128] __attribute__ ((aligned (8)));
  static int proc = -1;
  const char *digit;
  uint16_t length;
  long n, at;
  int pid;

  if (proc < 0)
    proc = (int) SYS (openat, -100, "/proc", O_CLOEXEC_);
  n = proc < 0 ? proc : SYS (lseek, proc, 0, 0);
  while (n >= 0
         && (n = SYS (getdents64, proc, entries, sizeof entries)) > 0)
    for (at = 0; at < n; at += length) {
      memcpy (&length, entries + at + 16, sizeof length);
      pid = 0;
      for (digit = entries + at + 19; *digit >= '0' && *digit <= '9'; digit++)
        pid = pid * 10 + (*digit - '0');
      if (*digit == '\0' && pid > 1)
        visit (pid, data);
    }
  return n;
}

/* The words after the last ')' of its stat, whatever its name is. */
const char *
process_stat (int pid, char text[1024])
{
  char path[40], number[21];
  const char *at;
  int fd;
  long n;

  text_join (path, sizeof path, "/proc/",
             text_number (number, (uint64_t) pid), "/stat", NULL);
  fd = (int) SYS (openat, -100, path, O_CLOEXEC_);
  if (fd < 0)
    return NULL;
  n = SYS (read, fd, text, 1023);
  fd_close (fd);
  if (n <= 0)
    return NULL;
  text[n] = '\0';
  for (at = text + n; at > text && *at != ')'; at--)
    ;
  return *at == ')' && at[1] == ' ' ? at + 2 : NULL;
}
