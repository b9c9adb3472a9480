/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes made ahead: who gets one, how many there are, and when one is not
 * what was asked for any more. */

#include "config.h"

#include "sandbox-host.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/json.h"
#include "sandbox/ready.h"

static const struct sandbox_request plain
  = { .profile = "default", .ephemeral = 1, .single_exec = 1 };

static void
begin (struct fixture *f)
{
  struct error *error = NULL;

  assert_ok (host_ready_begin (f->host, 3, &error), error);
}

static void
take (struct fixture *f, const struct sandbox_request *request,
      char id[SANDBOX_ID_SIZE])
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_json json_t *applied = NULL;
  struct error *error = NULL;
  int gone;

  assert_ok (ready_take (f->host, request, NULL, &record, &applied, &error),
             error);
  assert_string_equal (json_string_value (json_object_get (applied, "id")),
                       record->id);
  assert_true (exists (f, record->id));
  if (id)
    memcpy (id, record->id, SANDBOX_ID_SIZE);
  assert_ok (sandbox_kill (f->host, NULL, record->id, NULL, &gone, &error),
             error);
}

static void
await_count (struct fixture *f, unsigned wanted)
{
  int64_t stop = coffer_now_ns () + HARNESS_PATIENCE_MS * INT64_C (1000000);

  while (host_ready_count (f->host) != wanted) {
    assert_true (coffer_now_ns () < stop);
    poll (NULL, 0, 2);
  }
}

static void
await_kills (int wanted)
{
  int64_t stop = coffer_now_ns () + HARNESS_PATIENCE_MS * INT64_C (1000000);

  while (__atomic_load_n (&fake.kills, __ATOMIC_RELAXED) < wanted) {
    assert_true (coffer_now_ns () < stop);
    poll (NULL, 0, 2);
  }
}

static void
test_without_a_beginning_each_is_made_when_it_is_asked_for (void **state)
{
  struct fixture *f = *state;
  int i;

  for (i = 1; i < 5; i++) {
    take (f, &plain, NULL);
    assert_int_equal (fake.creates, i);
  }
  assert_int_equal (host_ready_count (f->host), 0);
}

static void
test_who_asks_again_gets_one_that_was_made_ahead (void **state)
{
  struct fixture *f = *state;
  char ids[4][SANDBOX_ID_SIZE];
  int i, k;

  begin (f);
  take (f, &plain, ids[0]);
  take (f, &plain, ids[1]);
  await_count (f, 1);
  assert_int_equal (fake.creates, 3);
  for (i = 2; i < 4; i++) {
    take (f, &plain, ids[i]);
    await_count (f, 1);
    assert_int_equal (fake.creates, i + 2);
  }
  for (i = 0; i < 4; i++)
    for (k = 0; k < i; k++)
      assert_string_not_equal (ids[i], ids[k]);
}

static void
test_as_many_as_are_taken_and_no_more_than_that (void **state)
{
  struct fixture *f = *state;
  auto_sandbox_record struct sandbox_record *record = NULL;
  struct error *error = NULL;
  int i;

  begin (f);
  for (i = 0; i < 40; i++) {
    sandbox_record_free (record);
    record = NULL;
    assert_ok (ready_take (f->host, &plain, NULL, &record, NULL, &error),
               error);
    assert_true (host_ready_count (f->host) <= 3);
  }
}

static void
test_what_is_more_than_a_profile_is_made_for_it (void **state)
{
  static const char *const env[] = { "A=1", NULL };
  struct sandbox_request one = plain;
  struct fixture *f = *state;

  begin (f);
  take (f, &plain, NULL);
  take (f, &plain, NULL);
  await_count (f, 1);
  one.env = env;
  take (f, &one, NULL);
  assert_int_equal (fake.creates, 4);
  one = plain;
  one.memory_bytes = 64 << 20;
  take (f, &one, NULL);
  assert_int_equal (fake.creates, 5);
  assert_int_equal (host_ready_count (f->host), 1);
  one = plain;
  one.profile = "offline-readonly";
  take (f, &one, NULL);
  assert_int_equal (fake.spec.pids, 64);
  assert_int_equal (host_ready_count (f->host), 1);
}

static void
profile_write (struct fixture *f, const char *pids)
{
  char path[512], text[256];
  int fd;

  snprintf (path, sizeof path, "%s/config", (char *) f->home);
  mkdir (path, 0700);
  snprintf (path, sizeof path, "%s/config/profiles", (char *) f->home);
  mkdir (path, 0700);
  snprintf (path, sizeof path, "%s/config/profiles/default.yaml",
            (char *) f->home);
  snprintf (text, sizeof text, "profile: 1\nname: default\nsummary: mine\n"
            "pids: %s\n", pids);
  fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  assert_true (fd >= 0);
  assert_int_equal (coffer_write_all (fd, text, strlen (text)),
                    strlen (text));
  close (fd);
}

static void
test_another_profile_ends_what_was_made_by_it (void **state)
{
  struct fixture *f = *state;
  char config[512];

  snprintf (config, sizeof config, "%s/config", (char *) f->home);
  f->place.config = config;
  begin (f);
  take (f, &plain, NULL);
  take (f, &plain, NULL);
  await_count (f, 1);
  assert_int_equal (fake.spec.pids, 128);
  profile_write (f, "17");
  take (f, &plain, NULL);
  /* The two that were taken, the old one, and the one that was taken now. */
  await_kills (4);
  await_count (f, 1);
  take (f, &plain, NULL);
  assert_int_equal (fake.spec.pids, 17);
  host_close (f->host);
  f->host = NULL;
  f->place.config = NULL;
}

static void
test_none_is_taken_past_half_of_its_life (void **state)
{
  struct fixture *f = *state;

  fake.life_ns = INT64_C (400000000);
  begin (f);
  take (f, &plain, NULL);
  take (f, &plain, NULL);
  await_count (f, 1);
  poll (NULL, 0, 250);
  take (f, &plain, NULL);
  /* The three that were taken, and the one that was not. */
  await_kills (4);
}

static void
test_the_end_of_the_host_is_theirs (void **state)
{
  struct fixture *f = *state;

  begin (f);
  take (f, &plain, NULL);
  take (f, &plain, NULL);
  await_count (f, 1);
  assert_int_equal (noted (f), 1);
  fixture_restart (f);
  assert_int_equal (noted (f), 0);
}

static void
test_one_that_cannot_be_made_is_not_tried_for_ever (void **state)
{
  struct fixture *f = *state;
  int creates;

  begin (f);
  take (f, &plain, NULL);
  fake.create_fails = 1;
  {
    auto_sandbox_record struct sandbox_record *record = NULL;
    auto_error struct error *error = NULL;

    assert_true (ready_take (f->host, &plain, NULL, &record, NULL, &error)
                 < 0);
  }
  poll (NULL, 0, 50);
  creates = __atomic_load_n (&fake.creates, __ATOMIC_RELAXED);
  assert_true (creates <= 3);
  fake.create_fails = 0;
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    TEST (test_without_a_beginning_each_is_made_when_it_is_asked_for),
    TEST (test_who_asks_again_gets_one_that_was_made_ahead),
    TEST (test_as_many_as_are_taken_and_no_more_than_that),
    TEST (test_what_is_more_than_a_profile_is_made_for_it),
    TEST (test_another_profile_ends_what_was_made_by_it),
    TEST (test_none_is_taken_past_half_of_its_life),
    TEST (test_the_end_of_the_host_is_theirs),
    TEST (test_one_that_cannot_be_made_is_not_tried_for_ever),
  };

  return cmocka_run_group_tests_name ("sandbox-ready", tests, NULL, NULL);
}
