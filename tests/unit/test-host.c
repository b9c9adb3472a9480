/* SPDX-License-Identifier: Apache-2.0 */
/* plugins/host, called as a host calls it: by its table, with a fake host.
 * What it does is judged by processes, pipes and files, not by its word. */

#define _GNU_SOURCE

#include "harness.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>

#include <coffer/fd.h>

#include "fakehost.h"

#define OP (fixture->operations)
#define SANDBOX "sb-test"
#define SOON (coffer_now_ns () + HARNESS_PATIENCE_NS)

struct fixture {
  char *dir;
  int runtime, keeper;
  const struct coffer_operations *operations;
  void *self;
  struct fakehost host;
  int lifeline;                 /* write end; -1: none */
};

/* ---- set-up ---- */

static const struct coffer_operations *
load_module (void)
{
  static const struct coffer_provider *provider;
  const struct coffer_provider *(*entry) (void);
  const char *build = getenv ("COFFER_BUILD");
  char path[600];
  void *module;

  if (provider)
    return provider->operations;
  snprintf (path, sizeof path, "%s/plugins/host/host.so", build ? build : ".");
  module = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (!module)
    fail_msg ("%s", dlerror ());
  *(void **) &entry = dlsym (module, COFFER_ENTRY_NAME);
  provider = entry ();
  assert_string_equal (provider->name, "host");
  return provider->operations;
}

static void
open_provider (struct fixture *fixture)
{
  struct coffer_file helper = {.size = sizeof helper, .name = "coffer-keeper",
                               .fd = fixture->keeper};
  const struct coffer_file *const files[] = {&helper, NULL};
  struct coffer_open_opts opts = {
    .size = sizeof opts, .files = files, .runtime_dir = fixture->runtime,
    .state_dir = -1, .host = "test",
  };

  assert_int_equal (OP->open (&fixture->host.call, NULL, NULL, &opts), 0);
  fixture->self = fixture->host.self;
}

static int
fixture_new (void **state)
{
  struct fixture *fixture = calloc (1, sizeof *fixture);
  const char *build = getenv ("COFFER_BUILD");
  char path[600];
  void *dir;

  if (!fixture || harness_folder_new (&dir) < 0)
    return -1;
  fixture->dir = dir;
  fixture->lifeline = -1;
  fixture->runtime = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  snprintf (path, sizeof path, "%s/plugins/host/coffer-keeper",
            build ? build : ".");
  fixture->keeper = open (path, O_RDONLY | O_CLOEXEC);
  if (fixture->keeper < 0)
    return -1;
  fixture->operations = load_module ();
  fakehost_init (&fixture->host, 8000);
  open_provider (fixture);
  *state = fixture;
  return 0;
}

static int32_t
kill_sandbox (struct fixture *fixture, const char *id)
{
  fakehost_reset (&fixture->host, 15000);
  return OP->sandbox_kill (&fixture->host.call, fixture->self, id, NULL);
}

static unsigned
entries (const char *dir)
{
  struct dirent *entry;
  unsigned n = 0;
  DIR *stream = opendir (dir);

  while ((entry = readdir (stream)))
    n += entry->d_name[0] != '.';
  closedir (stream);
  return n;
}

/* Nothing may be left by any test. */
static int
fixture_free (void **state)
{
  struct fixture *fixture = *state;
  void *dir = fixture->dir;
  unsigned left;

  coffer_fd_close (&fixture->lifeline);
  kill_sandbox (fixture, SANDBOX);
  kill_sandbox (fixture, SANDBOX "-2");
  for (int i = 0; i < 2000 && entries (dir) > 0; i++)
    usleep (10000);
  left = entries (dir);
  OP->close (&fixture->host.call, fixture->self, NULL);
  fakehost_fini (&fixture->host);
  coffer_fd_close (&fixture->runtime);
  coffer_fd_close (&fixture->keeper);
  free (fixture);
  if (left > 0)
    print_error ("a sandbox's folder is left\n");
  return harness_folder_free (&dir) < 0 || left > 0 ? -1 : 0;
}

/* ---- making sandboxes and running commands ---- */

