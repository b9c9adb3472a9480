/* SPDX-License-Identifier: Apache-2.0 */
/* An instance whose first init was begun before it is opened (front.c), by the
 * program that this process executed then.
 *
 * A process keeps its children over that.  Whatever is not as it must be ends,
 * and the instance makes its inits itself. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/packet.h>

#include "begun.h"
#include "spawn.h"

/* A helper waits for nobody. */
#define HELPER_NS INT64_C (2000000000)

static int channel = -1;
static pid_t helper;
static char ours[BEGUN_BUILD];

const struct coffer_provider *COFFER_ENTRY (void);

const struct coffer_provider *
coffer_linux_entry (void)
{
  return COFFER_ENTRY ();
}

void
coffer_linux_begun (int take_channel, pid_t pid, const void *build,
                    size_t build_size)
{
  channel = take_channel;
  helper = pid;
  begun_build (build, build_size, ours);
}

/* Not yet waited for, so that the number is nobody else's. */
static int
child_is (pid_t pid, int alive)
{
  siginfo_t info = { 0 };

  return pid > 0
         && waitid (P_PID, (id_t) pid, &info,
                    WEXITED | WNOHANG | WNOWAIT | __WALL) == 0
         && (!alive || info.si_pid == 0);
}

/* Once it has sent it has nothing left to do; one that was stopped, or has not
 * sent in time, is waited for no longer than that either. */
static void
helper_reap (void)
{
  if (!child_is (helper, 0))
    return;
  kill (helper, SIGKILL);
  while (waitpid (helper, NULL, __WALL) == -1 && errno == EINTR)
    ;
}

/* How many numbers it has, one in each pid namespace; 0: nobody knows. */
static int
numbers (pid_t pid)
{
  char path[40], text[4096];
  coffer_autoclose int fd = -1;
  const char *at;
  int count = 0;
  ssize_t n;

  snprintf (path, sizeof path, "/proc/%d/status", (int) pid);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  n = fd < 0 ? -1 : read (fd, text, sizeof text - 1);
  if (n <= 0)
    return 0;
  text[n] = '\0';
  at = strstr (text, "\nNSpid:");
  for (at = at ? at + 1 : ""; *at && *at != '\n'; at++)
    count += *at == '\t';
  return count;
}

/* The init of a helper that was ended before it told of it is this process's
 * child.  It is younger than the helper, as are those that this program has
 * started itself; but none of those is in a pid namespace of its own before
 * this provider is opened. */
static void
untold_reap (void)
{
  const uint64_t begin = process_began (helper);
  const int own = numbers (getpid ());
  uint64_t start;
  char path[40], text[4096], *at = text, *end;
  coffer_autoclose int fd = -1;
  ssize_t n;
  pid_t pid;

  snprintf (path, sizeof path, "/proc/self/task/%d/children", (int) getpid ());
  fd = open (path, O_RDONLY | O_CLOEXEC);
  n = fd < 0 ? -1 : read (fd, text, sizeof text - 1);
  text[n < 0 ? 0 : n] = '\0';
  for (; (pid = (pid_t) strtol (at, &end, 10)) > 0 && *end == ' '; at = end) {
    start = process_began (pid);
    if (!begin || start < begin || (start == begin && pid <= helper)
        || own == 0 || numbers (pid) <= own)
      continue;
    kill (pid, SIGKILL);
    while (waitpid (pid, NULL, __WALL) == -1 && errno == EINTR)
      ;
  }
}

/* Ends the helper, which is not waited for yet: what it has begun is there now, or
 * never will be. */
static void
helper_end (void)
{
  siginfo_t info;

  if (!child_is (helper, 0))
    return;
  kill (helper, SIGKILL);
  while (waitid (P_PID, (id_t) helper, &info, WEXITED | WNOWAIT | __WALL) == -1
         && errno == EINTR)
    ;
  untold_reap ();
}

/* A connection that the helper has made. */
static int
connection_is (int fd)
{
  struct ucred peer;
  socklen_t size = sizeof peer, type_size = sizeof (int);
  int type;

  return fd >= 0
         && getsockopt (fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0
         && type == SOCK_SEQPACKET
         && getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0
         && peer.pid == helper;
}

/* What was begun; its connection is the caller's in any case. */
static int
begun_receive (struct begun *begun, int *control)
{
  size_t n = 1;

  *control = -1;
  return child_is (helper, 0)
             && coffer_wait_fd (channel, POLLIN, coffer_now_ns () + HELPER_NS,
                                -1) == 1
             && coffer_packet_receive (channel, begun, sizeof *begun, control,
                                       &n) == (ssize_t) sizeof *begun
             && memcmp (begun->build, ours, sizeof ours) == 0
             && connection_is (*control)
             && child_is (begun->pid, 1)
           ? 0 : -1;
}

static int
process_open (const struct begun *begun, int take_control,
              struct init_process *init)
{
  char path[40];

  snprintf (path, sizeof path, "/proc/%d", (int) begun->pid);
  init->pid = begun->pid;
  init->control = take_control;
  init->late_network = begun->late_network != 0;
  init->ids = begun->ids;
  init->pidfd = (int) syscall (SYS_pidfd_open, begun->pid, 0);
  init->proc = open (path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return init->pidfd < 0 || init->proc < 0 ? -1 : 0;
}

/* Whose ids are looked for by whoever wants one. */
static void
init_end (struct init_process *init)
{
  siginfo_t info;

  coffer_fd_close (&init->control);
  coffer_fd_close (&init->proc);
  if (init->pidfd >= 0) {
    syscall (SYS_pidfd_send_signal, init->pidfd, SIGKILL, NULL, 0);
    waitid ((idtype_t) P_PIDFD, (id_t) init->pidfd, &info, WEXITED | __WALL);
  }
  coffer_fd_close (&init->pidfd);
}

/* Made for an instance like that one? */
static int
begun_fits (const struct linux_provider *self, const struct begun *begun)
{
  struct stat st;

  return self->runtime >= 0 && fstat (self->runtime, &st) == 0
         && begun->dev == st.st_dev && begun->ino == st.st_ino
         && (begun->ids.privileged != 0) == (geteuid () == 0)
         && (!begun->ids.privileged || begun->ids.owner == begun->pid);
}

/* `self` NULL: it is only to end. */
static void
begun_settle (struct linux_provider *self)
{
  struct init_process init = { .control = -1, .pidfd = -1, .proc = -1 };
  struct begun begun;
  int control, came;

  if (channel < 0)
    return;
  came = begun_receive (&begun, &control) == 0;
  coffer_fd_close (&channel);
  if (!came)
    helper_end ();
  helper_reap ();
  if (!came) {
    coffer_fd_close (&control);
    return;
  }
  if (process_open (&begun, control, &init) == -1 || self == NULL
      || !begun_fits (self, &begun))
    init_end (&init);
  else
    spare_adopt (self, &init);
}

void
coffer_linux_end (void)
{
  begun_settle (NULL);
}

void
begun_take (struct linux_provider *self)
{
  begun_settle (self);
}
