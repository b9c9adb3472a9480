/* SPDX-License-Identifier: Apache-2.0 */
/* The life of sandboxes over a provider that can be made to break: what is
 * refused, what is recorded, and what the next start makes of a process that
 * died at any point. */

#include "config.h"

#include "sandbox-host.h"

#include "base/text.h"
#include "sandbox/owner.h"

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

/* ---- the next start ------------------------------------------------------ */

/* Runs `work` in a child that has its own host and is then gone. */
static void
in_a_process (struct fixture *f, void (*work) (struct host *))
{
  int status;
  pid_t pid;

  host_close (f->host);
  f->host = NULL;
  pid = fork ();
  if (pid == 0) {
    struct host *host;

    if (host_open (&f->place, 0, &host, NULL) < 0)
      _exit (1);
    work (host);
    _exit (77);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (WEXITSTATUS (status), 77);
  memset (&fake, 0, sizeof fake);
  assert_int_equal (host_open (&f->place, 0, &f->host, NULL), 0);
}

static void
sweep_leaves_nothing (struct fixture *f)
{
  struct error *error = NULL;

  assert_int_equal (rows (f), 1);
  assert_ok (host_sweep (f->host, &error), error);
  assert_int_equal (rows (f), 0);
  assert_int_equal (fake.kills, 1);
  assert_int_equal (system ("true"), 0);
}

/* Killed at once; the row stays for a moment, in case that a worker which the
 * dead process left behind was not through. */
static void
prune_leaves_nothing (struct fixture *f)
{
  struct error *error = NULL;
  json_t *report, *list;

  assert_int_equal (rows (f), 1);
  assert_ok (host_sweep (f->host, &error), error);
  assert_int_equal (rows (f), 1);
  assert_int_equal (fake.kills, 1);
  assert_ok (sandbox_list (f->host, &list, &error), error);
  assert_int_equal (json_array_size (list), 0);
  json_decref (list);
  assert_ok (sandbox_prune (f->host, &report, &error), error);
  json_decref (report);
  assert_int_equal (rows (f), 0);
  assert_int_equal (fake.kills, 2);
}

static int
sandboxes (const struct fixture *f)
{
  char command[600];

  snprintf (command, sizeof command, "test -z \"$(ls '%s/fake' 2>&-)\"",
            f->place.runtime);
  return system (command) != 0;
}

static void
die_before_create (struct host *host)
{
  struct sandbox_record *record;

  fake.exit_before_create = 1;
  make (host, &record);
}

static void
die_after_create (struct host *host)
{
  struct sandbox_record *record;

  fake.exit_after_create = 1;
  make (host, &record);
}

static void
test_what_a_worker_makes_after_its_host_died_is_killed (void **state)
{
  struct fixture *f = *state;
  struct error *error = NULL;
  char text[64], path[600];
  json_t *report;

  in_a_process (f, die_before_create);
  assert_ok (host_sweep (f->host, &error), error);
  /* Only now, with the row's own id. */
  sql_text (f, "SELECT id FROM sandbox", text, sizeof text);
  snprintf (path, sizeof path, "%s/fake/%s", f->place.runtime, text);
  assert_int_equal (mkdir (path, 0700), 0);
  assert_ok (sandbox_prune (f->host, &report, &error), error);
  json_decref (report);
  assert_false (sandboxes (f));
  assert_int_equal (rows (f), 0);
}

static void
die_with_ephemeral (struct host *host)
{
  struct sandbox_request request = { .ephemeral = 1 };
  struct sandbox_record *record;

  if (sandbox_create (host, &request, NULL, &record, NULL, NULL) < 0)
    _exit (1);
}

static void
die_in_kill (struct host *host)
{
  struct sandbox_request request = { .ephemeral = 1 };
  struct sandbox_record *record;
  int gone;

  if (sandbox_create (host, &request, NULL, &record, NULL, NULL) < 0)
    _exit (1);
  fake.exit_in_kill = 1;
  sandbox_kill (host, NULL, record->id, NULL, &gone, NULL);
}

static void
test_a_creation_that_never_began_is_dropped (void **state)
{
  in_a_process (*state, die_before_create);
  prune_leaves_nothing (*state);
}

static void
test_a_creation_nobody_heard_of_is_killed (void **state)
{
  in_a_process (*state, die_after_create);
  assert_true (sandboxes (*state));
  prune_leaves_nothing (*state);
  assert_false (sandboxes (*state));
}

static void
test_an_ephemeral_one_ends_with_its_owner (void **state)
{
  in_a_process (*state, die_with_ephemeral);
  assert_true (sandboxes (*state));
  sweep_leaves_nothing (*state);
  assert_false (sandboxes (*state));
}

static void
test_a_kill_that_was_cut_short_is_finished (void **state)
{
  in_a_process (*state, die_in_kill);
  sweep_leaves_nothing (*state);
  assert_false (sandboxes (*state));
}

static void
make_durable (struct host *host)
{
  struct sandbox_record *record;

  make (host, &record);
}

static void
test_a_durable_one_is_left_alone (void **state)
{
  struct fixture *f = *state;
  struct error *error = NULL;
  json_t *list;

  in_a_process (f, make_durable);
  assert_ok (host_sweep (f->host, &error), error);
  assert_int_equal (fake.opens, 0);
  assert_int_equal (rows (f), 1);
  assert_ok (sandbox_list (f->host, &list, &error), error);
  assert_int_equal (json_array_size (list), 1);
  assert_string_equal (json_string_value (json_object_get (
                         json_array_get (list, 0), "state")), "running");
  json_decref (list);
}

static void
test_an_empty_sweep_opens_no_provider (void **state)
{
  struct fixture *f = *state;

  assert_int_equal (host_sweep (f->host, NULL), 0);
  assert_int_equal (fake.opens, 0);
}

static void
test_the_sandboxes_of_a_living_process_are_not_swept (void **state)
{
  struct sandbox_request request = { .ephemeral = 1 };
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  int status;
  pid_t pid;

  assert_int_equal (sandbox_create (f->host, &request, NULL, &record, NULL,
                                    NULL), 0);
  pid = fork ();
  if (pid == 0) {
    struct host *host;
    json_t *report, *list;

    if (host_open (&f->place, 0, &host, NULL) < 0
        || host_sweep (host, NULL) < 0
        || sandbox_prune (host, &report, NULL) < 0
        || sandbox_list (host, &list, NULL) < 0)
      _exit (1);
    _exit (json_array_size (list) == 1 ? 0 : 2);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  assert_true (exists (f, record->id));
  assert_int_equal (rows (f), 1);
}

static void
as_if_creating (const struct fixture *f)
{
  char text[300];
  struct owner self;

  assert_int_equal (owner_self (&self, NULL), 0);
  snprintf (text, sizeof text, "UPDATE sandbox SET state = 0, deadline_ns = 1,"
            " owner_pid = %lld, owner_start = %lld, owner_where = '%s'",
            (long long) self.pid, (long long) self.start, self.where);
  sql (f, text);
}

static void
test_an_overdue_creation_that_is_there_is_adopted (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  struct error *error = NULL;
  json_t *info;

  make (f->host, &record);
  fixture_restart (f);
  as_if_creating (f);
  assert_ok (host_sweep (f->host, &error), error);
  assert_int_equal (rows (f), 1);
  assert_true (exists (f, record->id));
  assert_ok (sandbox_info (f->host, record->id, NULL, &info, &error), error);
  json_decref (info);
  /* Settled: the next sweep needs no provider. */
  fixture_restart (f);
  fake.opens = 0;
  assert_int_equal (host_sweep (f->host, NULL), 0);
  assert_int_equal (fake.opens, 0);
}

static void
test_an_overdue_creation_that_is_not_there_is_dropped (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  char path[600];

  make (f->host, &record);
  fixture_restart (f);
  as_if_creating (f);
  snprintf (path, sizeof path, "%s/fake/%s", f->place.runtime, record->id);
  assert_int_equal (rmdir (path), 0);
  assert_int_equal (host_sweep (f->host, NULL), 0);
  assert_int_equal (rows (f), 0);
}

/* ---- list, info, prune, kill --------------------------------------------- */

static void
test_a_list_that_lags_does_not_lose_a_sandbox (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  json_t *list;

  make (f->host, &record);
  fake.list_is_empty = 1;
  assert_int_equal (sandbox_list (f->host, &list, NULL), 0);
  assert_int_equal (json_array_size (list), 1);
  json_decref (list);
  assert_int_equal (rows (f), 1);
}

static void
test_what_is_gone_leaves_the_list_and_the_records (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_error struct error *error = NULL;
  struct fixture *f = *state;
  json_t *list = NULL;
  char path[600];

  make (f->host, &record);
  snprintf (path, sizeof path, "%s/fake/%s", f->place.runtime, record->id);
  assert_int_equal (rmdir (path), 0);
  assert_int_equal (sandbox_list (f->host, &list, NULL), 0);
  assert_int_equal (json_array_size (list), 0);
  json_decref (list);
  assert_int_equal (rows (f), 0);
  assert_fails (sandbox_info (f->host, record->id, NULL, &list, &error),
                error, E_UNKNOWN_SANDBOX);
}

static void
test_a_provider_that_cannot_be_asked_loses_nothing (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  json_t *list, *report;

  make (f->host, &record);
  fixture_restart (f);
  fake.open_fails = 1;
  log_set_level ((enum log_level) -1);
  assert_int_equal (sandbox_list (f->host, &list, NULL), 0);
  assert_int_equal (json_array_size (list), 1);
  assert_string_equal (json_string_value (json_object_get (
                         json_array_get (list, 0), "state")), "lost");
  json_decref (list);
  assert_int_equal (sandbox_prune (f->host, &report, NULL), 0);
  json_decref (report);
  assert_int_equal (rows (f), 1);
}

static void
test_prune_ends_what_has_expired (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL, *other = NULL;
  struct fixture *f = *state;
  char text[200];
  json_t *report;

  make (f->host, &record);
  make (f->host, &other);
  fixture_restart (f);
  snprintf (text, sizeof text,
            "UPDATE sandbox SET expires_ns = 1 WHERE id = '%s'", record->id);
  sql (f, text);
  assert_int_equal (sandbox_prune (f->host, &report, NULL), 0);
  assert_int_equal (json_array_size (json_object_get (report, "killed")), 1);
  json_decref (report);
  assert_false (exists (f, record->id));
  assert_true (exists (f, other->id));
  assert_int_equal (rows (f), 1);
}

static void
test_info_is_the_providers_word_and_the_record (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  struct error *error = NULL;
  json_t *info;

  make (f->host, &record);
  assert_ok (sandbox_info (f->host, record->id, NULL, &info, &error), error);
  assert_string_equal (json_string_value (json_object_get (info, "id")),
                       record->id);
  assert_string_equal (json_string_value (json_object_get (info,
                                                           "provider")),
                       "fake");
  assert_non_null (json_object_get (info, "native_id"));
  /* Not reported, so not shown. */
  assert_null (json_object_get (info, "expires_ns"));
  assert_null (json_object_get (info, "template"));
  json_decref (info);
}

static void
test_kill_with_a_provider_asks_no_records (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  struct error *error = NULL;
  int gone = -1;

  make (f->host, &record);
  fixture_restart (f);
  fake.kills = fake.infos = fake.lists = 0;
  assert_ok (sandbox_kill (f->host, "fake", record->id, NULL, &gone, &error),
             error);
  assert_int_equal (gone, 0);
  assert_int_equal (fake.kills, 1);
  assert_int_equal (fake.infos + fake.lists, 0);
  assert_false (exists (f, record->id));
  assert_int_equal (rows (f), 0);
}

static void
test_killing_what_nobody_knows_is_success (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  char id[SANDBOX_ID_SIZE];
  int gone = 0;

  make (f->host, &record);
  assert_int_equal (sandbox_id_new (id, NULL), 0);
  assert_int_equal (sandbox_kill (f->host, NULL, id, NULL, &gone, NULL), 0);
  assert_int_equal (gone, 1);
  gone = 0;
  assert_int_equal (sandbox_kill (f->host, "fake", id, NULL, &gone, NULL), 0);
  assert_int_equal (gone, 1);
  gone = 0;
  fake.kills = 0;
  assert_int_equal (sandbox_kill (f->host, NULL, "../../etc", NULL, &gone,
                                  NULL), 0);
  assert_int_equal (gone, 1);
  assert_int_equal (fake.kills, 0);
  assert_true (exists (f, record->id));
  assert_int_equal (sandbox_kill (f->host, NULL, record->id, NULL, &gone,
                                  NULL), 0);
  assert_int_equal (gone, 0);
}

static void
test_a_sandbox_without_a_record_is_found_by_kill (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct fixture *f = *state;
  int gone = 1;

  make (f->host, &record);
  fixture_restart (f);
  sql (f, "DELETE FROM sandbox");
  assert_int_equal (sandbox_kill (f->host, NULL, record->id, NULL, &gone,
                                  NULL), 0);
  assert_int_equal (gone, 0);
  assert_false (exists (f, record->id));
}

static void
test_a_kill_that_fails_keeps_the_row (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_error struct error *error = NULL;
  struct fixture *f = *state;
  int gone;

  make (f->host, &record);
  fake.kill_fails = 1;
  assert_fails (sandbox_kill (f->host, NULL, record->id, NULL, &gone, &error),
                error, E_PROVIDER_FAILED);
  assert_int_equal (rows (f), 1);
}

static void
test_extend_has_bounds (void **state)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_error struct error *low = NULL, *high = NULL, *error = NULL;
  struct fixture *f = *state;
  json_t *info;

  make (f->host, &record);
  assert_fails (sandbox_extend (f->host, record->id, 1, NULL, &info, &low),
                low, E_SANDBOX_SPEC);
  assert_fails (sandbox_extend (f->host, record->id, UINT64_MAX, NULL, &info,
                                &high), high, E_SANDBOX_SPEC);
  assert_ok (sandbox_extend (f->host, record->id, 60000, NULL, &info, &error),
             error);
  json_decref (info);
}

/* ---- without records ----------------------------------------------------- */

static void
break_records (struct fixture *f)
{
  char command[600];

  host_close (f->host);
  f->host = NULL;
  snprintf (command, sizeof command, "rm -f '%s'/state.db*; mkdir '%s/state.db'",
            f->place.state, f->place.state);
  assert_int_equal (system (command), 0);
}

static void
test_without_records_only_the_ephemeral_live (void **state)
{
  struct sandbox_request request = { .ephemeral = 1 };
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_error struct error *error = NULL, *refused = NULL;
  struct fixture *f = *state;
  struct sandbox_record *none;
  int gone;

  break_records (f);
  log_set_level ((enum log_level) -1);
  assert_int_equal (host_open (&f->place, 0, &f->host, &error), -1);
  assert_int_equal (error->number, E_RECORDS);
  assert_int_equal (host_open (&f->place, HOST_EPHEMERAL, &f->host, NULL), 0);
  assert_int_equal (host_sweep (f->host, NULL), 0);
  assert_int_equal (sandbox_create (f->host, &request, NULL, &record, NULL,
                                    NULL), 0);
  assert_int_equal (sandbox_kill (f->host, NULL, record->id, NULL, &gone,
                                  NULL), 0);
  assert_int_equal (gone, 0);
  assert_false (exists (f, record->id));
  request.ephemeral = 0;
  assert_fails (sandbox_create (f->host, &request, NULL, &none, NULL,
                                &refused), refused, E_RECORDS);
}

/* The file that cannot be made is missed, and said, by who needs none. */
static void
test_what_cannot_be_noted_lives_on_its_lifeline (void **state)
{
  struct sandbox_request request = { .ephemeral = 1 };
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_error struct error *error = NULL;
  struct fixture *f = *state;
  struct sandbox_record *none;
  char path[600];

  assert_int_equal (mkdir (f->place.runtime, 0700), 0);
  snprintf (path, sizeof path, "%s/runs", f->place.runtime);
  assert_int_equal (symlink ("/", path), 0);
  assert_fails (sandbox_create (f->host, &request, NULL, &none, NULL, &error),
                error, E_UNSAFE_FILE);
  host_close (f->host);
  log_set_level ((enum log_level) -1);
  assert_int_equal (host_open (&f->place, HOST_EPHEMERAL, &f->host, NULL), 0);
  assert_int_equal (sandbox_create (f->host, &request, NULL, &record, NULL,
                                    NULL), 0);
  assert_true (exists (f, record->id));
}

/* The provider has it no more. */
static void
forget (const struct fixture *f, const char *id)
{
  char path[600];

  snprintf (path, sizeof path, "%s/fake/%s", f->place.runtime, id);
  assert_int_equal (rmdir (path), 0);
}

/* Makes one, says so, and waits to be ended. */
static pid_t
owner_start (struct fixture *f, int fd)
{
  struct sandbox_request request = { .ephemeral = 1 };
  struct sandbox_record *record;
  struct host *host;
  pid_t pid = fork ();

  if (pid != 0)
    return pid;
  signal (SIGTERM, SIG_DFL);
  if (host_open (&f->place, HOST_EPHEMERAL, &host, NULL) < 0
      || sandbox_create (host, &request, NULL, &record, NULL, NULL) < 0
      || write (fd, record->id, sizeof record->id) < 0)
    _exit (1);
  for (;;)
    pause ();
}

static void
test_what_only_its_owner_reaches_ends_with_its_owner (void **state)
{
  auto_error struct error *error = NULL;
  struct fixture *f = *state;
  char id[SANDBOX_ID_SIZE];
  int ends[2], gone, status;
  json_t *list, *info;
  pid_t owner;

  assert_int_equal (pipe (ends), 0);
  owner = owner_start (f, ends[1]);
  assert_int_equal (read (ends[0], id, sizeof id), (ssize_t) sizeof id);
  assert_int_equal (sandbox_list (f->host, &list, NULL), 0);
  assert_int_equal (json_array_size (list), 1);
  json_decref (list);
  assert_ok (sandbox_info (f->host, id, NULL, &info, &error), error);
  assert_string_equal (json_string_value (json_object_get (info, "state")),
                       "running");
  json_decref (info);
  /* To the provider it is as if it never was: the owner is who holds it. */
  forget (f, id);
  assert_ok (sandbox_info (f->host, id, NULL, &info, &error), error);
  json_decref (info);
  assert_ok (sandbox_kill (f->host, NULL, id, NULL, &gone, &error), error);
  assert_int_equal (gone, 0);
  assert_int_equal (waitpid (owner, &status, 0), owner);
  assert_true (WIFSIGNALED (status) && WTERMSIG (status) == SIGTERM);
  assert_int_equal (sandbox_kill (f->host, NULL, id, NULL, &gone, NULL), 0);
  assert_int_equal (gone, 1);
  assert_int_equal (host_sweep (f->host, NULL), 0);
  assert_int_equal (rows (f), 0);
  close (ends[0]);
  close (ends[1]);
}

/* A file that nobody holds names a process that has nothing to do with it. */
static void
test_a_pid_in_a_file_that_nobody_holds_is_not_signalled (void **state)
{
  struct fixture *f = *state;
  char path[600], id[SANDBOX_ID_SIZE];
  int gone;
  FILE *file;

  assert_int_equal (sandbox_id_new (id, NULL), 0);
  assert_int_equal (mkdir (f->place.runtime, 0700), 0);
  snprintf (path, sizeof path, "%s/runs", f->place.runtime);
  assert_int_equal (mkdir (path, 0700), 0);
  snprintf (path, sizeof path, "%s/runs/%s", f->place.runtime, id);
  file = fopen (path, "w");
  assert_non_null (file);
  fprintf (file, "{\"state\":1,\"id\":\"%s\",\"provider\":\"fake\","
           "\"tenant\":\"default\",\"spec\":\"{}\",\"owner\":%d,"
           "\"pid_namespace\":0,\"created_ns\":1,\"deadline_ns\":1}",
           id, (int) getppid ());
  fclose (file);
  assert_int_equal (sandbox_kill (f->host, NULL, id, NULL, &gone, NULL), 0);
  assert_int_equal (gone, 1);
  assert_int_equal (host_sweep (f->host, NULL), 0);
  assert_int_equal (noted (f), 0);
}

static void
test_files_in_runs_that_are_no_records_are_harmless (void **state)
{
  static const char *const texts[]
    = { "", "{", "[]", "{\"state\":9}", "{\"state\":1,\"id\":\"x\"}" };
  struct fixture *f = *state;
  char path[600], id[SANDBOX_ID_SIZE];
  json_t *list;
  FILE *file;
  size_t i;

  assert_int_equal (mkdir (f->place.runtime, 0700), 0);
  snprintf (path, sizeof path, "%s/runs", f->place.runtime);
  assert_int_equal (mkdir (path, 0700), 0);
  for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    assert_int_equal (sandbox_id_new (id, NULL), 0);
    snprintf (path, sizeof path, "%s/runs/%s", f->place.runtime, id);
    file = fopen (path, "w");
    assert_non_null (file);
    fputs (texts[i], file);
    fclose (file);
  }
  assert_int_equal (sandbox_list (f->host, &list, NULL), 0);
  assert_int_equal (json_array_size (list), 0);
  json_decref (list);
  assert_int_equal (noted (f), 0);
}

