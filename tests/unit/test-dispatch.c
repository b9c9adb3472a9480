/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch and its parts, with modules in this process: public errors, the
 * gate, the loader, and calls as they are made without a worker. */

#include "config.h"

#include "harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "provider-fixture.h"
#include "provider/dispatch.h"
#include "provider/gate.h"
#include "provider/loader.h"
#include "provider/outcome.h"

/* ---- public errors -------------------------------------------------------- */

static int
error_of (const char *operation, int32_t code)
{
  struct manifest manifest = { .id = (char *) "p",
                               .isolation_kind = (char *) "namespaces" };
  struct outcome outcome = { .code = code,
                             .retryable = COFFER_RETRY_DEFAULT };
  struct error *error = NULL;
  int number = 0;

  if (outcome_error (&outcome, &manifest,
                     contract_op_by_name (contract_builtin (), operation),
                     &error) < 0)
    number = error->number;
  error_free (error);
  return number;
}

static void
codes_map_by_family (void **state)
{
  static const struct {
    const char *operation;
    int32_t code;
    int number;
  } table[] = {
    { "sandbox_info", COFFER_OK, 0 },
    { "sandbox_info", COFFER_NOT_FOUND, E_UNKNOWN_SANDBOX },
    { "sandbox_create", COFFER_INVALID, E_SANDBOX_SPEC },
    { "sandbox_create", COFFER_UNAVAILABLE, E_ISOLATION_UNAVAILABLE },
    { "sandbox_create", COFFER_EXISTS, E_SANDBOX_EXISTS },
    { "sandbox_pause", COFFER_CONFLICT, E_SANDBOX_STATE },
    { "exec_start", COFFER_NOT_FOUND, E_UNKNOWN_SANDBOX },
    { "exec_wait", COFFER_NOT_FOUND, E_EXEC_UNKNOWN },
    { "exec_signal", COFFER_NOT_FOUND, E_EXEC_UNKNOWN },
    { "exec_start", COFFER_UNAVAILABLE, E_PROVIDER_FAILED },
    { "file_read", COFFER_NOT_FOUND, E_FILE_NOT_FOUND },
    { "file_read", COFFER_DENIED, E_FILE_DENIED },
    { "file_write", COFFER_EXISTS, E_FILE_EXISTS },
    { "file_write", COFFER_LIMIT, E_FILE_SPACE },
    { "file_watch", COFFER_LIMIT, E_LIMIT },
    { "file_remove", COFFER_CONFLICT, E_FILE_KIND },
    { "archive_export", COFFER_NOT_FOUND, E_FILE_NOT_FOUND },
    { "port_dial", COFFER_NOT_FOUND, E_UNKNOWN_SANDBOX },
    { "snapshot_delete", COFFER_NOT_FOUND, E_NOT_FOUND },
    { "metrics", COFFER_UNSUPPORTED, E_CAPABILITY },
    { "metrics", COFFER_UNAUTHENTICATED, E_CREDENTIALS_INVALID },
    { "metrics", COFFER_DENIED, E_DENIED },
    { "metrics", COFFER_BUSY, E_BUSY },
    { "metrics", COFFER_LIMIT, E_LIMIT },
    { "metrics", COFFER_TIMEOUT, E_PROVIDER_TIMEOUT },
    { "metrics", COFFER_CANCELLED, E_EXEC_CANCELLED },
    { "metrics", COFFER_IO, E_PROVIDER_FAILED },
    { "metrics", COFFER_INTERNAL, E_PROVIDER_FAILED },
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof table / sizeof table[0]; i++)
    if (error_of (table[i].operation, table[i].code) != table[i].number)
      fail_msg ("%s %d: E%d", table[i].operation, (int) table[i].code,
                error_of (table[i].operation, table[i].code));
}

