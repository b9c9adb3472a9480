/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a run, as JSON and as JUnit's XML, and the list of cases. */

#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/text.h"
#include "contract/contract.h"
#include "runner.h"

/* ---- JSON ---------------------------------------------------------------- */

static json_t *
case_json (const struct result *result)
{
  json_t *json = json_pack ("{s:s, s:s, s:I}", "id", result->row->id,
                            "verdict", verdict_name (result->verdict),
                            "duration_us", (json_int_t) result->duration_us);

  if (result->reason)
    json_object_set_new (json, "reason",
                         json_bytes (result->reason,
                                     strlen (result->reason)));
  if (result->notes)
    json_object_set_new (json, "notes",
                         json_bytes (result->notes, strlen (result->notes)));
  return json;
}

static json_t *
cases_json (const struct run *run)
{
  json_t *cases = json_array ();
  size_t i;

  for (i = 0; i < run->count; i++)
    json_array_append_new (cases, case_json (&run->results[i]));
  return cases;
}

static json_t *
machine_json (void)
{
  struct utsname name;

  if (uname (&name) < 0)
    memset (&name, 0, sizeof name);
  return json_pack ("{s:s, s:s, s:I, s:b}", "kernel", name.release, "arch",
                    name.machine, "processors",
                    (json_int_t) sysconf (_SC_NPROCESSORS_ONLN), "root",
                    geteuid () == 0);
}

