/* SPDX-License-Identifier: Apache-2.0 */
/* Families, their series, and the page.  See metrics.h. */

#include <config.h>

#include <pthread.h>
#include <string.h>

#include "base/text.h"
#include "server/metrics.h"

#define SOURCES_MAX 16
#define OTHER "other"

enum kind { COUNTER, HISTOGRAM };

static const double bounds[] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300 };
#define N_BOUNDS (sizeof bounds / sizeof bounds[0])

static const struct family {
  const char *name;
  enum kind kind;
  const char *help;
  const char *labels[METRICS_MAX_LABELS + 1];
} families[] = {
#define X(id, name, kind, help, ...) { name, kind, help, { __VA_ARGS__ } },
  METRICS_FAMILIES (X)
#undef X
};

struct series {
  char *labels;                 /* as on the page, without braces */
  uint64_t count;               /* of a counter: its value */
  double sum;
  uint64_t below[N_BOUNDS];     /* of a histogram, each bucket for itself */
};

struct series_list {
  struct series **items;
  size_t count, room;
};

struct source {
  metrics_source *write;
  void *data;
};

struct metrics {
  pthread_mutex_t lock;         /* all below */
  struct series_list series[METRICS_N_FAMILIES];
  struct source sources[SOURCES_MAX];
  size_t n_sources;
};

struct metrics_page {
  struct coffer_buffer *out;
  const char *name;             /* of the family that is being written */
};

