/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: exact bytes both ways, exact ends, back pressure, and every way of
 * giving up. */

#include "config.h"

#include "sandbox-host.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <coffer/buffer.h>

struct run {
  struct fixture *f;
  struct sandbox_record *record;
  struct exec_result result;
  struct coffer_buffer out, err;
  int64_t took_ms;
};

static void
collect (void *data, int stream, const char *bytes, size_t size)
{
  struct run *run = data;

  coffer_buffer_add (stream == 1 ? &run->out : &run->err, bytes, size);
}

static void
run_fini (struct run *run)
{
  exec_result_fini (&run->result);
  coffer_buffer_free (&run->out);
  coffer_buffer_free (&run->err);
  sandbox_record_free (run->record);
}
#define auto_run __attribute__ ((cleanup (run_fini)))

/* `sh -c SCRIPT` in a new sandbox. */
static int
run_shell (struct run *run, const char *script,
           const struct exec_streams *streams, uint64_t timeout_ms,
           int cancel_fd, int ephemeral, struct error **err)
{
  const char *const argv[] = { "/bin/sh", "-c", script, NULL };
  struct exec_request request = { .argv = argv, .timeout_ms = timeout_ms };
  struct sandbox_request spec = { .ephemeral = ephemeral };
  struct error *error = NULL;
  int64_t start;
  int r;

  assert_ok (sandbox_create (run->f->host, &spec, NULL, &run->record, NULL,
                             &error), error);
  start = coffer_now_ns ();
  r = sandbox_exec (run->f->host, run->record->id, &request, streams,
                    cancel_fd, &run->result, err);
  run->took_ms = (coffer_now_ns () - start) / 1000000;
  return r;
}

static void
run_collect (struct run *run, const char *script)
{
  const struct exec_streams streams = { .in = -1, .out = -1, .err = -1,
                                        .output = collect, .data = run };
  struct error *error = NULL;

  assert_ok (run_shell (run, script, &streams, 0, -1, 1, &error), error);
}

static void
test_both_streams_arrive_whole_and_apart (void **state)
{
  auto_run struct run run = { .f = *state };

  run_collect (&run, "printf 'caf\\303\\251\\n\\342\\230\\203\\n';"
               " printf 'a\\000b' >&2; exit 7");
  assert_int_equal (run.out.size, strlen (VECTOR_BODY));
  assert_memory_equal (run.out.data, VECTOR_BODY, run.out.size);
  assert_int_equal (run.err.size, 3);
  assert_memory_equal (run.err.data, "a\0b", 3);
  assert_int_equal (run.result.code, 7);
  assert_int_equal (run.result.out_bytes, strlen (VECTOR_BODY));
  assert_int_equal (run.result.err_bytes, 3);
  assert_int_equal (exec_exit_status (&run.result), 7);
}

static void
test_ends_are_exact (void **state)
{
  static const struct {
    const char *script;
    int code, signal, status;
  } table[] = {
    { "exit 0", 0, 0, 0 },        { "exit 255", 255, 0, 255 },
    { "kill -9 $$", -1, 9, 137 }, { "kill -15 $$", -1, 15, 143 },
    { "exec 1>&- 2>&-; sleep 0.1; exit 3", 3, 0, 3 },
  };
  size_t i;

  for (i = 0; i < sizeof table / sizeof table[0]; i++) {
    auto_run struct run run = { .f = *state };

    run_collect (&run, table[i].script);
    assert_int_equal (run.result.code, table[i].code);
    assert_int_equal (run.result.signal, table[i].signal);
    assert_int_equal (exec_exit_status (&run.result), table[i].status);
  }
}

static void
test_statuses_are_a_shells (void **state)
{
  struct exec_result result = { .code = -1, .failure = (char *) "no" };

  (void) state;
  result.failure_errno = ENOENT;
  assert_int_equal (exec_exit_status (&result), 127);
  result.failure_errno = EACCES;
  assert_int_equal (exec_exit_status (&result), 126);
  result.failure_errno = ENOEXEC;
  assert_int_equal (exec_exit_status (&result), 126);
  result.failure_errno = ENOMEM;
  assert_int_equal (exec_exit_status (&result), 125);
  result = (struct exec_result){ .code = -1, .signal = 9, .timed_out = 1 };
  assert_int_equal (exec_exit_status (&result), 124);
}

