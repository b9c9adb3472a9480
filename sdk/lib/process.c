/* SPDX-License-Identifier: Apache-2.0 */
/* Starting, reaping and finding processes.  The child of a program with
 * threads makes nothing but system calls until it executes: no allocation, no
 * stdio.  Whatever fails on the way is written to a pipe that the program's
 * start closes. */

#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/process.h>

#define ENVIRON_MAX (4 << 20)

/* -- the child ---- */

static void __attribute__ ((noreturn))
give_up (int pipe, uint32_t stage)
{
  struct coffer_start_failure failure = {errno, stage};

  coffer_write_all (pipe, &failure, sizeof failure);
  _exit (127);
}

/* By the system call, as the library keeps two signals for itself and leaves
 * them as they are in what it starts.  All of it zero is SIG_DFL. */
static void
reset_signals (void)
{
  const struct {
    unsigned long words[4];
  } by_default = {{0}};
  sigset_t none;

  for (int s = 1; s < NSIG; s++)        /* SIGKILL refuses; no matter */
    syscall (SYS_rt_sigaction, s, &by_default, NULL, sizeof (uint64_t));
  sigemptyset (&none);
  sigprocmask (SIG_SETMASK, &none, NULL);
}

/* Above 2, so that no dup2 overwrites one that is still needed. */
static int
raise_fd (int fd, int flags)
{
  int null;

  if (fd >= 0)
    return fcntl (fd, F_DUPFD_CLOEXEC, 3);
  null = open ("/dev/null", flags | O_CLOEXEC);
  return null >= 0 && null < 3 ? fcntl (null, F_DUPFD_CLOEXEC, 3) : null;
}

static int
set_streams (const struct coffer_process *process)
{
  int in = raise_fd (process->in, O_RDONLY);
  int out = raise_fd (process->out, O_WRONLY);
  int err = raise_fd (process->err, O_WRONLY);

  if (in < 0 || out < 0 || err < 0 || dup2 (in, 0) < 0 || dup2 (out, 1) < 0 ||
      dup2 (err, 2) < 0)
    return -1;
  return 0;
}

static const char *
path_of (const char *const *env)
{
  for (; env && *env; env++)
    if (strncmp (*env, "PATH=", 5) == 0)
      return *env + 5;
  return "/usr/local/bin:/usr/bin:/bin";
}

/* As a shell looks for it: a name with a slash as it is, any other along PATH,
 * where nothing stands for the working folder, and what may not be run is said
 * rather than what was not found after it. */
static void
run_program (const struct coffer_process *process)
{
  char *const *argv = (char *const *) (uintptr_t) process->argv;
  char *const *env = (char *const *) (uintptr_t) process->env;
  const char *name = argv[0], *at, *end;
  size_t size = strlen (name) + 1, length;
  char full[PATH_MAX];
  int denied = 0;

  if (strchr (name, '/')) {
    execve (name, argv, env);
    return;
  }
  errno = ENOENT;
  for (at = path_of (process->env); at && *name; at = *end ? end + 1 : NULL) {
    end = strchrnul (at, ':');
    length = end == at ? 1 : (size_t) (end - at);
    if (length + 1 + size > sizeof full)
      continue;
    memcpy (full, end == at ? "." : at, length);
    full[length] = '/';
    memcpy (full + length + 1, name, size);
    execve (full, argv, env);
    denied |= errno == EACCES;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
      return;
  }
  errno = denied ? EACCES : ENOENT;
}

/* What a child does from fork to the program. */
typedef void child_body (const void *data, int pipe);

static void
process_main (const void *data, int pipe)
{
  const struct coffer_process *process = data;

  umask (022);
  if (set_streams (process) < 0)
    give_up (pipe, COFFER_STAGE_PROCESS);
  if (process->cwd && chdir (process->cwd) < 0)
    give_up (pipe, COFFER_STAGE_FOLDER);
  reset_signals ();
  run_program (process);
  give_up (pipe, COFFER_STAGE_PROGRAM);
}