int
metrics_new (struct metrics **out, struct error **err)
{
  struct metrics *metrics = calloc (1, sizeof *metrics);

  if (metrics == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  pthread_mutex_init (&metrics->lock, NULL);
  *out = metrics;
  return 0;
}

void
metrics_free (struct metrics *metrics)
{
  size_t i, j;

  if (metrics == NULL)
    return;
  for (i = 0; i < METRICS_N_FAMILIES; i++) {
    for (j = 0; j < metrics->series[i].count; j++) {
      free (metrics->series[i].items[j]->labels);
      free (metrics->series[i].items[j]);
    }
    free (metrics->series[i].items);
  }
  pthread_mutex_destroy (&metrics->lock);
  free (metrics);
}

int
metrics_add_source (struct metrics *metrics, metrics_source *source,
                    void *data, struct error **err)
{
  int r = 0;

  pthread_mutex_lock (&metrics->lock);
  if (metrics->n_sources == SOURCES_MAX)
    r = error_set (err, E_INTERNAL, 0, "too many sources of metrics");
  else
    metrics->sources[metrics->n_sources++] = (struct source){ source, data };
  pthread_mutex_unlock (&metrics->lock);
  return r;
}

/* ---- labels -------------------------------------------------------------- */

/* A value is shown whole or, when it is no text, as "other". */
static void
label_add (struct coffer_buffer *out, const char *name, const char *value)
{
  const char *p;

  if (value == NULL)
    value = "";
  if (!text_is_utf8 (value, strlen (value)))
    value = OTHER;
  coffer_buffer_printf (out, "%s%s=\"", out->size ? "," : "", name);
  for (p = value; *p; p++)
    switch (*p) {
    case '\\': case '"':
      coffer_buffer_printf (out, "\\%c", *p);
      break;
    case '\n':
      coffer_buffer_add_string (out, "\\n");
      break;
    default:
      coffer_buffer_add (out, p, 1);
    }
  coffer_buffer_add_string (out, "\"");
}

/* NULL when memory is out.  `values` NULL: each is "other". */
static char *
labels_text (const char *const *names, const char *const *values)
{
  coffer_autobuffer struct coffer_buffer out = { 0 };
  size_t i;

  coffer_buffer_add_string (&out, "");
  for (i = 0; names[i]; i++)
    label_add (&out, names[i], values ? values[i] : OTHER);
  return coffer_buffer_steal (&out);
}

/* ---- counting ------------------------------------------------------------ */

static struct series *
series_find (const struct series_list *list, const char *labels)
{
  size_t i;

  for (i = 0; i < list->count; i++)
    if (strcmp (list->items[i]->labels, labels) == 0)
      return list->items[i];
  return NULL;
}

static struct series *
series_add_locked (struct series_list *list, char **labels)
{
  struct series *series = calloc (1, sizeof *series);

  if (list->count == list->room) {
    size_t room = list->room ? 2 * list->room : 8;
    struct series **items = reallocarray (list->items, room, sizeof *items);

    if (items == NULL) {
      free (series);
      return NULL;
    }
    list->items = items;
    list->room = room;
  }
  if (series == NULL)
    return NULL;
  series->labels = steal (*labels);
  return list->items[list->count++] = series;
}

/* The one of these labels; what memory cannot hold is not counted. */
static struct series *
series_get_locked (struct metrics *metrics, enum metrics_family family,
                   char **labels)
{
  struct series_list *list = &metrics->series[family];
  struct series *series = *labels ? series_find (list, *labels) : NULL;

  if (series || *labels == NULL)
    return series;
  if (list->count >= METRICS_MAX_SERIES) {
    free (*labels);
    *labels = labels_text (families[family].labels, NULL);
    series = *labels ? series_find (list, *labels) : NULL;
    if (series || *labels == NULL)
      return series;
  }
  return series_add_locked (list, labels);
}

void
metrics_count (struct metrics *metrics, enum metrics_family family,
               const char *const *labels, uint64_t by)
{
  auto_free char *text = labels_text (families[family].labels, labels);
  struct series *series;

  pthread_mutex_lock (&metrics->lock);
  series = series_get_locked (metrics, family, &text);
  if (series)
    series->count += by;
  pthread_mutex_unlock (&metrics->lock);
}

void
metrics_time (struct metrics *metrics, enum metrics_family family,
              const char *const *labels, int64_t ns)
{
  auto_free char *text = labels_text (families[family].labels, labels);
  const double seconds = ns > 0 ? (double) ns / 1e9 : 0;
  struct series *series;
  size_t i = 0;

  while (i < N_BOUNDS && seconds > bounds[i])
    i++;
  pthread_mutex_lock (&metrics->lock);
  series = series_get_locked (metrics, family, &text);
  if (series) {
    series->count++;
    series->sum += seconds;
    if (i < N_BOUNDS)
      series->below[i]++;
  }
  pthread_mutex_unlock (&metrics->lock);
}

/* ---- the page ------------------------------------------------------------ */

/* Nobody here sets a locale. */
static void
number_add (struct coffer_buffer *out, double value)
{
  if (value >= 0 && value < 9007199254740992.0
      && value == (double) (uint64_t) value)
    coffer_buffer_printf (out, "%.0f", value);
  else
    coffer_buffer_printf (out, "%.12g", value);
}

static void
line_add (struct coffer_buffer *out, const char *name, const char *suffix,
          const char *labels, double value)
{
  coffer_buffer_printf (out, labels && *labels ? "%s%s{%s} " : "%s%s%s ", name,
                        suffix, labels ? labels : "");
  number_add (out, value);
  coffer_buffer_add_string (out, "\n");
}

static void
histogram_add (struct coffer_buffer *out, const char *name,
               const struct series *series)
{
  const char *comma = *series->labels ? "," : "";
  uint64_t sum = 0;
  size_t i;

  for (i = 0; i < N_BOUNDS; i++) {
    sum += series->below[i];
    coffer_buffer_printf (out, "%s_bucket{%s%sle=\"%g\"} %llu\n", name,
                          series->labels, comma, bounds[i],
                          (unsigned long long) sum);
  }
  coffer_buffer_printf (out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name,
                        series->labels, comma,
                        (unsigned long long) series->count);
  line_add (out, name, "_sum", series->labels, series->sum);
  line_add (out, name, "_count", series->labels, (double) series->count);
}

static void
family_add_locked (const struct metrics *metrics, size_t family,
                   struct coffer_buffer *out)
{
  const struct family *is = &families[family];
  const struct series_list *list = &metrics->series[family];
  size_t i;

  /* One without labels is there from the start; nobody knows the others. */
  if (list->count == 0 && is->labels[0])
    return;
  coffer_buffer_printf (out, "# HELP %s %s\n# TYPE %s %s\n", is->name,
                        is->help, is->name,
                        is->kind == COUNTER ? "counter" : "histogram");
  for (i = 0; i < list->count; i++)
    if (is->kind == COUNTER)
      line_add (out, is->name, "", list->items[i]->labels,
                (double) list->items[i]->count);
    else
      histogram_add (out, is->name, list->items[i]);
  if (list->count == 0)
    line_add (out, is->name, "", NULL, 0);
}

void
metrics_page_family (struct metrics_page *page, const char *name,
                     const char *type, const char *help)
{
  page->name = name;
  coffer_buffer_printf (page->out, "# HELP %s %s\n# TYPE %s %s\n", name, help,
                        name, type);
}

void
metrics_page_value_2 (struct metrics_page *page, const char *const *names,
                      const char *const *values, double value)
{
  auto_free char *labels = labels_text (names, values);

  line_add (page->out, page->name, "", labels, value);
}

void
metrics_page_value (struct metrics_page *page, const char *label,
                    const char *label_value, double value)
{
  const char *const names[] = { label, NULL }, *const values[] = {
    label_value, NULL
  };

  metrics_page_value_2 (page, names, values, value);
}

int
metrics_write (struct metrics *metrics, struct coffer_buffer *out)
{
  struct metrics_page page = { .out = out };
  struct source sources[SOURCES_MAX];
  size_t n, i;

  pthread_mutex_lock (&metrics->lock);
  for (i = 0; i < METRICS_N_FAMILIES; i++)
    family_add_locked (metrics, i, out);
  n = metrics->n_sources;
  memcpy (sources, metrics->sources, sizeof sources);
  pthread_mutex_unlock (&metrics->lock);
  /* A source may take long, and may count something. */
  for (i = 0; i < n; i++)
    sources[i].write (sources[i].data, &page);
  return out->failed ? -1 : 0;
}
