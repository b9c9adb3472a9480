/* SPDX-License-Identifier: Apache-2.0 */
/* Ending a tree of processes.
 *
 * Two things take turns until no child is left.  A round kills our own
 * children, by the list that the kernel keeps of them: whoever loses its
 * parent becomes our child, as we are a subreaper, and a round is fast enough
 * to catch what forks and ends without pause.  A pass over /proc finds every
 * descendant.  Both kill a process with its group, which the kernel does in one
 * go, so that what multiplies dies with all of its siblings.
 *
 * A child's pid is ours until we reap it.  Any other may belong to somebody
 * else by the time it is signalled.  So a pidfd is opened first, and then the
 * process is looked at again: one that has the start time, the group and the
 * session that the pass saw is the one. */

#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/descendants.h>
#include <coffer/fd.h>

#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP (1U << 2)
#endif

struct process {
  pid_t pid, parent, group, session;
  unsigned long long start;     /* clock ticks since boot */
  int ours;                     /* 0: not known, 1: a descendant, -1: not */
  char state;
};

struct pass {
  struct process *items;
  size_t count, capacity;
};

/* Reads /proc/PID/stat.  The name in it may hold anything, so the fields are
 * found behind its last parenthesis. */
static int
process_read (int proc, pid_t pid, struct process *out)
{
  coffer_autoclose int fd = -1;
  char path[32], text[1024], *at;
  ssize_t n;

  snprintf (path, sizeof path, "%d/stat", (int) pid);
  fd = openat (proc, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || (n = read (fd, text, sizeof text - 1)) <= 0)
    return -1;
  text[n] = '\0';
  at = strrchr (text, ')');
  if (!at)
    return -1;
  *out = (struct process) {.pid = pid};
  if (sscanf (at + 1, " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d"
              " %*d %*d %*d %*d %*d %llu", &out->state, &out->parent,
              &out->group, &out->session, &out->start) != 5)
    return -1;
  return 0;
}

static int
pass_add (struct pass *pass, const struct process *process)
{
  size_t capacity = pass->capacity ? pass->capacity * 2 : 256;
  struct process *items;

  if (pass->count == pass->capacity) {
    items = reallocarray (pass->items, capacity, sizeof *items);
    if (!items)
      return -1;
    pass->items = items;
    pass->capacity = capacity;
  }
  pass->items[pass->count++] = *process;
  return 0;
}

static int
compare_pids (const void *a, const void *b)
{
  const struct process *p = a, *q = b;

  return p->pid < q->pid ? -1 : p->pid > q->pid;
}

static struct process *
pass_find (const struct pass *pass, pid_t pid)
{
  struct process key = {.pid = pid};

  return bsearch (&key, pass->items, pass->count, sizeof key, compare_pids);
}

/* Every process there is, sorted by pid. */
static void
pass_read (struct pass *pass, DIR *proc)
{
  struct process process;
  struct dirent *entry;
  char *end;
  long pid;

  pass->count = 0;
  rewinddir (proc);
  while ((entry = readdir (proc))) {
    pid = strtol (entry->d_name, &end, 10);
    if (*end || pid <= 0 || process_read (dirfd (proc), (pid_t) pid,
                                          &process) < 0)
      continue;
    if (pass_add (pass, &process) < 0)
      break;                    /* the next pass finds the others */
  }
  qsort (pass->items, pass->count, sizeof *pass->items, compare_pids);
}

static int
is_spared (pid_t pid, const pid_t *spared, size_t n_spared)
{
  for (size_t i = 0; i < n_spared; i++)
    if (spared[i] == pid)
      return 1;
  return 0;
}

/* Marks who descends from this process and not from a spared one.  Climbs at
 * most as many parents as there are processes: a pass is no single moment, so
 * what it saw may even be a ring. */
static void
pass_mark (struct pass *pass, const pid_t *spared, size_t n_spared)
{
  pid_t self = getpid ();
  struct process *p;
  size_t steps;
  int ours;

  for (size_t i = 0; i < pass->count; i++) {
    ours = -1;
    p = &pass->items[i];
    for (steps = 0; p && steps <= pass->count; steps++) {
      if (p->ours || is_spared (p->pid, spared, n_spared)) {
        ours = p->ours ? p->ours : -1;
        break;
      }
      if (p->parent == self) {
        ours = 1;
        break;
      }
      p = pass_find (pass, p->parent);
    }
    pass->items[i].ours = ours;
  }
}

/* Kills the group of a process.  All of a session's processes descend from
 * who made it, and every command is a session of its own: a group in another
 * session than ours holds none but descendants.  By a descriptor the kernel takes
 * its leader's alone; the leader may have ended long ago, and where each forks the
 * next and ends it has. */
static void
kill_group (int pidfd, const struct process *process)
{
  if (process->session == getsid (0) || process->group <= 1)
    return;
  if (pidfd < 0 || process->pid != process->group
      || syscall (SYS_pidfd_send_signal, pidfd, SIGKILL, NULL,
                  PIDFD_SIGNAL_PROCESS_GROUP) < 0)
    kill (-process->group, SIGKILL);
}