static int32_t
create (struct fixture *fixture, const struct coffer_sandbox_spec *spec)
{
  struct coffer_sandbox_spec none = {.size = sizeof none, .lifeline = -1};

  fakehost_reset (&fixture->host, 8000);
  return OP->sandbox_create (&fixture->host.call, fixture->self, SANDBOX,
                             spec ? spec : &none, NULL);
}

static void
create_with_lifeline (struct fixture *fixture, uint32_t single)
{
  struct coffer_sandbox_spec spec = {.size = sizeof spec,
                                     .single_exec = single};
  int ends[2];

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  spec.lifeline = ends[0];
  fixture->lifeline = ends[1];
  assert_int_equal (create (fixture, &spec), 0);
  close (ends[0]);
}

/* A command with its output on a pipe. */
struct run {
  int out;                      /* read end; -1: none */
  char exec[32];
  char *output;
  size_t size;
  struct coffer_exec_exit exit;
};

static int32_t
start_argv (struct fixture *fixture, const char *const *argv,
            const char *const *env, const char *cwd, int32_t in,
            const struct coffer_exec_start_opts *opts, struct run *run)
{
  int ends[2];
  int32_t code;

  *run = (struct run) {.out = -1};
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  fakehost_reset (&fixture->host, 8000);
  code = OP->exec_start (&fixture->host.call, fixture->self, SANDBOX, argv,
                         env, cwd, in, ends[1], ends[1], opts);
  close (ends[1]);
  if (code) {
    close (ends[0]);
    return code;
  }
  run->out = ends[0];
  assert_int_equal (fakehost_count (&fixture->host, COFFER_REC_exec_info), 1);
  snprintf (run->exec, sizeof run->exec, "%s",
            FAKEHOST_GET (&fixture->host, exec_info, 0)->exec);
  return 0;
}

static int32_t
start_script (struct fixture *fixture, const char *script, uint64_t timeout_ms,
              struct run *run)
{
  struct coffer_exec_start_opts opts = {.size = sizeof opts,
                                        .timeout_ms = timeout_ms};

  return start_argv (fixture, (const char *[]) {"sh", "-c", script, NULL},
                     NULL, NULL, -1, &opts, run);
}

static void
wait_run (struct fixture *fixture, struct run *run)
{
  fakehost_reset (&fixture->host, 15000);
  assert_int_equal (OP->exec_wait (&fixture->host.call, fixture->self, SANDBOX,
                                   run->exec, NULL), 0);
  run->exit = *FAKEHOST_GET (&fixture->host, exec_exit, 0);
}

/* All that the command and whoever holds its pipe have written.  Fails when
 * somebody goes on holding it. */
static void
read_output (struct run *run)
{
  int64_t deadline = SOON;
  struct coffer_buffer buffer = {0};
  char bytes[4096];
  ssize_t n = 1;

  while (n > 0) {
    if (coffer_wait_fd (run->out, POLLIN, deadline, -1) != 1)
      fail_msg ("somebody still holds the command's output");
    n = read (run->out, bytes, sizeof bytes);
    assert_true (n >= 0);
    coffer_buffer_add (&buffer, bytes, (size_t) n);
  }
  coffer_fd_close (&run->out);
  run->size = buffer.size;
  run->output = coffer_buffer_steal (&buffer);
}

static void
run_free (struct run *run)
{
  coffer_fd_close (&run->out);
  free (run->output);
}

static void
run_script (struct fixture *fixture, const char *script, struct run *run)
{
  assert_int_equal (start_script (fixture, script, 0, run), 0);
  read_output (run);
  wait_run (fixture, run);
}

static void
read_line (struct run *run, char *line, size_t size)
{
  size_t n = 0;

  do
    if (coffer_wait_fd (run->out, POLLIN, SOON, -1) != 1
        || read (run->out, line + n, 1) != 1)
      fail_msg ("no line");
  while (line[n++] != '\n' && n < size - 1);
  line[n - 1] = '\0';
}

/* ---- what it says about itself ---- */

