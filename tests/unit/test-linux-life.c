/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of `linux`, from their start to the last that is told of them. */

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <coffer/fd.h>

#include "linux-life.h"

static void
sh_once (const char *script, uint64_t timeout_ms)
{
  const char *argv[] = { "sh", "-c", script, NULL };

  if (host_run_once (&host, NULL, argv, timeout_ms, &outcome) != COFFER_OK)
    fail_msg ("%s", host.error);
}

/* ---- how commands end --------------------------------------------------- */

static void
test_exit_codes (void **state)
{
  (void) state;
  sh_once ("exit 7", 0);
  assert_int_equal (host.exit.code, 7);
  assert_int_equal (host.exit.signal, 0);
  assert_int_equal (host.exit.timed_out, 0);
  sh_once ("exit 255", 0);
  assert_int_equal (host.exit.code, 255);
  sh_once ("kill -SEGV $$", 0);
  assert_int_equal (host.exit.code, -1);
  assert_int_equal (host.exit.signal, SIGSEGV);
  sh_once ("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done", 0);
  assert_true (host.exit.cpu_us > 1000);
  assert_true (host.exit.duration_us >= host.exit.cpu_us / 2);
}

static void
test_failures_of_start (void **state)
{
  const char *missing[] = { "/no/such/program", NULL };
  const char *unknown[] = { "no-such-program", NULL };
  const char *folder[] = { "/tmp", NULL };
  const char *empty[] = { "", NULL };

  (void) state;
  host_run_once (&host, NULL, missing, 0, &outcome);
  assert_int_equal (host.exit.failure_errno, ENOENT);
  assert_int_equal (host.exit.code, -1);
  assert_true (strlen (host.failure) > 0);
  host_run_once (&host, NULL, unknown, 0, &outcome);
  assert_int_equal (host.exit.failure_errno, ENOENT);
  host_run_once (&host, NULL, folder, 0, &outcome);
  assert_int_equal (host.exit.failure_errno, EACCES);
  host_run_once (&host, NULL, empty, 0, &outcome);
  assert_int_equal (host.exit.failure_errno, ENOENT);
  sh_once ("printf '\\001\\002\\003' > x; chmod 755 x; exec ./x", 0);
  assert_int_equal (host.exit.code, 126);
}

static void
test_streams (void **state)
{
  const char *cat[] = { "sh", "-c", "cat; echo done >&2", NULL };
  const char *missing[] = { "cat", NULL };

  (void) state;
  create ("streams", &lasting);
  assert_int_equal (host_run (&host, "streams", cat, NULL, VECTOR_BODY, 5000,
                              &outcome),
                    COFFER_OK);
  assert_string_equal (outcome.out, VECTOR_BODY);
  assert_string_equal (outcome.err, "done\n");
  /* Without an input it is /dev/null. */
  assert_int_equal (host_run (&host, "streams", missing, NULL, NULL, 5000,
                              &outcome),
                    COFFER_OK);
  assert_int_equal (host.exit.code, 0);
  assert_int_equal (outcome.out_size, 0);
  assert_int_equal (host_kill (&host, "streams"), COFFER_OK);
}

/* Arguments are bytes, and a megabyte of them is fine. */
static void
test_arguments (void **state)
{
  static char big[100001];
  const char *exact[] = { "printf", "%s|", "", VECTOR_NAME, "a\nb", "\xff",
                          "-rf", NULL };
  const char *large[16] = { "sh", "-c", "echo $# ${#1}", "x" };
  const char *env[] = { "A=first", "USER=me", "A=second", NULL };
  const char *show[] = { "sh", "-c", "echo $A $USER", NULL };
  int i;

  (void) state;
  create ("arguments", &lasting);
  host_run (&host, "arguments", exact, NULL, NULL, 5000, &outcome);
  assert_string_equal (outcome.out, "|" VECTOR_NAME "|a\nb|\xff|-rf|");
  memset (big, 'x', sizeof big - 1);
  for (i = 4; i < 15; i++)
    large[i] = big;
  host_run (&host, "arguments", large, NULL, NULL, 5000, &outcome);
  assert_string_equal (outcome.out, "11 100000\n");
  host_run (&host, "arguments", show, env, NULL, 5000, &outcome);
  assert_string_equal (outcome.out, "second me\n");
  assert_int_equal (host_kill (&host, "arguments"), COFFER_OK);
}

