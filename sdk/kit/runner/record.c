/* SPDX-License-Identifier: Apache-2.0 */
/* --record: the report beside an installed provider, and its hash in the
 * receipt, which is what opens the provider from then on. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/sha256.h"
#include "base/text.h"
#include "provider/conformance.h"
#include "provider/receipt.h"
#include "runner.h"

/* What a case makes and takes on average, where no earlier report says it. */
#define SANDBOXES_A_CASE 3
#define MS_A_CASE 300

/* ---- before -------------------------------------------------------------- */

static int
refuse (struct error **err, const char *what, const char *next)
{
  error_set (err, E_USAGE, 0, "--record: %s", what);
  error_hint (err, "%s", next);
  return -1;
}

static int
record_check (const struct run *run, struct error **err)
{
  const struct registry_entry *entry = run->subject->entry;
  auto_receipt struct receipt *receipt = NULL;
  int r;

  if (entry->trust == TRUST_PACKAGED)
    return refuse (err, "this provider comes with coffer, whose own tests "
                   "answer for it", "leave --record out");
  if (run->options->in_process || run->options->only[0])
    return refuse (err, "only a whole run in a worker is worth keeping",
                   "leave --in-process and --only out");
  r = receipt_read (entry->dir_fd, &receipt, err);
  if (r == 0)
    return refuse (err, "there is no receipt to keep the result with",
                   "coffer provider install DIR makes one; coffer provider "
                   "enable ID for a folder that was put there by hand");
  return r < 0 ? -1 : 0;
}

static json_t *
earlier_report (const struct registry_entry *entry)
{
  auto_free char *bytes = NULL;
  json_t *report = NULL;
  size_t size = 0;

  if (place_read_trusted (entry->dir_fd, CONFORMANCE_FILE, CONFORMANCE_FILE,
                          CONFORMANCE_MAX_BYTES, E_IO, &bytes, &size, NULL)
        < 0
      || json_parse (bytes, size, &report, NULL) < 0)
    return NULL;
  return report;
}

/* How many sandboxes it will make, and about how long that takes: each may
 * cost its owner money. */
static void
estimate (const struct run *run, uint64_t *sandboxes, uint64_t *ms)
{
  auto_json json_t *report = earlier_report (run->subject->entry);
  const struct kit_case *const *table, *row;
  uint64_t us = 0;
  size_t n = 0;

  for (table = kit_tables; *table; table++)
    for (row = *table; row->id; row++)
      n += case_is_claimed (run->subject, row);
  *sandboxes = n * SANDBOXES_A_CASE;
  *ms = n * MS_A_CASE;
  if (report
      && json_get_u64 (json_object_get (report, "sandboxes"), sandboxes) == 0
      && json_get_u64 (json_object_get (report, "duration_us"), &us) == 0)
    *ms = us / 1000;
}

static int
confirm (const struct options *options, struct error **err)
{
  char answer[16];

  if (options->yes)
    return 0;
  if (options->json || !isatty (STDIN_FILENO) || !isatty (STDERR_FILENO)) {
    error_set (err, E_USAGE, 0, "--record: nobody is there to answer");
    error_hint (err, "add --yes to go on without being asked");
    return -1;
  }
  fputs ("Go on? [y/N] ", stderr);
  fflush (stderr);
  if (fgets (answer, sizeof answer, stdin)
      && (answer[0] == 'y' || answer[0] == 'Y'))
    return 0;
  error_set (err, E_DENIED, 0, "--record: answered with no");
  error_hint (err, "nothing was done");
  return -1;
}

int
record_begin (const struct run *run, struct error **err)
{
  uint64_t sandboxes, ms;
  auto_free char *time = NULL;

  if (record_check (run, err) < 0)
    return -1;
  estimate (run, &sandboxes, &ms);
  time = text_format_duration (ms < 1000 ? 1000 : ms);
  fprintf (stderr, "coffer kit: this makes about %llu sandboxes with %s, one "
           "after another, and takes about %s\n",
           (unsigned long long) sandboxes, run->subject->entry->id,
           time ? time : "a while");
  return confirm (run->options, err);
}

/* ---- after --------------------------------------------------------------- */

static const char *
text_of (const json_t *report, const char *key)
{
  return json_string_value (json_object_get (report, key));
}

int
record_end (const struct run *run, const json_t *report, struct error **err)
{
  const struct subject *subject = run->subject;
  const struct manifest *manifest = subject->entry->manifest;
  auto_free char *text = json_text (report);
  struct receipt_conformance conformance = {
    .verdict = (char *) text_of (report, "verdict"),
    .report = (char *) CONFORMANCE_FILE, .kit = (char *) KIT_VERSION,
    .contract_major = manifest->contract_major,
    .contract_minor = manifest->contract_minor,
    .mode = (char *) text_of (report, "mode"),
    .time = (char *) text_of (report, "time")
  };

  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  conformance.without = (char *) text_of (report, "without");
  sha256_hex (text, strlen (text), conformance.report_sha256);
  memcpy (conformance.manifest_sha256, manifest->sha256, SHA256_HEX_SIZE);
  memcpy (conformance.module_sha256, subject->module_sha256, SHA256_HEX_SIZE);
  return receipt_set_conformance (subject->entry->dir_fd, text, &conformance,
                                  err);
}