static void
probe_and_create_say_that_it_isolates_nothing (void **state)
{
  struct fixture *fixture = *state;
  const struct coffer_sandbox_info *info;
  const struct coffer_fact *fact;

  for (int round = 0; round < 2; round++) {
    fakehost_reset (&fixture->host, 8000);
    if (round == 0)
      assert_int_equal (OP->probe (&fixture->host.call, fixture->self, NULL),
                        0);
    else
      assert_int_equal (create (fixture, NULL), 0);
    fact = fakehost_fact (&fixture->host, "isolation");
    assert_non_null (fact);
    assert_string_equal (fact->state, "off");
    assert_string_equal (fact->value, "none");
    fact = fakehost_fact (&fixture->host, "user");
    assert_string_equal (fact->state, geteuid () == 0 ? "degraded" : "ok");
  }
  info = FAKEHOST_GET (&fixture->host, sandbox_info, 0);
  assert_string_equal (info->isolation, "none");
  assert_string_equal (info->not_applied[0], "network.none");
  assert_true (fakehost_logged (&fixture->host, "not a sandbox"));
  assert_int_equal (fakehost_logged (&fixture->host, "run as root"),
                    geteuid () == 0);
}

static void
every_option_it_cannot_honour_is_refused (void **state)
{
  struct fixture *fixture = *state;
  static const char *const one[] = {"x:1", NULL};
  struct coffer_mount mount = {.size = sizeof mount, .source = "/tmp",
                               .source_fd = -1, .target = "/workspace",
                               .writable = 1};
  const struct coffer_mount *const mounts[] = {&mount, NULL};
#define SPEC .size = sizeof (struct coffer_sandbox_spec), .lifeline = -1
  const struct coffer_sandbox_spec specs[] = {
    {SPEC, .template_name = "t"}, {SPEC, .image = "i"}, {SPEC, .user = "0"},
    {SPEC, .memory_bytes = 1}, {SPEC, .cpu_millis = 1}, {SPEC, .pids = 1},
    {SPEC, .disk_bytes = 1}, {SPEC, .inodes = 1}, {SPEC, .network = "none"},
    {SPEC, .network = "allow"}, {SPEC, .allow = one}, {SPEC, .ports = one},
    {SPEC, .mounts = mounts}, {SPEC, .profile = "p"},
    {SPEC, .address_bytes = 1}, {SPEC, .file_bytes = 1},
    {SPEC, .open_files = 1}, {SPEC, .filter = "strict"},
    {SPEC, .require = one},
  };
  const struct coffer_exec_start_opts starts[] = {
    {.size = sizeof starts[0], .user = "0"},
    {.size = sizeof starts[0], .background = 1},
    {.size = sizeof starts[0], .warm = "w"},
  };
  struct run run;

  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
    assert_int_equal (create (fixture, &specs[i]), COFFER_UNSUPPORTED);
    assert_int_equal (fixture->host.failures, 1);
    assert_non_null (strstr (fixture->host.message, "host provider"));
    assert_int_equal (entries (fixture->dir), 0);
  }
  assert_int_equal (create (fixture, &(struct coffer_sandbox_spec) {
                                       SPEC, .network = "host"}), 0);
  for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
    assert_int_equal (start_argv (fixture, (const char *[]) {"true", NULL},
                                  NULL, NULL, -1, &starts[i], &run),
                      COFFER_UNSUPPORTED);
}

static void
ids_that_are_no_plain_names_are_refused (void **state)
{
  struct fixture *fixture = *state;
  static const char *const bad[] = {"", ".", "..", "a/b", "../x", ".hidden",
                                    "a\nb", "你好"};
  struct coffer_sandbox_spec spec = {SPEC};

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    fakehost_reset (&fixture->host, 8000);
    assert_int_equal (OP->sandbox_create (&fixture->host.call, fixture->self,
                                          bad[i], &spec, NULL),
                      COFFER_INVALID);
    assert_int_equal (kill_sandbox (fixture, bad[i]), COFFER_NOT_FOUND);
  }
}

/* ---- commands ---- */

