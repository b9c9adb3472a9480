/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes as the runtime directory knows them: one folder each.
 *
 *   ID/init.sock   where its init listens
 *   ID/init        a link whose text says which process that is
 *   ID/cgroup      a link whose text names its control groups
 *   ID/metadata    as given to create, when there was any
 *   ID/denied      what its proxy has refused, when it has one
 *
 * A folder whose init does not answer is a leftover, unless somebody holds its
 * lock and is just making it. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.h"
#include "linux.h"

#define SOCKET_NAME "init.sock"
/* That an init may take to accept, and between two attempts. */
#define ACCEPT_NS 2000000000
#define ACCEPT_STEP_NS 1000000

int
sandbox_id_valid (const char *id)
{
  size_t i;

  if (id == NULL || id[0] == '\0' || id[0] == '.' || id[0] == '-')
    return 0;
  for (i = 0; id[i] != '\0'; i++)
    if (i >= SANDBOX_ID_MAX
        || !((id[i] >= 'a' && id[i] <= 'z') || (id[i] >= 'A' && id[i] <= 'Z')
             || (id[i] >= '0' && id[i] <= '9') || id[i] == '-'
             || id[i] == '_' || id[i] == '.'))
      return 0;
  return 1;
}

/* ---- sandboxes of this instance ----------------------------------------- */

static void
sandbox_free (struct linux_provider *self, struct sandbox *sb)
{
  siginfo_t info;

  /* One that lives on keeps its proxy, which sees its end for itself. */
  if (sb->proxy >= 0 && coffer_wait_fd (sb->pidfd, POLLIN, 0, -1) == 1)
    proxy_end (&sb->proxy);
  coffer_fd_close (&sb->proxy);
  coffer_fd_close (&sb->denials);
  coffer_fd_close (&sb->control);
  if (sb->pidfd >= 0 && coffer_wait_fd (sb->pidfd, POLLIN, 1, -1) == 1)
    ids_give (self, &sb->ids);
  if (sb->pidfd >= 0)
    waitid ((idtype_t) P_PIDFD, (id_t) sb->pidfd, &info,
            WEXITED | WNOHANG | __WALL);
  coffer_fd_close (&sb->pidfd);
  aftermath_leave (&sb->mount_ns);
  pthread_mutex_destroy (&sb->busy);
  free (sb);
}

void
sandbox_unref (struct linux_provider *self, struct sandbox *sb)
{
  unsigned refs;

  if (sb == NULL)
    return;
  pthread_mutex_lock (&self->lock);
  refs = --sb->refs;
  pthread_mutex_unlock (&self->lock);
  if (refs == 0)
    sandbox_free (self, sb);
}

struct sandbox *
sandbox_find (struct linux_provider *self, const char *id)
{
  struct sandbox *sb;

  pthread_mutex_lock (&self->lock);
  for (sb = self->sandboxes; sb != NULL; sb = sb->next)
    if (strcmp (sb->id, id) == 0) {
      sb->refs++;
      break;
    }
  pthread_mutex_unlock (&self->lock);
  return sb;
}

void
sandbox_add (struct linux_provider *self, struct sandbox *sb)
{
  pthread_mutex_lock (&self->lock);
  sb->next = self->sandboxes;
  self->sandboxes = sb;
  pthread_mutex_unlock (&self->lock);
}

void
sandbox_forget (struct linux_provider *self, const char *id)
{
  struct sandbox **at, *sb = NULL;

  pthread_mutex_lock (&self->lock);
  for (at = &self->sandboxes; *at != NULL; at = &(*at)->next)
    if (strcmp ((*at)->id, id) == 0) {
      sb = *at;
      *at = sb->next;
      break;
    }
  pthread_mutex_unlock (&self->lock);
  sandbox_unref (self, sb);
}

void
sandbox_note_end (struct linux_provider *self, struct sandbox *sb)
{
  pthread_mutex_lock (&self->lock);
  sb->ended = 1;
  pthread_mutex_unlock (&self->lock);
}

/* 1: its command's end was told, and it leaves the list for the dying. */
static int
sandbox_retire (struct linux_provider *self, const char *id)
{
  struct sandbox **at, *sb;
  int retired = 0;

  pthread_mutex_lock (&self->lock);
  for (at = &self->sandboxes; (sb = *at) != NULL; at = &sb->next)
    if (strcmp (sb->id, id) == 0)
      break;
  if (sb != NULL && sb->ended
      && syscall (SYS_pidfd_send_signal, sb->pidfd, SIGKILL, NULL, 0) == 0) {
    *at = sb->next;
    sb->next = self->dying;
    self->dying = sb;
    retired = 1;
  }
  pthread_mutex_unlock (&self->lock);
  return retired;
}

