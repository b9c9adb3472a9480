/* SPDX-License-Identifier: Apache-2.0 */
/* Making a sandbox: its folder, its first process in seven new namespaces, its
 * ids, its control group, and the plan of all that the init then does itself.
 * Whatever fails before the init has said READY takes everything back. */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "linux.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#define OPEN_TREE_CLONE_ 1
#define AT_RECURSIVE_ 0x8000
#define ATTR_IDMAP_ 0x100000

#define DISK_DEFAULT (UINT64_C (1) << 30)
#define INODES_DEFAULT 65536
#define PIDS_DEFAULT 1024
#define MOUNTS_MAX 48
#define PLAN_MAX 60000

/* All that one creation holds. */
struct making {
  struct linux_provider *self;
  struct coffer_call *call;
  const char *id;
  const struct coffer_sandbox_spec *spec;
  struct ids ids;
  int folder, listener, control, pidfd;
  int proc;                     /* the init's folder in /proc */
  pid_t pid;
  unsigned cgroup;              /* bits that hold */
  const char *cgroup_why;
  size_t n_mounts;
  struct init_mount mounts[MOUNTS_MAX];
  char *sources[MOUNTS_MAX];
  int mount_fds[MOUNTS_MAX];    /* detached ones are ours */
  int64_t expires_ns;
};

int32_t
fail_with (struct coffer_call *call, int32_t code, const char *fmt, ...)
{
  char text[512];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (text, sizeof text, fmt, ap);
  va_end (ap);
  return coffer_fail (call, code, text);
}

/* ---- the specification -------------------------------------------------- */

static int
strv_given (const char *const *strv)
{
  return strv != NULL && strv[0] != NULL;
}

static int32_t
spec_refuse (struct coffer_call *call, const struct coffer_sandbox_spec *spec)
{
  if (spec->template_name != NULL || spec->image != NULL)
    return coffer_fail (call, COFFER_UNSUPPORTED,
                        "template and image: the root is the host's /usr");
  if (spec->network != NULL && strcmp (spec->network, "none") != 0)
    return fail_with (call, COFFER_UNSUPPORTED,
                      "network: only none, not %.32s", spec->network);
  if (strv_given (spec->allow) || strv_given (spec->ports))
    return coffer_fail (call, COFFER_UNSUPPORTED,
                        "allow and ports: there is no network");
  if (spec->profile != NULL && strcmp (spec->profile, "strict") == 0)
    return coffer_fail (call, COFFER_UNSUPPORTED,
                        "profile: strict is not made here");
  if (spec->user != NULL && strcmp (spec->user, "user") != 0
      && strcmp (spec->user, "1000") != 0)
    return coffer_fail (call, COFFER_UNSUPPORTED,
                        "user: there is one, user (1000)");
  if (spec->workdir != NULL && spec->workdir[0] != '/')
    return coffer_fail (call, COFFER_INVALID, "workdir: not absolute");
  if (spec->disk_bytes != 0
      && (spec->disk_bytes < 65536 || spec->disk_bytes > INT64_MAX))
    return coffer_fail (call, COFFER_INVALID, "disk_bytes: below 64 KiB");
  if (spec->inodes != 0 && (spec->inodes < 64 || spec->inodes > INT64_MAX))
    return coffer_fail (call, COFFER_INVALID, "inodes: below 64");
  if (spec->memory_bytes != 0
      && (spec->memory_bytes < 4 << 20 || spec->memory_bytes > INT64_MAX))
    return coffer_fail (call, COFFER_INVALID, "memory_bytes: below 4 MiB");
  if (spec->ttl_ms > UINT64_C (1000) * 86400 * 365 * 10)
    return coffer_fail (call, COFFER_INVALID, "ttl_ms: above ten years");
  return COFFER_OK;
}