/* RFC 3339, UTC. */
static void
format_time (int64_t ns, char out[32])
{
  time_t seconds = (time_t) (ns / 1000000000);
  struct tm tm;

  gmtime_r (&seconds, &tm);
  strftime (out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static json_t *
provider_json (const struct subject *subject)
{
  const struct manifest *manifest = subject->entry->manifest;

  return json_pack ("{s:s, s:s, s:s, s:s}", "id", manifest->id, "version",
                    manifest->version ? manifest->version : "",
                    "manifest_sha256", manifest->sha256, "module_sha256",
                    subject->module_sha256);
}

/* What the operator gave up, by blanks. */
static json_t *
without_json (const struct registry_entry *entry)
{
  coffer_autobuffer struct coffer_buffer words = { 0 };
  size_t i;

  for (i = 0; entry->without[i]; i++)
    coffer_buffer_printf (&words, "%s%s", i ? " " : "", entry->without[i]);
  return json_string (words.data ? words.data : "");
}

json_t *
report_json (const struct run *run)
{
  const struct manifest *manifest = run->subject->entry->manifest;
  char why[512], when[32];
  const char *verdict = run_verdict (run, why);
  json_t *json;

  format_time (run->began_ns, when);
  json = json_pack (
    "{s:i, s:s, s:s, s:o, s:{s:i, s:i}, s:s, s:o, s:s, s:b, s:o, s:s, s:I, "
    "s:I, s:{s:I, s:I, s:I, s:I}, s:O?, s:o}", "report", 1, "verdict", verdict,
    "why", why, "provider", provider_json (run->subject), "contract", "major",
    manifest->contract_major, "minor", manifest->contract_minor, "kit",
    KIT_VERSION, "seed", json_u64 (run->options->seed), "mode",
    run->subject->in_process ? "in-process" : "worker", "partial",
    run->shared->partial, "machine", machine_json (), "time", when,
    "duration_us", (json_int_t) run->duration_us, "sandboxes",
    (json_int_t) run->sandboxes, "counts", "passed",
    (json_int_t) run->passed, "failed", (json_int_t) run->failed, "skipped",
    (json_int_t) run->skipped, "waived", (json_int_t) run->waived, "facts",
    run->subject->facts, "cases", cases_json (run));
  if (json && run->subject->entry->without)
    json_object_set_new (json, "without", without_json (run->subject->entry));
#ifdef COFFER_SANITIZERS
  if (json)
    json_object_set_new (json, "sanitizers", json_string (COFFER_SANITIZERS));
#endif
  return json;
}

/* ---- JUnit --------------------------------------------------------------- */

/* What XML 1.0 cannot hold is escaped as for people first. */
static void
xml_add (struct coffer_buffer *out, const char *text)
{
  coffer_autobuffer struct coffer_buffer clean = { 0 };
  const char *p;

  coffer_buffer_add_escaped (&clean, text ? text : "",
                             text ? strlen (text) : 0);
  for (p = clean.data; p && *p; p++) {
    const char *entity = *p == '<'    ? "&lt;"
                         : *p == '>'  ? "&gt;"
                         : *p == '&'  ? "&amp;"
                         : *p == '"'  ? "&quot;"
                                      : NULL;

    if (entity)
      coffer_buffer_add_string (out, entity);
    else
      coffer_buffer_add (out, p, 1);
  }
}

static void
xml_child (struct coffer_buffer *out, const char *name,
           const struct result *result)
{
  coffer_buffer_printf (out, ">\n    <%s message=\"", name);
  xml_add (out, result->reason);
  coffer_buffer_add_string (out, "\"/>\n  </testcase>\n");
}

static void
xml_case (struct coffer_buffer *out, const struct run *run,
          const struct result *result)
{
  const char *dot = strchr (result->row->id, '.');
  const int area = dot ? (int) (dot - result->row->id) : 0;

  coffer_buffer_printf (out, "  <testcase classname=\"%s.%.*s\" name=\"%s\" "
                        "time=\"%.6f\"", run->subject->entry->id, area,
                        result->row->id, result->row->id,
                        (double) result->duration_us / 1e6);
  if (result->verdict == VERDICT_FAILED)
    xml_child (out, "failure", result);
  else if (result->verdict != VERDICT_PASSED)
    xml_child (out, "skipped", result);
  else
    coffer_buffer_add_string (out, "/>\n");
}

int
report_junit (const struct run *run, const char *path, struct error **err)
{
  coffer_autobuffer struct coffer_buffer out = { 0 };
  FILE *file;
  size_t i;
  int bad;

  coffer_buffer_printf (&out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                        "<testsuite name=\"coffer kit %s\" tests=\"%zu\" "
                        "failures=\"%zu\" skipped=\"%zu\" time=\"%.6f\">\n",
                        run->subject->entry->id, run->count, run->failed,
                        run->skipped + run->waived,
                        (double) run->duration_us / 1e6);
  for (i = 0; i < run->count; i++)
    xml_case (&out, run, &run->results[i]);
  coffer_buffer_add_string (&out, "</testsuite>\n");
  if (out.failed)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  file = fopen (path, "we");
  if (!file)
    return error_set (err, E_IO, errno, "open %s", path);
  bad = fwrite (out.data, 1, out.size, file) != out.size;
  bad |= fclose (file) == EOF;
  return bad ? error_set (err, E_IO, errno, "write %s", path) : 0;
}

/* ---- the list of cases --------------------------------------------------- */

static json_t *
row_json (const struct kit_case *row)
{
  return json_pack ("{s:s, s:s, s:s, s:I}", "id", row->id, "claims",
                    row->claims, "proves", row->proves, "timeout_ms",
                    (json_int_t) (row->timeout_ms ? row->timeout_ms
                                                  : KIT_CASE_MS));
}

int
list_print (const struct options *options, struct error **err)
{
  auto_json json_t *list = json_array ();
  auto_free char *text = NULL;
  const struct kit_case *const *table, *row;

  for (table = kit_tables; *table; table++)
    for (row = *table; row->id; row++) {
      if (options->json)
        json_array_append_new (list, row_json (row));
      else
        printf ("%s%s%s%s\n    %s\n", row->id, *row->claims ? "  (" : "",
                row->claims, *row->claims ? ")" : "", row->proves);
    }
  if (!options->json)
    return 0;
  text = json_text (list);
  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  printf ("%s\n", text);
  return 0;
}