void
sandbox_reap (struct linux_provider *self, int64_t until_ns)
{
  struct sandbox *sb, *next, *left = NULL;

  pthread_mutex_lock (&self->lock);
  sb = self->dying;
  self->dying = NULL;
  pthread_mutex_unlock (&self->lock);
  for (; sb != NULL; sb = next) {
    next = sb->next;
    if (coffer_wait_fd (sb->pidfd, POLLIN, until_ns ? until_ns : 1, -1) == 1
        || until_ns != 0) {
      sandbox_unref (self, sb);
    } else {
      sb->next = left;
      left = sb;
    }
  }
  pthread_mutex_lock (&self->lock);
  while ((sb = left) != NULL) {
    left = sb->next;
    sb->next = self->dying;
    self->dying = sb;
  }
  pthread_mutex_unlock (&self->lock);
}

/* ---- folders ------------------------------------------------------------ */

static int
folder_lock (int folder, int wait, int64_t deadline_ns)
{
  while (flock (folder, LOCK_EX | LOCK_NB) == -1) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return -1;
    if (!wait || coffer_now_ns () >= deadline_ns) {
      errno = EBUSY;
      return -1;
    }
    /* Only while another process makes or removes this very sandbox. */
    poll (NULL, 0, 5);
  }
  return 0;
}

/* Not locked: a folder that was made for that is none of anybody's, unless
 * somebody else has the lock. */
static int
folder_drop (struct linux_provider *self, const char *id, int folder,
             int fresh)
{
  const int saved = errno;

  coffer_fd_close (&folder);
  if (fresh && saved != EBUSY)
    unlinkat (self->runtime, id, AT_REMOVEDIR);
  errno = saved;
  return -1;
}

/* Whether an open folder is the one of that name: it may have been removed
 * before the lock was ours.  -1: nobody knows. */
