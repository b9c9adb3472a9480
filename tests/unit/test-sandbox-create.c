/* SPDX-License-Identifier: Apache-2.0 */
/* How sandboxes are made over a provider that can be made to break: what is
 * refused, what is asked for and reported, and what a failure leaves. */

#include "config.h"

#include "base/text.h"
#include "sandbox-host.h"

static void
refuse (struct fixture *f, const struct sandbox_request *request, int number,
        const char *part)
{
  auto_error struct error *error = NULL;
  struct sandbox_record *record;
  int creates = fake.creates;

  assert_fails (sandbox_create (f->host, request, NULL, &record, NULL,
                                &error), error, number);
  if (!strstr (error_message (error), part))
    fail_msg ("no \"%s\" in: %s", part, error_message (error));
  /* Before the provider was asked, and without a trace. */
  assert_int_equal (fake.creates, creates);
  assert_int_equal (rows (f), 0);
}

static void
test_fields_out_of_range_are_refused_by_name (void **state)
{
  static const char *const bad_env[] = { "GOOD=1", "1BAD=x", NULL };
  static const char *const no_value[] = { "NAME", NULL };
  static const char *const secret[] = { "A B=hunter2-secret", NULL };
  static const char *const bad_port[] = { "65536", NULL };
  static const char *const bad_allow[] = { "example.org", NULL };
  static const char *const bad_metadata[] = { "=x", NULL };
  struct sandbox_mount mount = { (char *) "/tmp", (char *) "/a/../b", 0 };
  struct sandbox_mount root = { (char *) "/tmp", (char *) "/", 0 };
  struct sandbox_mount none = { (char *) "/no/such/place", (char *) "/w", 0 };
  struct sandbox_mount device = { (char *) "/dev/null", (char *) "/w", 0 };
  const struct {
    struct sandbox_request request;
    const char *part;
  } table[] = {
    { { .memory_bytes = 1 }, "memory" },
    { { .memory_bytes = UINT64_MAX }, "memory" },
    { { .disk_bytes = 1ULL << 61 }, "disk" },
    { { .inodes = 1 }, "inodes" },
    { { .pids = UINT32_MAX }, "pids" },
    { { .cpu_millis = UINT32_MAX }, "cpus" },
    { { .ttl_ms = 1 }, "ttl" },
    { { .ttl_ms = UINT64_MAX }, "ttl" },
    { { .workdir = "relative" }, "workdir" },
    { { .workdir = "/a/./b" }, "workdir" },
    { { .workdir = "/a//b" }, "workdir" },
    { { .workdir = "/a/" }, "workdir" },
    { { .user = "a b" }, "user" },
    { { .user = "4294967295" }, "user" },
    { { .user = "" }, "user" },
    { { .network = "open" }, "network" },
    { { .network = "none", .allow = bad_allow }, "allow" },
    { { .network = "allow", .allow = bad_allow }, "allow" },
    { { .ports = bad_port }, "ports" },
    { { .metadata = bad_metadata }, "metadata" },
    { { .template_name = "a b" }, "template" },
    { { .image = "-x" }, "image" },
    { { .profile = "\xff" }, "profile" },
    { { .profile = "strict" }, "profile: there is no profile strict" },
    { { .filter = "lax" }, "filter" },
    { { .address_bytes = 1 << 20 }, "address_space" },
    { { .file_bytes = UINT64_MAX }, "file_size" },
    { { .open_files = 1 }, "open_files" },
    { { .open_files = UINT32_MAX }, "open_files" },
    { { .allow = bad_allow }, "allow" },
    { { .memory_bytes = 50 }, "memory: 50 B is not between 1.0 MiB and" },
    { { .cpu_millis = 1024500 }, "cpus: 1024.5 is not" },
    { { .env = bad_env }, "env" },
    { { .env = no_value }, "env" },
    { { .env = secret }, "env" },
    { { .n_mounts = 1, .mounts = &mount }, "mounts" },
    { { .n_mounts = 1, .mounts = &root }, "mounts" },
    { { .n_mounts = 1, .mounts = &none }, "mounts" },
    { { .n_mounts = 1, .mounts = &device }, "mounts" },
  };
  size_t i;

  for (i = 0; i < sizeof table / sizeof table[0]; i++)
    refuse (*state, &table[i].request, E_SANDBOX_SPEC, table[i].part);
}

static void
test_a_value_is_never_shown_in_an_error (void **state)
{
  static const char *const secret[] = { "A B=hunter2-secret", NULL };
  struct sandbox_request request = { .env = secret };
  auto_error struct error *error = NULL;
  struct fixture *f = *state;
  struct sandbox_record *record;

  assert_fails (sandbox_create (f->host, &request, NULL, &record, NULL,
                                &error), error, E_SANDBOX_SPEC);
  assert_null (strstr (error_message (error), "hunter2"));
}

