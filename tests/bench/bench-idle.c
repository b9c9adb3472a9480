/* SPDX-License-Identifier: Apache-2.0 */
/* Many live sandboxes with nothing to do: the memory that the machine lacks for
 * each, whether making them becomes slower, and whether the memory comes back
 * when they have been killed.
 *
 *   bench-idle [SANDBOXES [SECONDS]]     500, and 30 until memory is looked at
 *
 * Prints "NAME VALUE" lines; exits 1 when a promise is not kept, 2 when nothing
 * was measured. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "sandbox/sandbox.h"

#define EDGE 20                 /* creations whose median is compared */
#define EACH_KIB 512
#define SLOWER 1.5
#define KEPT_PART 0.03
#define SAMPLES 21
#define STEPS 10

static int missed;

static void
give_up (const char *what, struct error *error)
{
  printf ("# %s: %s\n", what, error ? error_message (error) : "failed");
  exit (2);
}

static int
compare (const void *a, const void *b)
{
  const double x = *(const double *) a, y = *(const double *) b;

  return (x > y) - (x < y);
}

static double
median (double *values, size_t n)
{
  qsort (values, n, sizeof *values, compare);
  return values[n / 2];
}

/* What others on the machine take and give back meanwhile is noise: the median
 * of two seconds. */
static double
available_kib (void)
{
  double values[SAMPLES] = { 0 };
  char line[128];
  size_t i;

  for (i = 0; i < SAMPLES; i++) {
    FILE *file = fopen ("/proc/meminfo", "re");

    if (!file)
      give_up ("/proc/meminfo", NULL);
    while (fgets (line, sizeof line, file))
      if (sscanf (line, "MemAvailable: %lf", &values[i]) == 1)
        break;
    fclose (file);
    usleep (2000000 / SAMPLES);
  }
  return median (values, SAMPLES);
}

static void
verdict (const char *name, double value, double limit)
{
  printf ("%s %.3f\n", name, value);
  printf ("# %s: %.3f, limit at most %.2f: %s\n", name, value, limit,
          value <= limit ? "kept" : "NOT KEPT");
  missed |= value > limit;
}

static struct sandbox_record *
make (struct host *host)
{
  const struct sandbox_request request
    = { .provider = "linux", .ephemeral = 1, .no_facts = 1 };
  struct sandbox_record *record;
  struct error *error = NULL;

  if (sandbox_create (host, &request, NULL, &record, NULL, &error) < 0)
    give_up ("a sandbox", error);
  return record;
}

static void
end (struct host *host, struct sandbox_record *record)
{
  struct error *error = NULL;
  int gone;

  if (sandbox_kill (host, NULL, record->id, NULL, &gone, &error) < 0)
    give_up ("the end of a sandbox", error);
  sandbox_record_free (record);
}

/* Makes them in steps, so that what others take at one moment is one step's,
 * and the median of the steps says what each takes. */
static double
grow (struct host *host, struct sandbox_record **all, double *ms, size_t n)
{
  double each[STEPS], before = available_kib (), after;
  size_t step, i;

  for (step = 0; step < STEPS; step++) {
    for (i = n * step / STEPS; i < n * (step + 1) / STEPS; i++) {
      const int64_t begin = coffer_now_ns ();

      all[i] = make (host);
      ms[i] = (double) (coffer_now_ns () - begin) / 1e6;
    }
    after = available_kib ();
    each[step] = (before - after) / ((double) n / STEPS);
    before = after;
  }
  return median (each, STEPS);
}

static void
measure (struct host *host, size_t n, unsigned seconds)
{
  struct sandbox_record **all = calloc (n, sizeof *all);
  double *ms = calloc (n, sizeof *ms), before, each, after, first, last;
  size_t i;

  if (!all || !ms)
    give_up ("memory", NULL);
  before = available_kib ();
  each = grow (host, all, ms, n);
  first = median (ms, EDGE);
  last = median (ms + n - EDGE, EDGE);
  for (i = 0; i < n; i++)
    end (host, all[i]);
  if (each <= 0)
    give_up ("others give back more memory than this takes", NULL);
  printf ("idle_first_ms %.3f\n", first);
  printf ("idle_last_ms %.3f\n", last);
  verdict ("idle_last_to_first", last / first, SLOWER);
  verdict ("idle_each_kib", each, EACH_KIB);
  sleep (seconds);
  after = available_kib ();
  verdict ("idle_missing_part", (before - after) / before, KEPT_PART);
  free (all);
  free (ms);
}

int
main (int argc, char **argv)
{
  const size_t n = argc > 1 ? strtoul (argv[1], NULL, 10) : 500;
  const unsigned seconds = argc > 2 ? (unsigned) atoi (argv[2]) : 30;
  struct rlimit files;
  struct error *error = NULL;
  struct place *place;
  struct host *host;
  size_t i;

  if (n < 2 * EDGE)
    return 2;
  getrlimit (RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit (RLIMIT_NOFILE, &files);
  if (place_find (&place, &error) < 0
      || host_open (place, HOST_IN_PROCESS | HOST_EPHEMERAL, &host, &error)
           < 0)
    give_up ("the host", error);
  /* What the first ones load stays. */
  for (i = 0; i < EDGE; i++)
    end (host, make (host));
  sleep (1);
  measure (host, n, seconds);
  host_close (host);
  place_free (place);
  return missed;
}
