/* SPDX-License-Identifier: Apache-2.0 */
/* plugins/host: the lives of sandboxes beside their provider's, and their
 * files.  Judged by processes, descriptors and files. */

#define _GNU_SOURCE

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "fakehost.h"
#include "host-provider.h"

/* ---- lives of sandboxes ---- */

static void
a_sandbox_outlives_the_provider_that_made_it (void **state)
{
  struct fixture *fixture = *state;
  static const char *const metadata[] = {"a=1", "b=" VECTOR_NAME, NULL};
  struct coffer_sandbox_spec spec = {SPEC, .metadata = metadata};
  const struct coffer_sandbox_info *info;
  struct run run;

  assert_int_equal (create (fixture, &spec), 0);
  assert_int_equal (start_script (fixture, "sleep 0.3; exit 9", 0, &run), 0);
  assert_int_equal (OP->close (&fixture->host.call, fixture->self, NULL), 0);
  open_provider (fixture);
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->sandbox_list (&fixture->host.call, fixture->self,
                                      NULL), 0);
  assert_int_equal (fixture->host.count, 1);
  info = FAKEHOST_GET (&fixture->host, sandbox_info, 0);
  assert_string_equal (info->sandbox, SANDBOX);
  assert_string_equal (info->state, "running");
  assert_string_equal (info->metadata[1], metadata[1]);
  assert_true (info->created_ns > coffer_realtime_ns () - 10000000000);
  wait_run (fixture, &run);
  assert_int_equal (run.exit.code, 9);
  run_free (&run);
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->exec_list (&fixture->host.call, fixture->self, SANDBOX,
                                   NULL), 0);
  assert_int_equal (fixture->host.count, 1);
  assert_string_equal (FAKEHOST_GET (&fixture->host, exec_info, 0)->state,
                       "exited");
}

static void
killing_twice_is_not_found (void **state)
{
  struct fixture *fixture = *state;

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (kill_sandbox (fixture, SANDBOX), 0);
  assert_int_equal (entries (fixture->dir), 0);
  assert_int_equal (kill_sandbox (fixture, SANDBOX), COFFER_NOT_FOUND);
}

static void
a_ttl_ends_a_sandbox_and_extend_moves_it (void **state)
{
  struct fixture *fixture = *state;
  struct coffer_sandbox_spec spec = {SPEC, .ttl_ms = 2000};
  int64_t begin = coffer_now_ns ();
  struct run run;

  assert_int_equal (create (fixture, &spec), 0);
  assert_true (FAKEHOST_GET (&fixture->host, sandbox_info, 0)->expires_ns >
               coffer_realtime_ns ());
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->sandbox_extend (&fixture->host.call, fixture->self,
                                        SANDBOX, 0, NULL), COFFER_INVALID);
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->sandbox_extend (&fixture->host.call, fixture->self,
                                        SANDBOX, 3000, NULL), 0);
  assert_int_equal (start_script (fixture, RUNAWAYS "sleep 300", 0, &run), 0);
  wait_for_runaways (&run);
  read_output (&run);
  assert_true (coffer_now_ns () - begin >= INT64_C (3000000000));
  run_free (&run);
}

struct creator {
  struct fixture *fixture;
  struct fakehost host;
  int32_t code;
  pthread_t thread;
};

static void *
creator_main (void *data)
{
  struct creator *c = data;
  struct coffer_sandbox_spec spec = {SPEC};

  c->code = c->fixture->operations->sandbox_create (
    &c->host.call, c->fixture->self, SANDBOX, &spec, NULL);
  return NULL;
}

static void
created_many_times_at_once_is_one_sandbox (void **state)
{
  struct fixture *fixture = *state;
  struct creator creators[8];
  const char *first = NULL;

  for (int i = 0; i < 8; i++) {
    creators[i] = (struct creator) {.fixture = fixture};
    fakehost_init (&creators[i].host, 8000);
    assert_int_equal (pthread_create (&creators[i].thread, NULL, creator_main,
                                      &creators[i]), 0);
  }
  for (int i = 0; i < 8; i++) {
    pthread_join (creators[i].thread, NULL);
    if (creators[i].code)
      fail_msg ("%d: %s", creators[i].code, creators[i].host.message);
  }
  for (int i = 0; i < 8; i++) {
    const char *native = FAKEHOST_GET (&creators[i].host, sandbox_info, 0)
                           ->native_id;

    if (!first)
      first = native;
    assert_string_equal (native, first);
  }
  for (int i = 0; i < 8; i++)
    fakehost_fini (&creators[i].host);
  assert_int_equal (entries (fixture->dir), 1);
}

static unsigned
own_descriptors (void)
{
  return entries ("/proc/self/fd");
}