static void
test_a_program_that_is_not_there_is_127 (void **state)
{
  const char *const argv[] = { "/no/such/program", NULL };
  struct exec_request request = { .argv = argv };
  const struct exec_streams streams = { .in = -1, .out = -1, .err = -1 };
  auto_run struct run run = { .f = *state };
  struct error *error = NULL;

  make (run.f->host, &run.record);
  assert_ok (sandbox_exec (run.f->host, run.record->id, &request, &streams,
                           -1, &run.result, &error), error);
  assert_int_equal (exec_exit_status (&run.result), 127);
}

/* Much more than a pipe holds, to a reader that is slower than the writer. */
static void *
read_slowly (void *data)
{
  int fd = *(int *) data;
  static char bytes[65536];
  uint64_t *sum = calloc (1, sizeof *sum);
  ssize_t n;

  while ((n = read (fd, bytes, sizeof bytes)) > 0) {
    *sum += (uint64_t) n;
    if (*sum < 1000000)
      usleep (1000);
  }
  return sum;
}

static void
test_a_slow_reader_gets_every_byte (void **state)
{
  auto_run struct run run = { .f = *state };
  struct error *error = NULL;
  pthread_t thread;
  uint64_t *sum;
  int p[2];

  assert_int_equal (pipe2 (p, O_CLOEXEC), 0);
  assert_int_equal (pthread_create (&thread, NULL, read_slowly, &p[0]), 0);
  {
    const struct exec_streams streams = { .in = -1, .out = p[1], .err = -1 };

    assert_ok (run_shell (&run, "head -c 20000000 /dev/zero", &streams, 0, -1,
                          1, &error), error);
  }
  close (p[1]);
  assert_int_equal (pthread_join (thread, (void **) &sum), 0);
  close (p[0]);
  assert_int_equal (*sum, 20000000);
  free (sum);
  assert_int_equal (run.result.out_bytes, 20000000);
  assert_int_equal (exec_exit_status (&run.result), 0);
}

/* splice does not take append-only files: the same bytes by another way. */
static void
test_an_append_only_file_gets_every_byte (void **state)
{
  auto_run struct run run = { .f = *state };
  const char *path = harness_path (run.f->home, "out");
  int fd = open (path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const struct exec_streams streams = { .in = -1, .out = fd, .err = fd };
  struct error *error = NULL;
  struct stat st;

  assert_ok (run_shell (&run, "head -c 300000 /dev/zero;"
                        " head -c 200000 /dev/zero >&2", &streams, 0, -1, 1,
                        &error), error);
  assert_int_equal (fstat (fd, &st), 0);
  close (fd);
  assert_int_equal (st.st_size, 500000);
}

static void
test_a_full_disk_is_not_success (void **state)
{
  auto_run struct run run = { .f = *state };
  int fd = open ("/dev/full", O_WRONLY | O_CLOEXEC);
  const struct exec_streams streams = { .in = -1, .out = fd, .err = -1 };
  auto_error struct error *error = NULL;

  assert_fails (run_shell (&run, "echo lost", &streams, 0, -1, 1, &error),
                error, E_IO);
  close (fd);
}

static void
test_input_arrives_whole_and_ends (void **state)
{
  auto_run struct run run = { .f = *state };
  const char *path = harness_path (run.f->home, "in");
  char *bytes = malloc (700001);
  struct error *error = NULL;
  int fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), i;
  struct exec_streams streams = { .in = fd, .out = -1, .err = -1,
                                  .output = collect, .data = &run };

  for (i = 0; i < 700001; i++)
    bytes[i] = (char) (i * 7);
  assert_int_equal (coffer_write_all (fd, bytes, 700001), 700001);
  assert_int_equal (lseek (fd, 0, SEEK_SET), 0);
  assert_ok (run_shell (&run, "cat; echo end >&2", &streams, 0, -1, 1,
                        &error), error);
  close (fd);
  assert_int_equal (run.out.size, 700001);
  assert_memory_equal (run.out.data, bytes, 700001);
  assert_string_equal (run.err.data, "end\n");
  free (bytes);
}

