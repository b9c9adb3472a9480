/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping everything in the sandbox, and letting it go on.
 *
 * Where there is no control group that could (cgroup-v1.c says why the freezer
 * of version 1 cannot), by SIGSTOP from here: this process itself goes on, so
 * that the time to live and the timeouts hold while all else rests.  What was
 * stopped already is left as it was, and is still stopped afterwards.  Parents
 * are stopped before their children and go on after them, as far as numbers
 * tell: a shell does not see its jobs stop. */

#include "init.h"

#define SIGCONT_ 18
#define SIGSTOP_ 19
#define PAUSED_MAX 65536
#define PAUSE_NS 3000000000
#define ETIMEDOUT_ 110

static int paused;
static int stopped[PAUSED_MAX]; /* by us, in order of their coming */
static size_t n_stopped;

struct pausing {
  int restless;                 /* whether somebody was not at rest */
  int full;
};

static int
known (int pid)
{
  size_t i;

  for (i = n_stopped; i > 0; i--)
    if (stopped[i - 1] == pid)
      return 1;
  return 0;
}

static void
pause_one (int pid, void *data)
{
  struct pausing *pausing = data;
  char text[1024];
  const char *stat = process_stat (pid, text);
  char state = stat != NULL ? *stat : 'Z';
  int ours = known (pid);

  if (state == 'T' || state == 't' || state == 'X'
      || (state == 'Z' && (stat == NULL || ours)))
    return;
  if (!ours && n_stopped == PAUSED_MAX) {
    pausing->full = 1;
    return;
  }
  if (SYS (kill, pid, SIGSTOP_) < 0)
    return;
  if (!ours)
    stopped[n_stopped++] = pid;
  /* In the kernel's hands: it stops before it does anything more. */
  if (state != 'D' && state != 'Z')
    pausing->restless = 1;
}

int
pause_is (void)
{
  return paused;
}

void
pause_end (void)
{
  paused = 0;
  while (n_stopped > 0)
    SYS (kill, stopped[--n_stopped], SIGCONT_);
}

/* Until two looks in a row have found everybody at rest: one who was only just
 * stopped may have let another go on before. */
long
pause_begin (int frozen)
{
  const struct sys_timespec moment = { 0, 1000000 };
  const int64_t stop = clock_ns (1) + PAUSE_NS;
  struct pausing pausing;
  int calm = 0;
  long r;

  if (paused)
    return 0;
  if (!LAYER_ON (PID))          /* not only the sandbox's own are seen */
    return -EOPNOTSUPP_;
  while (!frozen && calm < 2) {
    memset (&pausing, 0, sizeof pausing);
    r = processes_visit (pause_one, &pausing);
    if (r >= 0 && pausing.full)
      r = -ENOMEM_;
    if (r >= 0 && clock_ns (1) >= stop)
      r = -ETIMEDOUT_;
    if (r < 0) {
      pause_end ();
      return r;
    }
    calm = pausing.restless ? 0 : calm + 1;
    if (pausing.restless)
      SYS (nanosleep, &moment, 0);
  }
  paused = 1;
  return 0;
}