static void
test_what_is_asked_and_not_claimed_is_refused (void **state)
{
  static const char *const port[] = { "80", NULL };
  struct sandbox_mount mount = { (char *) "/tmp", (char *) "/w", 0 };
  const struct {
    struct sandbox_request request;
    const char *missing[3];
  } table[] = {
    { { .memory_bytes = 1 << 30, .ephemeral = 1 }, { "limit.memory" } },
    { { .cpu_millis = 500, .ephemeral = 1 }, { "limit.cpu" } },
    { { .pids = 5, .ephemeral = 1 }, { "limit.pids" } },
    { { .inodes = 500, .ephemeral = 1 }, { "limit.disk" } },
    { { .network = "host", .ephemeral = 1 }, { "network.host" } },
    { { .network = "none", .ephemeral = 1 }, { "network.none" } },
    { { .ttl_ms = 5000, .asked_ttl = 1 }, { "ttl" } },
    { { .ports = port, .ephemeral = 1 }, { "ports" } },
    { { .ephemeral = 0 }, { "durable" } },
    { { .n_mounts = 1, .mounts = &mount, .ephemeral = 1 },
      { "mounts.bind", "mounts.sync" } },
  };
  static char *const accept[] = {
    (char *) "limit.memory", (char *) "network.none", (char *) "limit.pids",
    (char *) "limit.disk", NULL
  };
  size_t i;

  /* Accepting a default is not accepting that a wish is ignored. */
  fake.accept = accept;
  for (i = 0; i < sizeof table / sizeof table[0]; i++) {
    fake.unclaimed = table[i].missing;
    refuse (*state, &table[i].request, E_CAPABILITY, table[i].missing[0]);
  }
}

static int
json_has (json_t *array, const char *word)
{
  json_t *value;
  size_t i;

  json_array_foreach (array, i, value)
    if (strcmp (json_string_value (value), word) == 0)
      return 1;
  return 0;
}

static const char *const protecting[] = {
  "network.none", "user.unprivileged", "limit.memory", "limit.pids",
  "limit.disk", "root.readonly"
};
#define N_PROTECTING (sizeof protecting / sizeof protecting[0])

static void
test_a_protecting_default_is_refused_until_accepted (void **state)
{
  struct fixture *f = *state;
  size_t i;

  for (i = 0; i < N_PROTECTING; i++) {
    const char *const one[] = { protecting[i], NULL };
    struct sandbox_request request = { .ephemeral = 1 };
    auto_error struct error *error = NULL;
    struct sandbox_record *record;
    json_t *applied;

    fake.unclaimed = one;
    refuse (f, &request, E_CAPABILITY, protecting[i]);
    request.accept = one;
    assert_ok (sandbox_create (f->host, &request, NULL, &record, &applied,
                               &error), error);
    assert_string_equal (json_string_value (json_object_get (applied, "id")),
                         record->id);
    assert_true (json_has (json_object_get (applied, "not_applied"),
                           protecting[i]));
    assert_int_equal (json_array_size (json_object_get (applied,
                                                        "not_applied")), 1);
    json_decref (applied);
    assert_int_equal (sandbox_kill (f->host, NULL, record->id, NULL,
                                    &(int){ 0 }, NULL), 0);
    sandbox_record_free (record);
  }
}

static void
test_the_operators_file_accepts_as_well (void **state)
{
  static const char *const one[] = { "limit.memory", NULL };
  static char *const accept[] = { (char *) "limit.memory", NULL };
  struct fixture *f = *state;
  struct sandbox_record *record;

  fake.unclaimed = one;
  fake.accept = accept;
  make (f->host, &record);
  sandbox_record_free (record);
}

static void
test_a_provider_that_isolates_nothing_names_it_all (void **state)
{
  static const char *const all[] = {
    "network.none", "user.unprivileged", "limit.memory", "limit.pids",
    "limit.disk", "root.readonly", NULL
  };
  struct sandbox_request request = { .ephemeral = 1 };
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  json_t *applied;
  size_t i;

  fake.unclaimed = all;
  fake.isolation = "none";
  assert_int_equal (sandbox_create (f->host, &request, NULL, &record,
                                    &applied, NULL), 0);
  for (i = 0; i < N_PROTECTING; i++)
    assert_true (json_has (json_object_get (applied, "not_applied"),
                           protecting[i]));
  json_decref (applied);
}

static void
test_another_default_is_named (void **state)
{
  static const char *const one[] = { "ttl", NULL };
  struct sandbox_request request = { 0 };
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  json_t *applied;

  fake.unclaimed = one;
  assert_int_equal (sandbox_create (f->host, &request, NULL, &record,
                                    &applied, NULL), 0);
  assert_true (json_has (json_object_get (applied, "not_applied"), "ttl"));
  assert_int_equal (fake.spec.ttl_ms, 0);
  json_decref (applied);
}

static void
test_the_report_is_of_the_sandbox_that_was_made (void **state)
{
  struct sandbox_request request = { .ephemeral = 1 };
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  json_t *applied;

  fake.create_misnames = 1;
  assert_int_equal (sandbox_create (f->host, &request, NULL, &record,
                                    &applied, NULL), 0);
  assert_string_equal (json_string_value (json_object_get (applied, "id")),
                       record->id);
  json_decref (applied);
}

