/* SPDX-License-Identifier: Apache-2.0 */
/* One process on its way to become a program.
 *
 * The child runs in this memory until it is the program, so that a failure is
 * known at once, with the step, and nothing is copied.  Where nobody else is
 * about, this process waits for it as after vfork.  Where there are other
 * commands, one of them may stop the child on its way, for ever: then this
 * process waits for the end of a pipe that the program does not inherit, lets
 * the child go on whenever it was stopped, and ends it after a while. */

#include "init.h"

#define CLONE_VM_ 0x100
#define CLONE_VFORK_ 0x4000
#define SIGCHLD_ 17
#define SIGCONT_ 18
#define SIGKILL_ 9
#define WALL_ 0x40000000
#define O_CLOEXEC_ 02000000
#define TIOCSCTTY_ 0x540e
#define TIOCSWINSZ_ 0x5414
#define NUDGE_NS 20000000
#define START_NS 10000000000
#define DIE_NS 2000000000
#define ETIMEDOUT_ 110

static int
child_failed (struct start *start, uint32_t step, long error)
{
  start->step = step;
  start->error = (int) -error;
  return 127;
}

static long
program_try (const struct start *start, const char *file, uint64_t secret)
{
  return SYS (execve, file, start->argv, start->envp, 0, 0, secret);
}

static long
program_run (const struct start *start, uint64_t secret)
{
  const char *name = start->argv[0], *path = NULL, *end;
  char file[4096];
  long r, kept = -ENOENT_;
  size_t i, n;

  for (i = 0; name[i] != '\0'; i++)
    if (name[i] == '/')
      return program_try (start, name, secret);
  if (name[0] == '\0')
    return -ENOENT_;
  for (i = 0; start->envp[i] != NULL; i++)
    if (text_starts (start->envp[i], "PATH="))
      path = start->envp[i] + 5;
  if (path == NULL)
    path = DEFAULT_PATH;
  for (; *path != '\0'; path = *end == ':' ? end + 1 : end) {
    for (end = path; *end != '\0' && *end != ':'; end++)
      ;
    n = (size_t) (end - path);
    if (n == 0 || n + 1 + strlen (name) + 1 > sizeof file)
      continue;
    memcpy (file, path, n);
    text_join (file + n, sizeof file - n, "/", name, NULL);
    r = program_try (start, file, secret);
    if (r != -ENOENT_ && r != -ENOTDIR_ && r != -EACCES_)
      return r;
    if (r == -EACCES_)
      kept = r;
  }
  return kept;
}

static int
child_main (void *data)
{
  struct start *start = data;
  const int from[3] = { start->in, start->out, start->err };
  uint16_t size[4] = { (uint16_t) start->rows, (uint16_t) start->columns,
                       0, 0 };
  uint64_t none = 0, secret = 0;
  long r;
  int i;

  if (start->tag != 0 && (r = tag_take (start->tag)) < 0)
    return child_failed (start, STEP_FORK, r);
  r = files_enter ();
  if (r < 0)
    return child_failed (start, STEP_FORK, r);
  r = groups_enter ();
  if (r < 0)
    return child_failed (start, STEP_GROUP, r);
  /* A group of its own is what signals are sent to. */
  r = LAYER_ON (SESSION) ? SYS (setsid) : 0;
  if (r < 0)
    return child_failed (start, STEP_TERMINAL, r);
  for (i = 0; i < 3; i++) {
    r = SYS (dup3, from[i] >= 0 ? from[i] : null_fd, i, 0);
    if (r < 0)
      return child_failed (start, STEP_STREAMS, r);
  }
  r = landlock_enter_command ();
  if (r < 0)
    return child_failed (start, STEP_CONFINE, r);
  if (start->report >= 0 && start->report != 3)
    r = SYS (dup3, start->report, 3, O_CLOEXEC_);
  if (r >= 0 && LAYER_ON (EXEC_FDS))
    r = SYS (close_range, start->report >= 0 ? 4 : 3, ~0u, 0);
  if (r < 0)
    return child_failed (start, STEP_STREAMS, r);
  if (start->tty) {
    r = SYS (ioctl, 0, TIOCSCTTY_, 0);
    if (r >= 0 && start->rows != 0)
      r = SYS (ioctl, 0, TIOCSWINSZ_, size);
    if (r < 0)
      return child_failed (start, STEP_TERMINAL, r);
  }
  r = SYS (chdir, start->cwd);
  if (r < 0)
    return child_failed (start, STEP_CWD, r);
  SYS (rt_sigprocmask, 2, &none, 0, 8);
  if (strict_mode && LAYER_ON (SECCOMP)) {
    r = filter_enter_strict (&secret);
    if (r < 0)
      return child_failed (start, STEP_FILTER, r);
  }
  return child_failed (start, STEP_PROGRAM, program_run (start, secret));
}

/* Until the other end is closed: by the program, or because the child is dead.
 * -1: neither. */
static int
report_wait (int report, int pid, int64_t ns)
{
  const int64_t stop = clock_ns (1) + ns;

  while (!wait_while_alive (report, NUDGE_NS)) {
    if (clock_ns (1) >= stop)
      return -1;
    SYS (kill, pid, SIGCONT_);
  }
  return 0;
}

/* It has this memory until it is gone: without it there is no going on. */
static int
start_wait (struct start *start, int report, int pid)
{
  if (report_wait (report, pid, START_NS) == 0)
    return pid;
  SYS (kill, pid, SIGKILL_);
  if (report_wait (report, pid, DIE_NS) < 0)
    init_exit_now (1);
  start->step = STEP_PROGRAM;
  start->error = ETIMEDOUT_;
  return pid;
}

int
process_start (struct start *start, int alone)
{
  static char stack[32768] __attribute__ ((aligned (16)));
  int ends[2] = { -1, -1 };
  long pid = 0;

  start->error = 0;
  start->step = STEP_NONE;
  start->report = -1;
  if (!alone)
    pid = SYS (pipe2, ends, O_CLOEXEC_);
  if (pid >= 0) {
    start->report = ends[1];
    pid = sys_clone_run (CLONE_VM_ | (alone ? CLONE_VFORK_ : 0) | SIGCHLD_,
                         stack + sizeof stack, child_main, start);
  }
  fd_close (ends[1]);
  if (pid < 0) {
    start->step = STEP_FORK;
    start->error = (int) -pid;
  } else if (!alone)
    start_wait (start, ends[0], (int) pid);
  fd_close (ends[0]);
  if (start->error == 0)
    return (int) pid;
  if (pid > 0)
    SYS (wait4, pid, 0, WALL_, 0);
  return 0;
}