static void
messages_are_one_bounded_line (void **state)
{
  struct outcome outcome = { .code = 0 };
  char large[10000];

  (void) state;
  outcome_fail (&outcome, COFFER_IO, COFFER_RETRY_NO,
                "two\nlines \x1b[31m\xff", "[1]");
  assert_null (strchr (outcome.message, '\n'));
  assert_null (strchr (outcome.message, '\x1b'));
  assert_true (text_is_utf8 (outcome.message, strlen (outcome.message)));
  assert_null (outcome.details);
  memset (large, 'x', sizeof large - 1);
  large[sizeof large - 1] = '\0';
  outcome_fail (&outcome, COFFER_IO, COFFER_RETRY_NO, large, large);
  assert_true (strlen (outcome.message) <= OUTCOME_MAX_MESSAGE);
  assert_null (outcome.details);
  outcome_fini (&outcome);
}

/* ---- the gate, the journal ------------------------------------------------ */

static void
the_gate_counts_and_waits (void **state)
{
  struct gate gate;
  int cancel = eventfd (1, EFD_CLOEXEC);
  int64_t soon = coffer_now_ns () + 30000000;

  (void) state;
  assert_int_equal (gate_init (&gate, 1, 2), 0);
  assert_int_equal (gate_enter (&gate, 0, soon, -1), COFFER_OK);
  assert_int_equal (gate_enter (&gate, 0, soon, -1), COFFER_TIMEOUT);
  assert_int_equal (gate_enter (&gate, 0, INT64_MAX, cancel),
                    COFFER_CANCELLED);
  assert_int_equal (gate_enter (&gate, 1, soon, -1), COFFER_OK);
  assert_int_equal (gate_enter (&gate, 1, coffer_now_ns () + 10000000, -1),
                    COFFER_TIMEOUT);
  gate_leave (&gate, 1);
  gate_leave (&gate, 0);
  assert_int_equal (gate_enter (&gate, 0, coffer_now_ns () + 1000000000, -1),
                    COFFER_OK);
  gate_leave (&gate, 0);
  gate_fini (&gate);
  close (cancel);
}

/* So many enter, of one kind. */
static void
enter (struct gate *gate, unsigned kind, int n)
{
  while (n-- > 0)
    assert_int_equal (gate_enter (gate, kind, INT64_MAX, -1), COFFER_OK);
}

static int32_t
try_to_enter (struct gate *gate, unsigned kind)
{
  return gate_enter (gate, kind, coffer_now_ns () + 10000000, -1);
}

static void
what_lasts_leaves_room_for_the_rest (void **state)
{
  struct gate gate;

  (void) state;
  assert_int_equal (gate_init (&gate, 0, 8), 0);
  enter (&gate, GATE_WAITS, 6);
  assert_int_equal (try_to_enter (&gate, GATE_WAITS), COFFER_TIMEOUT);
  enter (&gate, GATE_LONG, 1);
  assert_int_equal (try_to_enter (&gate, GATE_LONG), COFFER_TIMEOUT);
  enter (&gate, 0, 1);
  assert_int_equal (try_to_enter (&gate, 0), COFFER_TIMEOUT);
  gate_leave (&gate, GATE_WAITS);
  enter (&gate, GATE_LONG, 1);
  gate_fini (&gate);
}

static void
of_few_calls_each_kind_has_one (void **state)
{
  struct gate gate;
  uint64_t limit;

  (void) state;
  for (limit = 3; limit <= 5; limit++) {
    assert_int_equal (gate_init (&gate, 0, limit), 0);
    enter (&gate, GATE_WAITS, (int) limit - 2);
    assert_int_equal (try_to_enter (&gate, GATE_WAITS), COFFER_TIMEOUT);
    enter (&gate, GATE_LONG, 1);
    assert_int_equal (try_to_enter (&gate, GATE_LONG), COFFER_TIMEOUT);
    enter (&gate, 0, 1);
    gate_fini (&gate);
  }
}

