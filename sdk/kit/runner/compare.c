/* SPDX-License-Identifier: Apache-2.0 */
/* --compare: two reports, and what changed from the one to the other. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "runner.h"

#define MAX_REPORT (16 * 1024 * 1024)

/* ---- reading ------------------------------------------------------------- */

static int
report_read (const char *path, json_t **out, struct error **err)
{
  coffer_autoclose int fd = open (path, O_RDONLY | O_CLOEXEC);
  auto_free char *bytes = NULL;
  auto_json json_t *report = NULL;
  size_t size = 0;

  if (fd < 0 || coffer_read_whole (fd, MAX_REPORT, &bytes, &size) < 0)
    return error_set (err, errno == ENOENT ? E_NOT_FOUND : E_IO, errno,
                      "read %s", path);
  if (json_parse (bytes, size, &report, err) < 0)
    return error_wrap (err, "%s", path);
  if (json_integer_value (json_object_get (report, "report")) != 1
      || !json_is_array (json_object_get (report, "cases")))
    return error_set (err, E_USAGE, 0, "%s is no report of this kit", path);
  *out = steal (report);
  return 0;
}

static const json_t *
case_of (const json_t *report, const char *id)
{
  const json_t *row;
  const char *other;
  size_t i;

  json_array_foreach (json_object_get (report, "cases"), i, row) {
    other = json_string_value (json_object_get (row, "id"));
    if (other && strcmp (other, id) == 0)
      return row;
  }
  return NULL;
}

/* "passed", or "absent". */
static const char *
verdict_of (const json_t *row)
{
  const char *verdict
    = json_string_value (json_object_get (row, "verdict"));

  return verdict ? verdict : "absent";
}

/* ---- better and worse ---------------------------------------------------- */

static int
rank (const char *verdict)
{
  static const char *const order[] = { "failed",     "skipped", "incomplete",
                                       "waived",     "absent",  "passed",
                                       "conformant", NULL };
  int i;

  for (i = 0; order[i] && strcmp (order[i], verdict) != 0; i++)
    ;
  return order[i] ? i : 0;      /* a word of nobody's is no improvement */
}

/* What is new and did not pass is worse than what was not there. */
static const char *
change_of (const char *old, const char *new)
{
  return rank (new) < rank (old) ? "worse" : "better";
}

static void
add_case (json_t *cases, const char *id, const json_t *old_row,
          const json_t *new_row, int *worse)
{
  const char *old = verdict_of (old_row), *new = verdict_of (new_row);
  const char *change = change_of (old, new);
  json_t *reason = json_object_get (new_row, "reason"), *row;

  if (strcmp (old, new) == 0)
    return;
  *worse |= strcmp (change, "worse") == 0;
  row = json_pack ("{s:s, s:s, s:s, s:s}", "id", id, "old", old, "new", new,
                   "change", change);
  if (reason)
    json_object_set (row, "reason", reason);
  json_array_append_new (cases, row);
}

static json_t *
compare_cases (const json_t *old, const json_t *new, int *worse)
{
  json_t *cases = json_array (), *row;
  const char *id;
  size_t i;

  json_array_foreach (json_object_get (old, "cases"), i, row) {
    id = json_string_value (json_object_get (row, "id"));
    if (id)
      add_case (cases, id, row, case_of (new, id), worse);
  }
  json_array_foreach (json_object_get (new, "cases"), i, row) {
    id = json_string_value (json_object_get (row, "id"));
    if (id && !case_of (old, id))
      add_case (cases, id, NULL, row, worse);
  }
  return cases;
}

/* ---- of what ------------------------------------------------------------- */

static json_t *
member (const json_t *report, const char *path)
{
  auto_free char *copy = strdup (path);
  char *word, *rest = copy;

  while (copy && report && (word = strsep (&rest, ".")))
    report = json_object_get (report, word);
  return (json_t *) (uintptr_t) report;
}

static json_t *
compare_heads (const json_t *old, const json_t *new)
{
  static const char *const paths[] = {
    "provider.id", "provider.version", "provider.manifest_sha256",
    "provider.module_sha256", "contract.major", "contract.minor", "kit", "mode",
    "machine.kernel", "machine.arch", "machine.root", "verdict", NULL
  };
  json_t *heads = json_array (), *a, *b;
  size_t i;

  for (i = 0; paths[i]; i++) {
    a = member (old, paths[i]);
    b = member (new, paths[i]);
    if ((a || b) && !(a && b && json_equal (a, b)))
      json_array_append_new (heads, json_pack ("{s:s, s:O?, s:O?}", "what",
                                               paths[i], "old", a, "new", b));
  }
  return heads;
}

/* ---- printing ------------------------------------------------------------ */

/* A report may be anybody's: no byte of it moves the cursor. */
static void
print_shown (const json_t *text, size_t most)
{
  const size_t size = json_string_length (text);
  auto_free char *shown = text_escape (json_string_value (text),
                                       size < most ? size : most);

  printf ("%s", shown ? shown : "?");
}

static void
print_value (const json_t *value)
{
  auto_free char *text = NULL;

  if (json_is_string (value))
    print_shown (value, 80);
  else if ((text = json_dumps (value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII)))
    printf ("%s", text);
  else
    printf ("nothing");
}

static void
print_case (const json_t *row)
{
  const json_t *reason = json_object_get (row, "reason");

  printf ("%s ", json_string_value (json_object_get (row, "change")));
  print_shown (json_object_get (row, "id"), 200);
  printf (": ");
  print_shown (json_object_get (row, "old"), 80);
  printf (" -> ");
  print_shown (json_object_get (row, "new"), 80);
  if (json_is_string (reason)) {
    printf (": ");
    print_shown (reason, SIZE_MAX);
  }
  putchar ('\n');
}

static void
print_text (const json_t *difference)
{
  const json_t *row;
  size_t i;

  json_array_foreach (json_object_get (difference, "heads"), i, row) {
    printf ("%s: ", json_string_value (json_object_get (row, "what")));
    print_value (json_object_get (row, "old"));
    printf (" -> ");
    print_value (json_object_get (row, "new"));
    putchar ('\n');
  }
  json_array_foreach (json_object_get (difference, "cases"), i, row)
    print_case (row);
}

int
compare_print (const char *old_path, const char *new_path, int as_json,
               int *worse, struct error **err)
{
  auto_json json_t *old = NULL, *new = NULL, *difference = NULL;
  auto_free char *text = NULL;
  json_t *cases;

  if (report_read (old_path, &old, err) < 0
      || report_read (new_path, &new, err) < 0)
    return -1;
  *worse = rank (verdict_of (new)) < rank (verdict_of (old));
  cases = compare_cases (old, new, worse);
  difference = json_pack ("{s:b, s:o, s:o}", "worse", *worse, "heads",
                          compare_heads (old, new), "cases", cases);
  text = json_text (difference);
  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  if (as_json)
    printf ("%s\n", text);
  else
    print_text (difference);
  return 0;
}
