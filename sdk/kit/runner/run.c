/* SPDX-License-Identifier: Apache-2.0 */
/* A run: which cases apply, in which order, and the verdict of them all. */

#include <config.h>

#include <errno.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/mman.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "runner.h"

const char *
verdict_name (enum verdict verdict)
{
  static const char *const names[] = {
    [VERDICT_NONE] = "none", [VERDICT_PASSED] = "passed",
    [VERDICT_FAILED] = "failed", [VERDICT_SKIPPED] = "skipped",
    [VERDICT_WAIVED] = "waived"
  };

  return names[verdict];
}

/* ---- what applies -------------------------------------------------------- */

static int
is_chosen (const struct run *run, const struct kit_case *row)
{
  const char **only = run->options->only;

  if (!only || !*only)
    return 1;
  for (; *only; only++)
    if (fnmatch (*only, row->id, 0) == 0)
      return 1;
  return 0;
}

int
case_is_claimed (const struct subject *subject, const struct kit_case *row)
{
  auto_free char *words = strdup (row->claims);
  char *word, *rest = words;

  while (words && (word = strsep (&rest, " ")))
    if (*word && !subject_claims (subject, word))
      return 0;
  return words != NULL;
}

/* Waived by what the manifest does not claim, or skipped by what probe took
 * away; else left as it is. */
static int
judge_claims (const struct run *run, struct result *result)
{
  auto_free char *words = strdup (result->row->claims);
  char *word, *rest = words;

  if (!words)
    return -1;
  while ((word = strsep (&rest, " ")))
    if (*word && !subject_claims (run->subject, word)) {
      result->verdict = VERDICT_WAIVED;
      result->reason = text_printf (
        subject_gives_up (run->subject, word)
          ? "%s is given up by the operator" : "%s is not claimed", word);
      return 0;
    }
  free (words);
  rest = words = strdup (result->row->claims);
  while (words && (word = strsep (&rest, " ")))
    if (*word && subject_narrowed (run->subject, word)) {
      result->verdict = VERDICT_SKIPPED;
      result->reason = strdup (subject_narrowed (run->subject, word));
      return 0;
    }
  return words ? 0 : -1;
}

static int
judge (const struct run *run, struct result *result)
{
  if (judge_claims (run, result) < 0)
    return -1;
  if (result->verdict == VERDICT_NONE && run->subject->in_process
      && (result->row->flags & KIT_NEEDS_WORKER)) {
    result->verdict = VERDICT_SKIPPED;
    result->reason = strdup ("it needs a worker, and this run is in-process");
  }
  return 0;
}

/* ---- the order ----------------------------------------------------------- */