/* A command that does not read must not keep us waiting for input. */
static void
test_input_that_nobody_reads_holds_nothing_up (void **state)
{
  auto_run struct run run = { .f = *state };
  struct error *error = NULL;
  int p[2];

  assert_int_equal (pipe2 (p, O_CLOEXEC), 0);
  {
    const struct exec_streams streams = { .in = p[0], .out = -1, .err = -1 };

    assert_ok (run_shell (&run, "exit 4", &streams, 0, -1, 1, &error), error);
  }
  close (p[0]);
  close (p[1]);
  assert_int_equal (exec_exit_status (&run.result), 4);
  assert_true (run.took_ms < HARNESS_PATIENCE_MS);
}

/* The command's own end counts, not that of what it leaves behind. */
static void
test_a_straggler_that_holds_the_pipe_is_given_a_moment (void **state)
{
  auto_run struct run run = { .f = *state };

  run_collect (&run, "(while kill -0 $$ 2>/dev/null; do :; done; echo late;"
                     " sleep 30) & echo early; exit 5");
  assert_int_equal (run.result.code, 5);
  assert_string_equal (run.out.data, "early\nlate\n");
  assert_true (run.took_ms < HARNESS_PATIENCE_MS);
}

/* The reader is gone: as in `yes | head`, the writer gets SIGPIPE. */
static void
test_a_reader_that_goes_away_ends_the_writer (void **state)
{
  auto_run struct run run = { .f = *state };
  struct error *error = NULL;
  int p[2];

  assert_int_equal (pipe2 (p, O_CLOEXEC), 0);
  close (p[0]);
  {
    const struct exec_streams streams = { .in = -1, .out = p[1], .err = -1 };

    assert_ok (run_shell (&run, "exec yes", &streams, 0, -1, 1, &error),
               error);
  }
  close (p[1]);
  assert_int_equal (run.result.signal, SIGPIPE);
  assert_int_equal (exec_exit_status (&run.result), 128 + SIGPIPE);
}

static void
test_a_timeout_is_124 (void **state)
{
  auto_run struct run run = { .f = *state };
  const struct exec_streams streams = { .in = -1, .out = -1, .err = -1,
                                        .output = collect, .data = &run };
  struct error *error = NULL;

  assert_ok (run_shell (&run, "echo before; sleep 30", &streams, 1500, -1, 1,
                        &error), error);
  assert_string_equal (run.out.data, "before\n");
  assert_int_equal (run.result.timed_out, 1);
  assert_int_equal (exec_exit_status (&run.result), 124);
  assert_true (run.took_ms >= 1500 && run.took_ms < HARNESS_PATIENCE_MS);
}

static void
test_a_timeout_that_the_provider_forgets_holds_all_the_same (void **state)
{
  auto_run struct run run = { .f = *state };
  const struct exec_streams streams = { .in = -1, .out = -1, .err = -1 };
  struct error *error = NULL;

  fake.ignores_timeout = 1;
  assert_ok (run_shell (&run, "sleep 30", &streams, 100, -1, 1, &error),
             error);
  assert_int_equal (exec_exit_status (&run.result), 124);
  assert_true (run.took_ms >= 5000 && run.took_ms < HARNESS_PATIENCE_MS);
}

static void *
cancel_soon (void *data)
{
  usleep (150000);
  assert_int_equal (write (*(int *) data, "x", 1), 1);
  return NULL;
}

static void
cancel_case (struct fixture *f, const char *script, int ephemeral)
{
  auto_run struct run run = { .f = f };
  const struct exec_streams streams = { .in = -1, .out = -1, .err = -1,
                                        .output = collect, .data = &run };
  auto_error struct error *error = NULL;
  pthread_t thread;
  int p[2];

  assert_int_equal (pipe2 (p, O_CLOEXEC), 0);
  assert_int_equal (pthread_create (&thread, NULL, cancel_soon, &p[1]), 0);
  assert_fails (run_shell (&run, script, &streams, 0, p[0], ephemeral,
                           &error), error, E_EXEC_CANCELLED);
  pthread_join (thread, NULL);
  close (p[0]);
  close (p[1]);
  assert_true (run.took_ms < HARNESS_PATIENCE_MS);
  assert_int_equal (exists (f, run.record->id), !ephemeral);
}

