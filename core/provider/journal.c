/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of lines behind one lock. */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "provider/journal.h"

int
journal_init (struct journal *journal)
{
  memset (journal, 0, sizeof *journal);
  return pthread_mutex_init (&journal->lock, NULL) == 0 ? 0 : -1;
}

void
journal_fini (struct journal *journal)
{
  size_t i;

  for (i = 0; i < JOURNAL_LINES; i++)
    free (journal->lines[i]);
  pthread_mutex_destroy (&journal->lock);
}

uint64_t
journal_mark (struct journal *journal)
{
  uint64_t mark;

  pthread_mutex_lock (&journal->lock);
  mark = journal->next;
  pthread_mutex_unlock (&journal->lock);
  return mark;
}

int
journal_admit (struct journal *journal, uint64_t *dropped)
{
  int64_t second = coffer_now_ns () / 1000000000;
  int keep;

  *dropped = 0;
  pthread_mutex_lock (&journal->lock);
  if (second != journal->second) {
    journal->second = second;
    journal->in_second = 0;
  }
  keep = journal->in_second < JOURNAL_BURST;
  if (keep) {
    journal->in_second++;
    *dropped = journal->dropped;
    journal->dropped = 0;
  } else {
    journal->dropped++;
  }
  pthread_mutex_unlock (&journal->lock);
  return keep;
}

void
journal_add (struct journal *journal, const char *text)
{
  int cut = strlen (text) > JOURNAL_MAX_LINE;
  char *copy = text_printf ("%.*s%s", JOURNAL_MAX_LINE, text, cut ? "…" : "");
  char **slot;

  pthread_mutex_lock (&journal->lock);
  slot = &journal->lines[journal->next++ % JOURNAL_LINES];
  free (*slot);
  *slot = copy;
  pthread_mutex_unlock (&journal->lock);
}

json_t *
journal_since (struct journal *journal, uint64_t mark)
{
  json_t *out = json_array ();
  const char *line;

  pthread_mutex_lock (&journal->lock);
  if (journal->next - mark > JOURNAL_LINES)
    mark = journal->next - JOURNAL_LINES;
  for (; mark < journal->next; mark++) {
    line = journal->lines[mark % JOURNAL_LINES];
    if (line)
      json_array_append_new (out, json_bytes (line, strlen (line)));
  }
  pthread_mutex_unlock (&journal->lock);
  return out;
}
