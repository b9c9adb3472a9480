/* SPDX-License-Identifier: Apache-2.0 */
/* What interpreters that stand ready do and take, by profile, as their provider
 * counts: a source of /metrics. */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "python/warm.h"
#include "server/metrics.h"

#define ROWS_MOST 32

/* What stands on the page, and what the provider calls it. */
static const struct {
  const char *key, *name, *type, *help;
} families[] = {
  { "ready", "coffer_warm_interpreters", "gauge",
    "Interpreters that stand ready for sandboxes." },
  { "copies_total", "coffer_warm_copies_total", "counter",
    "Copies of them that were made for sandboxes." },
  { "replaced_total", "coffer_warm_replaced_total", "counter",
    "Times that one has taken the place of another." },
  { "memory_bytes", "coffer_warm_memory_bytes", "gauge",
    "Their memory, of what is shared their share (PSS)." },
  { "memory_resident_bytes", "coffer_warm_resident_memory_bytes", "gauge",
    "Their memory, with all that is shared (RSS)." },
};
#define N_FAMILIES (sizeof families / sizeof families[0])

/* One profile may have several: its modules were others before. */
struct row {
  char *provider, *profile;
  double sums[N_FAMILIES];
  int known[N_FAMILIES];
};

struct rows {
  struct row items[ROWS_MOST];
  size_t count;
};

static struct row *
row_get (struct rows *rows, const char *provider, const char *profile)
{
  struct row *row;
  size_t i;

  for (i = 0; i < rows->count; i++)
    if (strcmp (rows->items[i].provider, provider) == 0
        && strcmp (rows->items[i].profile, profile) == 0)
      return &rows->items[i];
  if (rows->count == ROWS_MOST)
    return NULL;
  row = &rows->items[rows->count];
  row->provider = strdup (provider);
  row->profile = strdup (profile);
  if (row->provider && row->profile)
    rows->count++;
  else {
    free (row->provider);
    free (row->profile);
    row = NULL;
  }
  return row;
}

static void
row_add (void *data, const char *provider, const char *profile,
         const json_t *uses)
{
  struct row *row = row_get (data, provider, profile);
  size_t i;

  for (i = 0; row && i < N_FAMILIES; i++) {
    const json_t *value = json_object_get (uses, families[i].key);

    row->sums[i] += json_number_value (value);
    row->known[i] |= value != NULL;
  }
}

static void
family_write (const struct rows *rows, size_t family,
              struct metrics_page *page)
{
  static const char *const names[] = { "provider", "profile", NULL };
  size_t i;

  metrics_page_family (page, families[family].name, families[family].type,
                       families[family].help);
  for (i = 0; i < rows->count; i++) {
    const struct row *row = &rows->items[i];
    const char *values[] = { row->provider, row->profile, NULL };

    if (row->known[family])
      metrics_page_value_2 (page, names, values, row->sums[family]);
  }
}

void
metrics_warm (void *data, struct metrics_page *page)
{
  struct rows rows = { .count = 0 };
  size_t i;

  warm_each (data, row_add, &rows);
  for (i = 0; i < N_FAMILIES && rows.count > 0; i++)
    family_write (&rows, i, page);
  for (i = 0; i < rows.count; i++) {
    free (rows.items[i].provider);
    free (rows.items[i].profile);
  }
}
