/* SPDX-License-Identifier: Apache-2.0 */
/* Making a sandbox: its folder, its first process in seven new namespaces, its
 * ids, its control group, and the plan of all that the init then does itself.
 * Whatever fails before the init has said READY takes everything back. */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.h"
#include "layer.h"
#include "clone.h"
#include "spawn.h"

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

/* ---- the first process -------------------------------------------------- */

struct child {
  int control, init;
  int low;                      /* both have low numbers */
  int precedence;
  const struct init_wanted *wanted;
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

/* The init is started as a user who is not root there: what it needs must be
 * ambient to survive. */
static int
child_capabilities (struct child *child)
{
  static const int needed[]
    = { CAP_SETGID, CAP_SETUID, CAP_SETPCAP, CAP_NET_ADMIN, CAP_SYS_ADMIN,
        CAP_SYS_RESOURCE };
  struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
  struct __user_cap_data_struct caps[2];
  size_t i;

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
  return 0;
}

/* It begins with the table of descriptors of this process, which may be long.
 * Where both that it needs have low numbers its own is made without what comes
 * after them: the kernel then copies no more than that. */
static int
child_files_own (const struct child *child)
{
  const int high = child->init < child->control ? child->control
                                                : child->init;

  if (child->low && LAYER_ON (FDS)
      && syscall (SYS_close_range, high + 1, ~0u, CLOSE_RANGE_UNSHARE) == 0)
    return 0;
  return (int) syscall (SYS_unshare, CLONE_FILES);
}

/* A low number for the child's end, which is the newest descriptor and has the
 * highest: one of a few that were kept for it, by copies of the init.  -1: they
 * are all in use. */
static int
slot_take (struct linux_provider *self, int control)
{
  int i;

  pthread_mutex_lock (&self->lock);
  for (i = 0; i < INIT_SLOTS; i++)
    if (self->slots[i] >= 0 && !self->slot_used[i]) {
      self->slot_used[i] = 1;
      break;
    }
  pthread_mutex_unlock (&self->lock);
  if (i == INIT_SLOTS)
    return -1;
  if (dup3 (control, self->slots[i], O_CLOEXEC) >= 0)
    return i;
  pthread_mutex_lock (&self->lock);
  self->slot_used[i] = 0;
  pthread_mutex_unlock (&self->lock);
  return -1;
}

static void
slot_give (struct linux_provider *self, int slot)
{
  if (slot < 0)
    return;
  /* What was in it must not stay open here. */
  if (dup3 (self->init, self->slots[slot], O_CLOEXEC) < 0)
    coffer_fd_close (&self->slots[slot]);
  pthread_mutex_lock (&self->lock);
  self->slot_used[slot] = 0;
  pthread_mutex_unlock (&self->lock);
}

/* In this process's memory while the calling thread waits: system calls only. */
static int
child_main (void *data)
{
  static const char *const envp[] = { NULL };
  struct child *child = data;
  const char *const argv[]
    = { "coffer-init", child->wanted->late_network ? "late" : NULL, NULL };

  if (precedence_drop (child->precedence) == -1)
    return child_failed (child, "precedence");
  if (LAYER_ON (USER) && child_capabilities (child) != 0)
    return 127;
  if (child_files_own (child) == -1)
    return child_failed (child, "a table of descriptors");
  if (syscall (SYS_dup3, child->control, 0, 0) == -1
      || (LAYER_ON (FDS)
          && syscall (SYS_close_range, 1, ~0u, CLOSE_RANGE_CLOEXEC) == -1))
    return child_failed (child, "descriptors");
  syscall (SYS_execveat, child->init, "", argv, envp, AT_EMPTY_PATH);
  return child_failed (child, "starting coffer-init");
}

/* Begun in its control group, where the kernel can and this process may; else
 * in the caller's. */
static pid_t
child_clone_into (struct child *child, char *stack, size_t size, int flags,
                  int *pidfd)
{
  struct cgroup *group = child->wanted->group;
  struct clone_args_ args
    = { .flags = (uint64_t) (flags & ~CSIGNAL) | CLONE_INTO_CGROUP_,
        .pidfd = (uintptr_t) pidfd, .exit_signal = SIGCHLD,
        .stack = (uintptr_t) stack, .stack_size = size,
        .cgroup = group ? (uint64_t) group->into : 0 };
  long pid = group == NULL || group->into < 0 ? -ENOSYS
                             : clone3_run (&args, child_main, child);

  if (pid > 0) {
    group->entered = 1;
    return (pid_t) pid;
  }
  return clone (child_main, stack + size, flags, child, pidfd, NULL, NULL);
}

/* No group of the caller's goes along: as root they are given up for the
 * moment of the clone, by this thread alone. */
static pid_t
child_clone (struct child *child, char *stack, size_t size, int *pidfd)
{
  const int privileged = child->wanted->ids.privileged && LAYER_ON (GROUPS);
  const int flags = CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_PIDFD
                    | SIGCHLD | (child->wanted->sibling ? CLONE_PARENT : 0)
                    | LAYER_FLAG (USER, CLONE_NEWUSER)
                    | LAYER_FLAG (MOUNT, CLONE_NEWNS)
                    | LAYER_FLAG (PID, CLONE_NEWPID)
                    | LAYER_FLAG (NET, child->wanted->host_network
                                           || child->wanted->late_network
                                         ? 0 : CLONE_NEWNET)
                    | LAYER_FLAG (IPC, CLONE_NEWIPC)
                    | LAYER_FLAG (UTS, CLONE_NEWUTS)
                    | LAYER_FLAG (CGROUPNS, CLONE_NEWCGROUP);
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
  pid = child_clone_into (child, stack, size, flags, pidfd);
  saved = errno;
  if (privileged)
    syscall (SYS_setgroups, n, all);
  if (all != groups)
    free (all);
  errno = saved;
  return pid;
}

static pid_t
child_start (struct child *child, int *pidfd)
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
  pid = child_clone (child, stack, stack_size, pidfd);
  saved = errno;
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  free (stack);
  errno = saved;
  return pid;
}