static uint64_t
mix (uint64_t value)
{
  value = (value ^ (value >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  value = (value ^ (value >> 27)) * UINT64_C (0x94d049bb133111eb);
  return value ^ (value >> 31);
}

/* Drawn from the seed, but for those that come last. */
static void
shuffle (struct run *run)
{
  uint64_t state = run->options->seed;
  struct result keep;
  size_t i, k, last = run->count;

  for (i = run->count; i-- > 1;) {
    state += UINT64_C (0x9e3779b97f4a7c15);
    k = mix (state) % (i + 1);
    keep = run->results[i];
    run->results[i] = run->results[k];
    run->results[k] = keep;
  }
  for (i = run->count; i-- > 0;)
    if (run->results[i].row->flags & KIT_LAST) {
      keep = run->results[i];
      memmove (&run->results[i], &run->results[i + 1],
               (--last - i) * sizeof keep);
      run->results[last] = keep;
    }
}

static int
collect (struct run *run, struct error **err)
{
  const struct kit_case *const *table, *row;
  struct result *result;
  size_t n = 0;

  for (table = kit_tables; *table; table++)
    for (row = *table; row->id; row++)
      n++;
  run->results = calloc (n + 1, sizeof *run->results);
  if (!run->results)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  for (table = kit_tables; *table; table++)
    for (row = *table; row->id; row++) {
      if (!is_chosen (run, row))
        continue;
      result = &run->results[run->count++];
      result->row = row;
    }
  run->shared->partial = run->count < n;
  if (run->count == 0) {
    error_set (err, E_USAGE, 0, "no case is called like that");
    error_hint (err, "coffer kit --list shows them all");
    return -1;
  }
  shuffle (run);
  return 0;
}

/* ---- running ------------------------------------------------------------- */

static void
count_result (struct run *run, const struct result *result)
{
  run->passed += result->verdict == VERDICT_PASSED;
  run->failed += result->verdict == VERDICT_FAILED;
  run->skipped += result->verdict == VERDICT_SKIPPED;
  run->waived += result->verdict == VERDICT_WAIVED;
}

/* A provider that cannot be opened fails the case that is for this; no other
 * can say anything. */
#define OPENING_CASE "load.opens"

static int
open_first (struct run *run, struct error **err)
{
  struct result first = { 0 };
  size_t i;
  int result = process_probe (run, &first, err);

  if (result == 0 && first.verdict == VERDICT_PASSED)
    result = subject_take_facts (run->subject, run->shared->text, err);
  else if (result == 0)
    for (i = 0; i < run->count; i++) {
      struct result *one = &run->results[i];
      const int opens = strcmp (one->row->id, OPENING_CASE) == 0;

      if (run->shared->partial && !opens) {
        one->verdict = VERDICT_FAILED;
        one->reason = strdup (first.reason ? first.reason : "?");
      } else if (!opens) {
        one->verdict = VERDICT_SKIPPED;
        one->reason = strdup ("the provider cannot be opened: see "
                              OPENING_CASE);
      }
    }
  free (first.reason);
  free (first.notes);
  free (first.log);
  return result;
}

static int
run_case (struct run *run, struct result *result, size_t number,
          size_t planned, struct error **err)
{
  if (result->verdict == VERDICT_NONE) {
    tap_case_begins (run, result->row, number, planned);
    if (process_run (run, result->row, run->options->seed, result, err) < 0)
      return -1;
  }
  tap_case (run, result, number);
  return 0;
}

static int
run_cases (struct run *run, struct error **err)
{
  size_t i, planned = 0, number = 0;

  for (i = 0; i < run->count; i++) {
    if (run->results[i].verdict == VERDICT_NONE
        && judge (run, &run->results[i]) < 0)
      return error_set (err, E_NO_MEMORY, 0, "out of memory");
    planned += run->results[i].verdict != VERDICT_WAIVED;
  }
  tap_begin (run, planned);
  for (i = 0; i < run->count && !run->interrupted; i++) {
    struct result *result = &run->results[i];

    if (result->verdict != VERDICT_WAIVED
        && run_case (run, result, ++number, planned, err) < 0)
      return -1;
    count_result (run, result);
  }
  return 0;
}

int
run_all (struct run *run, struct error **err)
{
  const int64_t began = coffer_now_ns ();

  run->began_ns = coffer_realtime_ns ();
  run->shared = mmap (NULL, sizeof *run->shared, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (run->shared == MAP_FAILED) {
    run->shared = NULL;
    return error_set (err, E_NO_MEMORY, errno, "map memory");
  }
  if (collect (run, err) < 0 || open_first (run, err) < 0
      || run_cases (run, err) < 0)
    return -1;
  run->duration_us = (coffer_now_ns () - began) / 1000;
  return 0;
}

void
run_fini (struct run *run)
{
  size_t i;

  for (i = 0; i < run->count; i++) {
    free (run->results[i].reason);
    free (run->results[i].notes);
    free (run->results[i].log);
  }
  free (run->results);
  if (run->shared)
    munmap (run->shared, sizeof *run->shared);
}

/* ---- the verdict --------------------------------------------------------- */

const char *
run_verdict (const struct run *run, char why[512])
{
  const char *verdict = run->failed ? "failed" : "incomplete";

  why[0] = '\0';
  if (run->failed)
    snprintf (why, 512, "%zu case%s failed", run->failed,
              run->failed == 1 ? "" : "s");
  else if (run->skipped)
    snprintf (why, 512, "%zu case%s skipped", run->skipped,
              run->skipped == 1 ? " was" : "s were");
  else if (run->subject->in_process)
    snprintf (why, 512, "it ran in-process");
  else if (run->shared->partial)
    snprintf (why, 512, "only some cases were chosen");
#ifdef COFFER_SANITIZERS
  else
    snprintf (why, 512, "this build has sanitizers, and limits are lifted");
#else
  else
    verdict = "conformant";
#endif
  return verdict;
}