static void
test_spec_environment (void **state)
{
  const char *env[] = { "A=1", "HOME=/tmp", "A=2", NULL };
  struct coffer_sandbox_spec spec = lasting;

  (void) state;
  spec.env = env;
  spec.workdir = "/tmp";
  create ("env", &spec);
  sh_in ("env", "echo $A $HOME $PWD", 5000);
  assert_string_equal (outcome.out, "2 /tmp /tmp\n");
  assert_int_equal (host_kill (&host, "env"), COFFER_OK);
}

/* ---- nothing survives --------------------------------------------------- */

/* All that hold the pipe are gone: it ends, and ends early. */
static void
test_single_leaves_nobody (void **state)
{
  int64_t begun = coffer_now_ns ();

  (void) state;
  sh_once ("(setsid sh -c 'trap \"\" TERM HUP; sleep 60' &) & "
           "sh -c 'kill -STOP $$' & sleep 0.2; echo over", 0);
  assert_string_equal (outcome.out, "over\n");
  assert_true (host.exit.killed >= 2);
  assert_true (coffer_now_ns () - begun < HARNESS_PATIENCE_NS);
}

static void
test_timeout_single (void **state)
{
  int64_t begun = coffer_now_ns ();

  (void) state;
  sh_once ("trap '' TERM INT; (setsid sleep 60 &) & while :; do :; done",
           300);
  assert_int_equal (host.exit.timed_out, 1);
  assert_int_equal (host.exit.signal, SIGKILL);
  assert_string_equal (host.limits, "timeout ");
  assert_true (coffer_now_ns () - begun < HARNESS_PATIENCE_NS);
}

static void
test_timeout_spares_others (void **state)
{
  const char *other[] = { "sleep", "60", NULL };
  struct coffer_exec_start_opts opts = { .size = sizeof opts };
  char exec[32];
  int held[2];

  (void) state;
  create ("several", &lasting);
  assert_int_equal (pipe2 (held, O_CLOEXEC), 0);
  assert_int_equal (host.ops->exec_start (host_call (&host, 5000), host.self,
                                          "several", other, NULL, NULL, -1,
                                          held[1], -1, &opts),
                    COFFER_OK);
  close (held[1]);
  strcpy (exec, host.exec);
  sh_in ("several",
         "trap '' TERM; (setsid sh -c 'sleep 60 & sleep 60' &) & "
         "sh -c 'kill -STOP $$' & sleep 60",
         1500);
  assert_int_equal (host.exit.timed_out, 1);
  assert_true (host.exit.killed >= 3);
  /* The other one still holds its pipe, and is listed. */
  assert_int_equal (coffer_wait_fd (held[0], POLLIN, coffer_now_ns (), -1),
                    0);
  assert_int_equal (host.ops->exec_list (host_call (&host, 5000), host.self,
                                         "several", NULL),
                    COFFER_OK);
  assert_non_null (strstr (host.infos, "e1 running\n"));
  assert_non_null (strstr (host.infos, "e2 exited\n"));
  sh_in ("several", "ps ax | grep -c '[s]leep 60'", 5000);
  assert_string_equal (outcome.out, "1\n");
  assert_int_equal (host.ops->exec_signal (host_call (&host, 5000), host.self,
                                           "several", exec, SIGTERM, NULL),
                    COFFER_OK);
  assert_int_equal (host.ops->exec_wait (host_call (&host, 5000), host.self,
                                         "several", exec, NULL),
                    COFFER_OK);
  assert_int_equal (host.exit.signal, SIGTERM);
  assert_int_equal (host.ops->exec_signal (host_call (&host, 5000), host.self,
                                           "several", exec, SIGTERM, NULL),
                    COFFER_CONFLICT);
  assert_int_equal (host.ops->exec_wait (host_call (&host, 5000), host.self,
                                         "several", "e99", NULL),
                    COFFER_NOT_FOUND);
  close (held[0]);
  assert_int_equal (host_kill (&host, "several"), COFFER_OK);
}