/* The soft limits of whoever opened the provider are its own business. */
static void
lift_limits (void)
{
  static const int resources[] = {RLIMIT_AS, RLIMIT_DATA, RLIMIT_NPROC,
                                  RLIMIT_CPU, RLIMIT_FSIZE};
  struct rlimit limit;

  for (size_t i = 0; i < sizeof resources / sizeof resources[0]; i++)
    if (getrlimit (resources[i], &limit) == 0) {
      limit.rlim_cur = limit.rlim_max;
      setrlimit (resources[i], &limit);
    }
}

static int
set_terminal (const struct coffer_session *session)
{
  struct winsize size = {.ws_row = (unsigned short) session->rows,
                         .ws_col = (unsigned short) session->columns};

  if (!session->tty)
    return 0;
  if (size.ws_row && size.ws_col && ioctl (0, TIOCSWINSZ, &size) < 0)
    return -1;
  return ioctl (0, TIOCSCTTY, 0);
}

static int
enter_folder (const struct coffer_session *session)
{
  if (session->process.cwd)
    return chdir (session->process.cwd);
  return session->folder < 0 ? 0 : fchdir (session->folder);
}

/* Kernels that are none, such as gVisor's, have no close_range of this kind. */
static int
close_at_exec (void)
{
  DIR *list;
  struct dirent *entry;
  int fd;

  if (close_range (3, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
    return 0;
  if ((errno != EINVAL && errno != ENOSYS) || !(list = opendir ("/proc/self/fd")))
    return -1;
  while ((entry = readdir (list)))
    if ((fd = atoi (entry->d_name)) >= 3)
      fcntl (fd, F_SETFD, FD_CLOEXEC);
  closedir (list);
  return 0;
}

static int
lead (const struct coffer_session *session)
{
  return session->joins && !session->tty ? setpgid (0, 0) : setsid ();
}

static void
session_main (const void *data, int pipe)
{
  const struct coffer_session *session = data;
  struct coffer_process process = session->process;

  if (session->tty)
    process.out = process.err = process.in;
  umask (022);
  if (lead (session) < 0 || set_streams (&process) < 0
      || set_terminal (session) < 0)
    give_up (pipe, COFFER_STAGE_PROCESS);
  if (enter_folder (session) < 0)
    give_up (pipe, COFFER_STAGE_FOLDER);
  if (close_at_exec () < 0)
    give_up (pipe, COFFER_STAGE_PROCESS);
  lift_limits ();
  reset_signals ();
  run_program (&process);
  give_up (pipe, COFFER_STAGE_PROGRAM);
}

/* -- the parent ---- */

/* The pipe must not be among the first three descriptors. */
static void __attribute__ ((noreturn))
child_main (child_body *body, const void *data, int pipe)
{
  int high = fcntl (pipe, F_DUPFD_CLOEXEC, 3);

  if (high < 0)
    give_up (pipe, COFFER_STAGE_PROCESS);
  body (data, high);
  _exit (127);
}

/* A fork that gives a process descriptor with it, unless that is NULL.  All
 * signals are blocked: no handler of ours may run in the child. */
static pid_t
fork_child (child_body *body, const void *data, int pipe, int *pidfd)
{
  const unsigned long flags = SIGCHLD | (pidfd ? CLONE_PIDFD : 0);
  sigset_t all, old;
  long pid;
  int keep;

  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
#ifdef __s390x__
  pid = syscall (SYS_clone, NULL, flags, pidfd, NULL, NULL);
#else
  pid = syscall (SYS_clone, flags, NULL, pidfd, NULL, NULL);
#endif
  if (pid == 0)
    child_main (body, data, pipe);
  keep = errno;
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  errno = keep;
  return (pid_t) pid;
}

/* The same, with the end of a pipe that reads why it never ran. */
static pid_t
fork_reporting (child_body *body, const void *data, int *report, int *pidfd)
{
  coffer_autoclose int reads = -1, writes = -1;
  int ends[2];
  pid_t pid;

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return -1;
  reads = ends[0];
  writes = ends[1];
  pid = fork_child (body, data, writes, pidfd);
  if (pid > 0)
    *report = coffer_fd_steal (&reads);
  return pid;
}

int
coffer_process_start (const struct coffer_process *process,
                      const char **failed)
{
  static const char *const words[] = {"process", "process", "working folder",
                                      "program"};
  coffer_autoclose int report = -1, pidfd = -1;
  struct coffer_start_failure failure = {EAGAIN, COFFER_STAGE_PROCESS};
  struct coffer_process_end end;

  if (failed)
    *failed = words[COFFER_STAGE_PROCESS];
  if (!process->argv || !process->argv[0]) {
    errno = EINVAL;
    return -1;
  }
  if (fork_reporting (process_main, process, &report, &pidfd) < 0)
    return -1;
  if (coffer_read_all (report, &failure, sizeof failure) == 0)
    return coffer_fd_steal (&pidfd);
  coffer_process_reap (pidfd, &end);
  if (failed && failure.stage <= COFFER_STAGE_PROGRAM)
    *failed = words[failure.stage];
  errno = failure.sys_errno;
  return -1;
}

pid_t
coffer_session_start (const struct coffer_session *session, int *report)
{
  if (!session->process.argv || !session->process.argv[0]) {
    errno = EINVAL;
    return -1;
  }
  return fork_reporting (session_main, session, report, NULL);
}

uint64_t
coffer_usage_us (const struct rusage *usage)
{
  return ((uint64_t) usage->ru_utime.tv_sec + (uint64_t) usage->ru_stime.tv_sec)
         * 1000000
         + (uint64_t) usage->ru_utime.tv_usec
         + (uint64_t) usage->ru_stime.tv_usec;
}

/* Through the system call, as the library's waitid has no place for usage. */
int
coffer_process_reap (int pidfd, struct coffer_process_end *end)
{
  struct rusage usage = {0};
  siginfo_t info = {0};
  long r;

  do
    r = syscall (SYS_waitid, P_PIDFD, pidfd, &info, WEXITED, &usage);
  while (r < 0 && errno == EINTR);
  if (r < 0)
    return -1;
  end->code = info.si_code == CLD_EXITED ? info.si_status : -1;
  end->signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
  end->cpu_us = coffer_usage_us (&usage);
  return 0;
}

/* -- by their mark ---- */

static int
is_marked (int process, const char *mark)
{
  coffer_autoclose int fd = openat (process, "environ", O_RDONLY | O_CLOEXEC);
  size_t length = strlen (mark), size, at;
  int found = 0;
  char *text;

  if (fd < 0 || coffer_read_whole (fd, ENVIRON_MAX, &text, &size) < 0)
    return 0;
  for (at = 0; at < size && !found; at += strlen (text + at) + 1)
    found = strncmp (text + at, mark, length) == 0;
  free (text);
  return found;
}

/* A folder of /proc is its process for as long as it is open, and takes
 * signals as a process descriptor does: no number is used twice between. */
static int
signal_one (int proc, const char *name, const char *mark, int signal)
{
  coffer_autoclose int fd = openat (proc, name, O_RDONLY | O_DIRECTORY
                                                | O_CLOEXEC);
  struct stat st;

  if (fd < 0 || fstat (fd, &st) < 0 || st.st_uid != geteuid ()
      || !is_marked (fd, mark))
    return 0;
  if (syscall (SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0)
    return 1;
  /* Kernels that are none have numbers alone. */
  return errno == ENOSYS && kill ((pid_t) atoi (name), signal) == 0;
}

int
coffer_process_signal_marked (const char *mark, int signal)
{
  DIR *proc = opendir ("/proc");
  long self = (long) getpid (), pid;
  struct dirent *entry;
  int n = 0;

  if (!proc)
    return -1;
  while ((entry = readdir (proc))) {
    pid = strtol (entry->d_name, NULL, 10);
    if (pid > 0 && pid != self)
      n += signal_one (dirfd (proc), entry->d_name, mark, signal);
  }
  closedir (proc);
  return n;
}