static void
test_defaults_and_wishes_reach_the_provider (void **state)
{
  struct sandbox_request request = { .memory_bytes = 64 << 20, .pids = 7,
                                     .single_exec = 1 };
  struct sandbox_record *record;
  struct fixture *f = *state;

  assert_int_equal (sandbox_create (f->host, &request, NULL, &record, NULL,
                                    NULL), 0);
  sandbox_record_free (record);
  assert_int_equal (fake.spec.memory_bytes, 64 << 20);
  assert_int_equal (fake.spec.pids, 7);
  assert_int_equal (fake.spec.single_exec, 1);
  assert_int_equal (fake.spec.lifeline, -1);
  assert_int_equal (fake.spec.ttl_ms, 3600000);
  request.ephemeral = 1;
  assert_int_equal (sandbox_create (f->host, &request, NULL, &record, NULL,
                                    NULL), 0);
  sandbox_record_free (record);
  assert_true (fake.spec.lifeline >= 0);
  assert_int_equal (fake.spec.ttl_ms, 0);
}

static void
test_a_mount_is_handed_over_as_a_descriptor (void **state)
{
  struct fixture *f = *state;
  auto_free char *shown = text_printf ("%s/shown", (char *) f->home);
  struct sandbox_mount mount = { shown, (char *) "/workspace", 1 };
  struct sandbox_request request = { .n_mounts = 1, .mounts = &mount,
                                     .ephemeral = 1 };
  auto_sandbox_record struct sandbox_record *record = NULL;

  assert_int_equal (mkdir (shown, 0755), 0);
  assert_int_equal (sandbox_create (f->host, &request, NULL, &record, NULL,
                                    NULL), 0);
  assert_true (fake.mount_fd_ok);
}

static void
test_of_the_environment_only_names_are_kept (void **state)
{
  static const char *const env[] = { "TOKEN=hunter2-secret", NULL };
  struct sandbox_request request = { .env = env };
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  char command[600];

  assert_int_equal (sandbox_create (f->host, &request, NULL, &record, NULL,
                                    NULL), 0);
  assert_non_null (strstr (record->spec, "\"TOKEN\""));
  snprintf (command, sizeof command, "grep -rq hunter2 '%s'",
            (char *) f->home);
  assert_int_not_equal (system (command), 0);
  snprintf (command, sizeof command, "grep -rq TOKEN '%s'",
            (char *) f->home);
  assert_int_equal (system (command), 0);
}

static void
test_a_failed_creation_leaves_nothing (void **state)
{
  struct sandbox_request request = { 0 };
  auto_error struct error *error = NULL;
  struct sandbox_record *record;
  struct fixture *f = *state;

  fake.create_fails = fake.create_leaves = 1;
  assert_fails (sandbox_create (f->host, &request, NULL, &record, NULL,
                                &error), error, E_PROVIDER_FAILED);
  assert_int_equal (fake.kills, 1);
  assert_int_equal (rows (f), 0);
}

static void
test_what_cannot_be_undone_is_tried_again (void **state)
{
  struct sandbox_request request = { 0 };
  auto_error struct error *error = NULL;
  struct sandbox_record *record;
  struct fixture *f = *state;
  json_t *report;

  fake.create_fails = fake.create_leaves = fake.kill_fails = 1;
  log_set_level ((enum log_level) -1);
  assert_fails (sandbox_create (f->host, &request, NULL, &record, NULL,
                                &error), error, E_PROVIDER_FAILED);
  assert_int_equal (rows (f), 1);
  assert_int_equal (sandbox_prune (f->host, &report, NULL), 0);
  assert_int_equal (json_array_size (json_object_get (report, "kept")), 1);
  json_decref (report);
  fake.kill_fails = 0;
  assert_int_equal (sandbox_prune (f->host, &report, NULL), 0);
  assert_int_equal (json_array_size (json_object_get (report, "killed")), 1);
  json_decref (report);
  assert_int_equal (rows (f), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    TEST (test_fields_out_of_range_are_refused_by_name),
    TEST (test_a_value_is_never_shown_in_an_error),
    TEST (test_what_is_asked_and_not_claimed_is_refused),
    TEST (test_a_protecting_default_is_refused_until_accepted),
    TEST (test_the_operators_file_accepts_as_well),
    TEST (test_a_provider_that_isolates_nothing_names_it_all),
    TEST (test_another_default_is_named),
    TEST (test_the_report_is_of_the_sandbox_that_was_made),
    TEST (test_defaults_and_wishes_reach_the_provider),
    TEST (test_a_mount_is_handed_over_as_a_descriptor),
    TEST (test_of_the_environment_only_names_are_kept),
    TEST (test_a_failed_creation_leaves_nothing),
    TEST (test_what_cannot_be_undone_is_tried_again),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
