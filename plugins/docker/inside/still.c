/* SPDX-License-Identifier: Apache-2.0 */
/* What runs as the sandbox's user stands still while its files are packed, so that
 * they are those of one moment.  The packing is a child's: however that ends, what
 * was stopped goes on, and what was stopped before stays so. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "work.h"

#define LOCK INSIDE_KEPT "/still.lock"
#define PIDS_MAX 4096
#define ROUNDS 250              /* what does not stop in half a second goes on */
#define ROUND_MS 2

static pid_t stopped[PIDS_MAX];
static size_t n_stopped;

/* Two that stopped each other would never end.  A command that holds the lock
 * keeps its own snapshot from being made, until the caller gives up. */
static int
lock_take (const struct coffer_call *call)
{
  struct pollfd caller = {.fd = 0, .events = POLLIN};
  int fd = open (LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

  while (fd >= 0 && flock (fd, LOCK_EX | LOCK_NB) < 0) {
    const int left = poll (&caller, 1, 10) > 0;

    if (left || coffer_now_ns () >= call->deadline_ns) {
      coffer_fd_close (&fd);
      errno = left ? ECANCELED : ETIMEDOUT;
    }
  }
  return fd;
}

/* As /proc/PID/stat has it, behind the name, which may hold anything; 'X': it has
 * gone. */
static char
state_of (pid_t pid)
{
  char path[32], text[512];
  coffer_autoclose int fd = -1;
  const char *at;
  ssize_t n;

  snprintf (path, sizeof path, "/proc/%d/stat", (int) pid);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  n = fd < 0 ? -1 : coffer_read_all (fd, text, sizeof text - 1);
  text[n > 0 ? n : 0] = '\0';
  at = strrchr (text, ')');
  return at && at[1] == ' ' ? at[2] : 'X';
}

static int
is_known (pid_t pid)
{
  for (size_t i = 0; i < n_stopped; i++)
    if (stopped[i] == pid)
      return 1;
  return 0;
}

/* 1: one was not standing still. */
static int
stop_one (pid_t pid)
{
  if (pid <= 1 || pid == getpid () || strchr ("TtZX", state_of (pid)))
    return 0;
  if (n_stopped == PIDS_MAX && !is_known (pid))
    return 0;                   /* what is not noted would never go on */
  if (kill (pid, SIGSTOP) < 0)
    return 0;                   /* another user's, such as an entrypoint */
  if (!is_known (pid))
    stopped[n_stopped++] = pid;
  return 1;
}

/* As often as something new has appeared. */
static void
stop_all (void)
{
  struct dirent *entry;
  int moved = 1;

  for (int i = 0; moved && i < ROUNDS; i++) {
    DIR *proc = opendir ("/proc");

    moved = 0;
    while (proc && (entry = readdir (proc)))
      if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
        moved |= stop_one ((pid_t) atoi (entry->d_name));
    if (proc)
      closedir (proc);
    if (moved)
      poll (NULL, 0, ROUND_MS);
  }
}

/* The youngest first: to its parent no child then was ever stopped. */
static void
go_on (void)
{
  while (n_stopped > 0)
    kill (stopped[--n_stopped], SIGCONT);
}

/* Of a caller that went with its engine nobody here is told: so it has an end. */
static void __attribute__ ((noreturn))
pack (struct coffer_call *call, int root, const char *path,
      uint64_t timeout_ms)
{
  const uint64_t seconds = timeout_ms / 1000 + 1;

  signal (SIGALRM, SIG_DFL);
  alarm ((unsigned) (timeout_ms > 0 && seconds < WORK_SECONDS_MAX
                       ? seconds : WORK_SECONDS_MAX));
  _exit (tree_export (call, root, path) == COFFER_OK ? 0 : 1);
}

int32_t
stand_still (struct coffer_call *call, int root, const char *path,
             uint64_t timeout_ms)
{
  coffer_autoclose int lock = lock_take (call);
  int status = -1;
  pid_t pid;

  if (lock < 0)
    return coffer_fail_errno (call, errno, "what is packed");
  stop_all ();
  pid = fork ();
  if (pid == 0)
    pack (call, root, path, timeout_ms);
  while (pid > 0 && waitpid (pid, &status, 0) < 0 && errno == EINTR)
    ;
  go_on ();
  if (pid < 0)
    return coffer_fail_errno (call, EAGAIN, "what is packed");
  if (WIFEXITED (status))       /* what failed it has said */
    return WEXITSTATUS (status) == 0 ? COFFER_OK : COFFER_IO;
  return coffer_fail (call, COFFER_IO, "the packing was ended: its time was "
                      "over, or the sandbox's memory");
}