static void
ends_are_reported_exactly (void **state)
{
  struct fixture *fixture = *state;
  static const struct {
    const char *script;
    int code, signal;
  } cases[] = {
    {"exit 0", 0, 0}, {"exit 7", 7, 0}, {"exit 255", 255, 0},
    {"kill -9 $$", -1, 9}, {"kill -TERM $$", -1, 15},
    {"kill -SEGV $$", -1, 11},
  };
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    run_script (fixture, cases[i].script, &run);
    assert_int_equal (run.exit.code, cases[i].code);
    assert_int_equal (run.exit.signal, cases[i].signal);
    assert_int_equal (run.exit.timed_out, 0);
    assert_int_equal (run.exit.failure_errno, 0);
    assert_true (run.exit.duration_us > 0);
    run_free (&run);
  }
}

static void
arguments_environment_and_input_arrive_byte_for_byte (void **state)
{
  struct fixture *fixture = *state;
  static const char *const argv[] = {
    "sh", "-c", "printf '%s|%s|%s|' \"$1\" \"$V\" \"$HOME\"; cat; "
    "env -0 | cut -z -d= -f1 | grep -zv -e _ -e PWD -e SHLVL | sort -z | "
    "tr '\\0' ' '", "x", VECTOR_NAME "\xff", NULL,
  };
  static const char *const env[] = {"V=" VECTOR_BODY, "V=two\n", NULL};
  const struct coffer_sandbox_info *info;
  char want[1000];
  struct run run;
  int ends[2];

  assert_int_equal (create (fixture, NULL), 0);
  info = FAKEHOST_GET (&fixture->host, sandbox_info, 0);
  snprintf (want, sizeof want, "%s|two\n|%s|%sHOME LANG PATH TMPDIR USER V ",
            VECTOR_NAME "\xff", info->workspace, VECTOR_BODY);
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_true (write (ends[1], VECTOR_BODY, strlen (VECTOR_BODY)) > 0);
  close (ends[1]);
  setenv ("SECRET_OF_THE_HOST", "1", 1);
  assert_int_equal (start_argv (fixture, argv, env, NULL, ends[0], NULL, &run),
                    0);
  close (ends[0]);
  read_output (&run);
  assert_string_equal (run.output, want);
  wait_run (fixture, &run);
  run_free (&run);
}

static void
a_command_has_three_descriptors_a_session_and_default_signals (void **state)
{
  struct fixture *fixture = *state;
  struct run run;

  signal (SIGPIPE, SIG_IGN);
  assert_int_equal (create (fixture, NULL), 0);
  run_script (fixture,
              "ls /proc/self/fd | wc -l; grep -E '^Sig(Ign|Blk)' "
              "/proc/self/status | tr -d '\\t\\n'; umask; "
              "set -- $(cut -d' ' -f1,6 /proc/$$/stat); "
              "[ $1 = $2 ] && echo leader; cat", &run);
  signal (SIGPIPE, SIG_DFL);
  /* 0, 1, 2 and the one that ls reads the folder by. */
  assert_string_equal (run.output, "4\nSigBlk:0000000000000000"
                       "SigIgn:00000000000000000022\nleader\n");
  assert_int_equal (run.exit.code, 0);
  run_free (&run);
}

static void
the_working_folder_is_the_workspace_unless_named (void **state)
{
  struct fixture *fixture = *state;
  struct coffer_sandbox_spec spec = {SPEC, .workdir = "/usr"};
  static const char *const pwd[] = {"pwd", NULL};
  struct run run;

  assert_int_equal (create (fixture, &spec), 0);
  assert_int_equal (start_argv (fixture, pwd, NULL, NULL, -1, NULL, &run), 0);
  read_output (&run);
  assert_string_equal (run.output, "/usr\n");
  run_free (&run);
  assert_int_equal (start_argv (fixture, pwd, NULL, "/", -1, NULL, &run), 0);
  read_output (&run);
  assert_string_equal (run.output, "/\n");
  run_free (&run);
  assert_int_equal (start_argv (fixture, pwd, NULL, "not/absolute", -1, NULL,
                                &run), COFFER_INVALID);
  assert_int_equal (kill_sandbox (fixture, SANDBOX), 0);

  assert_int_equal (create (fixture, NULL), 0);
  run_script (fixture, "pwd; touch \"$TMPDIR/t\" && echo yes", &run);
  assert_non_null (strstr (run.output, "/" SANDBOX "/workspace\nyes\n"));
  run_free (&run);
}

