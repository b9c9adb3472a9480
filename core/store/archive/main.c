/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-archive: see archive.h. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "archive.h"
#include "base/json.h"
#include "base/text.h"

int
report_fail (struct report *report, const char *entry, const char *fmt, ...)
{
  va_list ap;

  if (report->error[0])
    return -1;
  va_start (ap, fmt);
  vsnprintf (report->error, sizeof report->error, fmt, ap);
  va_end (ap);
  if (entry) {
    auto_free char *shown = text_escape (entry, strlen (entry));

    snprintf (report->entry, sizeof report->entry, "%s", shown ? shown : "?");
  }
  return -1;
}

static int
report_write (const struct report *report, int abi)
{
  auto_json json_t *json = NULL;
  auto_free char *text = NULL;

  if (report->error[0])
    json = json_pack ("{s:s, s:s}", "error", report->error, "entry",
                      report->entry);
  else
    json = json_pack ("{s:o, s:o, s:o, s:o, s:s, s:b}", "files",
                      json_u64 (report->files), "bytes",
                      json_u64 (report->bytes), "left_out",
                      json_u64 (report->left_out), "stripped",
                      json_u64 (report->stripped), "digest", report->digest,
                      "confined", abi > 0);
  text = json_text (json);
  return text && coffer_write_all (ARCHIVE_REPORT_FD, text, strlen (text)) > 0
           ? 0 : -1;
}

/* entries=N, bytes=N, file_bytes=N. */
static int
caps_read (char **words, struct caps *caps, struct report *report)
{
  const struct {
    const char *name;
    uint64_t *value;
  } table[] = { { "entries=", &caps->entries }, { "bytes=", &caps->bytes },
                { "file_bytes=", &caps->file_bytes } };
  size_t i, n;

  for (; *words; words++) {
    for (i = 0; i < 3; i++) {
      n = strlen (table[i].name);
      if (strncmp (*words, table[i].name, n) == 0
          && text_parse_u64 (*words + n, 1, INT64_MAX, table[i].value) == 0)
        break;
    }
    if (i == 3)
      return report_fail (report, NULL, "no such cap: %.64s", *words);
  }
  return 0;
}

/* What a hostile archive could make a decompressor take. */
static void
limits_set (void)
{
  const struct rlimit memory = { 1 << 30, 1 << 30 }, core = { 0, 0 };
  const struct rlimit files = { 128, 128 };

#ifndef COFFER_SANITIZERS
  setrlimit (RLIMIT_AS, &memory);
#else
  (void) memory;
#endif
  setrlimit (RLIMIT_CORE, &core);
  setrlimit (RLIMIT_NOFILE, &files);
}

int
main (int argc, char **argv)
{
  struct caps caps = { 1000000, UINT64_C (32) << 30, UINT64_C (8) << 30 };
  struct report report = { 0 };
  const char *mode = argc > 1 ? argv[1] : "";
  const int packs_package = argc == 3 && strcmp (mode, "pack-package") == 0;
  const int packs = packs_package || (argc == 2 && strcmp (mode, "pack") == 0);
  uint64_t time = 0;
  int r = -1, abi = 0;

  caps.package = strcmp (mode, "unpack-package") == 0;

  if (fcntl (ARCHIVE_FOLDER_FD, F_GETFD) < 0
      || fcntl (ARCHIVE_REPORT_FD, F_GETFD) < 0
      || (packs_package
          && text_parse_u64 (argv[2], 0, UINT32_MAX, &time) < 0)
      || (!packs && !caps.package && strcmp (mode, "unpack") != 0)) {
    fprintf (stderr, "coffer-archive is run by coffer\n");
    return 2;
  }
  /* Names are bytes; libarchive wants to see them as UTF-8. */
  setlocale (LC_CTYPE, "C.UTF-8");
  umask (0);
  limits_set ();
  if (packs || caps_read (argv + 2, &caps, &report) == 0)
    abi = confine (!packs, &report);
  if (!report.error[0] && abi >= 0)
    r = packs ? pack (packs_package, (int64_t) time, &report)
              : unpack (&caps, &report);
  if (r < 0)
    report_fail (&report, NULL, "it failed without a word");
  return report_write (&report, abi) < 0 || r < 0;
}