static int
init_spawn (struct linux_provider *self, const struct init_wanted *wanted,
            struct init_process *init, const char **step)
{
  struct child child = { .init = self->init, .wanted = wanted };
  coffer_autoclose int theirs = -1;
  int pair[2], slot, saved;

  *step = "precedence";
  child.precedence = precedence_found ();
  if (child.precedence == -1)
    return -1;
  *step = "socketpair";
  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
    return -1;
  init->control = pair[0];
  child.control = theirs = pair[1];
  slot = slot_take (self, theirs);
  if (slot >= 0)
    child.control = self->slots[slot];
  child.low = slot >= 0;
  init->pid = child_start (&child, &init->pidfd);
  saved = errno;
  slot_give (self, slot);
  errno = saved;
  *step = child.step ? child.step : "new namespaces";
  if (init->pid >= 0 && child.error != 0)
    errno = child.error;
  return init->pid < 0 || child.error != 0 ? -1 : 0;
}

static int
init_ids (struct init_process *init)
{
  char path[40];

  snprintf (path, sizeof path, "/proc/%d", (int) init->pid);
  init->proc = open (path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (init->proc < 0)
    return -1;
  /* The number was this child's when the folder was opened. */
  if (syscall (SYS_pidfd_send_signal, init->pidfd, 0, NULL, 0) == -1)
    return -1;
  return LAYER_ON (USER) ? ids_write (init->proc, &init->ids) : 0;
}

static int
ids_take_meanwhile (struct linux_provider *self,
                    const struct init_wanted *wanted,
                    struct init_process *init, const char **step)
{
  if (ids_take (self, &init->ids, step) == -1)
    return -1;
  errno = EPERM;
  return init->ids.privileged == wanted->ids.privileged ? 0 : -1;
}

int
init_start (struct linux_provider *self, const struct init_wanted *wanted,
            struct init_process *init, const char **step)
{
  init->ids = wanted->ids;
  init->late_network = wanted->late_network;
  if (init_spawn (self, wanted, init, step) == -1
      || (wanted->ids_meanwhile
          && ids_take_meanwhile (self, wanted, init, step) == -1))
    return -1;
  *step = "user and group ids";
  if (init_ids (init) == -1)
    return -1;
  ids_note (self, &init->ids, init->pid);
  return 0;
}

int32_t
spawn_refused (struct making *making, const char *step, int error)
{
  const char *hint = "";
  int32_t again = COFFER_RETRY_DEFAULT;
  char text[512];

  if (error == EPERM || error == EACCES) {
    again = COFFER_RETRY_NO;
    hint = "; something is forbidden here: `coffer provider doctor linux` "
           "says what, and what helps";
  } else if (error == ENOSPC || error == EUSERS)
    hint = "; see user.max_user_namespaces";
  snprintf (text, sizeof text, "the sandbox could not be set up: %s: %s%s",
            step, strerror (error), hint);
  return coffer_fail_with (making->call, COFFER_UNAVAILABLE, again, text,
                           NULL);
}

static void
init_adopt (struct making *making, const struct init_process *init)
{
  making->ids = init->ids;
  making->pid = init->pid;
  making->pidfd = init->pidfd;
  making->control = init->control;
  making->proc = init->proc;
  making->late_network = init->late_network;
  making->named = init->named;
}

/* Whose it will be; with the first process when that is there already. */
static int32_t
owner_take (struct making *making)
{
  struct init_process init;
  const char *why = NULL;

  if (spare_take (making->self, making, &init)) {
    init_adopt (making, &init);
    making->prepared = 1;
    return COFFER_OK;
  }
  if (ids_take (making->self, &making->ids, &why) == -1)
    return coffer_fail (making->call, COFFER_UNAVAILABLE, why);
  return COFFER_OK;
}

static int32_t
child_spawn (struct making *making)
{
  const struct init_wanted wanted
    = { .ids = making->ids, .group = &making->cgroup,
        .host_network = making->network == NETWORK_HOST };
  struct init_process init = { .control = -1, .pidfd = -1, .proc = -1 };
  const char *step;
  int r;

  if (making->pid > 0)
    return COFFER_OK;
  r = init_start (making->self, &wanted, &init, &step);
  init_adopt (making, &init);
  return r == -1 ? spawn_refused (making, step, errno) : COFFER_OK;
}

/* An init that has ended meanwhile has said why; one that has not is told that
 * nothing more comes. */
static int32_t
tell_rest_failed (struct making *making, const char *what)
{
  if (errno != ECONNRESET)
    return coffer_fail_errno (making->call, errno, what);
  shutdown (making->control, SHUT_WR);
  return COFFER_OK;
}

static int32_t
child_tell (struct making *making)
{
  const struct init_process init = { .control = making->control,
                                     .ids = making->ids };
  struct init_prepare shape;

  if (!making->prepared) {
    shape_fill (making, &shape);
    if (shape_send (making->self, &init, &shape, &making->cgroup,
                    making->call) == -1)
      return tell_rest_failed (making, "what to prepare");
  }
  if (!making->named && making->spec->template_name == NULL
      && etc_send (making->self, making->control, making->call) == -1)
    return tell_rest_failed (making, "the names in /etc");
  if (plan_send (making) == -1)
    return tell_rest_failed (making, "sending the plan");
  /* Here, as the init is at work now and this process waits for it. */
  ids_found (making->self, &making->ids);
  return COFFER_OK;
}

/* ---- the operation ------------------------------------------------------ */

static int
metadata_keep (struct making *making)
{
  coffer_autobuffer struct coffer_buffer text = { 0 };
  const char *const *at = making->spec->metadata;
  coffer_autoclose int fd = -1;

  if (at == NULL || at[0] == NULL || making->folder < 0)
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
  info.not_applied = limits_lacking (making);
  info.metadata = making->spec->metadata;
  return coffer_emit_sandbox_info (making->call, &info);
}

static struct sandbox *
sandbox_keep (struct making *making)
{
  struct sandbox *sb = calloc (1, sizeof *sb);

  if (sb == NULL)
    return NULL;
  sb->refs = 1;
  sb->serial = 1;
  sb->pid = making->pid;
  sb->single = making->spec->single_exec != 0;
  sb->joinable = copy_may (making);
  sb->ahead = making->warm != NULL ? making->warm->number : 0;
  sb->ahead_of = making->asked;
  sb->folderless = making->folder < 0;
  sb->ids = making->ids;
  snprintf (sb->id, sizeof sb->id, "%s", making->id);
  sb->control = coffer_fd_steal (&making->control);
  sb->pidfd = coffer_fd_steal (&making->pidfd);
  sb->mount_ns = coffer_fd_steal (&making->mount_ns);
  sb->proxy = coffer_fd_steal (&making->proxy);
  sb->denials = coffer_fd_steal (&making->denials);
  pthread_mutex_init (&sb->busy, NULL);
  sandbox_add (making->self, sb);
  return sb;
}

static int32_t
making_run (struct making *making)
{
  struct coffer_call *call = making->call;
  int32_t code;

  /* First: one that is to be begun in a group was not made ahead. */
  limits_take (making);
  code = require_hold (making);
  if (code == COFFER_OK)
    code = owner_take (making);
  if (code == COFFER_OK)
    code = network_permit (making);
  if (code == COFFER_OK)
    code = mounts_prepare (making);
  if (code == COFFER_OK && making->folder >= 0) {
    making->listener = sandbox_listener (making->folder);
    if (making->listener < 0 || metadata_keep (making) == -1)
      code = coffer_fail_errno (call, errno, "the sandbox's folder");
  }
  if (code == COFFER_OK)
    code = child_spawn (making);
  if (code == COFFER_OK && making->folder >= 0
      && sandbox_note_init (making->folder, making->pidfd, making->pid,
                            &making->ids)
           == -1)
    code = coffer_fail_errno (call, errno, "the sandbox's folder");
  if (code == COFFER_OK) {
    limits_enter (making);
    code = require_hold (making);
  }
  if (code == COFFER_OK && making->spec->ttl_ms != 0)
    making->expires_ns = coffer_boottime_ns ()
                         + (int64_t) making->spec->ttl_ms * 1000000;
  if (code == COFFER_OK)
    code = child_tell (making);
  if (code == COFFER_OK)
    code = ready_take (making);
  if (code == COFFER_OK && making->network != NETWORK_NONE)
    code = network_begin (making);
  if (code == COFFER_OK && making->warm != NULL)
    code = copy_begin (making);
  if (code == COFFER_OK)
    code = info_emit (making);
  if (code == COFFER_OK && sandbox_keep (making) == NULL)
    code = coffer_fail_errno (call, ENOMEM, "the sandbox");
  return code;
}

static void
making_undo (struct making *making)
{
  siginfo_t info;

  proxy_end (&making->proxy);
  if (making->pid > 0) {
    /* It has not been waited for, so that the number is still its own; and
     * without this connection it ends by itself. */
    coffer_fd_close (&making->control);
    kill (making->pid, SIGKILL);
    waitid ((idtype_t) P_PIDFD, (id_t) making->pidfd, &info,
            WEXITED | WNOWAIT | __WALL);
  }
  ids_give (making->self, &making->ids);
  if (making->pid > 0)
    waitid ((idtype_t) P_PIDFD, (id_t) making->pidfd, &info,
            WEXITED | __WALL);
  if (making->folder >= 0)
    sandbox_remove (making->self, making->id, making->folder);
}

static void
making_fini (struct making *making)
{
  size_t i;

  warm_leave (making->self, making->warm);
  for (i = 0; i < making->n_mounts; i++) {
    free (making->sources[i]);
    if (making->mounts[i].flags & MOUNT_DETACHED)
      coffer_fd_close (&making->mount_fds[i]);
  }
  cgroup_fini (&making->cgroup);
  coffer_fd_close (&making->listener);
  coffer_fd_close (&making->proxy_listener);
  coffer_fd_close (&making->denials);
  coffer_fd_close (&making->control);
  coffer_fd_close (&making->pidfd);
  coffer_fd_close (&making->mount_ns);
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
  coffer_unfilled struct reply reply;
  const char *rest;
  int32_t code;
  size_t size;

  *exists = 0;
  if (sandbox_link (making->self, making->id, making->call, &link) == -1)
    return errno == ENOENT
      ? COFFER_OK : coffer_fail_errno (making->call, errno, "the sandbox");
  *exists = 1;
  if (link_ask (&link, &request, &reply, making->call) == -1
      || reply_body (&reply, &ready, sizeof ready) == -1)
    return coffer_fail_errno (making->call, errno, "the sandbox's facts");
  rest = reply_rest (&reply, &size);
  code = facts_namespaces (making, ready.ns_inodes);
  if (code == COFFER_OK)
    code = facts_init (making->call, &ready, rest, size);
  if (code == COFFER_OK)
    code = sandbox_emit_info (making->call, &link, making->id, making->folder);
  return code;
}

/* Must it be found again? */
static int
folder_needed (const struct coffer_sandbox_spec *spec)
{
  return !spec->single_exec || spec->lifeline < 0 || spec->memory_bytes != 0
         || required (spec, "cgroup")
         || spec->pids != 0 || spec->cpu_millis != 0
         || (spec->metadata != NULL && spec->metadata[0] != NULL);
}

static int32_t
folder_take (struct making *making, int *exists)
{
  struct coffer_call *call = making->call;
  struct sandbox *sb;
  int32_t code;
  int made;

  *exists = 0;
  if (!folder_needed (making->spec)) {
    sb = sandbox_find (making->self, making->id);
    sandbox_unref (making->self, sb);
    code = sb == NULL ? COFFER_OK : existing_emit (making, exists);
    if (code == COFFER_OK && !*exists)
      sandbox_forget (making->self, making->id);
    return code;
  }
  if (making->self->runtime < 0) {
    if (!making->spec->single_exec && making->spec->lifeline < 0)
      return coffer_fail (call, COFFER_UNAVAILABLE,
                          "there is no runtime folder: only a sandbox with a "
                          "lifeline can be made");
    return COFFER_OK;
  }
  making->folder = sandbox_folder (making->self, making->id, 1, 1,
                                   call->deadline_ns, &made);
  if (making->folder < 0)
    return coffer_fail_errno (call, errno, "the sandbox's folder");
  if (made)
    return COFFER_OK;
  code = existing_emit (making, exists);
  if (code == COFFER_OK && !*exists) {
    /* Left by one that is gone: cleared, and made anew. */
    sandbox_clear (making->folder);
    sandbox_forget (making->self, making->id);
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
    = { sizeof defaults, .lifeline = -1, .template_fd = -1 };
  struct making making = { .self = data, .call = call, .id = sandbox,
                           .spec = spec ? spec : &defaults, .folder = -1,
                           .listener = -1, .control = -1, .pidfd = -1,
                           .proc = -1, .mount_ns = -1, .cgroup = CGROUP_NONE,
                           .proxy_listener = -1, .proxy = -1,
                           .denials = -1 };
  int exists = 0;
  int32_t code;

  (void) opts;
  LAYERS_READ ();
  if (!sandbox_id_valid (sandbox))
    return coffer_fail (call, COFFER_INVALID,
                        "sandbox: letters, digits, '-', '_' and '.', at most "
                        "64 of them");
  code = spec_refuse (call, making.spec);
  if (code == COFFER_OK)
    code = network_refuse (&making);
  if (code != COFFER_OK)
    return code;
  code = copy_permit (&making);
  if (code == COFFER_OK)
    code = folder_take (&making, &exists);
  if (code == COFFER_OK && !exists) {
    code = making_run (&making);
    if (code != COFFER_OK)
      making_undo (&making);
    else
      spare_refill (making.self, &making);
  }
  making_fini (&making);
  return code;
}