static void
what_cannot_start_says_why (void **state)
{
  struct fixture *fixture = *state;
  static const struct {
    const char *program, *cwd;
    int sys_errno;
    const char *text;
  } cases[] = {
    {"no-such-program-here", NULL, ENOENT, "the program: No such file"},
    {"", NULL, ENOENT, "the program: "},
    {"/etc", NULL, EACCES, "the program: Permission denied"},
    {"/etc/passwd", NULL, EACCES, "the program: Permission denied"},
    {"true", "/no/such/folder", ENOENT, "the working folder: No such file"},
  };
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal (start_argv (fixture,
                                  (const char *[]) {cases[i].program, NULL},
                                  NULL, cases[i].cwd, -1, NULL, &run), 0);
    fakehost_reset (&fixture->host, 8000);
    assert_int_equal (OP->exec_wait (&fixture->host.call, fixture->self,
                                     SANDBOX, run.exec, NULL), 0);
    run.exit = *FAKEHOST_GET (&fixture->host, exec_exit, 0);
    assert_int_equal (run.exit.failure_errno, cases[i].sys_errno);
    assert_non_null (strstr (run.exit.failure, cases[i].text));
    run_free (&run);
  }
}

static void *
cancel_main (void *data)
{
  usleep (50000);
  fakehost_cancel (data);
  return NULL;
}

static void
waiting_ends_at_the_deadline_and_when_cancelled (void **state)
{
  struct fixture *fixture = *state;
  pthread_t thread;
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, "sleep 100", 0, &run), 0);
  fakehost_reset (&fixture->host, 50);
  assert_int_equal (OP->exec_wait (&fixture->host.call, fixture->self, SANDBOX,
                                   run.exec, NULL), COFFER_TIMEOUT);
  fakehost_reset (&fixture->host, 8000);
  pthread_create (&thread, NULL, cancel_main, &fixture->host);
  assert_int_equal (OP->exec_wait (&fixture->host.call, fixture->self, SANDBOX,
                                   run.exec, NULL), COFFER_CANCELLED);
  pthread_join (thread, NULL);
  /* Neither has ended the command. */
  assert_int_equal (coffer_wait_fd (run.out, POLLIN, 0, -1), 0);
  run_free (&run);
}

static void
unknown_sandboxes_and_commands_are_not_found (void **state)
{
  struct fixture *fixture = *state;
  static const char *const bad[] = {"x0", "x2", "1", "x", "x1 ", "x01",
                                    "x99999999999", NULL};
  struct run run;

  assert_int_equal (start_script (fixture, "true", 0, &run), COFFER_NOT_FOUND);
  assert_int_equal (create (fixture, NULL), 0);
  run_script (fixture, "true", &run);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    fakehost_reset (&fixture->host, 8000);
    assert_int_equal (OP->exec_wait (&fixture->host.call, fixture->self,
                                     SANDBOX, bad[i], NULL),
                      COFFER_NOT_FOUND);
  }
  /* An end can be asked for again. */
  wait_run (fixture, &run);
  assert_int_equal (run.exit.code, 0);
  run_free (&run);
}

static void
signals_reach_the_group_and_ended_commands_conflict (void **state)
{
  struct fixture *fixture = *state;
  char line[64];
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, "trap 'echo got; exit 3' USR1; "
                                  "echo ready; while :; do sleep 0.05; done",
                                  0, &run), 0);
  read_line (&run, line, sizeof line);
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->exec_signal (&fixture->host.call, fixture->self,
                                     SANDBOX, run.exec, 999, NULL),
                    COFFER_INVALID);
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->exec_signal (&fixture->host.call, fixture->self,
                                     SANDBOX, run.exec, SIGUSR1, NULL), 0);
  read_output (&run);
  wait_run (fixture, &run);
  assert_true (run.exit.code == 3 || run.exit.signal == SIGUSR1);
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->exec_signal (&fixture->host.call, fixture->self,
                                     SANDBOX, run.exec, SIGTERM, NULL),
                    COFFER_CONFLICT);
  run_free (&run);
}

