/* SPDX-License-Identifier: Apache-2.0 */
/* A provider's last log lines, and the cap on how many it may write: what a
 * failure report shows of a worker that died. */

#ifndef PROVIDER_JOURNAL_H
#define PROVIDER_JOURNAL_H

#include <pthread.h>
#include <stdint.h>

#include <jansson.h>

#define JOURNAL_LINES 32
#define JOURNAL_MAX_LINE 512
#define JOURNAL_BURST 200       /* lines; then as many a second */

struct journal {
  pthread_mutex_t lock;
  uint64_t next;                /* number of the next line */
  char *lines[JOURNAL_LINES];
  int64_t second;               /* that the count below is of */
  unsigned in_second;
  uint64_t dropped;
};

int journal_init (struct journal *journal);
void journal_fini (struct journal *journal);
/* The number that the next line will get. */
uint64_t journal_mark (struct journal *journal);
/* 1: the next line may come; 0: there are too many in this second.  *dropped
 * is how many were lost before this one. */
int journal_admit (struct journal *journal, uint64_t *dropped);
/* The text is copied, and cut: one that was ends with "…". */
void journal_add (struct journal *journal, const char *text);
/* The lines since `mark` that are still there, as an array of strings. */
json_t *journal_since (struct journal *journal, uint64_t mark);

#endif /* PROVIDER_JOURNAL_H */
