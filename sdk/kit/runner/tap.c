/* SPDX-License-Identifier: Apache-2.0 */
/* Flat TAP as the cases end; on a terminal with colours, and with a line that
 * says what is under way. */

#include <config.h>

#include <string.h>
#include <unistd.h>

#include <coffer/buffer.h>

#include "base/text.h"
#include "runner.h"

static int
is_shown (const struct run *run)
{
  return !run->options->json;
}

static const char *
paint (const struct run *run, enum verdict verdict)
{
  if (!run->options->color)
    return "";
  return verdict == VERDICT_PASSED   ? "\033[32m"
         : verdict == VERDICT_FAILED ? "\033[1;31m"
                                     : "\033[33m";
}

static const char *
unpaint (const struct run *run)
{
  return run->options->color ? "\033[0m" : "";
}

/* The line under way is wiped before anything else is written. */
static void
wipe_line (void)
{
  if (isatty (2))
    fputs ("\r\033[K", stderr);
}

void
tap_begin (const struct run *run, size_t planned)
{
  if (!is_shown (run))
    return;
  printf ("# coffer kit %s: %s, seed %llu%s\n", KIT_VERSION,
          run->subject->entry->id, (unsigned long long) run->options->seed,
          run->subject->in_process ? ", in-process" : "");
  printf ("1..%zu\n", planned);
  fflush (stdout);
}

void
tap_case_begins (const struct run *run, const struct kit_case *row,
                 size_t number, size_t planned)
{
  (void) run;
  if (!isatty (2))
    return;
  fprintf (stderr, "\r\033[K%zu/%zu %s", number, planned, row->id);
  fflush (stderr);
}

static void
print_lines (const char *prefix, const char *text)
{
  auto_free char *copy = text ? strdup (text) : NULL;
  char *line, *rest = copy;

  while (copy && (line = strsep (&rest, "\n"))) {
    auto_free char *shown = text_escape (line, strlen (line));

    if (*line)
      printf ("# %s%s\n", prefix, shown ? shown : "?");
  }
}

void
tap_case (const struct run *run, const struct result *result, size_t number)
{
  const int failed = result->verdict == VERDICT_FAILED;
  auto_free char *reason
    = result->reason ? text_escape (result->reason, strlen (result->reason))
                     : NULL;

  if (!is_shown (run))
    return;
  wipe_line ();
  printf ("%s%s %zu%s - %s", paint (run, result->verdict),
          failed ? "not ok" : "ok", number, unpaint (run), result->row->id);
  if (result->verdict == VERDICT_SKIPPED)
    printf (" # SKIP %s", reason ? reason : "?");
  putchar ('\n');
  if (failed)
    printf ("#   %s\n", reason ? reason : "?");
  if (result->verdict != VERDICT_PASSED || run->options->verbose)
    print_lines ("  ", result->notes);
  if (failed)
    print_lines ("  | ", result->log);
  fflush (stdout);
}

static void
print_waived (const struct run *run)
{
  size_t i;

  for (i = 0; i < run->count; i++)
    if (run->results[i].verdict == VERDICT_WAIVED)
      printf ("# waived %s: %s\n", run->results[i].row->id,
              run->results[i].reason ? run->results[i].reason : "?");
}

/* Once more, last: who reads the end alone sees what has to be mended.  */
static void
print_failed (const struct run *run)
{
  size_t i;

  for (i = 0; i < run->count; i++) {
    const struct result *result = &run->results[i];
    auto_free char *reason
      = result->reason ? text_escape (result->reason, strlen (result->reason))
                       : NULL;

    if (result->verdict == VERDICT_FAILED)
      printf ("# %sfailed%s %s: %s\n", paint (run, result->verdict),
              unpaint (run), result->row->id, reason ? reason : "?");
  }
}

void
tap_end (const struct run *run)
{
  char why[512];
  const char *verdict = run_verdict (run, why);

  wipe_line ();
  if (!is_shown (run))
    return;
  print_waived (run);
  print_failed (run);
  printf ("# %s%s%s%s%s: %.1f s, seed %llu, %zu waived by what is not "
          "claimed\n", paint (run, run->failed ? VERDICT_FAILED
                                   : *why ? VERDICT_SKIPPED : VERDICT_PASSED),
          verdict, unpaint (run), *why ? ", as " : "", why,
          (double) run->duration_us / 1e6,
          (unsigned long long) run->options->seed, run->waived);
  printf ("%zu passed, %zu failed, %zu skipped\n", run->passed, run->failed,
          run->skipped);
}