/* Nothing covers what the sandbox is made of. */
static int
target_allowed (const char *target)
{
  static const char *const reserved[]
    = { "/proc", "/sys", "/dev", "/etc", "/usr", "/bin", "/sbin", "/lib",
        "/lib64" };
  size_t i, n;

  if (target == NULL || target[0] != '/' || strlen (target) > 4000
      || strspn (target, "/") == strlen (target)
      || strstr (target, "/../") != NULL || strstr (target, "/./") != NULL
      || strstr (target, "//") != NULL)
    return 0;
  n = strlen (target);
  if ((n >= 3 && strcmp (target + n - 3, "/..") == 0)
      || (n >= 2 && strcmp (target + n - 2, "/.") == 0))
    return 0;
  for (i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
    n = strlen (reserved[i]);
    if (strncmp (target, reserved[i], n) == 0
        && (target[n] == '\0'
            || (target[n] == '/' && strcmp (reserved[i], "/usr") != 0
                && strcmp (reserved[i], "/etc") != 0)))
      return 0;
  }
  return 1;
}

/* ---- mounts ------------------------------------------------------------- */

/* As root: a mount of its own, in which the owner of the source is the
 * sandbox's user, and everybody else nobody. */
static int32_t
mount_detach (struct making *making, const struct coffer_mount *mount,
              const struct stat *st, int *out)
{
  struct {
    uint64_t set, clear, propagation, userns;
  } attributes = { .set = ATTR_IDMAP_ };
  coffer_autoclose int tree = -1, ns = -1;

  tree = (int) syscall (SYS_open_tree, mount->source_fd, "",
                        OPEN_TREE_CLONE_ | AT_EMPTY_PATH | AT_RECURSIVE_
                          | O_CLOEXEC);
  if (tree < 0)
    return coffer_fail_errno (making->call, errno, "mounts: open_tree");
  ns = ids_namespace (st->st_uid, st->st_gid, &making->ids);
  if (ns < 0)
    return coffer_fail_errno (making->call, errno,
                              "mounts: a user namespace for the id map");
  attributes.userns = (uint64_t) ns;
  if (syscall (SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE_,
               &attributes, sizeof attributes) == -1)
    return fail_with (making->call, COFFER_UNAVAILABLE,
                      "mounts: %.200s cannot be id-mapped (%s), and without "
                      "that root does not show a folder to a sandbox",
                      mount->source ? mount->source : "the source",
                      strerror (errno));
  *out = coffer_fd_steal (&tree);
  return COFFER_OK;
}

static char *
descriptor_path (int fd)
{
  char link[40], path[4096];
  ssize_t n;

  snprintf (link, sizeof link, "/proc/self/fd/%d", fd);
  n = readlink (link, path, sizeof path - 1);
  if (n <= 0 || (size_t) n >= sizeof path - 1)
    return NULL;
  path[n] = '\0';
  return path[0] == '/' ? strdup (path) : NULL;
}

static int32_t
mount_add (struct making *making, const struct coffer_mount *mount)
{
  struct init_mount *out = &making->mounts[making->n_mounts];
  int fd = mount->source_fd;
  struct stat st;
  int32_t code;

  if (!target_allowed (mount->target))
    return fail_with (making->call, COFFER_INVALID,
                      "mounts: %.200s is no place for a mount",
                      mount->target ? mount->target : "(none)");
  if (fd < 0 || fstat (fd, &st) == -1
      || !(S_ISDIR (st.st_mode) || S_ISREG (st.st_mode)))
    return coffer_fail (making->call, COFFER_INVALID,
                        "mounts: the source is no folder or regular file");
  out->size = sizeof *out;
  out->flags = (mount->writable ? MOUNT_WRITABLE : 0u)
               | (S_ISREG (st.st_mode) ? MOUNT_FILE : 0u);
  if (making->ids.privileged) {
    code = mount_detach (making, mount, &st, &fd);
    if (code != COFFER_OK)
      return code;
    out->flags |= MOUNT_DETACHED;
  } else {
    making->sources[making->n_mounts] = descriptor_path (fd);
    if (making->sources[making->n_mounts] == NULL)
      return coffer_fail (making->call, COFFER_INVALID,
                          "mounts: the source has no path any more");
  }
  making->mount_fds[making->n_mounts++] = fd;
  return COFFER_OK;
}