/* 1: signalled, or gone.  0: it may not be signalled. */
static int
process_kill (int proc, const struct process *process)
{
  coffer_autoclose int pidfd = (int) syscall (SYS_pidfd_open, process->pid, 0);
  /* Kernels that are none, such as gVisor's, have numbers alone. */
  const int numbers = pidfd < 0 && errno == ENOSYS;
  struct process again;

  if ((pidfd < 0 && !numbers) || process_read (proc, process->pid, &again) < 0 ||
      again.start != process->start || again.session != process->session ||
      again.group != process->group)
    return 1;                   /* the next pass sees what has become of it */
  if (numbers)
    return kill (process->pid, SIGKILL) == 0 || errno != EPERM;
  kill_group (pidfd, process);
  return syscall (SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0 ||
         errno != EPERM;
}

/* -- rounds ---- */

#define CHILDREN_BYTES (64 << 10)
#define ROUNDS 64               /* between two passes */

/* The kernel's list of our children.  -1: there is none. */
static int
list_read (int list, char *text)
{
  ssize_t n = list < 0 || !text ? -1
              : pread (list, text, CHILDREN_BYTES - 1, 0);

  if (n < 0)
    return -1;
  text[n] = '\0';
  return 0;
}

/* The next number of it.  0: there is no other, or the buffer's end has cut it,
 * which makes it another number. */
static pid_t
list_next (char **at)
{
  char *end;
  long pid = strtol (*at, &end, 10);

  if (end == *at || *end != ' ')
    return 0;
  *at = end;
  return (pid_t) pid;
}

/* Kills each child, and first its group: until it is reaped both numbers are
 * its own.  What it has forked meanwhile is still of its group. */
static int
kill_children (int list, char *text, const pid_t *spared, size_t n_spared)
{
  struct process child = {0};
  pid_t done = 0;
  char *at = text;

  if (list_read (list, text) < 0)
    return -1;
  while ((child.pid = list_next (&at))) {
    if (is_spared (child.pid, spared, n_spared))
      continue;
    child.group = getpgid (child.pid);
    child.session = getsid (child.pid);
    if (child.group != done && child.session > 0)
      kill_group (-1, &child);
    done = child.group;
    kill (child.pid, SIGKILL);
  }
  return 0;
}

/* Whether there is a child that is not spared: those that have ended are reaped.
 * No pass sees it who is never there twice: each is gone before its turn. */
static int
is_left (int list, char *text, const pid_t *spared, size_t n_spared)
{
  char *at = text;
  pid_t pid;

  if (list_read (list, text) < 0)
    return 0;
  while ((pid = list_next (&at)))
    if (!is_spared (pid, spared, n_spared))
      return 1;
  return 0;
}

/* Rounds without a pause.  1: children are left. */
static int
kill_rounds (int list, char *text, const pid_t *spared, size_t n_spared,
             coffer_reaped *reaped, void *data)
{
  int left = 1;

  for (int i = 0; left && i < ROUNDS; i++) {
    if (kill_children (list, text, spared, n_spared) < 0)
      break;
    left = coffer_descendants_reap (reaped, data);
  }
  return left;
}

int
coffer_descendants_reap (coffer_reaped *reaped, void *data)
{
  struct rusage usage;
  int status;
  pid_t pid;

  for (;;) {
    pid = wait4 (-1, &status, WNOHANG, &usage);
    if (pid > 0)
      reaped (data, pid, status, &usage);
    else if (pid == 0)
      return 1;
    else if (errno != EINTR)
      return 0;
  }
}

/* One pass.  Returns how many are left, zombies apart: those are for reaping,
 * ours or their parent's. */
static unsigned
kill_pass (struct pass *pass, DIR *proc, const pid_t *spared, size_t n_spared)
{
  unsigned left = 0;

  pass_read (pass, proc);
  pass_mark (pass, spared, n_spared);
  for (size_t i = 0; i < pass->count; i++) {
    if (pass->items[i].ours != 1 || pass->items[i].state == 'Z')
      continue;
    process_kill (dirfd (proc), &pass->items[i]);
    left++;
  }
  return left;
}

unsigned
coffer_descendants_kill (const pid_t *spared, size_t n_spared,
                         int64_t deadline_ns, coffer_reaped *reaped,
                         void *data)
{
  coffer_autoclose int list = open ("/proc/thread-self/children",
                                    O_RDONLY | O_CLOEXEC);
  char *text = malloc (CHILDREN_BYTES);
  int priority = getpriority (PRIO_PROCESS, 0);
  unsigned left = 1, quiet = 0;
  struct pass pass = {0};
  DIR *proc = opendir ("/proc");

  setpriority (PRIO_PROCESS, 0, priority - 10); /* where it is allowed */
  while (proc) {
    if (!kill_rounds (list, text, spared, n_spared, reaped, data)) {
      left = 0;
      break;
    }
    left = kill_pass (&pass, proc, spared, n_spared);
    /* What the pass has killed may be gone by now, and it was all. */
    if (!coffer_descendants_reap (reaped, data)) {
      left = 0;
      break;
    }
    /* A list of /proc is read while it changes and may miss one: it takes two
     * empty passes to believe it. */
    left += is_left (list, text, spared, n_spared);
    quiet = left ? 0 : quiet + 1;
    if (quiet == 2 || coffer_now_ns () >= deadline_ns)
      break;
    poll (NULL, 0, 1);          /* they need a moment to die */
  }
  coffer_descendants_reap (reaped, data);
  setpriority (PRIO_PROCESS, 0, priority);
  if (proc)
    closedir (proc);
  free (pass.items);
  free (text);
  return left;
}