static void
test_closing_a_host_ends_what_is_ephemeral (void **state)
{
  struct sandbox_request request = { .ephemeral = 1 };
  auto_sandbox_record struct sandbox_record *record = NULL, *durable = NULL;
  struct fixture *f = *state;

  assert_int_equal (sandbox_create (f->host, &request, NULL, &record, NULL,
                                    NULL), 0);
  make (f->host, &durable);
  fixture_restart (f);
  assert_false (exists (f, record->id));
  assert_true (exists (f, durable->id));
  assert_int_equal (rows (f), 1);
}

#define TEST(name)                                                            \
  cmocka_unit_test_setup_teardown (name, fixture_new, fixture_free)

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
    TEST (test_a_creation_that_never_began_is_dropped),
    TEST (test_a_creation_nobody_heard_of_is_killed),
    TEST (test_what_a_worker_makes_after_its_host_died_is_killed),
    TEST (test_an_ephemeral_one_ends_with_its_owner),
    TEST (test_a_kill_that_was_cut_short_is_finished),
    TEST (test_a_durable_one_is_left_alone),
    TEST (test_an_empty_sweep_opens_no_provider),
    TEST (test_the_sandboxes_of_a_living_process_are_not_swept),
    TEST (test_an_overdue_creation_that_is_there_is_adopted),
    TEST (test_an_overdue_creation_that_is_not_there_is_dropped),
    TEST (test_a_list_that_lags_does_not_lose_a_sandbox),
    TEST (test_what_is_gone_leaves_the_list_and_the_records),
    TEST (test_a_provider_that_cannot_be_asked_loses_nothing),
    TEST (test_prune_ends_what_has_expired),
    TEST (test_info_is_the_providers_word_and_the_record),
    TEST (test_kill_with_a_provider_asks_no_records),
    TEST (test_killing_what_nobody_knows_is_success),
    TEST (test_a_sandbox_without_a_record_is_found_by_kill),
    TEST (test_a_kill_that_fails_keeps_the_row),
    TEST (test_extend_has_bounds),
    TEST (test_without_records_only_the_ephemeral_live),
    TEST (test_what_cannot_be_noted_lives_on_its_lifeline),
    TEST (test_what_only_its_owner_reaches_ends_with_its_owner),
    TEST (test_a_pid_in_a_file_that_nobody_holds_is_not_signalled),
    TEST (test_files_in_runs_that_are_no_records_are_harmless),
    TEST (test_closing_a_host_ends_what_is_ephemeral),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