static void
a_terminal_has_its_size_and_controls_the_command (void **state)
{
  struct fixture *fixture = *state;
  struct coffer_exec_start_opts opts = {.size = sizeof opts, .tty = 1,
                                        .rows = 33, .columns = 77};
  static const char *const argv[] = {
    "sh", "-c", "tty -s && echo tty:$TERM; stty size; trap 'stty size; exit 5'"
    " WINCH; : < /dev/tty && echo control; while :; do sleep 0.02; done",
    NULL};
  char text[4096] = "";
  size_t size = 0;
  struct run run = {.out = -1};
  int master, slave;

  assert_int_equal (openpty (&master, &slave, NULL, NULL, NULL), 0);
  assert_int_equal (create (fixture, NULL), 0);
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->exec_start (&fixture->host.call, fixture->self,
                                    SANDBOX, argv, NULL, NULL, slave, slave,
                                    -1, &opts), 0);
  snprintf (run.exec, sizeof run.exec, "%s",
            FAKEHOST_GET (&fixture->host, exec_info, 0)->exec);
  close (slave);
  for (int resized = 0; size < sizeof text - 1;) {
    ssize_t n;

    if (coffer_wait_fd (master, POLLIN, SOON, -1) != 1
        || (n = read (master, text + size, sizeof text - 1 - size)) <= 0)
      break;                    /* the last holder of the slave has gone */
    size += (size_t) n;
    if (!resized && strstr (text, "control")) {
      resized = 1;
      fakehost_reset (&fixture->host, 8000);
      assert_int_equal (OP->exec_resize (&fixture->host.call, fixture->self,
                                         SANDBOX, run.exec, 11, 22, NULL), 0);
    }
  }
  assert_string_equal (text, "tty:xterm\r\n33 77\r\ncontrol\r\n11 22\r\n");
  wait_run (fixture, &run);
  assert_int_equal (run.exit.code, 5);
  close (master);
}

/* ---- ends of trees ---- */

/* Descendants that try to get away: another session, a parent that ends,
 * signals ignored, stopped.  Each holds the output pipe. */
#define RUNAWAYS                                                              \
  "trap '' TERM HUP INT; "                                                    \
  "setsid sh -c 'trap \"\" TERM; echo 1; sleep 300' & "                       \
  "(setsid sh -c 'sleep 300 & echo 2; sleep 300' &) ; "                       \
  "sh -c 'echo 3; kill -STOP $$' & "                                          \
  "(sh -c '(setsid sh -c \"echo 4; sleep 300\" &)' &) ; "
#define N_RUNAWAYS 4

static void
wait_for_runaways (struct run *run)
{
  char line[64];

  for (int i = 0; i < N_RUNAWAYS; i++)
    read_line (run, line, sizeof line);
}

static void
a_timeout_ends_every_descendant (void **state)
{
  struct fixture *fixture = *state;
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, RUNAWAYS "sleep 300", 2500,
                                  &run), 0);
  wait_for_runaways (&run);
  wait_run (fixture, &run);
  assert_int_equal (run.exit.timed_out, 1);
  assert_int_equal (run.exit.code, -1);
  assert_int_equal (run.exit.signal, SIGKILL);
  assert_true (run.exit.killed >= N_RUNAWAYS);
  assert_true (run.exit.duration_us >= 2500000);
  read_output (&run);
  run_free (&run);
}

