/* SPDX-License-Identifier: Apache-2.0 */
/* Another's program as a child. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "provider/tool.h"

#define TOOL_PATH "/usr/local/bin:/usr/bin:/bin"
#define MAX_SAID (1024 * 1024)
#define MAX_ENV 32

struct running {
  pid_t pid;
  int out, err;                 /* read here; -1: not kept */
  struct coffer_buffer said, wrong;
  int cut;                      /* it said more than is kept */
};

/* The caller's PATH has no say in what is run with the caller's rights. */
static char *
program_find (const char *name)
{
  static const char *const folders[]
    = { "/usr/local/bin", "/usr/bin", "/bin" };
  size_t i;

  for (i = 0; i < sizeof folders / sizeof folders[0]; i++) {
    char *path = text_printf ("%s/%s", folders[i], name);

    if (path && access (path, X_OK) == 0)
      return path;
    free (path);
  }
  return NULL;
}

static void
kill_group (struct running *running)
{
  if (running->pid > 0)
    kill (-running->pid, SIGKILL);
}

/* It may have been told a secret. */
static void
buffer_wipe (struct coffer_buffer *buffer)
{
  if (buffer->data)
    explicit_bzero (buffer->data, buffer->capacity);
  coffer_buffer_free (buffer);
}

static void
running_fini (struct running *running)
{
  if (running->pid > 0) {
    kill (-running->pid, SIGKILL);
    kill (running->pid, SIGKILL);
    while (waitpid (running->pid, NULL, 0) < 0 && errno == EINTR)
      ;
  }
  coffer_fd_close (&running->out);
  coffer_fd_close (&running->err);
  buffer_wipe (&running->said);
  buffer_wipe (&running->wrong);
}

/* -- the start ------------------------------------------------------------- */

/* A pipe holds that much, so that nobody has to write while it runs. */
#define MAX_INPUT 4096

static int
input_open (const struct tool *tool)
{
  size_t size = strlen (tool->input);
  int ends[2];

  if (size > MAX_INPUT) {
    errno = EMSGSIZE;
    return -1;
  }
  if (pipe2 (ends, O_CLOEXEC) < 0)
    return -1;
  if (coffer_write_all (ends[1], tool->input, size) < 0)
    coffer_fd_close (&ends[0]);
  close (ends[1]);
  return ends[0];
}

static int
streams_set (const struct tool *tool, posix_spawn_file_actions_t *actions,
             int in, int out, int err)
{
  int r = 0;

  if (!tool->terminal) {
    r |= in >= 0 ? posix_spawn_file_actions_adddup2 (actions, in, 0)
                 : posix_spawn_file_actions_addopen (actions, 0, "/dev/null",
                                                     O_RDONLY, 0);
    r |= posix_spawn_file_actions_adddup2 (actions, out, 1);
    r |= posix_spawn_file_actions_adddup2 (actions, err, 2);
  }
  if (tool->dir >= 0)
    r |= posix_spawn_file_actions_addfchdir_np (actions, tool->dir);
  return r;
}

/* A tool that talks to the terminal stays in our group, or it could not. */
static int
attributes_set (const struct tool *tool, posix_spawnattr_t *attributes)
{
  short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  sigset_t none, all;

  sigemptyset (&none);
  sigfillset (&all);
  if (!tool->terminal)
    flags |= POSIX_SPAWN_SETPGROUP;
  return posix_spawnattr_setflags (attributes, flags)
         | posix_spawnattr_setpgroup (attributes, 0)
         | posix_spawnattr_setsigmask (attributes, &none)
         | posix_spawnattr_setsigdefault (attributes, &all);
}

/* -- its limits ------------------------------------------------------------ */

#define N_LIMITS 2

/* Those of a process of ours, as it is to have them: never more than it has. */
static size_t
limits_list (const struct tool *tool, int which[N_LIMITS],
             struct rlimit limits[N_LIMITS])
{
  size_t n = 0;

  if (tool->file_bytes) {
    which[n] = RLIMIT_FSIZE;
    limits[n++] = (struct rlimit){ tool->file_bytes, tool->file_bytes };
  }
#ifndef COFFER_SANITIZERS       /* whose shadows are larger than any limit */
  if (tool->data_bytes) {
    which[n] = RLIMIT_DATA;
    limits[n++] = (struct rlimit){ tool->data_bytes, tool->data_bytes };
  }
#endif
  return n;
}

/* What it starts may be born before a limit could be set from outside: so it
 * takes them over at birth, as those of this process for that moment. */