/* What a finished command left in a lasting sandbox lives on, and does not
 * hold its wait. */
static void
test_background_child_lives (void **state)
{
  (void) state;
  create ("server", &lasting);
  sh_in ("server", "sleep 60 & echo started", 5000);
  assert_string_equal (outcome.out, "started\n");
  assert_int_equal (host.exit.code, 0);
  sh_in ("server", "ps ax | grep -c '[s]leep 60'", 5000);
  assert_string_equal (outcome.out, "1\n");
  assert_int_equal (host_kill (&host, "server"), COFFER_OK);
}

static void
test_wait_twice_and_late (void **state)
{
  const char *argv[] = { "sh", "-c", "exit 5", NULL };
  int i;

  (void) state;
  create ("late", &lasting);
  assert_int_equal (host.ops->exec_start (host_call (&host, 5000), host.self,
                                          "late", argv, NULL, NULL, -1, -1,
                                          -1, NULL),
                    COFFER_OK);
  for (i = 0; i < 2; i++) {
    assert_int_equal (host.ops->exec_wait (host_call (&host, 5000), host.self,
                                           "late", "e1", NULL),
                      COFFER_OK);
    assert_int_equal (host.exit.code, 5);
  }
  assert_int_equal (host_kill (&host, "late"), COFFER_OK);
}

static void
test_wait_deadline (void **state)
{
  const char *argv[] = { "sleep", "60", NULL };

  (void) state;
  create ("slow", &lasting);
  assert_int_equal (host.ops->exec_start (host_call (&host, 5000), host.self,
                                          "slow", argv, NULL, NULL, -1, -1,
                                          -1, NULL),
                    COFFER_OK);
  assert_int_equal (host.ops->exec_wait (host_call (&host, 100), host.self,
                                         "slow", "e1", NULL),
                    COFFER_TIMEOUT);
  /* The conversation is still good. */
  sh_in ("slow", "echo alive", 5000);
  assert_string_equal (outcome.out, "alive\n");
  assert_int_equal (host_kill (&host, "slow"), COFFER_OK);
}

/* Many at once, and more than are remembered. */
static void
test_many_commands (void **state)
{
  const char *argv[] = { "true", NULL };
  int i;

  (void) state;
  create ("many", &lasting);
  for (i = 0; i < 150; i++)
    if (host_run (&host, "many", argv, NULL, NULL, 5000, &outcome)
          != COFFER_OK
        || host.exit.code != 0)
      fail_msg ("%d: %s", i, host.error);
  assert_int_equal (host_kill (&host, "many"), COFFER_OK);
}

/* ---- terminals, background ---------------------------------------------- */