static int32_t
mounts_prepare (struct making *making)
{
  const struct coffer_mount *const *mounts = making->spec->mounts;
  int32_t code = COFFER_OK;
  size_t i;

  for (i = 0; code == COFFER_OK && mounts != NULL && mounts[i] != NULL; i++) {
    if (making->n_mounts == MOUNTS_MAX)
      return fail_with (making->call, COFFER_LIMIT, "mounts: at most %d",
                        MOUNTS_MAX);
    code = mount_add (making, mounts[i]);
  }
  return code;
}

/* ---- the first process -------------------------------------------------- */

struct child {
  int control, init;
  volatile int error;
  const char *volatile step;
};

static int
child_failed (struct child *child, const char *step)
{
  child->error = errno;
  child->step = step;
  return 127;
}

/* Runs in this process's memory while the calling thread waits: system calls
 * only. */
static int
child_main (void *data)
{
  static const int needed[]
    = { CAP_SETGID, CAP_SETUID, CAP_SETPCAP, CAP_NET_ADMIN, CAP_SYS_ADMIN,
        CAP_SYS_RESOURCE };
  struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
  struct __user_cap_data_struct caps[2];
  static const char *const argv[] = { "coffer-init", NULL };
  static const char *const envp[] = { NULL };
  struct child *child = data;
  size_t i;

  /* The init is started as a user who is not root there: what it needs must
   * be ambient to survive. */
  if (syscall (SYS_capget, &header, caps) == -1)
    return child_failed (child, "capget");
  for (i = 0; i < sizeof needed / sizeof needed[0]; i++)
    caps[0].inheritable |= 1u << needed[i];
  if (syscall (SYS_capset, &header, caps) == -1)
    return child_failed (child, "capset");
  for (i = 0; i < sizeof needed / sizeof needed[0]; i++)
    if (syscall (SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, needed[i],
                 0, 0) == -1)
      return child_failed (child, "ambient capabilities");
  if (syscall (SYS_dup3, child->control, 0, 0) == -1
      || syscall (SYS_close_range, 1, ~0u, CLOSE_RANGE_CLOEXEC) == -1)
    return child_failed (child, "descriptors");
  syscall (SYS_execveat, child->init, "", argv, envp, AT_EMPTY_PATH);
  return child_failed (child, "starting coffer-init");
}

/* No group of the caller's goes along: as root they are given up for the
 * moment of the clone, by this thread alone. */
static pid_t
child_clone (struct child *child, char *stack_top, int *pidfd, int privileged)
{
  const int flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_NEWUSER
                    | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC
                    | CLONE_NEWUTS | CLONE_NEWCGROUP | SIGCHLD;
  gid_t groups[64], *all = groups;
  int n = 0, saved;
  pid_t pid;

  if (privileged) {
    n = (int) syscall (SYS_getgroups, 0, NULL);
    if (n > 64)
      all = calloc ((size_t) n, sizeof *all);
    if (all == NULL || syscall (SYS_getgroups, n, all) != n
        || syscall (SYS_setgroups, 0, NULL) == -1) {
      child->step = "setgroups";
      if (all != groups)
        free (all);
      return -1;
    }
  }
  pid = clone (child_main, stack_top, flags, child, pidfd, NULL, NULL);
  saved = errno;
  if (privileged)
    syscall (SYS_setgroups, n, all);
  if (all != groups)
    free (all);
  errno = saved;
  return pid;
}

static pid_t
child_start (struct making *making, struct child *child)
{
  static const size_t stack_size = 65536;
  sigset_t all, old;
  char *stack = malloc (stack_size);
  pid_t pid;
  int saved;

  if (stack == NULL)
    return -1;
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  pid = child_clone (child, stack + stack_size, &making->pidfd,
                     making->ids.privileged);
  saved = errno;
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  free (stack);
  errno = saved;
  return pid;
}

