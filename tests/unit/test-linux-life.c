/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes and commands of `linux`, from the first to the last moment: what
 * is started, told, killed, found again, and that nothing stays behind. */

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "linux-host.h"
#include "protocol.h"

static struct linux_host host;
static struct outcome outcome;

static const struct coffer_sandbox_spec lasting
  = { .size = sizeof lasting, .lifeline = -1 };

static void
sh_in (const char *id, const char *script, uint64_t timeout_ms)
{
  const char *argv[] = { "sh", "-c", script, NULL };

  if (host_run (&host, id, argv, NULL, NULL, timeout_ms, &outcome)
        != COFFER_OK)
    fail_msg ("%s", host.error);
}

static void
sh_once (const char *script, uint64_t timeout_ms)
{
  const char *argv[] = { "sh", "-c", script, NULL };

  if (host_run_once (&host, NULL, argv, timeout_ms, &outcome) != COFFER_OK)
    fail_msg ("%s", host.error);
}

static void
create (const char *id, const struct coffer_sandbox_spec *spec)
{
  if (host_create (&host, id, spec) != COFFER_OK)
    fail_msg ("%s", host.error);
}

/* Whether the folder of a sandbox is there. */
static int
folder_there (const char *id)
{
  return faccessat (host.runtime, id, F_OK, 0) == 0;
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
  assert_true (coffer_now_ns () - begun < INT64_C (10000000000));
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
  assert_true (coffer_now_ns () - begun < INT64_C (8000000000));
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

/* ---- sandboxes ---------------------------------------------------------- */

static void
test_create_is_idempotent (void **state)
{
  const char *metadata[] = { "owner=me", NULL };
  struct coffer_sandbox_spec spec = lasting;

  (void) state;
  spec.metadata = metadata;
  create ("same", &spec);
  assert_string_equal (host.metadata, "owner=me");
  sh_in ("same", "echo here > /workspace/mark", 5000);
  create ("same", &spec);
  assert_non_null (strstr (host.facts, "seccomp ok 2"));
  assert_string_equal (host.infos, "same running\n");
  sh_in ("same", "cat /workspace/mark", 5000);
  assert_string_equal (outcome.out, "here\n");
  assert_int_equal (host.ops->sandbox_info (host_call (&host, 5000),
                                            host.self, "same", NULL),
                    COFFER_OK);
  assert_string_equal (host.metadata, "owner=me");
  assert_int_equal (host_kill (&host, "same"), COFFER_OK);
}

static void
test_kill (void **state)
{
  (void) state;
  assert_int_equal (host_kill (&host, "nobody"), COFFER_NOT_FOUND);
  assert_int_equal (host_kill (&host, "../etc"), COFFER_NOT_FOUND);
  create ("victim", &lasting);
  assert_true (folder_there ("victim"));
  assert_int_equal (host_kill (&host, "victim"), COFFER_OK);
  assert_false (folder_there ("victim"));
  assert_int_equal (host_kill (&host, "victim"), COFFER_NOT_FOUND);
  assert_int_equal (host.ops->sandbox_info (host_call (&host, 5000),
                                            host.self, "victim", NULL),
                    COFFER_NOT_FOUND);
  /* No child of ours is left, not even a dead one. */
  assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
  assert_int_equal (errno, ECHILD);
}

/* Made by a process that is gone; found, used and ended by another. */
static void
test_outlives_its_maker (void **state)
{
  static struct linux_host maker;
  int status = 0;
  pid_t pid;

  (void) state;
  pid = fork ();
  if (pid == 0) {
    maker = host;
    if (host_create (&maker, "orphan", &lasting) != COFFER_OK)
      _exit (1);
    _exit (0);                  /* without a word to anybody */
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  assert_int_equal (host.ops->sandbox_list (host_call (&host, 5000),
                                            host.self, NULL),
                    COFFER_OK);
  assert_string_equal (host.infos, "orphan running\n");
  sh_in ("orphan", "echo still here", 5000);
  assert_string_equal (outcome.out, "still here\n");
  assert_int_equal (host_kill (&host, "orphan"), COFFER_OK);
  assert_false (folder_there ("orphan"));
}

/* More conversations at once than there is room for are refused, and the
 * others go on. */
static void
test_many_connections (void **state)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct init_header header;
  int fds[300], i, refused = 0;

  (void) state;
  create ("crowd", &lasting);
  snprintf (address.sun_path, sizeof address.sun_path,
            "%s/crowd/init.sock", host.runtime_path);
  for (i = 0; i < 300; i++) {
    fds[i] = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_true (fds[i] >= 0);
    assert_int_equal (connect (fds[i], (struct sockaddr *) &address,
                               sizeof address),
                      0);
    assert_true (recv (fds[i], &header, sizeof header, 0)
                 == sizeof header);
    assert_int_equal (header.type, INIT_HELLO);
    refused += header.error == EAGAIN;
  }
  assert_in_range (refused, 40, 60);
  sh_in ("crowd", "true", 5000);
  assert_int_equal (host.exit.code, 0);
  for (i = 0; i < 300; i++)
    close (fds[i]);
  assert_int_equal (host_kill (&host, "crowd"), COFFER_OK);
}

/* An init that is stopped from outside answers nobody; it is ended all the
 * same, also by a process that did not make it. */
static void
test_kill_of_a_stopped_init (void **state)
{
  static struct linux_host maker;
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct ucred peer;
  socklen_t size = sizeof peer;
  int status = 0, fd, pidfd = -1;
  pid_t pid;

  (void) state;
  pid = fork ();
  if (pid == 0) {
    maker = host;
    _exit (host_create (&maker, "stopped", &lasting) == COFFER_OK ? 0 : 1);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_int_equal (status, 0);
  fd = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  snprintf (address.sun_path, sizeof address.sun_path,
            "%s/stopped/init.sock", host.runtime_path);
  assert_int_equal (connect (fd, (struct sockaddr *) &address,
                             sizeof address),
                    0);
  assert_int_equal (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &size),
                    0);
  size = sizeof pidfd;
  if (getsockopt (fd, SOL_SOCKET, 77 /* SO_PEERPIDFD */, &pidfd, &size) == -1) {
    close (fd);
    assert_int_equal (host_kill (&host, "stopped"), COFFER_OK);
    skip_missing ("SO_PEERPIDFD, Linux 6.5");
  }
  close (pidfd);
  assert_int_equal (kill (peer.pid, SIGSTOP), 0);
  assert_int_equal (host_kill (&host, "stopped"), COFFER_OK);
  assert_false (folder_there ("stopped"));
  /* The socket of a dead one has no other end. */
  assert_int_equal (coffer_wait_fd (fd, POLLHUP, coffer_now_ns (), -1), 1);
  close (fd);
}

static void
test_lifeline (void **state)
{
  const char *argv[] = { "sleep", "60", NULL };
  struct coffer_sandbox_spec spec = lasting;
  int line[2], held[2];
  char byte;

  (void) state;
  assert_int_equal (pipe2 (line, O_CLOEXEC), 0);
  assert_int_equal (pipe2 (held, O_CLOEXEC), 0);
  spec.lifeline = line[0];
  create ("bound", &spec);
  close (line[0]);
  assert_int_equal (host.ops->exec_start (host_call (&host, 5000), host.self,
                                          "bound", argv, NULL, NULL, -1,
                                          held[1], -1, NULL),
                    COFFER_OK);
  close (held[1]);
  assert_int_equal (coffer_wait_fd (held[0], POLLIN, coffer_now_ns (), -1),
                    0);
  close (line[1]);
  assert_int_equal (coffer_wait_fd (held[0], POLLIN,
                                    coffer_now_ns () + 5000000000, -1),
                    1);
  assert_int_equal (read (held[0], &byte, 1), 0);
  close (held[0]);
  /* What it left is swept by whoever looks next. */
  assert_int_equal (host.ops->probe (host_call (&host, 5000), host.self,
                                     NULL),
                    COFFER_OK);
  assert_false (folder_there ("bound"));
}

/* A host that is killed at any moment leaves neither processes nor, for whoever
 * looks next, folders: the pipe that everything inside held ends. */
static void
test_killed_hosts_leave_nothing (void **state)
{
  unsigned long rounds = harness_scaled (25), i;
  const char *argv[] = { "sh", "-c", "setsid sleep 60 & sleep 60", NULL };
  static struct linux_host mortal;
  int held[2], line[2];
  char id[32], byte;
  pid_t pid;

  (void) state;
  for (i = 0; i < rounds; i++) {
    struct coffer_sandbox_spec spec = lasting;

    assert_int_equal (pipe2 (held, O_CLOEXEC), 0);
    assert_int_equal (pipe2 (line, O_CLOEXEC), 0);
    snprintf (id, sizeof id, "killed-%lu", i);
    pid = fork ();
    if (pid == 0) {
      mortal = host;
      spec.lifeline = line[0];
      spec.single_exec = i % 2;
      spec.memory_bytes = i % 4 == 3 ? 64 << 20 : 0;
      host_create (&mortal, id, &spec);
      mortal.ops->exec_start (host_call (&mortal, 5000), mortal.self, id,
                              argv, NULL, NULL, -1, held[1], -1, NULL);
      pause ();
      _exit (1);
    }
    close (held[1]);
    close (line[0]);
    close (line[1]);
    usleep ((useconds_t) (i * 7919 % 23) * 400);
    kill (pid, SIGKILL);
    assert_int_equal (waitpid (pid, NULL, 0), pid);
    assert_int_equal (coffer_wait_fd (held[0], POLLIN,
                                      coffer_now_ns () + 10000000000, -1),
                      1);
    assert_int_equal (read (held[0], &byte, 1), 0);
    close (held[0]);
  }
  for (i = 0; i < 100; i++) {
    assert_int_equal (host.ops->sandbox_list (host_call (&host, 5000),
                                              host.self, NULL),
                      COFFER_OK);
    if (host.infos[0] == '\0')
      break;
    usleep (20000);
  }
  assert_string_equal (host.infos, "");
  for (i = 0; i < rounds; i++) {
    snprintf (id, sizeof id, "killed-%lu", i);
    assert_false (folder_there (id));
  }
}

static void
test_ttl (void **state)
{
  const char *argv[] = { "sleep", "60", NULL };
  struct coffer_sandbox_spec spec = lasting;
  int64_t begun = coffer_now_ns (), before;
  int held[2];

  (void) state;
  spec.ttl_ms = 60000;
  create ("mortal", &spec);
  assert_true (host.expires_ns > coffer_realtime_ns () + 50000000000);
  assert_int_equal (pipe2 (held, O_CLOEXEC), 0);
  assert_int_equal (host.ops->exec_start (host_call (&host, 5000), host.self,
                                          "mortal", argv, NULL, NULL, -1,
                                          held[1], -1, NULL),
                    COFFER_OK);
  close (held[1]);
  before = coffer_realtime_ns ();
  assert_int_equal (host.ops->sandbox_extend (host_call (&host, 5000),
                                              host.self, "mortal", 300, NULL),
                    COFFER_OK);
  assert_true (host.expires_ns < before + 2000000000);
  assert_int_equal (coffer_wait_fd (held[0], POLLIN,
                                    coffer_now_ns () + 8000000000, -1),
                    1);
  assert_true (coffer_now_ns () - begun >= 300000000);
  close (held[0]);
  assert_int_equal (host.ops->sandbox_list (host_call (&host, 5000),
                                            host.self, NULL),
                    COFFER_OK);
  assert_string_equal (host.infos, "");
  assert_false (folder_there ("mortal"));
}

/* ---- set-up that fails -------------------------------------------------- */

static void
mount_refused (const char *source, const char *target, int32_t expected)
{
  struct coffer_mount mount = { .size = sizeof mount, .source = source,
                                .target = target, .writable = 1 };
  const struct coffer_mount *mounts[] = { &mount, NULL };
  struct coffer_sandbox_spec spec = lasting;

  mount.source_fd = open (source, O_PATH | O_CLOEXEC);
  spec.mounts = mounts;
  assert_int_equal (host_create (&host, "refused", &spec), expected);
  assert_true (strlen (host.error) > 0);
  close (mount.source_fd);
  assert_false (folder_there ("refused"));
  assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
}

static void
test_refusals_leave_nothing (void **state)
{
  struct coffer_sandbox_spec spec = lasting;

  (void) state;
  mount_refused ("/tmp", "/proc", COFFER_INVALID);
  mount_refused ("/tmp", "/dev/shm", COFFER_INVALID);
  mount_refused ("/tmp", "/tmp/../etc", COFFER_INVALID);
  mount_refused ("/tmp", "relative", COFFER_INVALID);
  mount_refused ("/dev/null", "/workspace/x", COFFER_INVALID);
  /* This one fails in the init, after everything before it was made. */
  mount_refused (host.runtime_path, "/usr/no/such/place", COFFER_UNAVAILABLE);
  assert_non_null (strstr (host.error, "mount point"));
  spec.network = "bridge";
  assert_int_equal (host_create (&host, "refused", &spec), COFFER_INVALID);
  spec.network = "none";
  spec.disk_bytes = 1;
  assert_int_equal (host_create (&host, "refused", &spec), COFFER_INVALID);
  assert_false (folder_there ("refused"));
}

/* An init that cannot be run, and one that ends without a word. */
static void
test_broken_inits_leave_nothing (void **state)
{
  static const char *const inits[] = { "/etc/passwd", "/bin/true" };
  static const char *const words[] = { "starting coffer-init", "" };
  static struct linux_host broken;
  int i, fd;

  (void) state;
  for (i = 0; i < 2; i++) {
    fd = open (inits[i], O_RDONLY | O_CLOEXEC);
    assert_true (fd >= 0);
    linux_host_open_with (&broken, fd);
    close (fd);
    assert_int_not_equal (host_create (&broken, "broken", &lasting),
                          COFFER_OK);
    assert_non_null (strstr (broken.error, words[i]));
    assert_int_equal (waitpid (-1, NULL, WNOHANG | __WALL), -1);
    linux_host_close (&broken);         /* fails when a folder is left */
  }
}

/* A folder of the host, shown read-only and writable: what is written inside
 * belongs to the folder's owner outside, and is only written where it may. */
static void
test_mounts (void **state)
{
  const char *dir = *state;
  struct coffer_mount plain = { .size = sizeof plain, .source = dir,
                                .target = "/workspace", .writable = 1 };
  struct coffer_mount fixed = { .size = sizeof fixed, .source = dir,
                                .target = "/mnt/fixed" };
  const struct coffer_mount *mounts[] = { &plain, &fixed, NULL };
  struct coffer_sandbox_spec spec = lasting;
  struct stat st;
  int32_t code;

  plain.source_fd = open (dir, O_PATH | O_CLOEXEC);
  fixed.source_fd = plain.source_fd;
  spec.mounts = mounts;
  code = host_create (&host, "mounts", &spec);
  close (plain.source_fd);
  if (code == COFFER_UNAVAILABLE && strstr (host.error, "id-mapped"))
    skip_missing ("id-mapped mounts on the file system of /tmp");
  if (code != COFFER_OK)
    fail_msg ("%s", host.error);
  sh_in ("mounts",
         "printf 'caf\\303\\251\\n' > made; mkdir sub; touch /mnt/fixed/x; "
         "chmod u+s made; cat /mnt/fixed/made; id -u; stat -c %u made",
         5000);
  assert_string_equal (outcome.out, "café\n1000\n1000\n");
  assert_non_null (strstr (outcome.err, "Read-only file system"));
  assert_int_equal (stat (harness_path (dir, "made"), &st), 0);
  assert_int_equal (st.st_uid, geteuid ());
  assert_int_equal (st.st_mode & 07000, 0);
  assert_int_equal (access (harness_path (dir, "x"), F_OK), -1);
  assert_int_equal (host_kill (&host, "mounts"), COFFER_OK);
}

/* ---- the protocol ------------------------------------------------------- */

static void
packet_write (int fd, uint16_t type, uint32_t serial, const void *body,
              size_t size, size_t cut)
{
  char packet[1024] = { 0 };
  struct init_header header
    = { (uint32_t) (sizeof header + size - cut), INIT_MAGIC, type, serial, 0 };

  memcpy (packet, &header, sizeof header);
  memcpy (packet + sizeof header, body, size - cut);
  assert_int_equal (send (fd, packet, header.size, MSG_NOSIGNAL),
                    header.size);
}

static struct init_header
packet_read (int fd, void *body, size_t size)
{
  char packet[4096] = { 0 };
  struct init_header header;

  assert_int_equal (coffer_wait_fd (fd, POLLIN,
                                    coffer_now_ns () + 5000000000, -1),
                    1);
  assert_true (recv (fd, packet, sizeof packet, 0)
               >= (ssize_t) sizeof header);
  memcpy (&header, packet, sizeof header);
  memcpy (body, packet + sizeof header, size);
  return header;
}

/* Longer bodies than the init knows, shorter ones, types of the future and
 * plain garbage: the conversation goes on, or only that one ends. */
static void
test_protocol_grows (void **state)
{
  struct {
    struct init_exec known;
    uint64_t later[2];
    char strings[16];
  } exec = { .known = { .size = sizeof exec.known + sizeof exec.later,
                        .argc = 1, .strings_size = 6 },
             .later = { 7, 8 }, .strings = "true\0" };
  struct init_command wait = { .size = 8, .exec = 1 };
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct init_header header;
  struct init_hello hello;
  struct init_exit end;
  int fd, i;

  (void) state;
  create ("wire", &lasting);
  snprintf (address.sun_path, sizeof address.sun_path,
            "%s/wire/init.sock", host.runtime_path);
  for (i = 0; i < 2; i++) {
    fd = socket (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal (connect (fd, (struct sockaddr *) &address,
                               sizeof address),
                      0);
    header = packet_read (fd, &hello, sizeof hello);
    assert_int_equal (header.type, INIT_HELLO);
    assert_int_equal (hello.version, INIT_PROTOCOL);
    if (i == 0) {
      /* Garbage ends this connection, and no more than that. */
      assert_int_equal (send (fd, "garbage", 7, 0), 7);
      assert_int_equal (recv (fd, &hello, sizeof hello, 0), 0);
      close (fd);
    }
  }
  packet_write (fd, INIT_EXEC, 1, &exec, sizeof exec.known
                + sizeof exec.later + 6, 0);
  header = packet_read (fd, &end, sizeof end);
  assert_int_equal (header.type, INIT_STARTED);
  assert_int_equal (header.error, 0);
  assert_int_equal (end.exec, 1);
  /* An old host knows only the first two members. */
  packet_write (fd, INIT_WAIT, 2, &wait, sizeof wait, sizeof wait - 8);
  header = packet_read (fd, &end, sizeof end);
  assert_int_equal (header.type, INIT_EXIT);
  assert_int_equal (end.code, 0);
  packet_write (fd, 4711, 3, &wait, 8, 0);
  header = packet_read (fd, &end, sizeof end);
  assert_int_equal (header.type, INIT_DONE);
  assert_int_equal (header.error, EOPNOTSUPP);
  assert_int_equal (header.serial, 3);
  /* Sizes and counts that lie. */
  exec.known.argc = 4000000000u;
  packet_write (fd, INIT_EXEC, 4, &exec, sizeof exec.known
                + sizeof exec.later + 6, 0);
  header = packet_read (fd, &end, sizeof end);
  assert_int_not_equal (header.error, 0);
  exec.known.argc = 1;
  exec.known.size = 100000;
  packet_write (fd, INIT_EXEC, 5, &exec, sizeof exec.known
                + sizeof exec.later + 6, 0);
  header = packet_read (fd, &end, sizeof end);
  assert_int_not_equal (header.error, 0);
  close (fd);
  sh_in ("wire", "echo alive", 5000);
  assert_string_equal (outcome.out, "alive\n");
  assert_int_equal (host_kill (&host, "wire"), COFFER_OK);
}

static int
set_up (void **state)
{
  linux_host_open (&host);
  return harness_folder_new (state);
}

static int
tear_down (void **state)
{
  linux_host_close (&host);
  return harness_folder_free (state);
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
    cmocka_unit_test (test_create_is_idempotent),
    cmocka_unit_test (test_kill),
    cmocka_unit_test (test_outlives_its_maker),
    cmocka_unit_test (test_many_connections),
    cmocka_unit_test (test_kill_of_a_stopped_init),
    cmocka_unit_test (test_lifeline),
    cmocka_unit_test (test_killed_hosts_leave_nothing),
    cmocka_unit_test (test_ttl),
    cmocka_unit_test (test_refusals_leave_nothing),
    cmocka_unit_test (test_broken_inits_leave_nothing),
    cmocka_unit_test (test_mounts),
    cmocka_unit_test (test_protocol_grows),
  };

  if (!host_can ()) {
    printf ("1..0 # SKIP missing: user namespaces\n");
    return 0;
  }
  return cmocka_run_group_tests_name ("linux: life of a sandbox", tests,
                                      set_up, tear_down);
}