static int
folder_is (int folder, int runtime, const char *id)
{
  struct stat here, there;

  if (fstat (folder, &here) == -1)
    return -1;
  if (fstatat (runtime, id, &there, AT_SYMLINK_NOFOLLOW) == -1)
    return errno == ENOENT ? 0 : -1;
  return here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

int
sandbox_folder (struct linux_provider *self, const char *id, int make, int wait,
                int64_t deadline_ns, int *made)
{
  int folder, fresh, is;

  for (;;) {
    fresh = make && mkdirat (self->runtime, id, 0700) == 0;
    if (make && !fresh && errno != EEXIST)
      return -1;
    if (made != NULL)
      *made = fresh;
    folder = openat (self->runtime, id,
                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) {
      if (make && errno == ENOENT)
        continue;
      return folder_drop (self, id, -1, fresh);
    }
    if (folder_lock (folder, wait, deadline_ns) == -1)
      return folder_drop (self, id, folder, fresh);
    is = folder_is (folder, self->runtime, id);
    /* Another may have had the lock first, and made its sandbox in it. */
    if (is == 1 && fresh && made != NULL)
      *made = faccessat (folder, SOCKET_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == -1;
    if (is == 1)
      return folder;
    if (is == -1)
      return folder_drop (self, id, folder, fresh);
    coffer_fd_close (&folder);
    if (!make) {
      errno = ENOENT;
      return -1;
    }
  }
}

void
sandbox_clear (int folder)
{
  static const char *const names[]
    = { "metadata", "denied", "init", SOCKET_NAME };
  size_t i;

  /* What is still there is for the next one to look at, by this note. */
  if (cgroup_remove (folder) == 0)
    unlinkat (folder, "cgroup", 0);
  for (i = 0; i < sizeof names / sizeof names[0]; i++)
    unlinkat (folder, names[i], 0);
}

void
sandbox_remove (struct linux_provider *self, const char *id, int folder)
{
  sandbox_clear (folder);
  unlinkat (self->runtime, id, AT_REMOVEDIR);
}

int
sandbox_listener (int folder)
{
  return coffer_socket_bind (folder, SOCKET_NAME);
}

/* ---- reaching an init --------------------------------------------------- */

static int
hello_take (struct link *link, const struct coffer_call *call)
{
  coffer_unfilled struct reply reply;
  struct init_hello hello;

  if (link_receive (link, &reply, 1, call->deadline_ns, call->cancel_fd)
        == -1)
    return -1;
  coffer_fd_close (&reply.fd);
  if (reply.header.error != 0) {
    errno = reply.header.error; /* it has as many connections as it can */
    return -1;
  }
  if (reply.header.type != INIT_HELLO
      || reply_body (&reply, &hello, sizeof hello) == -1
      || hello.version < 1) {
    errno = EPROTO;
    return -1;
  }
  return 0;
}

/* Nobody in a sandbox has this to show, whatever of ours it is shown. */
static int
outside_show (struct link *link, const struct coffer_call *call)
{
  coffer_autoclose int userns = open ("/proc/self/ns/user",
                                      O_RDONLY | O_CLOEXEC);
  struct request request
    = { .type = INIT_OUTSIDE, .fds = &userns, .n_fds = 1 };

  return userns < 0 ? -1 : link_send (link, &request, call);
}

/* A further connection, over the one that is in use: sending is atomic and has
 * no answer there. */
static int
channel_open (struct sandbox *sb, const struct coffer_call *call,
              struct link *link)
{
  struct link control = { .fd = sb->control };
  int pair[2], r;
  struct request request
    = { .type = INIT_CHANNEL, .fds = &pair[1], .n_fds = 1 };

  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
    return -1;
  link->fd = pair[0];
  r = link_send (&control, &request, call);
  close (pair[1]);
  if (r == 0)
    r = hello_take (link, call);
  if (r == -1)
    coffer_fd_close (&link->fd);
  return r;
}

/* ENOENT when nobody listens: the folder of a sandbox that is gone. */
static int
socket_connect (struct linux_provider *self, const char *id,
                const struct coffer_call *call, struct link *link)
{
  const int64_t until = coffer_now_ns () + ACCEPT_NS;
  coffer_autoclose int folder
    = openat (self->runtime, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

  if (folder < 0)
    return -1;
  /* Many at once are more than can wait to be accepted; but nobody waits for
   * long when the init has stopped accepting: EAGAIN. */
  for (;;) {
    link->fd = coffer_socket_connect (folder, SOCKET_NAME, SOCK_NONBLOCK);
    if (link->fd >= 0)
      return 0;
    if (errno != EAGAIN || coffer_now_ns () > until
        || coffer_wait_fd (-1, 0, coffer_now_ns () + ACCEPT_STEP_NS,
                           call->cancel_fd) < 0)
      break;
    if (errno == ECANCELED)
      return -1;
  }
  if (errno == ECONNREFUSED)
    errno = ENOENT;
  return -1;
}

static int
socket_link (struct linux_provider *self, const char *id,
             const struct coffer_call *call, struct link *link)
{
  if (socket_connect (self, id, call, link) == -1)
    return -1;
  if (hello_take (link, call) == 0 && outside_show (link, call) == 0)
    return 0;
  if (errno == ECONNRESET)
    errno = ENOENT;
  coffer_fd_close (&link->fd);
  return -1;
}

int
sandbox_link (struct linux_provider *self, const char *id,
              const struct coffer_call *call, struct link *link)
{
  struct sandbox *sb = sandbox_find (self, id);
  int r;

  memset (link, 0, sizeof *link);
  link->fd = -1;
  link->self = self;
  if (sb == NULL)
    return socket_link (self, id, call, link);
  link->sb = sb;
  if (coffer_wait_fd (sb->pidfd, POLLIN, 0, -1) == 1) {
    sandbox_unref (self, sb);
    link->sb = NULL;
    errno = ENOENT;             /* its init has ended */
    return -1;
  }
  if (pthread_mutex_trylock (&sb->busy) == 0) {
    link->fd = sb->control;
    link->serial = sb->serial;
    link->shared = 1;
    return 0;
  }
  r = channel_open (sb, call, link);
  if (r == -1) {
    sandbox_unref (self, sb);
    link->sb = NULL;
  }
  if (r == -1 && (errno == ECONNRESET || errno == EPIPE))
    errno = ENOENT;
  return r;
}

int
sandbox_told_link (struct linux_provider *self, const char *id,
                   struct link *link)
{
  struct sandbox *sb = sandbox_find (self, id);

  if (sb == NULL)
    return 0;
  if (pthread_mutex_trylock (&sb->busy) != 0) {
    sandbox_unref (self, sb);
    return 0;
  }
  *link = (struct link){ .fd = sb->control, .self = self, .sb = sb,
                         .shared = 1, .serial = sb->serial };
  if (sb->told_serial != 0)
    return 1;
  link_close (link);
  return 0;
}

int32_t
sandbox_reach (struct linux_provider *self, struct coffer_call *call,
               const char *id, struct link *link)
{
  memset (link, 0, sizeof *link);
  link->fd = -1;
  if (!sandbox_id_valid (id))
    return coffer_fail (call, COFFER_NOT_FOUND, "no sandbox has such an id");
  if (sandbox_link (self, id, call, link) == 0)
    return COFFER_OK;
  if (errno == ENOENT || errno == ENOTDIR)
    return fail_with (call, COFFER_NOT_FOUND, "sandbox %s is not there", id);
  return coffer_fail_errno (call, errno, "reaching the sandbox's init");
}

/* One that has ended by itself, just now, is not there any more. */
int32_t
sandbox_ask_failed (struct coffer_call *call, const char *what)
{
  if (errno == ECONNRESET || errno == EPIPE)
    return coffer_fail (call, COFFER_NOT_FOUND, "the sandbox has ended");
  return coffer_fail_errno (call, errno, what);
}

/* ---- killing ------------------------------------------------------------ */

uint64_t
process_began (pid_t pid)
{
  char path[40], text[1024], *at;
  coffer_autoclose int fd = -1;
  ssize_t n;
  int field;

  snprintf (path, sizeof path, "/proc/%d/stat", (int) pid);
  fd = open (path, O_RDONLY | O_CLOEXEC);
  n = fd < 0 ? -1 : read (fd, text, sizeof text - 1);
  if (n <= 0)
    return 0;
  text[n] = '\0';
  /* Its name, in brackets, may hold anything. */
  at = strrchr (text, ')');
  for (field = 2; at != NULL && field < 22; field++)
    at = strchr (at + 1, ' ');
  return at != NULL ? strtoull (at, NULL, 10) : 0;
}

int
sandbox_note_init (int folder, int pidfd, pid_t pid, const struct ids *ids)
{
  uint64_t began = process_began (pid);
  char text[96];

  /* Still the same: what was read is of this process. */
  if (syscall (SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == -1)
    return -1;
  snprintf (text, sizeof text, "%d %llu %d %u %u", (int) pid,
            (unsigned long long) began, ids->privileged, ids->uid, ids->gid);
  return symlinkat (text, folder, "init");
}

/* What is noted of a sandbox that was made elsewhere. */
static int
noted_ids (struct linux_provider *self, const char *id, struct ids *ids)
{
  char name[SANDBOX_ID_MAX + 8], text[96];
  ssize_t n;

  memset (ids, 0, sizeof *ids);
  snprintf (name, sizeof name, "%s/init", id);
  n = readlinkat (self->runtime, name, text, sizeof text - 1);
  if (n <= 0)
    return -1;
  text[n] = '\0';
  return sscanf (text, "%*d %*u %d %u %u", &ids->privileged, &ids->uid,
                 &ids->gid)
           == 3
    ? 0 : -1;
}

int
sandbox_ids (struct linux_provider *self, const char *id, struct ids *ids)
{
  struct sandbox *sb = sandbox_find (self, id);

  if (sb == NULL)
    return noted_ids (self, id, ids);
  *ids = sb->ids;
  sandbox_unref (self, sb);
  return 0;
}

/* The process that was written down, if it is still there: whoever a hostile
 * init lets listen, this is the one whose end is the end of all. */
static int
noted_pidfd (int folder)
{
  unsigned long long began;
  char text[96];
  ssize_t n = folder < 0 ? -1
                         : readlinkat (folder, "init", text, sizeof text - 1);
  int pid, fd;

  if (n <= 0)
    return -1;
  text[n] = '\0';
  if (sscanf (text, "%d %llu", &pid, &began) != 2 || pid <= 1 || began == 0)
    return -1;
  fd = (int) syscall (SYS_pidfd_open, pid, 0);
  if (fd >= 0 && process_began (pid) != began)
    coffer_fd_close (&fd);
  return fd;
}

int
sandbox_pidfd (struct linux_provider *self, const char *id)
{
  struct sandbox *sb = sandbox_find (self, id);
  coffer_autoclose int folder = -1;
  int fd;

  if (sb != NULL) {
    fd = fcntl (sb->pidfd, F_DUPFD_CLOEXEC, 3);
    sandbox_unref (self, sb);
    return fd;
  }
  folder = openat (self->runtime, id,
                   O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return noted_pidfd (folder);
}

/* The socket's listener is the init.  Linux 6.5 and newer say who that is even
 * when it does not answer any more; with an older kernel its number is
 * trusted only after it has answered. */
static int
peer_pidfd (struct link *link, const struct coffer_call *call)
{
  struct request request = { .type = INIT_INFO };
  struct ucred peer;
  socklen_t size = sizeof (int);
  coffer_unfilled struct reply reply;
  int fd = -1;

  if (getsockopt (link->fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) {
    fcntl (fd, F_SETFD, FD_CLOEXEC);
    return fd;
  }
  size = sizeof peer;
  if (getsockopt (link->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == -1)
    return -1;
  if (peer.pid <= 0) {
    errno = ESRCH;
    return -1;
  }
  fd = (int) syscall (SYS_pidfd_open, peer.pid, 0);
  if (fd >= 0
      && (hello_take (link, call) == -1 || outside_show (link, call) == -1))
    coffer_fd_close (&fd);
  if (fd >= 0 && link_ask (link, &request, &reply, call) == -1)
    coffer_fd_close (&fd);
  return fd;
}

/* SIGKILL to an init ends everything in its namespace; its pidfd is readable
 * when all of it is gone. */
static int
pidfd_end (int pidfd, const struct coffer_call *call)
{
  int64_t stop = coffer_now_ns () + SETTLE_NS;

  if (syscall (SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == -1
      && errno != ESRCH)
    return -1;
  if (stop > call->deadline_ns)
    stop = call->deadline_ns;
  return coffer_wait_fd (pidfd, POLLIN, stop, -1) <= 0 ? -1 : 0;
}

int
sandbox_end (struct linux_provider *self, const char *id, int folder,
             struct coffer_call *call)
{
  struct sandbox *sb = sandbox_find (self, id);
  auto_link struct link link = { .fd = -1 };
  coffer_autoclose int pidfd = -1;
  int r;

  if (sb != NULL) {
    r = pidfd_end (sb->pidfd, call);
    sandbox_unref (self, sb);
    return r;
  }
  pidfd = noted_pidfd (folder);
  if (pidfd >= 0)
    return pidfd_end (pidfd, call);
  if (socket_connect (self, id, call, &link) == -1)
    return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
  pidfd = peer_pidfd (&link, call);
  if (pidfd < 0)
    return errno == ESRCH || errno == ECONNRESET ? 0 : -1;
  return pidfd_end (pidfd, call);
}

int32_t
linux_sandbox_kill (struct coffer_call *call, void *data, const char *sandbox,
                    const struct coffer_sandbox_kill_opts *opts)
{
  struct linux_provider *self = data;
  coffer_autoclose int folder = -1;
  struct sandbox *sb;

  (void) opts;
  if (!sandbox_id_valid (sandbox))
    return coffer_fail (call, COFFER_NOT_FOUND, "no sandbox has such an id");
  sb = sandbox_find (self, sandbox);
  if (self->runtime >= 0) {
    folder = sandbox_folder (self, sandbox, 0, 1, call->deadline_ns, NULL);
    if (folder < 0 && errno != ENOENT) {
      sandbox_unref (self, sb);
      return coffer_fail_errno (call, errno, "locking the sandbox's folder");
    }
  }
  sandbox_unref (self, sb);
  sandbox_reap (self, 0);
  /* Nothing lives in it but an init on its way out, which a SIGKILL makes sure
   * of; what the kernel then takes down need not be waited for here.  The
   * folder is there when a control group is, and that must be empty. */
  if (sb != NULL && folder < 0 && sandbox_retire (self, sandbox))
    return COFFER_OK;
  if (sb == NULL && folder < 0)
    return fail_with (call, COFFER_NOT_FOUND, "sandbox %s is not there",
                      sandbox);
  if (sandbox_end (self, sandbox, folder, call) == -1)
    return fail_with (call, errno == ETIMEDOUT ? COFFER_TIMEOUT
                                               : COFFER_INTERNAL,
                      "the sandbox could not be ended: %s", strerror (errno));
  if (folder >= 0)
    sandbox_remove (self, sandbox, folder);
  sandbox_forget (self, sandbox);
  return COFFER_OK;
}
