/* SPDX-License-Identifier: Apache-2.0 */
/* Ending all that belongs to a command, or all that there is.
 *
 * What forks faster than it can be looked for is not outrun by killing alone:
 * each one that is gone makes room for the next.  So everything is stopped
 * first, which keeps its place, until two looks in a row have found the very
 * same processes: whoever has a signal waiting cannot finish a fork, so that
 * by then there is nobody left who could.  Then they are killed.  A sweep goes
 * a step at a time, and this process does its other work meanwhile. */

#include "init.h"

#define SIGKILL_ 9
#define SIGSTOP_ 19
#define STOP_NS 2000000000      /* then they are killed, found twice or not */
/* Long, since it ends all others too: with one slow processor this process has
 * its turn once in a second or two while hundreds fork. */
#define GIVE_UP_NS 8000000000
#define STEP_NS 1000000

struct look {
  uint32_t id;                  /* 0: everybody */
  int signal;
  uint32_t count;
  uint64_t sum;
};

static void
look_at (int pid, void *data)
{
  struct look *look = data;

  /* Everybody: only where all that is seen is the sandbox's own. */
  if (look->id != 0 ? !tag_covers (pid, look->id) : !LAYER_ON (PID))
    return;
  if (SYS (kill, pid, look->signal) < 0)
    return;
  look->count++;
  /* Sums of squares as well: other processes hardly ever have the same. */
  look->sum += ((uint64_t) pid * (uint64_t) pid << 20) + (uint64_t) pid;
}

void
sweep_begin (struct sweep *sweep, uint32_t id)
{
  const int64_t now = clock_ns (1);

  memset (sweep, 0, sizeof *sweep);
  sweep->id = id;
  sweep->due_ns = now;
  sweep->stop_ns = now + STOP_NS;
  sweep->give_up_ns = now + GIVE_UP_NS;
}

void
sweep_again (struct sweep *sweep)
{
  const int64_t give_up = sweep->give_up_ns;

  sweep_begin (sweep, sweep->id);
  sweep->give_up_ns = give_up;
  sweep->due_ns += STEP_NS;
}

enum sweep_result
sweep_step (struct sweep *sweep)
{
  const int64_t now = clock_ns (1);
  struct look look = { sweep->id, SIGSTOP_, 0, 0 };

  if (now < sweep->due_ns)
    return SWEEP_GOES_ON;
  if (now >= sweep->give_up_ns)
    return SWEEP_FAILED;
  if (sweep->killing || now >= sweep->stop_ns) {
    sweep->killing = 1;
    look.signal = SIGKILL_;
  }
  if (processes_visit (look_at, &look) < 0)
    return SWEEP_FAILED;
  sweep->due_ns = now;
  sweep->empty = look.count == 0 ? sweep->empty + 1 : 0;
  if (sweep->empty == 2)
    return SWEEP_DONE;
  if (look.count == sweep->count && look.sum == sweep->sum)
    sweep->killing = 1;
  sweep->count = look.count;
  sweep->sum = look.sum;
  if (look.signal == SIGKILL_ || !sweep->killing)
    sweep->due_ns = now + STEP_NS;
  return SWEEP_GOES_ON;
}
