/* SPDX-License-Identifier: Apache-2.0 */
/* What core/server keeps of what it sees: metrics, the audit log, errors of
 * late, contexts and settings of traces, and both forms of OTLP. */

#include <config.h>

#include "harness.h"

#include <errno.h>
#include <fcntl.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "server/audit.h"
#include "server/errors-ring.h"
#include "server/metrics.h"
#include "server/otlp/otlp.h"
#include "server/trace-context.h"
#include "server/trace-settings.h"

/* ---- metrics ------------------------------------------------------------- */

static char *
page_of (struct metrics *metrics)
{
  struct coffer_buffer page = { 0 };

  assert_int_equal (metrics_write (metrics, &page), 0);
  return coffer_buffer_steal (&page);
}

static void
assert_line (const char *page, const char *line)
{
  auto_free char *wanted = NULL;

  assert_true (asprintf (&wanted, "\n%s\n", line) > 0);
  if (!strstr (page, wanted))
    fail_msg ("no line %s in:\n%s", line, page);
}

static void
metrics_count_by_labels_and_escape_them (void **state)
{
  const char *const odd[] = { "a\"b\\c\nd", "linux", "ok" };
  const char *const bytes[] = { "\xff", "linux", NULL };
  struct metrics *metrics;
  auto_free char *page = NULL;

  (void) state;
  assert_int_equal (metrics_new (&metrics, NULL), 0);
  metrics_count (metrics, METRICS_RUNS, odd, 2);
  metrics_count (metrics, METRICS_RUNS, odd, 3);
  metrics_count (metrics, METRICS_RUNS, bytes, 1);
  page = page_of (metrics);
  assert_line (page, "coffer_runs_total{kind=\"a\\\"b\\\\c\\nd\","
                     "provider=\"linux\",verdict=\"ok\"} 5");
  assert_line (page, "coffer_runs_total{kind=\"other\",provider=\"linux\","
                     "verdict=\"\"} 1");
  assert_line (page, "# TYPE coffer_runs_total counter");
  assert_line (page, "coffer_audit_write_failures_total 0");
  metrics_free (metrics);
}

static void
histograms_add_up_from_bucket_to_bucket (void **state)
{
  const char *const labels[] = { "linux" };
  struct metrics *metrics;
  auto_free char *page = NULL;

  (void) state;
  assert_int_equal (metrics_new (&metrics, NULL), 0);
  metrics_time (metrics, METRICS_EXEC_SECONDS, labels, 1000000);
  metrics_time (metrics, METRICS_EXEC_SECONDS, labels, 250000000);
  metrics_time (metrics, METRICS_EXEC_SECONDS, labels, INT64_C (999000000000));
  metrics_time (metrics, METRICS_EXEC_SECONDS, labels, -5);
  page = page_of (metrics);
#define EXEC "coffer_exec_duration_seconds"
#define BUCKET(le, n)                                                         \
  assert_line (page, EXEC "_bucket{provider=\"linux\",le=\"" le "\"} " n)
  BUCKET ("0.001", "2");
  BUCKET ("0.1", "2");
  BUCKET ("0.25", "3");
  BUCKET ("300", "3");
  BUCKET ("+Inf", "4");
  assert_line (page, EXEC "_count{provider=\"linux\"} 4");
  assert_line (page, EXEC "_sum{provider=\"linux\"} 999.251");
  metrics_free (metrics);
}

static void
series_beyond_the_limit_are_one (void **state)
{
  struct metrics *metrics;
  auto_free char *page = NULL;
  size_t lines = 0;
  const char *p;
  int i;

  (void) state;
  assert_int_equal (metrics_new (&metrics, NULL), 0);
  for (i = 0; i < METRICS_MAX_SERIES + 50; i++) {
    char code[16];
    const char *const labels[] = { code };

    snprintf (code, sizeof code, "E%04d", i);
    metrics_count (metrics, METRICS_ERRORS, labels, 1);
  }
  page = page_of (metrics);
  assert_line (page, "coffer_errors_total{code=\"other\"} 50");
  for (p = page; (p = strstr (p, "coffer_errors_total{")); p++)
    lines++;
  assert_int_equal (lines, METRICS_MAX_SERIES + 1);
  metrics_free (metrics);
}

