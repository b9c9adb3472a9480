/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox uses: its processes, their time and memory, its data. */

#include "init.h"

#define TICK_US 10000           /* what the kernel counts for programs in */

struct sums {
  uint64_t ticks, pages;
  uint32_t processes;
};

/* Fields 14 to 17 of stat are the times of a process and of the children that
 * it has waited for, 24 its resident pages. */
static void
usage_add (int pid, void *data)
{
  struct sums *sums = data;
  char text[1024];
  const char *at = process_stat (pid, text);
  uint64_t value;
  int field;

  if (at == NULL)
    return;
  sums->processes++;
  for (field = 3; *at != '\0' && field < 24; at++) {
    if (*at != ' ')
      continue;
    field++;
    for (value = 0; at[1] >= '0' && at[1] <= '9'; at++)
      value = value * 10 + (uint64_t) (at[1] - '0');
    if (field >= 14 && field <= 17)
      sums->ticks += value;
    else if (field == 24)
      sums->pages += value;
  }
}

/* Of the file system that /tmp, /dev/shm and the workspace are in; not of a
 * folder of the host that is shown in its place. */
static void
data_read (struct init_state *state)
{
  uint64_t fs[16];

  memset (fs, 0, sizeof fs);
  if (SYS (statfs, "/dev/shm", fs) < 0)
    return;
  /* f_type, f_bsize, f_blocks, f_bfree, f_bavail, f_files, f_ffree */
  state->data_most = fs[2] * fs[1];
  state->data_bytes = (fs[2] - fs[3]) * fs[1];
  state->data_inodes_most = fs[5];
  state->data_inodes = fs[5] - fs[6];
  state->flags |= STATE_DATA;
}

void
usage_read (struct init_state *state)
{
  struct sums sums;
  size_t i;

  memset (&sums, 0, sizeof sums);
  usage_add (1, &sums);
  processes_visit (usage_add, &sums);
  state->processes = sums.processes;
  state->resident_pages = sums.pages;
  state->cpu_us = exec_cpu_us () + sums.ticks * TICK_US;
  state->running = 0;
  for (i = 0; i < INIT_EXECS_MAX; i++)
    state->running += commands[i].id != 0 && !commands[i].ended;
  state->flags = pause_is () ? STATE_PAUSED : 0;
  data_read (state);
}
