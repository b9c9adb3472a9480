/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of commands: each byte once, whatever ends who writes them; numbers that
 * never change. */

#include "config.h"

#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "exec-log-fixture.h"

/* What the events from `seq` on say of a stream, and the next number. */
static uint64_t
read_from (struct exec_log *log, uint64_t seq, int stream,
           struct coffer_buffer *out)
{
  struct exec_event event;
  char bytes[EXEC_LOG_CHUNK];

  for (; exec_log_event (log, seq, &event) > 0; seq++)
    if (event.kind == EXEC_EVENT_OUTPUT && event.stream == stream + 1) {
      assert_true (event.size <= sizeof bytes);
      assert_int_equal (exec_log_read (log, stream, bytes, event.size,
                                       event.offset), event.size);
      coffer_buffer_add (out, bytes, event.size);
    }
  return seq;
}

static void
assert_text (struct exec_log *log, int stream, const char *want)
{
  coffer_autobuffer struct coffer_buffer got = { 0 };

  read_from (log, 1, stream, &got);
  assert_string_equal (got.data ? got.data : "", want);
}

/* ---- writing and reading -------------------------------------------------- */

static void
test_both_streams_are_kept_apart_and_in_order (void **state)
{
  struct fixture *f = *state;
  auto_exec_log struct exec_log *log = log_new (f, "e1");
  struct exec_event event;
  int out[2], err[2];

  pipe_new (out);
  pipe_new (err);
  put (log, 0, out, "one\n");
  put (log, 1, err, "two\n");
  put (log, 0, out, "three\n");
  assert_text (log, 0, "one\nthree\n");
  assert_text (log, 1, "two\n");
  assert_int_equal (exec_log_event (log, 2, &event), 1);
  assert_int_equal (event.stream, 2);
  assert_int_equal (exec_log_event (log, 4, &event), 0);
  close (out[1]);
  assert_int_equal (exec_log_take (log, 0, out[0]), -1);
  exec_log_end (log, json_pack ("{s:i}", "status", 3));
  assert_int_equal (exec_log_event (log, 4, &event), 1);
  assert_int_equal (event.kind, EXEC_EVENT_EXITED);
  assert_int_equal (exec_log_event (log, 5, &event), -1);
  close (out[0]);
  close (err[0]);
  close (err[1]);
}

static void
test_a_character_is_not_cut_in_two (void **state)
{
  struct fixture *f = *state;
  auto_exec_log struct exec_log *log = log_new (f, "e1");
  struct exec_event event;
  int ends[2];

  pipe_new (ends);
  put (log, 0, ends, "caf\303");
  assert_int_equal (exec_log_event (log, 1, &event), 1);
  assert_int_equal (event.size, 3);
  assert_true (exec_log_pending (log));
  put (log, 0, ends, "\251");
  assert_int_equal (exec_log_event (log, 2, &event), 1);
  assert_int_equal (event.size, 2);
  assert_false (exec_log_pending (log));
  put (log, 0, ends, "\342\230");
  assert_int_equal (exec_log_event (log, 3, &event), 0);
  exec_log_flush (log);
  assert_int_equal (exec_log_event (log, 3, &event), 1);
  assert_text (log, 0, "caf\303\251\342\230");
  close (ends[0]);
  close (ends[1]);
}

struct waiting {
  struct exec_log *log;
  uint64_t seq;
  int cancel_fd, result;
};

static void *
wait_run (void *data)
{
  struct waiting *waiting = data;

  waiting->result = exec_log_wait (waiting->log, waiting->seq,
                                   waiting->cancel_fd);
  return NULL;
}

static void
test_who_waits_hears_of_what_comes_and_of_giving_up (void **state)
{
  struct fixture *f = *state;
  auto_exec_log struct exec_log *log = log_new (f, "e1");
  struct waiting first = { log, 1, -1, -1 }, second;
  int ends[2], cancel[2];
  pthread_t threads[2];

  pipe_new (ends);
  pipe_new (cancel);
  second = (struct waiting){ log, 99, cancel[0], -1 };
  pthread_create (&threads[0], NULL, wait_run, &first);
  pthread_create (&threads[1], NULL, wait_run, &second);
  put (log, 0, ends, "x");
  pthread_join (threads[0], NULL);
  assert_int_equal (first.result, 1);
  close (cancel[1]);
  pthread_join (threads[1], NULL);
  assert_int_equal (second.result, 0);
  close (ends[0]);
  close (ends[1]);
  close (cancel[0]);
}

/* ---- what ends who writes ------------------------------------------------- */