/* ---- the audit log ------------------------------------------------------- */

static void
audit_lines_are_whole_private_and_go_on_after_a_rename (void **state)
{
  auto_free char *path = NULL, *old = NULL, *text = NULL;
  json_t *line = json_pack ("{s:s, s:s}", "who", "uid:0", "what", "a\nb");
  struct audit *audit;
  struct stat st;
  size_t size;
  int fd;

  assert_true (asprintf (&path, "%s/audit.log", (char *) *state) > 0);
  assert_true (asprintf (&old, "%s/audit.log.1", (char *) *state) > 0);
  assert_int_equal (audit_open (&(struct audit_options){ .path = path }, &audit, NULL), 0);
  assert_int_equal (audit_write (audit, line), 0);
  assert_int_equal (stat (path, &st), 0);
  assert_int_equal (st.st_mode & 0777, 0600);
  assert_int_equal (rename (path, old), 0);
  assert_int_equal (audit_write (audit, line), 0);
  audit_free (audit);
  assert_int_equal (audit_open (&(struct audit_options){ .path = path }, &audit, NULL), 0);
  assert_int_equal (audit_write (audit, line), 0);
  audit_free (audit);
  fd = open (old, O_RDONLY | O_CLOEXEC);
  assert_int_equal (coffer_read_whole (fd, 65536, &text, &size), 0);
  close (fd);
  assert_true (strncmp (text, "{\"time\":\"20", 11) == 0);
  assert_non_null (strstr (text, "\"what\":\"a\\nb\"}\n{\"time\""));
  assert_int_equal (stat (path, &st), 0);
  assert_int_equal ((size_t) st.st_size, size / 2);
  json_decref (line);
}

static void
audit_begins_a_line_behind_a_part_of_one (void **state)
{
  auto_free char *path = NULL, *text = NULL;
  json_t *line = json_pack ("{s:s}", "who", "uid:0");
  struct audit *audit;
  size_t size;
  int fd;

  assert_true (asprintf (&path, "%s/torn.log", (char *) *state) > 0);
  fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_int_equal (coffer_write_all (fd, "{\"ti", 4), 4);
  assert_int_equal (audit_open (&(struct audit_options){ .path = path }, &audit, NULL), 0);
  assert_int_equal (audit_write (audit, line), 0);
  audit_free (audit);
  assert_int_equal (lseek (fd, 0, SEEK_SET), 0);
  assert_int_equal (coffer_read_whole (fd, 65536, &text, &size), 0);
  close (fd);
  assert_true (strncmp (text, "{\"ti\n{\"time\"", 12) == 0);
  json_decref (line);
}

static void
audit_refuses_a_link_and_closes_what_others_could_read (void **state)
{
  auto_free char *path = NULL, *link = NULL;
  struct audit *audit;
  struct stat st;
  int fd;

  assert_true (asprintf (&path, "%s/open.log", (char *) *state) > 0);
  assert_true (asprintf (&link, "%s/link.log", (char *) *state) > 0);
  fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  assert_true (fd >= 0);
  fchmod (fd, 0644);
  close (fd);
  assert_int_equal (audit_open (&(struct audit_options){ .path = path }, &audit, NULL), 0);
  audit_free (audit);
  assert_int_equal (stat (path, &st), 0);
  assert_int_equal (st.st_mode & 0777, 0600);
  assert_int_equal (symlink (path, link), 0);
  assert_int_equal (audit_open (&(struct audit_options){ .path = link }, &audit, NULL), -1);
  assert_int_equal (chmod (path, 0622), 0);
  assert_int_equal (audit_open (&(struct audit_options){ .path = path }, &audit, NULL), -1);
}

/* ---- errors of late ------------------------------------------------------ */