static void
calls_without_an_end_are_refused_and_not_queued (void **state)
{
  struct gate gate;

  (void) state;
  assert_int_equal (gate_init (&gate, 0, 8), 0);
  enter (&gate, GATE_WAITS | GATE_ENDLESS, 4);
  assert_int_equal (gate_enter (&gate, GATE_WAITS | GATE_ENDLESS, INT64_MAX,
                                -1), COFFER_LIMIT);
  gate_leave (&gate, GATE_WAITS | GATE_ENDLESS);
  enter (&gate, GATE_WAITS, 3);
  assert_int_equal (gate_enter (&gate, GATE_WAITS | GATE_ENDLESS, INT64_MAX,
                                -1), COFFER_LIMIT);
  enter (&gate, 0, 2);
  gate_fini (&gate);
  assert_int_equal (gate_init (&gate, 0, 1), 0);
  enter (&gate, GATE_WAITS | GATE_ENDLESS, 1);
  gate_fini (&gate);
}

/* ---- in this process ------------------------------------------------------ */

static struct fixture *
start (const struct fixture_spec *spec)
{
  struct fixture *fixture = fixture_new (spec);
  struct error *error = NULL;

  if (fixture_open (fixture, PROVIDER_IN_PROCESS, &error) != 0)
    fail_msg ("open: E%d %s", error->number, error_message (error));
  return fixture;
}

/* Past the claims, which the module does not make. */
static int32_t
watch (struct provider *provider, char said[256])
{
  const struct contract_args_file_watch args = { .sandbox = "a", .path = "/" };
  const struct contract_op *op
    = contract_op_by_id (contract_builtin (), COFFER_OP_file_watch);
  struct provider_call call = { .deadline_ns = INT64_MAX, .cancel_fd = -1 };
  union contract_value values[CONTRACT_MAX_ARGS + 1];
  struct outcome outcome;
  int32_t code;

  contract_args_values (op, &args, values);
  assert_int_equal (provider_try (provider, COFFER_OP_file_watch, values,
                                  &call, &outcome, NULL), 0);
  snprintf (said, 256, "%s", outcome.message ? outcome.message : "");
  code = outcome.code;
  outcome_fini (&outcome);
  return code;
}

/* The other calls are as much as entered. */
static void
one_watch_too_many_is_refused_and_calls_go_on (void **state)
{
  struct fixture *fixture = start (&(struct fixture_spec){
    .module = "hostile", .yaml = "limits: {calls: 4}\n" });
  struct gate *gate = &fixture->provider->gate;
  struct heard heard = { .facts = 0 };
  char said[256];

  (void) state;
  enter (gate, GATE_WAITS | GATE_ENDLESS, 2);
  assert_int_equal (watch (fixture->provider, said), COFFER_LIMIT);
  assert_non_null (strstr (said, "2 such calls run already"));
  enter (gate, GATE_LONG, 1);
  assert_int_equal (fixture_say (fixture, "ok:x", 5000, -1, &heard, NULL), 0);
  gate_leave (gate, GATE_LONG);
  gate_leave (gate, GATE_WAITS | GATE_ENDLESS);
  /* With room the module is asked, which has no such operation. */
  assert_int_equal (watch (fixture->provider, said), COFFER_UNSUPPORTED);
  gate_leave (gate, GATE_WAITS | GATE_ENDLESS);
  fixture_free (fixture);
}