/* Each child forks the next and ends: no list of processes is ever right. */
static void
a_timeout_ends_what_forks_for_ever (void **state)
{
  struct fixture *fixture = *state;
  struct run run;

  if (access ("/usr/bin/python3", X_OK) < 0)
    skip_missing ("python3");
  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_argv (fixture, (const char *[]) {
    "python3", "-c", "import os,time\n"
    "for i in range(8):\n"
    "  if os.fork() == 0:\n"
    "    while True:\n"
    "      if i % 2: os.setsid() if os.getsid(0) != os.getpid() else 0\n"
    "      if os.fork(): os._exit(0)\n"
    "time.sleep(300)", NULL}, NULL, NULL, -1,
    &(struct coffer_exec_start_opts) {
      .size = sizeof (struct coffer_exec_start_opts), .timeout_ms = 400},
    &run), 0);
  wait_run (fixture, &run);
  assert_int_equal (run.exit.timed_out, 1);
  read_output (&run);
  run_free (&run);
}

static void
a_timeout_spares_the_other_commands (void **state)
{
  struct fixture *fixture = *state;
  struct run one, other;
  char line[64];

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, "(setsid sleep 1.2; echo done) & "
                                  "echo up; wait", 0, &other), 0);
  read_line (&other, line, sizeof line);
  assert_int_equal (start_script (fixture, RUNAWAYS "sleep 300", 400, &one),
                    0);
  wait_run (fixture, &one);
  assert_int_equal (one.exit.timed_out, 1);
  read_output (&other);
  assert_string_equal (other.output, "done\n");
  wait_run (fixture, &other);
  assert_int_equal (other.exit.code, 0);
  run_free (&one);
  run_free (&other);
}

static void
what_a_command_leaves_lives_until_the_sandbox_ends (void **state)
{
  struct fixture *fixture = *state;
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, RUNAWAYS "exit 4", 0, &run), 0);
  wait_for_runaways (&run);
  wait_run (fixture, &run);
  assert_int_equal (run.exit.code, 4);
  assert_int_equal (run.exit.killed, 0);
  assert_int_equal (coffer_wait_fd (run.out, POLLIN, coffer_now_ns () +
                                    200000000, -1), 0);
  assert_int_equal (kill_sandbox (fixture, SANDBOX), 0);
  read_output (&run);
  assert_int_equal (entries (fixture->dir), 0);
  run_free (&run);
}

static void
a_single_command_takes_all_it_started_along (void **state)
{
  struct fixture *fixture = *state;
  struct run run, second;

  create_with_lifeline (fixture, 1);
  assert_int_equal (start_script (fixture, RUNAWAYS "sleep 0.5; exit 6", 0,
                                  &run), 0);
  assert_int_equal (start_script (fixture, "true", 0, &second),
                    COFFER_CONFLICT);
  wait_for_runaways (&run);
  wait_run (fixture, &run);
  assert_int_equal (run.exit.code, 6);
  assert_true (run.exit.killed >= N_RUNAWAYS);
  read_output (&run);
  run_free (&run);
}

static void
the_end_of_the_lifeline_ends_everything (void **state)
{
  struct fixture *fixture = *state;
  struct run run;

  create_with_lifeline (fixture, 0);
  assert_int_equal (start_script (fixture, RUNAWAYS "sleep 300", 0, &run), 0);
  wait_for_runaways (&run);
  coffer_fd_close (&fixture->lifeline);
  read_output (&run);
  for (int i = 0; i < 2000 && entries (fixture->dir) > 0; i++)
    usleep (10000);
  assert_int_equal (entries (fixture->dir), 0);
  run_free (&run);
}

/* A host that is killed: here a child that made the sandbox. */
static void
a_host_that_is_killed_leaves_nothing (void **state)
{
  struct fixture *fixture = *state;
  struct run run;
  int ends[2];
  pid_t pid;

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  pid = fork ();
  if (pid == 0) {
    create_with_lifeline (fixture, 1);
    start_script (fixture, RUNAWAYS "sleep 300", 0, &run);
    wait_for_runaways (&run);
    if (write (ends[1], "", 1) == 1)
      pause ();
    _exit (1);
  }
  close (ends[1]);
  assert_int_equal (read (ends[0], &(char) {0}, 1), 1);
  assert_true (entries (fixture->dir) == 1);
  kill (pid, SIGKILL);
  assert_int_equal (waitpid (pid, NULL, 0), pid);
  for (int i = 0; i < 2000 && entries (fixture->dir) > 0; i++)
    usleep (10000);
  assert_int_equal (entries (fixture->dir), 0);
  close (ends[0]);
}