static void
add_error (struct errors_ring *ring, const char *tenant, int n)
{
  auto_error struct error *error = NULL;

  error_set (&error, E_PROVIDER_FAILED, 0, "failure %d: %s", n, VECTOR_NAME);
  errors_ring_add (ring, error, tenant, "req-1");
}

static const char *
message_at (const json_t *list, size_t i)
{
  return json_string_value (json_object_get (json_array_get (list, i),
                                             "message"));
}

static void
errors_are_bounded_by_tenant_and_survive (void **state)
{
  int i, round, folder = open (*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct errors_ring *ring;
  json_t *list;

  assert_int_equal (errors_ring_open (folder, &ring, NULL), 0);
  add_error (ring, "quiet", 7);
  for (i = 0; i < 3000; i++)
    add_error (ring, "noisy", i);
  /* As it is, and as it is read again. */
  for (round = 0; round < 2; round++) {
    list = errors_ring_list (ring, "quiet", 1000);
    assert_int_equal (json_array_size (list), 1);
    assert_string_equal (message_at (list, 0), "failure 7: " VECTOR_NAME);
    json_decref (list);
    list = errors_ring_list (ring, "noisy", 1000);
    assert_int_equal (json_array_size (list), ERRORS_RING_TENANT_MAX);
    assert_string_equal (message_at (list, 0), "failure 2999: " VECTOR_NAME);
    assert_null (json_object_get (json_array_get (list, 0), "time_ns"));
    json_decref (list);
    assert_int_equal (errors_ring_count (ring, "noisy", 0),
                      ERRORS_RING_TENANT_MAX);
    assert_int_equal (errors_ring_count (ring, "noisy", INT64_MAX), 0);
    assert_int_equal (errors_ring_count (ring, "nobody", 0), 0);
    errors_ring_free (ring);
    assert_int_equal (errors_ring_open (folder, &ring, NULL), 0);
  }
  errors_ring_free (ring);
  close (folder);
}

static void
errors_of_a_torn_file_are_those_that_are_whole (void **state)
{
  static const char torn[] = "{\"time\":\n[]\n\xff\n{\"tenant\":\"t\"";
  int folder = open (*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;
  struct errors_ring *ring;
  json_t *list;

  unlinkat (folder, ERRORS_RING_FILE, 0);
  assert_int_equal (errors_ring_open (folder, &ring, NULL), 0);
  add_error (ring, "t", 1);
  errors_ring_free (ring);
  fd = openat (folder, ERRORS_RING_FILE, O_WRONLY | O_APPEND | O_CLOEXEC);
  assert_int_equal (coffer_write_all (fd, torn, strlen (torn)),
                    strlen (torn));
  close (fd);
  assert_int_equal (errors_ring_open (folder, &ring, NULL), 0);
  add_error (ring, "t", 2);
  list = errors_ring_list (ring, "t", 10);
  assert_int_equal (json_array_size (list), 2);
  json_decref (list);
  errors_ring_free (ring);
  close (folder);
}

/* ---- traces -------------------------------------------------------------- */

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static void
a_context_is_taken_only_when_it_is_well_formed (void **state)
{
  static const char *const bad[] = {
    "", "00", "00-" TRACE "-" PARENT, "00-" TRACE "-" PARENT "-0",
    "00-" TRACE "-" PARENT "-01-more", "ff-" TRACE "-" PARENT "-01",
    "00-" TRACE "-0000000000000000-01",
    "00-00000000000000000000000000000000-" PARENT "-01",
    "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
    "00_" TRACE "-" PARENT "-01", "0x-" TRACE "-" PARENT "-01",
    "01-" TRACE "-" PARENT "-01.more", " 00-" TRACE "-" PARENT "-01"
  };
  struct trace_context context;
  size_t i;

  (void) state;
  for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_int_equal (trace_context_parse (bad[i], &context), -1);
  assert_int_equal (trace_context_parse ("00-" TRACE "-" PARENT "-01",
                                         &context), 0);
  assert_string_equal (context.trace, TRACE);
  assert_string_equal (context.parent, PARENT);
  assert_int_equal (context.sampled, 1);
  assert_int_equal (trace_context_parse ("01-" TRACE "-" PARENT "-02-more",
                                         &context), 0);
  assert_int_equal (context.sampled, 0);
}

static void
a_request_has_the_same_ids_each_time_it_is_asked (void **state)
{
  struct trace_context one, again, other, joined;

  (void) state;
  trace_context_of ("req-1", NULL, &one);
  trace_context_of ("req-1", "rubbish", &again);
  trace_context_of ("req-2", NULL, &other);
  trace_context_of ("req-1", "00-" TRACE "-" PARENT "-01", &joined);
  assert_string_equal (one.trace, again.trace);
  assert_string_equal (one.span, again.span);
  assert_string_equal (one.parent, "");
  assert_int_equal (one.sampled, 1);
  assert_string_not_equal (one.trace, other.trace);
  assert_string_equal (joined.trace, TRACE);
  assert_string_equal (joined.span, one.span);
  assert_string_equal (joined.parent, PARENT);
}

static const char *const (*variables)[2];

static char *
variable_of (const char *name)
{
  size_t i;

  for (i = 0; variables && variables[i][0]; i++)
    if (strcmp (variables[i][0], name) == 0)
      return (char *) variables[i][1];
  return NULL;
}

static json_t *
settings_of (const struct trace_config *config,
             const char *const (*environment)[2])
{
  auto_error struct error *error = NULL;
  json_t *settings;

  variables = environment;
  if (trace_settings (config, variable_of, &settings, &error) < 0)
    fail_msg ("%s", error_message (error));
  return settings;
}

static void
assert_setting (const json_t *settings, const char *name, const char *value)
{
  assert_string_equal (json_string_value (json_object_get (settings, name)),
                       value);
}

static void
settings_come_from_the_file_and_the_environment_over_it (void **state)
{
  static const char *const environment[][2] = {
    { "OTEL_EXPORTER_OTLP_ENDPOINT", "http://env:4318/" },
    { "OTEL_EXPORTER_OTLP_HEADERS", "a=1, x-b = two%20words ,," },
    { "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json" },
    { "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250" },
    { "OTEL_SERVICE_NAME", "mine" },
    { "OTEL_RESOURCE_ATTRIBUTES", "a.b=c,service.name=no,broken" },
    { NULL, NULL }
  };
  static const char *const off[][2] = { { "OTEL_SDK_DISABLED", "true" },
                                        { NULL, NULL } };
  struct trace_config config = { .endpoint = (char *) "https://file" };
  json_t *settings, *headers;

  (void) state;
  assert_null (settings_of (&(struct trace_config){ 0 }, NULL));
  settings = settings_of (&config, NULL);
  assert_setting (settings, "endpoint", "https://file/v1/traces");
  assert_setting (settings, "protocol", "protobuf");
  json_decref (settings);
  settings = settings_of (&config, environment);
  assert_setting (settings, "endpoint", "http://env:4318/v1/traces");
  assert_setting (settings, "protocol", "json");
  headers = json_object_get (settings, "headers");
  assert_int_equal (json_object_size (headers), 2);
  assert_setting (headers, "a", "1");
  assert_setting (headers, "x-b", "two words");
  assert_int_equal (json_integer_value (json_object_get (settings,
                                                         "timeout_ms")), 250);
  assert_int_equal (json_array_size (json_object_get (settings, "resource")),
                    3);
  json_decref (settings);
  assert_null (settings_of (&config, off));
}

static void
settings_that_cannot_be_are_refused (void **state)
{
  static const char *const bad[][2] = {
    { "OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://x" },
    { "OTEL_EXPORTER_OTLP_ENDPOINT", "http://a b" },
    { "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc" },
    { "OTEL_EXPORTER_OTLP_HEADERS", "novalue" },
    { "OTEL_EXPORTER_OTLP_HEADERS", "a b=1" },
    { "OTEL_EXPORTER_OTLP_HEADERS", "a=x%0d%0ay: z" },
    { "OTEL_EXPORTER_OTLP_TIMEOUT", "soon" },
  };
  struct trace_config config = { .endpoint = (char *) "http://file" };
  json_t *settings;
  size_t i;

  (void) state;
  for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    const char *const one[][2] = { { bad[i][0], bad[i][1] }, { NULL, NULL } };
    struct error *error = NULL;

    variables = one;
    assert_int_equal (trace_settings (&config, variable_of, &settings,
                                      &error), -1);
    assert_int_equal (error->number, E_CONFIG_VALUE);
    error_free (error);
  }
}

/* ---- OTLP ---------------------------------------------------------------- */

static void
a_span_is_encoded_as_protobuf_says (void **state)
{
  json_t *resource = json_pack ("[{s:s, s:{s:s}}]", "key", "k", "value",
                                "stringValue", "v");
  json_t *spans = json_pack (
    "[{s:s, s:s, s:s, s:i, s:s, s:s, s:[{s:s, s:{s:s}}], s:{s:i}}]",
    "traceId", TRACE, "spanId", PARENT, "name", "n", "kind", 2,
    "startTimeUnixNano", "1", "endTimeUnixNano", "258", "attributes", "key",
    "i", "value", "intValue", "300", "status", "code", 2);
  const struct otlp_origin origin = { resource, "c", "1" };
  static const unsigned char span[] = {
    0x0a, 16, 0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92,
    0x9d, 0x0e, 0x0e, 0x47, 0x36,
    0x12, 8, 0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7,
    0x2a, 1, 'n', 0x30, 2,
    0x39, 1, 0, 0, 0, 0, 0, 0, 0, 0x41, 2, 1, 0, 0, 0, 0, 0, 0,
    0x4a, 8, 0x0a, 1, 'i', 0x12, 3, 0x18, 0xac, 0x02,
    0x7a, 2, 0x18, 2
  };
  struct coffer_buffer out = { 0 };

  (void) state;
  assert_int_equal (otlp_protobuf (&origin, spans, &out), 0);
  assert_non_null (memmem (out.data, out.size, span, sizeof span));
  assert_non_null (memmem (out.data, out.size,
                           "\x0a\x08\x0a\x01k\x12\x03\x0a\x01v", 10));
  assert_non_null (memmem (out.data, out.size, "\x0a\x06\x0a\x01" "c\x12\x01"
                           "1", 8));
  coffer_buffer_clear (&out);
  json_object_del (json_array_get (spans, 0), "spanId");
  assert_int_equal (otlp_protobuf (&origin, spans, &out), -1);
  coffer_buffer_free (&out);
  json_decref (spans);
  json_decref (resource);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (metrics_count_by_labels_and_escape_them),
    cmocka_unit_test (histograms_add_up_from_bucket_to_bucket),
    cmocka_unit_test (series_beyond_the_limit_are_one),
    cmocka_unit_test (audit_lines_are_whole_private_and_go_on_after_a_rename),
    cmocka_unit_test (audit_begins_a_line_behind_a_part_of_one),
    cmocka_unit_test (audit_refuses_a_link_and_closes_what_others_could_read),
    cmocka_unit_test (errors_are_bounded_by_tenant_and_survive),
    cmocka_unit_test (errors_of_a_torn_file_are_those_that_are_whole),
    cmocka_unit_test (a_context_is_taken_only_when_it_is_well_formed),
    cmocka_unit_test (a_request_has_the_same_ids_each_time_it_is_asked),
    cmocka_unit_test (settings_come_from_the_file_and_the_environment_over_it),
    cmocka_unit_test (settings_that_cannot_be_are_refused),
    cmocka_unit_test (a_span_is_encoded_as_protobuf_says),
  };

  return cmocka_run_group_tests_name ("observe", tests, harness_folder_new,
                                      harness_folder_free);
}