/* Numbers, one a line, as a command would write them, until it is killed. */
static pid_t
writer_start (int ends[2], unsigned lines)
{
  pid_t pid = fork ();
  unsigned i;

  if (pid != 0)
    return pid;
  close (ends[0]);
  for (i = 0; i < lines; i++)
    dprintf (ends[1], "%u\n", i);
  _exit (0);
}

/* A daemon that is killed while it moves bytes; a next one goes on.  The pipe is
 * held here, as the keeper does. */
static void
test_no_byte_is_lost_or_doubled_by_sigkill (void **state)
{
  struct fixture *f = *state;
  coffer_autobuffer struct coffer_buffer got = { 0 }, want = { 0 };
  const unsigned lines = 60000;
  int ends[2], round, status, delay = 0;
  pid_t writer, mover;
  unsigned i;

  exec_log_unref (log_new (f, "e1"));
  pipe_new (ends);
  writer = writer_start (ends, lines);
  close (ends[1]);
  for (round = 0; round < 20; round++) {
    mover = fork ();
    if (mover == 0) {
      struct exec_log *log = log_again (f, "e1");
      struct pollfd poll_fd = { ends[0], POLLIN, 0 };

      while (poll (&poll_fd, 1, -1) >= 0
             && exec_log_take (log, 0, ends[0]) >= 0)
        ;
      _exit (0);
    }
    delay = (delay * 7 + 3) % 10;
    poll (NULL, 0, 1 + delay);
    kill (mover, SIGKILL);
    assert_int_equal (waitpid (mover, &status, 0), mover);
  }
  {
    auto_exec_log struct exec_log *log = log_again (f, "e1");
    struct pollfd poll_fd = { ends[0], POLLIN, 0 };

    while (poll (&poll_fd, 1, HARNESS_PATIENCE_MS) > 0
           && exec_log_take (log, 0, ends[0]) >= 0)
      ;
    assert_int_equal (waitpid (writer, &status, 0), writer);
    exec_log_end (log, json_object ());
    read_from (log, 1, 0, &got);
  }
  for (i = 0; i < lines; i++)
    coffer_buffer_printf (&want, "%u\n", i);
  assert_int_equal (got.size, want.size);
  assert_memory_equal (got.data, want.data, want.size);
  close (ends[0]);
}

static void
test_numbers_and_facts_are_the_same_afterwards (void **state)
{
  struct fixture *f = *state;
  struct exec_log *log = log_new (f, "e1");
  auto_json json_t *info = NULL;
  struct exec_event before[2], after;
  int ends[2], i;

  pipe_new (ends);
  put (log, 0, ends, "one\n");
  put (log, 0, ends, "two\n");
  for (i = 0; i < 2; i++)
    assert_int_equal (exec_log_event (log, (uint64_t) i + 1, &before[i]), 1);
  exec_log_end (log, json_pack ("{s:i}", "status", 7));
  exec_log_unref (log);
  exec_logs_close (f->logs);
  logs_open (f, CAP, 4 * CAP);
  log = log_again (f, "e1");
  for (i = 0; i < 2; i++) {
    assert_int_equal (exec_log_event (log, (uint64_t) i + 1, &after), 1);
    assert_memory_equal (&before[i], &after, sizeof after);
  }
  info = exec_log_info (log);
  assert_int_equal (json_integer_value (json_object_get (info, "status")), 7);
  assert_true (exec_log_over (log));
  exec_log_unref (log);
  close (ends[0]);
  close (ends[1]);
}

/* ---- all of them ---------------------------------------------------------- */

static void
test_a_list_has_each_by_number (void **state)
{
  struct fixture *f = *state;
  auto_json json_t *list = NULL;
  static const char *const names[] = { "e10", "e2", "e1" };
  static const char *const want[] = { "e1", "e2", "e10" };
  size_t i;

  for (i = 0; i < 3; i++)
    exec_log_unref (log_new (f, names[i]));
  assert_int_equal (exec_logs_list (f->logs, f->sandbox, &list, NULL), 0);
  assert_int_equal (json_array_size (list), 3);
  for (i = 0; i < 3; i++)
    assert_string_equal (json_string_value (json_object_get (
                           json_array_get (list, i), "exec")), want[i]);
}