static pid_t
keeper_pid (struct fixture *fixture)
{
  fakehost_reset (&fixture->host, 8000);
  assert_int_equal (OP->sandbox_info (&fixture->host.call, fixture->self,
                                      SANDBOX, NULL), 0);
  return (pid_t) atoi (FAKEHOST_GET (&fixture->host, sandbox_info, 0)
                         ->native_id + strlen ("pid-"));
}

static void
kill_keeper (struct fixture *fixture, int by_list)
{
  struct run run;

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, RUNAWAYS "sleep 300", 0, &run), 0);
  wait_for_runaways (&run);
  kill (keeper_pid (fixture), SIGKILL);
  read_output (&run);
  run_free (&run);
  /* Its folder is all that is left: no sandbox, and whoever comes by, to end
   * it or to list, clears it away. */
  if (by_list) {
    fakehost_reset (&fixture->host, 8000);
    assert_int_equal (OP->sandbox_list (&fixture->host.call, fixture->self,
                                        NULL), 0);
    assert_int_equal (fixture->host.count, 0);
  } else {
    assert_int_equal (entries (fixture->dir), 1);
    assert_int_equal (kill_sandbox (fixture, SANDBOX), COFFER_NOT_FOUND);
  }
  assert_int_equal (entries (fixture->dir), 0);
}

static void
a_keeper_that_is_killed_takes_its_commands_along (void **state)
{
  kill_keeper (*state, 0);
  kill_keeper (*state, 1);
}

/* The first child of a process, by /proc. */
static pid_t
child_of (pid_t parent)
{
  char path[64], text[64] = "";
  int fd;

  snprintf (path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  assert_true (fd >= 0);
  assert_true (read (fd, text, sizeof text - 1) >= 0);
  close (fd);
  return (pid_t) atoi (text);
}

static void
a_minder_that_is_killed_takes_its_command_along (void **state)
{
  struct fixture *fixture = *state;
  struct run run, after;
  pid_t minder;

  assert_int_equal (create (fixture, NULL), 0);
  assert_int_equal (start_script (fixture, RUNAWAYS "sleep 300", 0, &run), 0);
  wait_for_runaways (&run);
  minder = child_of (keeper_pid (fixture));
  assert_true (minder > 1);
  kill (minder, SIGKILL);
  wait_run (fixture, &run);
  assert_int_equal (run.exit.code, -1);
  assert_int_equal (run.exit.signal, SIGKILL);
  read_output (&run);
  run_free (&run);
  run_script (fixture, "echo still here", &after);
  assert_string_equal (after.output, "still here\n");
  run_free (&after);
}

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
    TEST (probe_and_create_say_that_it_isolates_nothing),
    TEST (every_option_it_cannot_honour_is_refused),
    TEST (ids_that_are_no_plain_names_are_refused),
    TEST (ends_are_reported_exactly),
    TEST (arguments_environment_and_input_arrive_byte_for_byte),
    TEST (a_command_has_three_descriptors_a_session_and_default_signals),
    TEST (the_working_folder_is_the_workspace_unless_named),
    TEST (what_cannot_start_says_why),
    TEST (waiting_ends_at_the_deadline_and_when_cancelled),
    TEST (unknown_sandboxes_and_commands_are_not_found),
    TEST (signals_reach_the_group_and_ended_commands_conflict),
    TEST (a_terminal_has_its_size_and_controls_the_command),
    TEST (a_timeout_ends_every_descendant),
    TEST (a_timeout_ends_what_forks_for_ever),
    TEST (a_timeout_spares_the_other_commands),
    TEST (what_a_command_leaves_lives_until_the_sandbox_ends),
    TEST (a_single_command_takes_all_it_started_along),
    TEST (the_end_of_the_lifeline_ends_everything),
    TEST (a_host_that_is_killed_leaves_nothing),
    TEST (a_keeper_that_is_killed_takes_its_commands_along),
    TEST (a_minder_that_is_killed_takes_its_command_along),
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
