/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of commands where there is no more room: caps, and what is said where they
 * are reached. */

#include "config.h"

#include "harness.h"

#include <pthread.h>

#include <coffer/fd.h>

#include "exec-log-fixture.h"

static void
fill (struct exec_log *log, int stream, uint64_t bytes)
{
  static char block[65536];
  int ends[2];

  pipe_new (ends);
  memset (block, 'x', sizeof block);
  for (; bytes > 0; bytes -= sizeof block) {
    assert_int_equal (coffer_write_all (ends[1], block, sizeof block),
                      (ssize_t) sizeof block);
    take_all (log, stream, ends[0]);
  }
  close (ends[0]);
  close (ends[1]);
}

static uint64_t
counted (struct exec_log *log, const char *what)
{
  auto_json json_t *info = exec_log_info (log);

  return (uint64_t) json_integer_value (
    json_object_get (json_object_get (info, "stdout"), what));
}

/* What the events say was dropped. */
static uint64_t
told (struct exec_log *log)
{
  struct exec_event event;
  uint64_t seq, bytes = 0;

  for (seq = 1; exec_log_event (log, seq, &event) > 0; seq++)
    if (event.kind == EXEC_EVENT_DROPPED)
      bytes += event.offset;
  return bytes;
}

static void
test_beyond_its_cap_bytes_are_counted_and_said (void **state)
{
  struct fixture *f = *state;
  auto_exec_log struct exec_log *log = log_new (f, "e1");
  struct exec_event event;

  fill (log, 0, 2 * CAP);
  assert_true (counted (log, "bytes") <= CAP);
  assert_true (counted (log, "bytes") > CAP / 2);
  assert_int_equal (counted (log, "bytes") + counted (log, "dropped"),
                    2 * CAP);
  assert_true (told (log) > 0);
  exec_log_end (log, json_pack ("{s:i}", "status", 0));
  assert_int_equal (told (log), counted (log, "dropped"));
  assert_true (exec_log_over (log));
  assert_int_equal (exec_log_event (log, 1, &event), 1);
}

static void
test_all_together_have_a_cap (void **state)
{
  struct fixture *f = *state;
  auto_exec_log struct exec_log *one = NULL, *two = NULL;

  exec_logs_close (f->logs);
  logs_open (f, CAP, CAP);
  one = log_new (f, "e1");
  two = log_new (f, "e2");
  fill (one, 0, CAP / 2);
  fill (two, 0, CAP);
  assert_int_equal (counted (one, "dropped"), 0);
  assert_true (counted (two, "dropped") > 0);
  assert_true (atomic_load (&f->logs->used) <= CAP + 65536);
  exec_logs_drop (f->logs, f->sandbox);
  assert_true (atomic_load (&f->logs->used) < 65536);
}

static void
test_what_is_dropped_gives_back_what_it_took (void **state)
{
  struct fixture *f = *state;
  auto_exec_log struct exec_log *log = log_new (f, "e1");
  char text[20000];

  memset (text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  fill (log, 1, 65536);
  exec_log_end (log, json_pack ("{s:s}", "reason", text));
  /* Those of others. */
  atomic_fetch_add (&f->logs->used, CAP);
  assert_true (atomic_load (&f->logs->used) > CAP + 65536 + sizeof text);
  exec_logs_drop (f->logs, f->sandbox);
  assert_true (atomic_load (&f->logs->used) == CAP);
  exec_logs_drop (f->logs, f->sandbox);
  assert_true (atomic_load (&f->logs->used) == CAP);
}

struct dropping {
  struct exec_logs *logs;
  const char *sandbox;
};

static void *
drop_run (void *data)
{
  const struct dropping *dropping = data;

  exec_logs_drop (dropping->logs, dropping->sandbox);
  return NULL;
}

/* As many requests that end one sandbox, and the sweep besides. */
static void
test_who_drops_the_same_at_once_counts_it_once (void **state)
{
  struct fixture *f = *state;
  struct dropping dropping = { f->logs, f->sandbox };
  pthread_t threads[8];
  char name[16];
  int i;

  for (i = 1; i <= 50; i++) {
    struct exec_log *log;

    snprintf (name, sizeof name, "e%d", i);
    log = log_new (f, name);
    fill (log, 0, 65536);
    exec_log_unref (log);
  }
  atomic_fetch_add (&f->logs->used, CAP);
  for (i = 0; i < 8; i++)
    assert_int_equal (pthread_create (&threads[i], NULL, drop_run, &dropping),
                      0);
  for (i = 0; i < 8; i++)
    pthread_join (threads[i], NULL);
  assert_true (atomic_load (&f->logs->used) == CAP);
}

/* A byte at a time is still a bounded file. */
static void
test_small_writes_stay_below_the_cap (void **state)
{
  struct fixture *f = *state;
  auto_exec_log struct exec_log *log = NULL;
  int ends[2], i;

  exec_logs_close (f->logs);
  logs_open (f, 65536, CAP);
  log = log_new (f, "e1");
  pipe_new (ends);
  for (i = 0; i < 10000; i++)
    put (log, 0, ends, "x");
  assert_true (log->room + log->size[0] <= 65536 + 4096);
  assert_int_equal (counted (log, "bytes") + counted (log, "dropped"), 10000);
  close (ends[0]);
  close (ends[1]);
}

/* What is known of an end may be more than the page that was taken for it. */
static void
test_long_facts_are_counted (void **state)
{
  struct fixture *f = *state;
  auto_exec_log struct exec_log *log = log_new (f, "e1");
  char text[9000];

  memset (text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  exec_log_end (log, json_pack ("{s:s}", "reason", text));
  exec_logs_drop (f->logs, f->sandbox);
  assert_int_equal (atomic_load (&f->logs->used), 0);
}

/* Logs that say nothing take room as well. */
static void
test_there_is_an_end_to_how_many_there_are (void **state)
{
  struct fixture *f = *state;
  auto_exec_log struct exec_log *first = log_new (f, "e1");
  auto_json json_t *list = NULL;
  struct exec_log *log = NULL;
  struct error *error = NULL;
  char name[16];
  int i;

  assert_false (exec_log_over (first));
  for (i = 2; i <= 1300; i++) {
    snprintf (name, sizeof name, "e%d", i);
    log = log_new (f, name);
    exec_log_end (log, json_object ());
    exec_log_unref (log);
  }
  assert_int_equal (exec_logs_list (f->logs, f->sandbox, &list, NULL), 0);
  assert_true (json_array_size (list) <= 1024 + 64);
  assert_string_equal (json_string_value (json_object_get (
                         json_array_get (list, 0), "exec")), "e1");
  assert_int_equal (exec_log_find (f->logs, f->sandbox, "e1300", &log, NULL),
                    0);
  exec_log_unref (log);
  atomic_fetch_add (&f->logs->used, UINT64_C (1) << 40);
  assert_true (exec_log_new (f->logs, f->sandbox, "e2000", json_object (),
                             &log, &error) < 0);
  assert_int_equal (error->number, E_LIMIT);
  error_free (error);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    TEST (beyond_its_cap_bytes_are_counted_and_said),
    TEST (all_together_have_a_cap),
    TEST (what_is_dropped_gives_back_what_it_took),
    TEST (who_drops_the_same_at_once_counts_it_once),
    TEST (small_writes_stay_below_the_cap),
    TEST (long_facts_are_counted),
    TEST (there_is_an_end_to_how_many_there_are)
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