static void
test_a_name_that_is_no_files_is_refused (void **state)
{
  struct fixture *f = *state;
  static const char *const names[] = { "..", ".", "", "a/b", ".x", "a b" };
  struct exec_log *log = NULL;
  struct error *error = NULL;
  size_t i;

  for (i = 0; i < sizeof names / sizeof names[0]; i++) {
    assert_true (exec_log_new (f->logs, f->sandbox, names[i], json_object (),
                               &log, &error) < 0);
    error_free (steal (error));
    assert_true (exec_log_find (f->logs, f->sandbox, names[i], &log, &error)
                 < 0);
    assert_int_equal (error->number, E_EXEC_UNKNOWN);
    error_free (steal (error));
  }
}

static int
gone (void *data, const char *sandbox)
{
  return strcmp (sandbox, data) == 0;
}

static void
test_what_is_gone_is_swept_and_who_reads_sees_its_end (void **state)
{
  struct fixture *f = *state;
  auto_exec_log struct exec_log *log = log_new (f, "e1");
  struct waiting waiting = { log, 1, -1, -1 };
  struct exec_event event;
  struct exec_log *again = NULL;
  pthread_t thread;

  pthread_create (&thread, NULL, wait_run, &waiting);
  exec_logs_sweep (f->logs, gone, f->sandbox);
  pthread_join (thread, NULL);
  assert_int_equal (waiting.result, 1);
  assert_int_equal (exec_log_event (log, 1, &event), -1);
  assert_true (exec_log_find (f->logs, f->sandbox, "e1", &again, NULL) < 0);
}

static void
test_a_damaged_log_is_an_error_and_no_crash (void **state)
{
  struct fixture *f = *state;
  struct exec_log *log = NULL;
  struct error *error = NULL;
  char path[512];

  exec_log_unref (log_new (f, "e1"));
  snprintf (path, sizeof path, "%s/execs/%s/e1/events", f->place.state,
            f->sandbox);
  assert_int_equal (truncate (path, 10), 0);
  assert_true (exec_log_find (f->logs, f->sandbox, "e1", &log, &error) < 0);
  assert_int_equal (error->number, E_IO);
  error_free (error);
}

/* ---- what is more than a page ----------------------------------------------- */

#define NOTE_SIZE 300000
#define NOTES 60

struct looking {
  char *path;
  atomic_int over;
  int looks, torn;
};

/* Another process sees what one that is killed leaves. */
static void *
look (void *data)
{
  struct looking *looking = data;

  while (!atomic_load (&looking->over)) {
    coffer_autoclose int fd = open (looking->path, O_RDONLY | O_CLOEXEC);
    auto_free char *text = NULL;
    auto_json json_t *json = NULL;
    const char *note;
    size_t size;

    if (fd < 0 || coffer_read_whole (fd, 1 << 20, &text, &size) < 0)
      continue;
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\n'))
      size--;
    note = json_parse (text, size, &json, NULL) < 0
             ? "" : json_string_value (json_object_get (json, "note"));
    looking->looks++;
    looking->torn += note && strspn (note, (char[]){ note[0], '\0' })
                               != NOTE_SIZE;
  }
  return NULL;
}

static void
test_whoever_looks_finds_all_of_one_note (void **state)
{
  struct fixture *f = *state;
  auto_exec_log struct exec_log *log = log_new (f, "e1");
  auto_free char *text = calloc (1, NOTE_SIZE + 1);
  struct looking looking = { .looks = 0 };
  pthread_t thread;
  int i;

  assert_true (asprintf (&looking.path, "%s/execs/%s/e1/meta.json",
                         f->place.state, f->sandbox) > 0);
  assert_int_equal (pthread_create (&thread, NULL, look, &looking), 0);
  for (i = 0; i < NOTES; i++) {
    memset (text, 'a' + i % 2, NOTE_SIZE);
    exec_log_note (log, json_pack ("{s:s}", "note", text));
  }
  atomic_store (&looking.over, 1);
  pthread_join (thread, NULL);
  free (looking.path);
  assert_true (looking.looks > 0);
  assert_int_equal (looking.torn, 0);
  exec_log_end (log, json_object ());
  exec_logs_drop (f->logs, f->sandbox);
  assert_int_equal (atomic_load (&f->logs->used), 0);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    TEST (both_streams_are_kept_apart_and_in_order),
    TEST (a_character_is_not_cut_in_two),
    TEST (who_waits_hears_of_what_comes_and_of_giving_up),
    TEST (no_byte_is_lost_or_doubled_by_sigkill),
    TEST (numbers_and_facts_are_the_same_afterwards),
    TEST (a_list_has_each_by_number),
    TEST (a_name_that_is_no_files_is_refused),
    TEST (what_is_gone_is_swept_and_who_reads_sees_its_end),
    TEST (a_damaged_log_is_an_error_and_no_crash),
    TEST (whoever_looks_finds_all_of_one_note)
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