static void
test_terminal (void **state)
{
  const char *argv[] = { "sh", "-c",
                         "stty size; read x; stty size; exec 3</dev/tty "
                         "&& echo own > /dev/stdout", NULL };
  struct coffer_exec_start_opts opts = { .size = sizeof opts, .tty = 1,
                                         .rows = 31, .columns = 97 };
  char text[512] = "";
  size_t size = 0;
  int master = posix_openpt (O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
  ssize_t n;

  (void) state;
  assert_true (master >= 0);
  assert_int_equal (grantpt (master), 0);
  assert_int_equal (unlockpt (master), 0);
  slave = open (ptsname (master), O_RDWR | O_NOCTTY | O_CLOEXEC);
  assert_true (slave >= 0);
  create ("tty", &lasting);
  assert_int_equal (host.ops->exec_start (host_call (&host, 5000), host.self,
                                          "tty", argv, NULL, NULL, slave,
                                          slave, -1, &opts),
                    COFFER_OK);
  close (slave);
  while (strstr (text, "31 97") == NULL
         && (n = read (master, text + size, sizeof text - 1 - size)) > 0)
    size += (size_t) n;
  assert_int_equal (host.ops->exec_resize (host_call (&host, 5000), host.self,
                                           "tty", "e1", 40, 120, NULL),
                    COFFER_OK);
  assert_int_equal (write (master, "go\n", 3), 3);
  while (size < sizeof text - 1
         && (n = read (master, text + size, sizeof text - 1 - size)) > 0)
    size += (size_t) n;
  assert_non_null (strstr (text, "40 120"));
  assert_non_null (strstr (text, "own"));
  close (master);
  assert_int_equal (host_kill (&host, "tty"), COFFER_OK);
}

static void
test_background (void **state)
{
  const char *argv[] = { "sh", "-c",
                         "echo one; echo two >&2; sleep 0.3; echo three; "
                         "head -c 100000 /dev/zero; printf end", NULL };
  struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .background = 1, .output_cap_bytes = 50 };
  char text[256] = "";
  int out[2], err[2];

  (void) state;
  create ("spool", &lasting);
  assert_int_equal (host.ops->exec_start (host_call (&host, 5000), host.self,
                                          "spool", argv, NULL, NULL, -1, -1,
                                          -1, &opts),
                    COFFER_OK);
  assert_int_equal (host.ops->exec_wait (host_call (&host, 5000), host.self,
                                         "spool", "e1", NULL),
                    COFFER_OK);
  assert_int_equal (host.exit.code, 0);
  assert_int_equal (pipe2 (out, O_CLOEXEC), 0);
  assert_int_equal (pipe2 (err, O_CLOEXEC), 0);
  assert_int_equal (host.ops->exec_attach (host_call (&host, 8000), host.self,
                                           "spool", "e1", out[1], err[1],
                                           NULL),
                    COFFER_OK);
  close (out[1]);
  close (err[1]);
  /* Half of the cap is the beginning, the other half the end. */
  assert_int_equal (read (out[0], text, sizeof text), 50);
  assert_memory_equal (text, "one\nthree\n\0\0", 12);
  assert_memory_equal (text + 45, "\0\0end", 5);
  assert_int_equal (read (err[0], text, sizeof text), 4);
  assert_memory_equal (text, "two\n", 4);
  close (out[0]);
  close (err[0]);
  assert_int_equal (host_kill (&host, "spool"), COFFER_OK);
}

/* A command that goes well beside one that runs out of memory is not blamed
 * for that.  Of version 2 the kernel ends all commands of the group at once: it
 * ended with the other, for memory, and the sandbox goes on. */