static void
both_ways_of_running_look_the_same (void **state)
{
  static const struct {
    const char *word;
    int number;
    const char *value;
  } table[] = {
    { "ok:x", 0, "x" },
    { "progress:y", 0, "1 of 2 y" },
    { "unknown_record", E_PROVIDER_PROTOCOL, NULL },
    { "bad_text", E_PROVIDER_PROTOCOL, NULL },
    { "short_record", E_PROVIDER_PROTOCOL, NULL },
    { "code:999", E_PROVIDER_FAILED, NULL },
    { "code:5", E_UNKNOWN_SANDBOX, NULL },
    { "fail:13", E_PROVIDER_FAILED, NULL },
    { "connect:tcp:127.0.0.1:1", 0, "code 4" },
    { "nonsense", E_UNKNOWN_SANDBOX, NULL },
  };
  enum provider_mode mode;
  size_t i;

  (void) state;
  for (mode = PROVIDER_WORKER; mode <= PROVIDER_IN_PROCESS; mode++) {
    struct fixture *fixture = fixture_new (&(struct fixture_spec){
      .module = "hostile" });
    assert_int_equal (fixture_open (fixture, mode, NULL), 0);
    assert_int_equal (provider_worker_pid (fixture->provider) > 0,
                      mode == PROVIDER_WORKER);
    for (i = 0; i < sizeof table / sizeof table[0]; i++) {
      struct heard heard = { .facts = 0 };
      int number = fixture_say (fixture, table[i].word, 5000, -1, &heard,
                                NULL);
      if (number != table[i].number
          || (table[i].value && strcmp (heard.value, table[i].value) != 0))
        fail_msg ("%s in mode %d: E%d, %s", table[i].word, (int) mode, number,
                  heard.value);
    }
    fixture_free (fixture);
  }
}

static void
a_sink_ends_a_call_here_too (void **state)
{
  struct fixture *fixture = start (&(struct fixture_spec){
    .module = "hostile" });
  struct heard heard = { .stop_after = 2 };

  (void) state;
  assert_int_equal (fixture_say (fixture, "emits:1000000", 5000, -1, &heard,
                                 NULL), E_EXEC_CANCELLED);
  assert_int_equal (heard.facts, 2);
  fixture_free (fixture);
}

static void
arguments_are_checked_before_the_module_sees_them (void **state)
{
  static const char *const argv[] = { "x", NULL }, *const none[] = { NULL };
  struct fixture *fixture = start (&(struct fixture_spec){
    .module = "hostile" });
  int file = open ("/dev/null", O_RDWR | O_CLOEXEC);
  struct error *error = NULL;

  (void) state;
  assert_int_equal (INVOKE (fixture->provider, NULL, &error, sandbox_info,
                            .sandbox = NULL), -1);
  assert_int_equal (error->number, E_INVALID);
  error_free (error);
  error = NULL;
  assert_int_equal (INVOKE (fixture->provider, NULL, &error, exec_start,
                            .sandbox = "x", .argv = none, .in = -1,
                            .out = -1, .err = -1), -1);
  assert_int_equal (error->number, E_INVALID);
  error_free (error);
  error = NULL;
  assert_int_equal (INVOKE (fixture->provider, NULL, &error, exec_start,
                            .sandbox = "x", .argv = argv, .in = file,
                            .out = -1, .err = -1), -1);
  assert_non_null (strstr (error_message (error), "in is not a pipe"));
  error_free (error);
  error = NULL;
  assert_int_equal (INVOKE (fixture->provider, NULL, &error, file_stat,
                            .sandbox = "x", .path = "y"), -1);
  assert_int_equal (error->number, E_CAPABILITY);
  error_free (error);
  assert_int_equal (provider_invoke (fixture->provider, COFFER_OP_close,
                                     NULL, NULL, NULL), -1);
  assert_int_equal (provider_invoke (fixture->provider, 4711, NULL, NULL,
                                     NULL), -1);
  close (file);
  fixture_free (fixture);
}

static void
a_deadline_that_has_passed_calls_nothing (void **state)
{
  struct fixture *fixture = start (&(struct fixture_spec){
    .module = "hostile" });
  struct heard heard = { .facts = 0 };

  (void) state;
  assert_int_equal (fixture_say (fixture, "ok", -1000, -1, &heard, NULL),
                    E_PROVIDER_TIMEOUT);
  assert_int_equal (heard.facts, 0);
  fixture_free (fixture);
}