static void
test_giving_up_kills_an_ephemeral_sandbox (void **state)
{
  cancel_case (*state, "sleep 30", 1);
}

static void
test_giving_up_signals_a_command_in_a_durable_one (void **state)
{
  cancel_case (*state, "sleep 30", 0);
}

static void
test_a_command_that_ignores_signals_is_killed (void **state)
{
  cancel_case (*state, "trap '' TERM INT; sleep 30; sleep 30", 0);
}

/* Whoever reads our output may be as stuck as the one who gave up. */
static void
test_giving_up_does_not_wait_for_a_reader_that_is_stuck (void **state)
{
  auto_run struct run run = { .f = *state };
  auto_error struct error *error = NULL;
  pthread_t thread;
  int p[2], out[2];

  assert_int_equal (pipe2 (p, O_CLOEXEC), 0);
  assert_int_equal (pipe2 (out, O_CLOEXEC), 0);
  assert_int_equal (pthread_create (&thread, NULL, cancel_soon, &p[1]), 0);
  {
    const struct exec_streams streams = { .in = -1, .out = out[1],
                                          .err = -1 };

    assert_fails (run_shell (&run, "exec cat /dev/zero", &streams, 0, p[0], 1,
                             &error), error, E_EXEC_CANCELLED);
  }
  pthread_join (thread, NULL);
  close (p[0]);
  close (p[1]);
  close (out[0]);
  close (out[1]);
  assert_true (run.took_ms < HARNESS_PATIENCE_MS);
}