static int32_t
spawn_refused (struct making *making, const char *step, int error)
{
  const char *hint = "";

  if (error == EPERM || error == EACCES)
    hint = "; user namespaces are forbidden here: `coffer provider doctor "
           "linux` says what helps";
  else if (error == ENOSPC || error == EUSERS)
    hint = "; see user.max_user_namespaces";
  return fail_with (making->call, COFFER_UNAVAILABLE,
                    "the sandbox could not be set up: %s: %s%s", step,
                    strerror (error), hint);
}

static int
child_ids (struct making *making)
{
  char path[40];

  snprintf (path, sizeof path, "/proc/%d", (int) making->pid);
  making->proc = open (path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (making->proc < 0)
    return -1;
  /* The number was this child's when the folder was opened. */
  if (syscall (SYS_pidfd_send_signal, making->pidfd, 0, NULL, 0) == -1)
    return -1;
  return ids_write (making->proc, &making->ids);
}

static int32_t
child_spawn (struct making *making)
{
  struct child child = { .init = making->self->init };
  coffer_autoclose int theirs = -1;
  int pair[2];

  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
    return coffer_fail_errno (making->call, errno, "socketpair");
  making->control = pair[0];
  child.control = theirs = pair[1];
  making->pid = child_start (making, &child);
  if (making->pid < 0)
    return spawn_refused (making, child.step ? child.step : "new namespaces",
                          errno);
  if (child.error != 0)
    return spawn_refused (making, child.step, child.error);
  if (child_ids (making) == -1)
    return spawn_refused (making, "user and group ids", errno);
  return COFFER_OK;
}

/* ---- the plan ----------------------------------------------------------- */

static uint32_t
plan_string (struct coffer_buffer *strings, uint32_t base, const char *s)
{
  uint32_t at = base + (uint32_t) strings->size;

  coffer_buffer_add (strings, s, strlen (s) + 1);
  return at;
}

/* Each name once: a later NAME=VALUE takes the place of an earlier one. */
static uint32_t
plan_env (struct coffer_buffer *strings, const char *const *env)
{
  uint32_t count = 0;
  size_t i, k, n;

  for (i = 0; env != NULL && env[i] != NULL; i++) {
    n = strcspn (env[i], "=");
    for (k = i + 1; env[k] != NULL; k++)
      if (strncmp (env[i], env[k], n) == 0 && env[k][n] == '=')
        break;
    if (env[k] != NULL || env[i][n] != '=')
      continue;
    coffer_buffer_add (strings, env[i], strlen (env[i]) + 1);
    count++;
  }
  return count;
}

static void
plan_fill (struct making *making, struct init_plan *plan)
{
  const struct coffer_sandbox_spec *spec = making->spec;

  plan->size = sizeof *plan;
  plan->uid = plan->gid = BOX_UID;
  plan->disk_bytes = spec->disk_bytes ? spec->disk_bytes : DISK_DEFAULT;
  plan->inodes = spec->inodes ? spec->inodes : INODES_DEFAULT;
  plan->pids = spec->pids ? spec->pids : PIDS_DEFAULT;
  plan->mounts = (uint32_t) making->n_mounts;
  plan->expires_ns = making->expires_ns;
  if (spec->memory_bytes != 0 && !(making->cgroup & CGROUP_MEMORY))
    plan->data_bytes = spec->memory_bytes;
  if (making->cgroup & CGROUP_PIDS)
    plan->flags |= PLAN_CGROUP;
  if (spec->single_exec)
    plan->flags |= PLAN_SINGLE;
  if (making->self->runtime >= 0 && (!spec->single_exec || spec->lifeline >= 0))
    plan->flags |= PLAN_DURABLE;
  if (spec->root_writable)
    plan->flags |= PLAN_ROOT_WRITABLE;
  if (making->ids.privileged)
    plan->flags |= PLAN_PRIVILEGED;
}

static int
plan_send (struct making *making)
{
  struct init_plan plan = { 0 };
  coffer_autobuffer struct coffer_buffer strings = { 0 };
  const struct coffer_sandbox_spec *spec = making->spec;
  struct link link = { .fd = making->control };
  int fds[MOUNTS_MAX + 2];
  struct request request = { .type = INIT_PLAN, .body = &plan,
                             .size = sizeof plan, .fds = fds };
  const uint32_t mounts_size
    = (uint32_t) (making->n_mounts * sizeof making->mounts[0]);
  const uint32_t base = (uint32_t) (sizeof (struct init_header) + sizeof plan);
  size_t i;

  plan_fill (making, &plan);
  coffer_buffer_add (&strings, making->mounts, mounts_size);
  plan.hostname = plan_string (&strings, base, "coffer");
  plan.workdir = plan_string (&strings, base,
                              spec->workdir ? spec->workdir : "/workspace");
  for (i = 0; i < making->n_mounts; i++) {
    making->mounts[i].target
      = plan_string (&strings, base, spec->mounts[i]->target);
    making->mounts[i].source = plan_string (
      &strings, base, making->sources[i] ? making->sources[i] : "");
  }
  plan.env = base + (uint32_t) strings.size;
  plan.n_env = plan_env (&strings, spec->env);
  if (strings.failed || strings.size > PLAN_MAX) {
    errno = strings.failed ? ENOMEM : E2BIG;
    return -1;
  }
  /* The offsets are known now. */
  if (mounts_size > 0)
    memcpy (strings.data, making->mounts, mounts_size);
  if (spec->lifeline >= 0) {
    plan.flags |= PLAN_LIFELINE;
    fds[request.n_fds++] = spec->lifeline;
  }
  if (making->listener >= 0) {
    plan.flags |= PLAN_LISTENER;
    fds[request.n_fds++] = making->listener;
  }
  for (i = 0; i < making->n_mounts; i++)
    fds[request.n_fds++] = making->mount_fds[i];
  request.more = strings.data;
  request.more_size = strings.size;
  return link_send (&link, &request);
}

/* ---- what came of it ---------------------------------------------------- */

static int32_t
fact_emit (struct coffer_call *call, const char *name, const char *state,
           const char *value, const char *how, const char *remedy)
{
  struct coffer_fact fact = { sizeof fact };

  fact.name = name;
  fact.state = state;
  fact.value = value;
  fact.how = how;
  fact.remedy = remedy != NULL && remedy[0] != '\0' ? remedy : NULL;
  return coffer_emit_fact (call, &fact);
}

static int32_t
facts_namespaces (struct linux_provider *self, struct coffer_call *call,
                  const uint64_t inodes[7])
{
  static const char *const names[7]
    = { "namespace.user", "namespace.mount", "namespace.pid",
        "namespace.net", "namespace.ipc", "namespace.uts",
        "namespace.cgroup" };
  char value[32];
  int32_t code = COFFER_OK;
  int i;

  for (i = 0; code == COFFER_OK && i < 7; i++) {
    if (inodes[i] == 0 || inodes[i] == self->ns_inodes[i])
      return fail_with (call, COFFER_INTERNAL,
                        "the sandbox could not be set up: %s is the host's",
                        names[i]);
    snprintf (value, sizeof value, "%llu",
              (unsigned long long) inodes[i]);
    code = fact_emit (call, names[i], "ok", value,
                      "inode of /proc/self/ns, not the host's", NULL);
  }
  return code;
}

/* READY's facts: five strings each. */
static int32_t
facts_init (struct coffer_call *call, const struct init_ready *ready,
            const char *at, size_t size)
{
  const char *part[5], *end = at + size;
  int32_t code = COFFER_OK;
  uint32_t i;
  int k;

  for (i = 0; code == COFFER_OK && i < ready->count; i++) {
    for (k = 0; k < 5; k++) {
      part[k] = at;
      at = at < end ? memchr (at, '\0', (size_t) (end - at)) : NULL;
      if (at == NULL)
        return coffer_fail (call, COFFER_INTERNAL,
                            "the init's facts are malformed");
      at++;
    }
    code = fact_emit (call, part[0], part[1], part[2], part[3], part[4]);
  }
  return code;
}

static int32_t
facts_limits (struct making *making)
{
  const struct coffer_sandbox_spec *spec = making->spec;
  struct coffer_call *call = making->call;
  char value[96];
  int32_t code;

  snprintf (value, sizeof value, "%u is %u outside", BOX_UID,
            making->ids.uid);
  code = fact_emit (call, "user", "ok", value, "uid_map", NULL);
  /* They cannot be given up by an ordinary user. */
  if (code == COFFER_OK && !making->ids.privileged && getgroups (0, NULL) > 1)
    code = fact_emit (call, "user.groups", "degraded",
                      "the caller's other groups count for files that are "
                      "shown",
                      "getgroups", NULL);
  if (code == COFFER_OK && spec->memory_bytes != 0)
    code = making->cgroup & CGROUP_MEMORY
      ? fact_emit (call, "limit.memory", "ok", "of the whole sandbox",
                   "control group", NULL)
      : fact_emit (call, "limit.memory", "degraded",
                   "of each process, not of the sandbox", "RLIMIT_DATA",
                   making->cgroup_why);
  if (code == COFFER_OK)
    code = making->cgroup & CGROUP_PIDS
      ? fact_emit (call, "limit.pids", "ok", "of the whole sandbox",
                   "control group", NULL)
      : fact_emit (call, "limit.pids", "ok", "of the sandbox's user",
                   "RLIMIT_NPROC in its user namespace", NULL);
  if (code == COFFER_OK && spec->cpu_millis != 0)
    code = making->cgroup & CGROUP_CPU
      ? fact_emit (call, "limit.cpu", "ok", "of the whole sandbox",
                   "control group", NULL)
      : fact_emit (call, "limit.cpu", "off", "not limited", "control group",
                   making->cgroup_why);
  return code;
}

static int32_t
ready_take (struct making *making)
{
  struct link link = { .fd = making->control, .serial = 1 };
  struct coffer_call *call = making->call;
  uint64_t inodes[7] = { 0 };
  struct init_ready ready;
  struct reply reply;
  const char *rest;
  int32_t code;
  size_t size;

  /* While the init is at work.  Zeros are refused below. */
  namespaces_read (making->proc, inodes);
  if (link_receive (&link, &reply, 0, call->deadline_ns, call->cancel_fd)
        == -1) {
    if (errno == ECONNRESET)
      return coffer_fail (call, COFFER_INTERNAL,
                          "the sandbox's init ended without a word");
    return coffer_fail_errno (call, errno, "waiting for the sandbox's init");
  }
  coffer_fd_close (&reply.fd);
  if (reply_body (&reply, &ready, sizeof ready) == -1)
    return coffer_fail_errno (call, errno, "the init's answer");
  rest = reply_rest (&reply, &size);
  if (reply.header.type == INIT_FAILED)
    return spawn_refused (making, size > 0 ? rest : "?", reply.header.error);
  if (reply.header.type != INIT_READY)
    return coffer_fail (call, COFFER_INTERNAL, "the init's answer is unknown");
  code = facts_namespaces (making->self, call, inodes);
  if (code == COFFER_OK)
    code = facts_init (call, &ready, rest, size);
  if (code == COFFER_OK)
    code = facts_limits (making);
  return code;
}

/* ---- the operation ------------------------------------------------------ */

static int32_t
cgroup_take (struct making *making)
{
  const struct coffer_sandbox_spec *spec = making->spec;
  struct cgroup_limits limits = { spec->memory_bytes, spec->pids,
                                  spec->cpu_millis };
  int bits;

  making->cgroup_why = "no limit was asked for";
  if (limits.memory_bytes == 0 && limits.pids == 0 && limits.cpu_millis == 0)
    return COFFER_OK;
  if (making->folder < 0 || cgroup_usable (&making->cgroup_why) == 0)
    return COFFER_OK;
  bits = cgroup_make (making->folder, making->id, making->pid, &limits);
  if (bits < 0)
    return coffer_fail_errno (making->call, errno, "control group");
  making->cgroup = (unsigned) bits;
  return COFFER_OK;
}

static int
metadata_keep (struct making *making)
{
  coffer_autobuffer struct coffer_buffer text = { 0 };
  const char *const *at = making->spec->metadata;
  coffer_autoclose int fd = -1;

  if (!strv_given (at) || making->folder < 0)
    return 0;
  for (; *at != NULL; at++)
    coffer_buffer_add (&text, *at, strlen (*at) + 1);
  fd = openat (making->folder, "metadata",
               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 || text.failed)
    return -1;
  return coffer_write_all (fd, text.data, text.size) < 0 ? -1 : 0;
}

static int32_t
info_emit (struct making *making)
{
  struct coffer_sandbox_info info = { sizeof info };
  char native[32];

  snprintf (native, sizeof native, "pid:%d", (int) making->pid);
  info.sandbox = making->id;
  info.native_id = native;
  info.state = "running";
  info.created_ns = coffer_realtime_ns ();
  if (making->expires_ns != 0)
    info.expires_ns = info.created_ns + making->expires_ns
                      - coffer_boottime_ns ();
  info.isolation = "namespaces";
  info.workspace = "/workspace";
  info.metadata = making->spec->metadata;
  return coffer_emit_sandbox_info (making->call, &info);
}

static struct box *
box_keep (struct making *making)
{
  struct box *box = calloc (1, sizeof *box);

  if (box == NULL)
    return NULL;
  box->refs = 1;
  box->serial = 1;
  box->pid = making->pid;
  box->single = making->spec->single_exec != 0;
  snprintf (box->id, sizeof box->id, "%s", making->id);
  box->control = coffer_fd_steal (&making->control);
  box->pidfd = coffer_fd_steal (&making->pidfd);
  pthread_mutex_init (&box->busy, NULL);
  box_add (making->self, box);
  return box;
}

static int32_t
making_run (struct making *making)
{
  struct coffer_call *call = making->call;
  int32_t code = mounts_prepare (making);

  if (code == COFFER_OK && making->folder >= 0) {
    making->listener = box_listener (making->folder);
    if (making->listener < 0 || metadata_keep (making) == -1)
      code = coffer_fail_errno (call, errno, "the sandbox's folder");
  }
  if (code == COFFER_OK)
    code = child_spawn (making);
  if (code == COFFER_OK)
    code = cgroup_take (making);
  if (code == COFFER_OK && making->spec->ttl_ms != 0)
    making->expires_ns = coffer_boottime_ns ()
                         + (int64_t) making->spec->ttl_ms * 1000000;
  if (code == COFFER_OK && plan_send (making) == -1)
    code = coffer_fail_errno (call, errno, "sending the plan");
  if (code == COFFER_OK)
    code = ready_take (making);
  if (code == COFFER_OK)
    code = info_emit (making);
  if (code == COFFER_OK && box_keep (making) == NULL)
    code = coffer_fail_errno (call, ENOMEM, "the sandbox");
  return code;
}

static void
making_undo (struct making *making)
{
  siginfo_t info;

  if (making->pid > 0) {
    if (making->pidfd >= 0)
      syscall (SYS_pidfd_send_signal, making->pidfd, SIGKILL, NULL, 0);
    waitid ((idtype_t) P_PIDFD, (id_t) making->pidfd, &info,
            WEXITED | __WALL);
  }
  if (making->folder >= 0)
    box_remove (making->self, making->id, making->folder);
}

static void
making_fini (struct making *making)
{
  size_t i;

  for (i = 0; i < making->n_mounts; i++) {
    free (making->sources[i]);
    if (making->mounts[i].flags & MOUNT_DETACHED)
      coffer_fd_close (&making->mount_fds[i]);
  }
  coffer_fd_close (&making->listener);
  coffer_fd_close (&making->control);
  coffer_fd_close (&making->pidfd);
  coffer_fd_close (&making->proc);
  coffer_fd_close (&making->folder);
}

/* The same id again: the same sandbox, when it is there. */
static int32_t
existing_emit (struct making *making, int *exists)
{
  auto_link struct link link = { .fd = -1 };
  struct request request = { .type = INIT_FACTS };
  struct init_ready ready;
  struct reply reply;
  const char *rest;
  int32_t code;
  size_t size;

  *exists = 0;
  if (box_link (making->self, making->id, making->call, &link) == -1)
    return errno == ENOENT
      ? COFFER_OK : coffer_fail_errno (making->call, errno, "the sandbox");
  *exists = 1;
  if (link_ask (&link, &request, &reply, making->call) == -1
      || reply_body (&reply, &ready, sizeof ready) == -1)
    return coffer_fail_errno (making->call, errno, "the sandbox's facts");
  rest = reply_rest (&reply, &size);
  code = facts_namespaces (making->self, making->call, ready.ns_inodes);
  if (code == COFFER_OK)
    code = facts_init (making->call, &ready, rest, size);
  if (code == COFFER_OK)
    code = box_emit_info (making->call, &link, making->id, making->folder);
  return code;
}

static int32_t
folder_take (struct making *making, int *exists)
{
  struct coffer_call *call = making->call;
  int32_t code;
  int made;

  *exists = 0;
  if (making->self->runtime < 0) {
    if (!making->spec->single_exec && making->spec->lifeline < 0)
      return coffer_fail (call, COFFER_UNAVAILABLE,
                          "there is no runtime folder: only a sandbox with a "
                          "lifeline can be made");
    return COFFER_OK;
  }
  making->folder = box_folder (making->self, making->id, 1, 1,
                               call->deadline_ns, &made);
  if (making->folder < 0)
    return coffer_fail_errno (call, errno, "the sandbox's folder");
  if (made)
    return COFFER_OK;
  code = existing_emit (making, exists);
  if (code == COFFER_OK && !*exists) {
    /* Left by one that is gone: cleared, and made anew. */
    cgroup_remove (making->folder);
    unlinkat (making->folder, "cgroup", 0);
    unlinkat (making->folder, "metadata", 0);
    unlinkat (making->folder, "init.sock", 0);
    box_forget (making->self, making->id);
  }
  return code;
}

int32_t
linux_sandbox_create (struct coffer_call *call, void *data,
                      const char *sandbox,
                      const struct coffer_sandbox_spec *spec,
                      const struct coffer_sandbox_create_opts *opts)
{
  static const struct coffer_sandbox_spec defaults
    = { sizeof defaults, .lifeline = -1 };
  struct making making = { .self = data, .call = call, .id = sandbox,
                           .spec = spec ? spec : &defaults, .folder = -1,
                           .listener = -1, .control = -1, .pidfd = -1,
                           .proc = -1 };
  const char *why = NULL;
  int exists = 0;
  int32_t code;

  (void) opts;
  if (!box_id_valid (sandbox))
    return coffer_fail (call, COFFER_INVALID,
                        "sandbox: letters, digits, '-', '_' and '.', at most "
                        "64 of them");
  code = spec_refuse (call, making.spec);
  if (code != COFFER_OK)
    return code;
  if (ids_choose (making.self, sandbox, &making.ids, &why) == -1)
    return coffer_fail (call, COFFER_UNAVAILABLE, why);
  code = folder_take (&making, &exists);
  if (code == COFFER_OK && !exists) {
    code = making_run (&making);
    if (code != COFFER_OK)
      making_undo (&making);
  }
  making_fini (&making);
  return code;
}
