/* SPDX-License-Identifier: Apache-2.0 */
/* From an interpreter that stands ready outside into a sandbox.
 *
 * Its user namespace is the one that sandboxes are made in, and its user the
 * one who makes them: that alone gives it the rights over a sandbox that it
 * takes to enter, and it has no others.  Three processes, of which the first
 * two run in the memory of the one that stands ready while it waits: the first
 * enters the namespaces, which it could not leave again; the second is in the
 * sandbox's process namespace, and its end makes the third, which is the copy,
 * a child of the sandbox's init.  Nothing of the sandbox's runs before the init
 * has said GO; until then the copy may do what it will do again with any code,
 * so that its memory is its own when there is some.
 *
 * What a cold command inherits of the init the copy takes on here, in the order
 * of init/confine.c and init/process.c, by system calls and with what the init
 * says; a step that fails is told, and there is no command. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "enter.h"

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define NAMESPACES \
  (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC \
   | CLONE_NEWUTS | CLONE_NEWCGROUP)
#define SECUREBITS 0xef         /* as the init has them */
#define GATE 3
#define TURNS 20000             /* of a tenth of a millisecond */

struct message {
  union {
    struct init_header header;
    char bytes[INIT_MESSAGE_MAX];
  } packet;
  size_t size;
  int fds[JOIN_DESCRIPTORS];
  size_t n_fds;
};

static struct message joining, going;
static struct init_join join;
static struct init_go go;
static const struct sock_filter *filters[2];
static const char *strings;

/* ---- telling the init --------------------------------------------------- */

static void
tell (int gate, uint32_t step, int error)
{
  struct {
    struct init_header header;
    struct init_joined body;
  } answer = { { sizeof answer, INIT_MAGIC, INIT_JOINED, 0, 0 },
               { sizeof answer.body, (int32_t) getpid (), step, error } };

  (void) !send (gate, &answer, sizeof answer, MSG_NOSIGNAL);
}

static _Noreturn void
give_up (int gate, uint32_t step)
{
  tell (gate, step, errno != 0 ? errno : EPROTO);
  _exit (127);
}

/* ---- what it is to become ----------------------------------------------- */

static int
rights_take (struct message *in, struct msghdr *message)
{
  struct cmsghdr *at = CMSG_FIRSTHDR (message);

  in->n_fds = 0;
  if (at == NULL)
    return 0;
  if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
    return -1;
  in->n_fds = (at->cmsg_len - CMSG_LEN (0)) / sizeof (int);
  if (in->n_fds > JOIN_DESCRIPTORS)
    return -1;
  memcpy (in->fds, CMSG_DATA (at), in->n_fds * sizeof (int));
  return 0;
}

static int
message_take (int gate, struct message *in, uint16_t type)
{
  struct iovec iov = { in->packet.bytes, sizeof in->packet };
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE (JOIN_DESCRIPTORS * sizeof (int))];
  } rights;
  struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1,
                            .msg_control = &rights,
                            .msg_controllen = sizeof rights };
  ssize_t r;

  do
    r = recvmsg (gate, &message, MSG_CMSG_CLOEXEC);
  while (r < 0 && errno == EINTR);
  if (r < 0)
    return -1;
  errno = EPROTO;
  in->size = (size_t) r;
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0
      || rights_take (in, &message) == -1
      || in->size < sizeof in->packet.header
      || in->packet.header.magic != INIT_MAGIC
      || in->packet.header.type != type
      || in->packet.header.size != in->size)
    return -1;
  return 0;
}

/* Where each part lies, and that all of it is there. */
static int
join_split (void)
{
  const struct message *in = &joining;
  const char *at = in->packet.bytes + sizeof in->packet.header;
  const size_t most = sizeof in->packet / sizeof (struct sock_filter);
  size_t programs, need = 0;

  if (in->size < sizeof in->packet.header + sizeof join)
    return -1;
  memcpy (&join, at, sizeof join);
  if (join.size != sizeof join || join.general > most || join.strict > most)
    return -1;
  at += sizeof join;
  programs = (join.general + (size_t) join.strict)
             * sizeof (struct sock_filter);
  if (in->size != sizeof in->packet.header + sizeof join + programs)
    return -1;
  filters[0] = (const struct sock_filter *) (const void *) at;
  filters[1] = filters[0] + join.general;
  need += (join.flags & JOIN_LANDLOCK) != 0;
  need += (join.flags & JOIN_SCOPE) != 0;
  return in->n_fds >= need ? 0 : -1;
}

static int
go_split (void)
{
  const struct message *in = &going;
  const char *at = in->packet.bytes + sizeof in->packet.header;

  if (in->size < sizeof in->packet.header + sizeof go
      || in->n_fds != GO_DESCRIPTORS)
    return -1;
  memcpy (&go, at, sizeof go);
  strings = at + sizeof go;
  return go.size == sizeof go && go.strings_size > 0
             && in->size == sizeof in->packet.header + sizeof go
                            + go.strings_size
             && in->packet.bytes[in->size - 1] == '\0'
    ? 0 : -1;
}

/* ---- taking it on ------------------------------------------------------- */

static int
groups_enter (void)
{
  size_t i = ((join.flags & JOIN_LANDLOCK) != 0)
             + ((join.flags & JOIN_SCOPE) != 0);

  for (; i < joining.n_fds; i++)
    if (write (joining.fds[i], "0", 1) != 1)
      return -1;
  return 0;
}

static int
limits_set (void)
{
  int i;

  for (i = 0; i < JOIN_LIMITS; i++)
    if (syscall (SYS_prlimit64, 0, i, &join.limits[i], NULL) == -1)
      return -1;
  return 0;
}