/* More helpers than a frame takes descriptors. */
static void
helpers_and_folders_reach_open (void **state)
{
  enum provider_mode mode;

  (void) state;
  for (mode = PROVIDER_WORKER; mode <= PROVIDER_IN_PROCESS; mode++) {
    struct fixture *fixture = fixture_new (&(struct fixture_spec){
      .module = "hostile", .helpers = 40 });
    struct heard heard = { .facts = 0 };

    assert_int_equal (fixture_open (fixture, mode, NULL), 0);
    assert_int_equal (fixture_say (fixture, "files", 5000, -1, &heard, NULL),
                      0);
    assert_string_equal (heard.value, "40 helper-0.txt " VECTOR_BODY);
    assert_int_equal (fixture_say (fixture, "runtime:mine", 5000, -1, &heard,
                                   NULL), 0);
    assert_int_equal (access (harness_path (fixture->place.runtime,
                                            "hostile/mine"), F_OK), 0);
    assert_int_equal (access (harness_path (fixture->place.state,
                                            "provider-state/hostile"), F_OK),
                      0);
    /* What it may write is never where modules are looked for. */
    assert_int_equal (access (harness_path (fixture->place.installed,
                                            "hostile"), F_OK), -1);
    fixture_free (fixture);
  }
}

static void
late_files_are_read_when_the_module_asks (void **state)
{
  enum provider_mode mode;
  int fd;

  (void) state;
  for (mode = PROVIDER_WORKER; mode <= PROVIDER_IN_PROCESS; mode++) {
    struct fixture *fixture = fixture_new (&(struct fixture_spec){
      .module = "hostile", .helpers = 1, .late = 1 });
    struct heard heard = { .facts = 0 };

    assert_int_equal (fixture_open (fixture, mode, NULL), 0);
    assert_int_equal (fixture_say (fixture, "files", 5000, -1, &heard, NULL),
                      0);
    assert_string_equal (heard.value, "1 helper-0.txt " VECTOR_BODY);
    fixture_assert_done (fixture, "file:late.txt", VECTOR_BODY);
    fixture_assert_refused (fixture, "file:helper-0.txt", "code 5");
    fixture_assert_refused (fixture, "file:../late.txt", "code 5");
    fd = openat (fixture->entry->dir_fd, "late.txt", O_WRONLY | O_CLOEXEC);
    assert_int_equal (write (fd, "x", 1), 1);
    close (fd);
    fixture_assert_refused (fixture, "file:late.txt", "code 4");
    fixture_free (fixture);
  }
}

/* ---- the loader ----------------------------------------------------------- */