static void
test_a_signal_to_this_process_ends_the_command (void **state)
{
  struct fixture *f = *state;
  int status;
  pid_t pid = fork ();

  if (pid == 0) {
    struct run run = { .f = f };
    const struct exec_streams streams = { .in = -1, .out = -1, .err = -1 };
    struct error *error = NULL;
    int fd = sandbox_signals_catch (NULL);

    alarm (20);
    if (host_open (&f->place, 0, &f->host, NULL) < 0)
      _exit (2);
    if (run_shell (&run, "kill -TERM $PPID; sleep 30", &streams, 0, fd, 0,
                   &error) == 0 || error->number != E_EXEC_CANCELLED)
      _exit (1);
    _exit (128 + sandbox_signal_caught ());
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_true (WIFEXITED (status));
  assert_int_equal (WEXITSTATUS (status), 128 + SIGTERM);
}

/* What a program that is executed inherits: nothing of our handlers. */
static void
test_signals_do_not_reach_into_the_command (void **state)
{
  auto_run struct run run = { .f = *state };

  assert_true (sandbox_signals_catch (NULL) >= 0);
  run_collect (&run, "grep -E '^Sig(Ign|Blk):' /proc/self/status");
  assert_null (strstr (run.out.data, "SigIgn:\t0000000000001"));
  assert_non_null (strstr (run.out.data, "SigBlk:\t0000000000000000"));
}

static void
test_background_returns_at_once (void **state)
{
  const char *const argv[] = { "/bin/sleep", "30", NULL };
  struct exec_request request = { .argv = argv, .background = 1 };
  const struct exec_streams streams = { .in = -1, .out = -1, .err = -1 };
  auto_run struct run run = { .f = *state };
  struct error *error = NULL;
  int64_t start;
  int gone;

  make (run.f->host, &run.record);
  start = coffer_now_ns ();
  assert_ok (sandbox_exec (run.f->host, run.record->id, &request, &streams,
                           -1, &run.result, &error), error);
  assert_non_null (run.result.exec);
  assert_true (coffer_now_ns () - start < HARNESS_PATIENCE_NS);
  assert_ok (sandbox_kill (run.f->host, NULL, run.record->id, NULL, &gone,
                           &error), error);
}

static void
test_what_is_not_claimed_is_refused (void **state)
{
  static const char *const words[][2] = {
    { "exec" }, { "exec.stdin" }, { "exec.tty" }, { "exec.background" }
  };
  size_t i;

  for (i = 0; i < 4; i++) {
    const char *const argv[] = { "/bin/true", NULL };
    struct exec_request request = { .argv = argv, .background = i == 3 };
    struct exec_streams streams = { .in = i == 1 ? 0 : -1, .out = -1,
                                    .err = -1, .tty = i == 2 };
    auto_run struct run run = { .f = *state };
    auto_error struct error *error = NULL;

    make (run.f->host, &run.record);
    fake.unclaimed = words[i];
    assert_fails (sandbox_exec (run.f->host, run.record->id, &request,
                                &streams, -1, &run.result, &error), error,
                  E_CAPABILITY);
    fake.unclaimed = NULL;
  }
}

static void
test_bad_requests_are_refused (void **state)
{
  static const char *const empty[] = { NULL };
  static const char *const argv[] = { "/bin/true", NULL };
  static const char *const env[] = { "=x", NULL };
  const struct exec_request table[] = {
    { .argv = empty }, { .argv = NULL }, { .argv = argv, .cwd = "x" },
    { .argv = argv, .env = env }, { .argv = argv, .user = "a b" },
    { .argv = argv, .timeout_ms = UINT64_MAX },
  };
  const struct exec_streams streams = { .in = -1, .out = -1, .err = -1 };
  struct fixture *f = *state;
  size_t i;

  for (i = 0; i < sizeof table / sizeof table[0]; i++) {
    auto_run struct run run = { .f = f };
    auto_error struct error *error = NULL;

    make (f->host, &run.record);
    assert_true (sandbox_exec (f->host, run.record->id, &table[i], &streams,
                               -1, &run.result, &error) < 0);
    assert_true (error->number == E_INVALID
                 || error->number == E_SANDBOX_SPEC);
  }
  {
    auto_run struct run run = { .f = f };
    auto_error struct error *error = NULL;
    struct exec_request request = { .argv = argv };

    assert_fails (sandbox_exec (f->host, "sb-0123456789abcdefghjkmnpqrs",
                                &request, &streams, -1, &run.result, &error),
                  error, E_UNKNOWN_SANDBOX);
  }
}

/* A terminal of the caller's, of which we hold the other side. */
static void
terminal_of_ours (int *master, int *slave)
{
  struct winsize size = { .ws_row = 33, .ws_col = 77 };

  *master = posix_openpt (O_RDWR | O_NOCTTY | O_CLOEXEC);
  assert_true (*master >= 0);
  assert_int_equal (unlockpt (*master), 0);
  *slave = ioctl (*master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  assert_true (*slave >= 0);
  assert_int_equal (ioctl (*master, TIOCSWINSZ, &size), 0);
}

static void
test_a_terminal_is_relayed_sized_and_restored (void **state)
{
  auto_run struct run run = { .f = *state };
  struct termios before = { 0 }, after = { 0 };    /* tcgetattr leaves gaps */
  struct error *error = NULL;
  int master, slave;

  terminal_of_ours (&master, &slave);
  assert_int_equal (tcgetattr (slave, &before), 0);
  {
    const struct exec_streams streams = { .in = slave, .out = -1, .err = -1,
                                          .tty = 1, .output = collect,
                                          .data = &run };

    /* Typed ahead: the line discipline of the command's terminal echoes. */
    assert_int_equal (write (master, "hello\r", 6), 6);
    assert_ok (run_shell (&run, "stty size; read x; echo got $x; tty -s",
                          &streams, 0, -1, 1, &error), error);
  }
  assert_int_equal (tcgetattr (slave, &after), 0);
  assert_memory_equal (&before, &after, sizeof before);
  assert_non_null (strstr (run.out.data, "33 77\r\n"));
  assert_non_null (strstr (run.out.data, "got hello\r\n"));
  assert_int_equal (exec_exit_status (&run.result), 0);
  close (master);
  close (slave);
}

static void
test_a_terminal_is_restored_by_a_fatal_signal (void **state)
{
  struct fixture *f = *state;
  struct termios before = { 0 }, after = { 0 };    /* tcgetattr leaves gaps */
  int master, slave, status;
  pid_t pid;

  terminal_of_ours (&master, &slave);
  assert_int_equal (tcgetattr (slave, &before), 0);
  pid = fork ();
  if (pid == 0) {
    struct run run = { .f = f };
    const struct exec_streams streams = { .in = slave, .out = -1, .err = -1,
                                          .tty = 1 };

    signal (SIGSEGV, SIG_DFL);  /* cmocka's own */
    if (host_open (&f->place, 0, &f->host, NULL) < 0)
      _exit (2);
    run_shell (&run, "kill -SEGV $PPID; sleep 30", &streams, 0, -1, 1, NULL);
    _exit (1);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
#ifndef COFFER_SANITIZERS
  assert_true (WIFSIGNALED (status));
  assert_int_equal (WTERMSIG (status), SIGSEGV);
#endif
  assert_int_equal (tcgetattr (slave, &after), 0);
  assert_memory_equal (&before, &after, sizeof before);
  close (master);
  close (slave);
}

static void
test_a_changed_size_is_handed_on (void **state)
{
  struct fixture *f = *state;
  auto_run struct run run = { .f = f };
  struct winsize size = { .ws_row = 40, .ws_col = 100 };
  struct error *error = NULL;
  int master, slave;

  terminal_of_ours (&master, &slave);
  {
    const struct exec_streams streams = { .in = slave, .out = -1, .err = -1,
                                          .tty = 1, .output = collect,
                                          .data = &run };
    char script[300];

    /* Changes the size of our terminal and tells us, as a window would. */
    snprintf (script, sizeof script, "stty size; stty rows %d cols %d"
              " < /proc/%d/fd/%d; kill -WINCH %d; for i in 1 2 3 4 5 6 7 8 9;"
              " do sleep 0.1; stty size; done", size.ws_row, size.ws_col,
              getpid (), slave, getpid ());
    assert_ok (run_shell (&run, script, &streams, 0, -1, 1, &error), error);
  }
  assert_non_null (strstr (run.out.data, "33 77\r\n"));
  assert_non_null (strstr (run.out.data, "40 100\r\n"));
  close (master);
  close (slave);
}

static int
count_fds (void)
{
  int n = 0, fd;

  for (fd = 0; fd < 256; fd++)
    n += fcntl (fd, F_GETFD) >= 0;
  return n;
}

static void
test_nothing_stays_open (void **state)
{
  int before, i;

  {
    auto_run struct run first = { .f = *state };

    run_collect (&first, "true");
  }
  before = count_fds ();
  for (i = 0; i < 5; i++) {
    auto_run struct run run = { .f = *state };

    run_collect (&run, "echo x");
    assert_int_equal (sandbox_kill (run.f->host, NULL, run.record->id, NULL,
                                    &(int){ 0 }, NULL), 0);
  }
  assert_int_equal (count_fds (), before);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    TEST (test_both_streams_arrive_whole_and_apart),
    TEST (test_ends_are_exact),
    TEST (test_statuses_are_a_shells),
    TEST (test_a_program_that_is_not_there_is_127),
    TEST (test_a_slow_reader_gets_every_byte),
    TEST (test_an_append_only_file_gets_every_byte),
    TEST (test_a_full_disk_is_not_success),
    TEST (test_input_arrives_whole_and_ends),
    TEST (test_input_that_nobody_reads_holds_nothing_up),
    TEST (test_a_straggler_that_holds_the_pipe_is_given_a_moment),
    TEST (test_a_reader_that_goes_away_ends_the_writer),
    TEST (test_a_timeout_is_124),
    TEST (test_a_timeout_that_the_provider_forgets_holds_all_the_same),
    TEST (test_giving_up_kills_an_ephemeral_sandbox),
    TEST (test_giving_up_signals_a_command_in_a_durable_one),
    TEST (test_a_command_that_ignores_signals_is_killed),
    TEST (test_giving_up_does_not_wait_for_a_reader_that_is_stuck),
    TEST (test_a_signal_to_this_process_ends_the_command),
    TEST (test_signals_do_not_reach_into_the_command),
    TEST (test_background_returns_at_once),
    TEST (test_what_is_not_claimed_is_refused),
    TEST (test_bad_requests_are_refused),
    TEST (test_a_terminal_is_relayed_sized_and_restored),
    TEST (test_a_terminal_is_restored_by_a_fatal_signal),
    TEST (test_a_changed_size_is_handed_on),
    TEST (test_nothing_stays_open),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