/* No capability is left of those that it has had here: of it, or of what it
 * could ever execute. */
static int
capabilities_drop (void)
{
  struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
  struct __user_cap_data_struct none[2] = { { 0 } };
  int i;

  if (syscall (SYS_setresgid, join.gid, join.gid, join.gid) == -1
      || syscall (SYS_setresuid, join.uid, join.uid, join.uid) == -1
      || prctl (PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) == -1)
    return -1;
  for (i = 0; i < 64; i++)
    if (prctl (PR_CAPBSET_DROP, i, 0, 0, 0) == -1) {
      if (errno == EINVAL)      /* beyond the last one of this kernel */
        break;
      return -1;
    }
  if (prctl (PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1
      || syscall (SYS_capset, &header, none) == -1
      || syscall (SYS_capget, &header, none) == -1)
    return -1;
  errno = EPERM;
  return none[0].effective | none[0].permitted | none[0].inheritable
             | none[1].effective | none[1].permitted | none[1].inheritable
    ? -1 : prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int
landlock_enter (void)
{
  size_t at = 0;

  if ((join.flags & JOIN_LANDLOCK)
      && syscall (SYS_landlock_restrict_self, joining.fds[at++], 0) == -1)
    return -1;
  return (join.flags & JOIN_SCOPE)
             && syscall (SYS_landlock_restrict_self, joining.fds[at], 0) == -1
    ? -1 : 0;
}

/* The gate and, so far, three times nothing. */
static int
gate_settle (int gate)
{
  if (gate != GATE && dup3 (gate, GATE, O_CLOEXEC) == -1)
    return -1;
  return (int) syscall (SYS_close_range, GATE + 1, ~0u, 0);
}

static int
streams_settle (void)
{
  int i;

  for (i = 0; i < GO_DESCRIPTORS; i++)
    if (dup2 (going.fds[i], i) == -1)
      return -1;
  return (int) syscall (SYS_close_range, GATE + 1, ~0u, 0);
}

static int
filter_enter (int strict)
{
  struct sock_fprog program
    = { (unsigned short) (strict ? join.strict : join.general),
        (struct sock_filter *) filters[strict] };

  return (int) syscall (SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* Once who made it has ended. */
static int
parent_await (void)
{
  const struct timespec moment = { 0, 100000 };
  int i;

  for (i = 0; getppid () != 1; i++) {
    if (i == TURNS) {
      errno = ECHILD;
      return -1;
    }
    nanosleep (&moment, NULL);
  }
  return 0;
}

static int
strict_enter (void)
{
  if (filter_enter (1) == -1)
    return -1;
  /* In force: what the other one allows is refused. */
  if (syscall (SYS_getppid) != -1 || errno != EPERM) {
    errno = EPERM;
    return -1;
  }
  return 0;
}

static void
copy_join (int gate)
{
  sigset_t none;

  if (message_take (gate, &joining, INIT_JOIN) == -1 || join_split () == -1)
    give_up (gate, STEP_ENTER);
  if (groups_enter () == -1)
    give_up (gate, STEP_GROUP);
  if (setsid () == -1)
    give_up (gate, STEP_TERMINAL);
  umask (022);
  if (limits_set () == -1 || capabilities_drop () == -1)
    give_up (gate, STEP_CONFINE);
  /* What it was before had rights, and this was taken away with them. */
  if (landlock_enter () == -1 || prctl (PR_SET_DUMPABLE, 1, 0, 0, 0) == -1)
    give_up (gate, STEP_CONFINE);
  if (gate_settle (gate) == -1)
    give_up (gate, STEP_STREAMS);
  sigemptyset (&none);
  sigprocmask (SIG_SETMASK, &none, NULL);
  if (filter_enter (0) == -1)
    give_up (GATE, STEP_FILTER);
  if (parent_await () == -1)
    give_up (GATE, STEP_FORK);
  tell (GATE, STEP_NONE, 0);
}

int
warm_waits (void)
{
  struct pollfd gate = { GATE, POLLIN, 0 };

  return (join.flags & JOIN_AHEAD) != 0 && poll (&gate, 1, 0) == 0;
}

void
warm_become (struct warm_entered *out)
{
  if (message_take (GATE, &going, INIT_GO) == -1 || go_split () == -1)
    _exit (127);
  if (chdir (strings) == -1)
    give_up (GATE, STEP_CWD);
  if (streams_settle () == -1)
    give_up (GATE, STEP_STREAMS);
  if (strict_enter () == -1)
    give_up (GATE, STEP_FILTER);
  close (GATE);
  out->envc = go.envc;
  out->env = strings + strlen (strings) + 1;
}

/* ---- the three ---------------------------------------------------------- */

static void
wait_for (pid_t pid)
{
  while (waitpid (pid, NULL, 0) == -1 && errno == EINTR)
    ;
}

int
warm_enter (int pidfd, int gate)
{
  volatile pid_t first, second, copy;

  first = vfork ();
  if (first == 0) {
    if (setns (pidfd, NAMESPACES) == -1)
      give_up (gate, STEP_ENTER);
    second = vfork ();
    if (second == 0) {
      copy = fork ();
      if (copy == 0) {
        copy_join (gate);
        return 1;
      }
      if (copy == -1)
        give_up (gate, STEP_FORK);
      _exit (0);
    }
    if (second == -1)
      give_up (gate, STEP_FORK);
    wait_for (second);
    _exit (0);
  }
  if (first == -1)
    tell (gate, STEP_FORK, errno);
  else
    wait_for (first);
  return 0;
}