static void
calls_leave_no_descriptors_and_no_children (void **state)
{
  struct fixture *fixture = *state;
  unsigned before;
  struct run run;

  fakehost_reset (&fixture->host, 8000);
  before = own_descriptors ();
  assert_int_equal (create (fixture, NULL), 0);
  for (int i = 0; i < 5; i++) {
    run_script (fixture, "echo x", &run);
    run_free (&run);
  }
  assert_int_equal (kill_sandbox (fixture, SANDBOX), 0);
  assert_int_equal (own_descriptors (), before);
  assert_int_equal (waitpid (-1, NULL, WNOHANG), -1);
  assert_int_equal (errno, ECHILD);
}

static void
without_its_helper_nothing_is_claimed_or_made (void **state)
{
  struct fixture *fixture = *state;
  struct coffer_open_opts opts = {.size = sizeof opts, .runtime_dir = -1,
                                  .state_dir = -1};
  struct coffer_sandbox_spec spec = {SPEC};
  void *self;

  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->open (&fixture->host.call, NULL, NULL, &opts), 0);
  self = fixture->host.self;
  assert_int_equal (OP->probe (&fixture->host.call, self, NULL), 0);
  assert_string_equal (fakehost_fact (&fixture->host, "keeper")->state,
                       "failed");
  assert_string_equal (fakehost_fact (&fixture->host, "keeper")->narrows[0],
                       "exec");
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->sandbox_create (&fixture->host.call, self, SANDBOX,
                                        &spec, NULL), COFFER_UNAVAILABLE);
  OP->close (&fixture->host.call, self, NULL);
}

/* ---- files ---- */

static int32_t
write_file (struct fixture *fixture, const char *path, const char *body)
{
  struct coffer_file_write_opts opts = {.size = sizeof opts, .parents = 1};
  int ends[2];
  int32_t code;

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_true (write (ends[1], body, strlen (body)) >= 0);
  close (ends[1]);
  fakehost_reset (&fixture->host, 8000);
  code = OP->file_write (&fixture->host.call, fixture->self, SANDBOX, path,
                         ends[0], &opts);
  close (ends[0]);
  return code;
}

static void
files_reach_the_workspace_and_nothing_else (void **state)
{
  struct fixture *fixture = *state;
  char path[1200], workspace[1000];
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  snprintf (workspace, sizeof workspace, "%s",
            FAKEHOST_GET (&fixture->host, sandbox_info, 0)->workspace);
  assert_int_equal (write_file (fixture, VECTOR_NAME, VECTOR_BODY), 0);
  snprintf (path, sizeof path, "%s/abs", workspace);
  assert_int_equal (write_file (fixture, path, "absolute"), 0);
  run_script (fixture, "cat abs */*", &run);
  assert_string_equal (run.output, "absolute" VECTOR_BODY);
  run_free (&run);

  assert_int_equal (write_file (fixture, "/tmp/x", "x"), COFFER_DENIED);
  snprintf (path, sizeof path, "%sx/y", workspace);
  assert_int_equal (write_file (fixture, path, "x"), COFFER_DENIED);
  assert_int_equal (write_file (fixture, "../metadata", "x"), COFFER_INVALID);
  run_script (fixture, "ln -s /tmp out; ln -s /etc/passwd pw", &run);
  run_free (&run);
  assert_int_equal (write_file (fixture, "out/x", "x"), COFFER_DENIED);
  assert_int_equal (write_file (fixture, "pw", "x"), COFFER_DENIED);

  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->file_list (&fixture->host.call, fixture->self, SANDBOX,
                                   workspace, NULL), 0);
  assert_int_equal (fixture->host.count, 4);
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->file_rename (&fixture->host.call, fixture->self,
                                     SANDBOX, "abs", "/tmp/abs", NULL),
                    COFFER_DENIED);
  assert_int_equal (OP->file_rename (&fixture->host.call, fixture->self,
                                     SANDBOX, "abs", "moved", NULL), 0);
  assert_int_equal (OP->file_mkdir (&fixture->host.call, fixture->self,
                                    SANDBOX, "d", NULL), 0);
  assert_int_equal (OP->file_remove (&fixture->host.call, fixture->self,
                                     SANDBOX, "moved", NULL), 0);
  assert_int_equal (OP->file_stat (&fixture->host.call, fixture->self,
                                   SANDBOX, "moved", NULL),
                    COFFER_NOT_FOUND);
}

int
main (void)
{
#define TEST(name)                                                            \
  cmocka_unit_test_setup_teardown (name, fixture_new, fixture_free)
  const struct CMUnitTest tests[] = {
    TEST (a_sandbox_outlives_the_provider_that_made_it),
    TEST (killing_twice_is_not_found),
    TEST (a_ttl_ends_a_sandbox_and_extend_moves_it),
    TEST (created_many_times_at_once_is_one_sandbox),
    TEST (calls_leave_no_descriptors_and_no_children),
    TEST (without_its_helper_nothing_is_claimed_or_made),
    TEST (files_reach_the_workspace_and_nothing_else),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