static int
sealed_module (const char *module)
{
  const char *build = getenv ("COFFER_BUILD");
  auto_free char *folder = text_printf ("%s/tests/modules",
                                        build ? build : ".");
  char sha256[SHA256_HEX_SIZE];
  int dir = open (folder, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

  assert_true (dir >= 0);
  assert_int_equal (integrity_hash (dir, module, sha256, NULL), 0);
  fd = integrity_open (dir, module, sha256, 1, NULL);
  assert_true (fd >= 0);
  close (dir);
  return fd;
}

static int
load (const char *module, int threads, struct module **out,
      struct error **err)
{
  static char *const claims[] = { (char *) "exec", NULL };
  struct module_claim claim = { .file = module, .contract_minor = 1,
                                .threads = threads, .capabilities = claims };
  auto_elf_facts struct elf_facts *facts = NULL;
  int fd = sealed_module (module);

  assert_int_equal (elf_gate (fd, module, &facts, NULL), 0);
  if (module_check (contract_builtin (), &facts->note, &claim, err) < 0) {
    close (fd);
    return -1;
  }
  return module_load (contract_builtin (), fd, &facts->note, &claim, out,
                      err);
}

/* glibc takes a second file under a known name for the first one: the
 * descriptor of a loaded module is never given back. */
static void
a_second_module_is_not_taken_for_the_first (void **state)
{
  struct module *module;

  (void) state;
  assert_int_equal (load ("hostile.so", COFFER_THREADS_PARALLEL, &module,
                          NULL), 0);
  assert_string_equal (module->descriptor->name, "hostile");
  module_free (module);
  assert_int_equal (load ("serial.so", COFFER_THREADS_SERIAL, &module, NULL),
                    0);
  assert_string_equal (module->descriptor->name, "serial");
  module_free (module);
}

static void
note_and_manifest_must_agree (void **state)
{
  static char *const files[] = { (char *) "exec", (char *) "files", NULL };
  struct module_claim claim = { .file = "hostile.so", .contract_minor = 1,
                                .threads = COFFER_THREADS_PARALLEL,
                                .capabilities = files };
  auto_elf_facts struct elf_facts *facts = NULL;
  struct coffer_note note;
  struct error *error = NULL;
  struct module *module;
  int fd = sealed_module ("hostile.so");

  (void) state;
  assert_int_equal (elf_gate (fd, "hostile.so", &facts, NULL), 0);
  note = facts->note;
  assert_int_equal (module_check (contract_builtin (), &note, &claim, NULL),
                    0);
  claim.file = "other.so";
  assert_int_equal (module_check (contract_builtin (), &note, &claim, NULL),
                    -1);
  claim.file = "hostile.so";
  claim.threads = COFFER_THREADS_SERIAL;
  assert_int_equal (module_check (contract_builtin (), &note, &claim, NULL),
                    -1);
  claim.threads = COFFER_THREADS_PARALLEL;
  note.needs = 1;
  assert_int_equal (module_check (contract_builtin (), &note, &claim,
                                  &error), -1);
  assert_int_equal (error->number, E_CONTRACT_VERSION);
  error_free (error);
  error = NULL;
  /* What it claims it has no slots for. */
  assert_int_equal (module_load (contract_builtin (), fd, &facts->note,
                                 &claim, &module, &error), -1);
  assert_int_equal (error->number, E_MODULE);
  assert_non_null (strstr (error_message (error), "file_read"));
  error_free (error);
}

/* ---- threads -------------------------------------------------------------- */

static void *
call_often (void *data)
{
  struct fixture *fixture = data;
  struct heard heard = { .facts = 0 };
  intptr_t failed = 0;
  int i;

  for (i = 0; i < 2000; i++)
    failed += fixture_say (fixture, i % 3 ? "ok:x" : "log:y", 10000, -1,
                           &heard, NULL) != 0;
  return (void *) failed;
}

static void
threads_call_at_once (void **state)
{
  const struct fixture_spec specs[] = {
    { .module = "hostile" }, { .module = "serial", .threads = "serial" }
  };
  pthread_t threads[4];
  void *failed;
  size_t i, k;

  (void) state;
  for (k = 0; k < 2; k++) {
    struct fixture *fixture = start (&specs[k]);
    for (i = 0; i < 4; i++)
      pthread_create (&threads[i], NULL, call_often, fixture);
    for (i = 0; i < 4; i++) {
      pthread_join (threads[i], &failed);
      assert_null (failed);
    }
    fixture_free (fixture);
  }
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (codes_map_by_family),
    cmocka_unit_test (messages_are_one_bounded_line),
    cmocka_unit_test (the_gate_counts_and_waits),
    cmocka_unit_test (what_lasts_leaves_room_for_the_rest),
    cmocka_unit_test (of_few_calls_each_kind_has_one),
    cmocka_unit_test (calls_without_an_end_are_refused_and_not_queued),
    cmocka_unit_test (one_watch_too_many_is_refused_and_calls_go_on),
    cmocka_unit_test (both_ways_of_running_look_the_same),
    cmocka_unit_test (a_sink_ends_a_call_here_too),
    cmocka_unit_test (arguments_are_checked_before_the_module_sees_them),
    cmocka_unit_test (a_deadline_that_has_passed_calls_nothing),
    cmocka_unit_test (helpers_and_folders_reach_open),
    cmocka_unit_test (late_files_are_read_when_the_module_asks),
    cmocka_unit_test (a_second_module_is_not_taken_for_the_first),
    cmocka_unit_test (note_and_manifest_must_agree),
    cmocka_unit_test (threads_call_at_once),
  };

  log_set_level (LOG_LEVEL_ERROR);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