static void
limits_lend (size_t n, const int which[], const struct rlimit limits[],
             struct rlimit saved[])
{
  size_t i;

  for (i = 0; i < n; i++) {
    struct rlimit lent = { limits[i].rlim_cur, 0 };

    getrlimit (which[i], &saved[i]);
    lent.rlim_max = saved[i].rlim_max;
    if (saved[i].rlim_cur > lent.rlim_cur)
      setrlimit (which[i], &lent);
  }
}

static void
limits_return (size_t n, const int which[], const struct rlimit saved[])
{
  while (n-- > 0)
    setrlimit (which[n], &saved[n]);
}

static int
spawn (const struct tool *tool, const char *program, int in, int out, int err,
       pid_t *pid)
{
  auto_free char *path
    = tool->path ? text_printf ("PATH=%.*s:" TOOL_PATH,
                                (int) (strrchr (program, '/') - program),
                                program)
                 : strdup ("PATH=" TOOL_PATH);
  struct rlimit limits[N_LIMITS], saved[N_LIMITS];
  int which[N_LIMITS];
  const size_t n = limits_list (tool, which, limits);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  char *env[MAX_ENV + 2] = { path };
  size_t i;
  int r;

  if (!path)
    return ENOMEM;
  for (i = 0; tool->env && tool->env[i] && i < MAX_ENV; i++)
    env[i + 1] = (char *) tool->env[i];
  posix_spawn_file_actions_init (&actions);
  posix_spawnattr_init (&attributes);
  r = streams_set (tool, &actions, in, out, err)
      | attributes_set (tool, &attributes);
  if (r == 0) {
    limits_lend (n, which, limits, saved);
    r = posix_spawn (pid, program, &actions, &attributes,
                     (char *const *) tool->argv, env);
    limits_return (n, which, saved);
  }
  for (i = 0; r == 0 && i < n; i++)
    prlimit (*pid, which[i], &limits[i], NULL);
  posix_spawn_file_actions_destroy (&actions);
  posix_spawnattr_destroy (&attributes);
  return r;
}

static int
start (const struct tool *tool, struct running *running, struct error **err)
{
  auto_free char *program
    = tool->path ? strdup (tool->path) : program_find (tool->argv[0]);
  coffer_autoclose int in = tool->input ? input_open (tool) : -1;
  coffer_autoclose int out = -1, wrong = -1;
  int ends[2], r;

  if (program == NULL) {
    error_set (err, E_NOT_FOUND, 0, "the program %s is not installed",
               tool->argv[0]);
    error_hint (err, "install %s; it is looked for in " TOOL_PATH,
                tool->argv[0]);
    return -1;
  }
  if ((tool->input && in < 0) || pipe2 (ends, O_CLOEXEC) < 0)
    return error_set (err, E_IO, errno, "start %s", tool->argv[0]);
  running->err = ends[0];
  wrong = ends[1];
  if (tool->out < 0) {
    if (pipe2 (ends, O_CLOEXEC) < 0)
      return error_set (err, E_IO, errno, "start %s", tool->argv[0]);
    running->out = ends[0];
    out = ends[1];
  }
  r = spawn (tool, program, in, tool->out < 0 ? out : tool->out, wrong,
             &running->pid);
  if (r != 0) {
    running->pid = 0;
    return error_set (err, E_IO, r, "start %s", tool->argv[0]);
  }
  return 0;
}

/* -- what it says ---------------------------------------------------------- */

/* Drains one stream; what is beyond the cap is dropped, never waited for.  1:
 * some of it was. */
static int
drain (int *fd, struct coffer_buffer *to, size_t most)
{
  coffer_unfilled char block[16384];
  ssize_t n = read (*fd, block, sizeof block);

  if (n > 0 && to->size >= most)
    return 1;
  if (n > 0) {
    coffer_buffer_add (to, block, (size_t) n);
    explicit_bzero (block, (size_t) n);
  } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
    coffer_fd_close (fd);
  }
  return 0;
}

/* For what it has said before it ended: who else has its streams open, such as an
 * agent that it has begun, is not waited for. */
#define LAST_NS INT64_C (1000000000)

/* 1: both streams have ended, or it has, or it said too much; 0: the time is over,
 * or the caller gave up. */