static void
test_only_who_ran_out_is_blamed (void **state)
{
  struct coffer_sandbox_spec spec = lasting;
  const char *hog[] = { "./payload", "memory", "268435456", NULL };
  int well, together;

  (void) state;
  spec.memory_bytes = 64 << 20;
  create ("blame", &spec);
  if (strstr (host.facts, "limit.memory ok") == NULL) {
    assert_int_equal (host_kill (&host, "blame"), COFFER_OK);
    skip_missing ("a writable control group");
  }
  together = strstr (host.facts, "\ncgroup ok version 2") != NULL;
  host_payload (&host, "blame");
  well = host_start (&host, "blame", "while [ ! -e over ]; do sleep 0.05; "
                     "done", 0);
  assert_int_equal (host_run (&host, "blame", hog, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_int_equal (host.exit.signal, SIGKILL);
  assert_int_equal (host.exit.oom, 1);
  assert_string_equal (host.limits, "memory ");
  sh_in ("blame", "touch over", 5000);
  assert_int_equal (host.ops->exec_wait (host_call (&host, 10000), host.self,
                                         "blame", "e1", NULL),
                    COFFER_OK);
  assert_int_equal (host.exit.code, together ? -1 : 0);
  assert_int_equal (host.exit.signal, together ? SIGKILL : 0);
  assert_int_equal (host.exit.oom, together);
  assert_string_equal (host.limits, together ? "memory " : "");
  close (well);
  assert_int_equal (host_kill (&host, "blame"), COFFER_OK);
}

/* ---- much output, and a reader that is slow ------------------------------ */

#define LINES 400000            /* of eight bytes each, which say their number */

struct listener {
  const char *exec;
  int out;
  int32_t code;
};

static void *
listener_run (void *data)
{
  struct listener *listener = data;

  listener->code = host.ops->exec_attach (host_call (&host, 60000), host.self,
                                          "much", listener->exec,
                                          listener->out, -1, NULL);
  close (listener->out);
  return NULL;
}

/* Where in the output a run of bytes that begins there can be from; -1: from
 * nowhere. */
static long
place_find (const char *bytes, size_t size)
{
  char line[9];
  unsigned number;
  size_t i;

  for (i = 0; i < 8 && i + 8 <= size; i++) {
    memcpy (line, bytes + i, 8);
    line[8] = '\0';
    if (line[7] == '\n' && strspn (line, "0123456789") == 7
        && sscanf (line, "%u", &number) == 1)
      return (long) number * 8 - (long) i;
  }
  return -1;
}

/* What comes are whole pieces of what was written, in its order, with the
 * beginning and the end; nothing is torn where it went round meanwhile. */
static void
test_a_slow_listener_hears_no_mixture (void **state)
{
  const char *argv[] = { "seq", "-f", "%07.0f", "0", "399999", NULL };
  struct coffer_exec_start_opts opts
    = { .size = sizeof opts, .background = 1, .output_cap_bytes = 65536 };
  static char heard[LINES * 8 + 1];
  char expected[32];
  long at = 0, next;
  unsigned jumps = 0;
  size_t size = 0, i;
  pthread_t thread;
  int ends[2];
  ssize_t n;

  (void) state;
  create ("much", &lasting);
  assert_int_equal (host.ops->exec_start (host_call (&host, 5000), host.self,
                                          "much", argv, NULL, NULL, -1, -1,
                                          -1, &opts),
                    COFFER_OK);
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  struct listener listener = { "e1", ends[1], COFFER_OK };
  assert_int_equal (pthread_create (&thread, NULL, listener_run, &listener),
                    0);
  while (size < sizeof heard
         && (n = read (ends[0], heard + size, 4096)) > 0) {
    size += (size_t) n;
    usleep (300);
  }
  pthread_join (thread, NULL);
  close (ends[0]);
  assert_int_equal (listener.code, COFFER_OK);
  for (i = 0; i < size; i++, at++) {
    snprintf (expected, sizeof expected, "%07ld\n", at / 8);
    if (heard[i] == expected[at % 8])
      continue;
    next = place_find (heard + i, size - i);
    if (next <= at)
      fail_msg ("at %ld, heard %zu: %.16s", at, i, heard + i);
    at = next;
    i--;
    at--;
    jumps++;
  }
  assert_int_equal (at, LINES * 8);
  assert_true (size >= 65536);
  assert_true (jumps > 0 || size == LINES * 8);
  assert_int_equal (host_kill (&host, "much"), COFFER_OK);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_exit_codes),
    cmocka_unit_test (test_failures_of_start),
    cmocka_unit_test (test_streams),
    cmocka_unit_test (test_arguments),
    cmocka_unit_test (test_spec_environment),
    cmocka_unit_test (test_single_leaves_nobody),
    cmocka_unit_test (test_timeout_single),
    cmocka_unit_test (test_timeout_spares_others),
    cmocka_unit_test (test_background_child_lives),
    cmocka_unit_test (test_wait_twice_and_late),
    cmocka_unit_test (test_wait_deadline),
    cmocka_unit_test (test_many_commands),
    cmocka_unit_test (test_terminal),
    cmocka_unit_test (test_background),
    cmocka_unit_test (test_only_who_ran_out_is_blamed),
    cmocka_unit_test (test_a_slow_listener_hears_no_mixture),
  };

  return LINUX_TESTS_RUN_FOLDER (&host, "linux: commands", tests);
}