static int
listen_to (const struct tool *tool, struct running *running)
{
  const size_t most = tool->said_most ? tool->said_most : MAX_SAID;
  coffer_autoclose int pidfd
    = (int) syscall (SYS_pidfd_open, running->pid, 0);
  int64_t until = tool->deadline_ns;
  int ended = 0;

  while ((running->out >= 0 || running->err >= 0)
         && !(running->cut && tool->said_most)) {
    struct pollfd polls[4] = { { running->out, POLLIN, 0 },
                               { running->err, POLLIN, 0 },
                               { tool->cancel_fd, POLLIN, 0 },
                               { ended ? -1 : pidfd, POLLIN, 0 } };
    const int64_t now = coffer_now_ns ();
    /* Rounded up: less than a millisecond is not the end. */
    int64_t left = (until - now + 999999) / 1000000;

    if (left <= 0)
      return ended;
    if (poll (polls, 4, left > 1000 ? 1000 : (int) left) < 0 && errno != EINTR)
      return 0;
    if (polls[2].revents)
      return 0;
    if (polls[3].revents) {
      ended = 1;
      until = until - now < LAST_NS ? until : now + LAST_NS;
    }
    if (polls[0].revents)
      running->cut |= drain (&running->out, &running->said, most);
    if (polls[1].revents)
      drain (&running->err, &running->wrong, MAX_SAID);
  }
  return 1;
}

/* Its end, which comes soon once both streams have ended. */
static int
wait_end (const struct tool *tool, struct running *running, int *status)
{
  coffer_autoclose int pidfd
    = (int) syscall (SYS_pidfd_open, running->pid, 0);

  if (pidfd < 0
      || coffer_wait_fd (pidfd, POLLIN, tool->deadline_ns, tool->cancel_fd)
           != 1)
    return -1;
  /* While it is a zombie its number is its own: the group goes with it. */
  if (!tool->terminal)
    kill_group (running);
  while (waitpid (running->pid, status, 0) < 0)
    if (errno != EINTR)
      return -1;
  running->pid = 0;
  return 0;
}

/* The last line that is not empty, as text for people. */
static char *
last_line (const struct coffer_buffer *text)
{
  size_t end = text->size, begin;

  while (end > 0 && strchr ("\r\n \t", text->data[end - 1]))
    end--;
  for (begin = end; begin > 0 && text->data[begin - 1] != '\n'; begin--)
    ;
  if (end - begin > 400)
    end = begin + 400;
  return end > begin ? text_escape (text->data + begin, end - begin) : NULL;
}

static int
fail_status (const struct tool *tool, struct running *running,
             const char *what, int number, int status, struct error **err)
{
  auto_free char *line = last_line (&running->wrong);

  if (WIFSIGNALED (status) && WTERMSIG (status) == SIGXFSZ)
    return error_set (err, E_LIMIT, 0, "%s: it is larger than %llu MiB", what,
                      (unsigned long long) tool->file_bytes >> 20);
  if (WIFSIGNALED (status))
    return error_set (err, number, 0, "%s: %s was ended by signal %d", what,
                      tool->argv[0], WTERMSIG (status));
  return error_set (err, number, 0, "%s: %s", what,
                    line ? line : "it failed without a word");
}

int
tool_run (const struct tool *tool, const char *what, int number,
          struct coffer_buffer *said, struct error **err)
{
  __attribute__ ((cleanup (running_fini))) struct running running
    = { .out = -1, .err = -1 };
  int status = 0;

  if (start (tool, &running, err) < 0)
    return -1;
  if (!listen_to (tool, &running)
      || (!(running.cut && tool->said_most)
          && wait_end (tool, &running, &status) < 0)) {
    if (coffer_now_ns () >= tool->deadline_ns)
      return error_set (err, E_CONNECT_FAILED, ETIMEDOUT, "%s", what);
    return error_set (err, E_EXEC_CANCELLED, 0, "%s: it was left before it was"
                      " through", what);
  }
  if (said && running.cut)
    return error_set (err, E_LIMIT, 0, "%s: %s says more than %zu KiB", what,
                      tool->argv[0],
                      (tool->said_most ? tool->said_most : MAX_SAID) >> 10);
  if (tool->exit_status && WIFEXITED (status))
    *tool->exit_status = WEXITSTATUS (status);
  else if (!WIFEXITED (status) || WEXITSTATUS (status) != 0)
    return fail_status (tool, &running, what, number, status, err);
  if (said) {
    *said = running.said;
    running.said = (struct coffer_buffer){ 0 };
    if (said->failed)
      return error_set (err, E_NO_MEMORY, 0, "%s", what);
  }
  return 0;
}
