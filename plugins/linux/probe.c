/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine lets a sandbox have, found by trying where trying is the
 * only way to know, and what an operator can do about the rest. */

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clone.h"
#include "kernel.h"
#include "linux.h"

/* Words that are gone when no sandbox can be made at all. */
static const char *const everything[]
  = { "exec", "exec.stdin", "exec.tty", "exec.signal", "exec.background",
      "exec.warm",
      "files", "durable", "ttl", "metrics", "mounts.bind", "network.allow",
      NULL };

static int32_t
fact (struct coffer_call *call, const char *name, const char *state,
      const char *value, const char *how, const char *remedy,
      const char *const *narrows)
{
  struct coffer_fact record = { sizeof record };

  record.name = name;
  record.state = state;
  record.value = value;
  record.how = how;
  record.remedy = remedy;
  record.narrows = narrows;
  return coffer_emit_fact (call, &record);
}

static long
sysctl_read (const char *path)
{
  coffer_autoclose int fd = open (path, O_RDONLY | O_CLOEXEC);
  char text[32] = "";
  ssize_t n = fd < 0 ? -1 : read (fd, text, sizeof text - 1);

  return n <= 0 ? -1 : strtol (text, NULL, 10);
}

/* ---- namespaces --------------------------------------------------------- */

struct trial {
  const char *step;             /* what a sandbox's beginning asks for */
  int step_errno, proc_errno;
};

/* A file system of that kind that nothing is mounted on yet; -1. */
static long
trial_mount (const char *kind)
{
  const long fs = syscall (SYS_fsopen, kind, 1);

  return fs < 0 || syscall (SYS_fsconfig, fs, 6, NULL, NULL, 0) == -1
    ? -1 : syscall (SYS_fsmount, fs, 1, 0);
}

/* A new root in place of this one. */
static int
trial_root (struct trial *trial)
{
  static const uint64_t attributes[4] = { 1 /* read-only */, 0, 0, 0 };
  long root, tree;

  trial->step = "a root in memory";
  root = trial_mount ("tmpfs");
  if (root < 0)
    return -1;
  trial->step = "open_tree";
  tree = syscall (SYS_open_tree, AT_FDCWD, "/usr",
                  OPEN_TREE_CLONE_ | AT_RECURSIVE_);
  if (tree < 0)
    return -1;
  trial->step = "mount_setattr";
  if (syscall (SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE_,
               attributes, sizeof attributes) == -1 && errno != ENOSYS)
    return -1;                  /* for that there is a fact of its own */
  trial->step = "move_mount";
  if (syscall (SYS_move_mount, root, "", AT_FDCWD, "/", MOVE_EMPTY_) == -1
      || syscall (SYS_fchdir, root) == -1)
    return -1;
  trial->step = "pivot_root";
  return syscall (SYS_pivot_root, ".", ".") == -1 ? -1 : 0;
}

/* In new namespaces, in this process's memory: system calls only. */
static int
trial_main (void *data)
{
  struct trial *trial = data;

  trial->step = "mount";
  if (syscall (SYS_mount, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0) {
    trial->proc_errno = trial_mount ("proc") < 0 ? errno : 0;
    if (trial_root (trial) == 0) {
      trial->step_errno = 0;
      return 0;
    }
  }
  trial->step_errno = errno;
  return 1;
}

static int
trial_run (struct trial *trial)
{
  const int flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET
                    | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | SIGCHLD;
  const pid_t pid = clone_waited (trial_main, trial, flags, NULL);

  if (pid < 0)
    return -1;
  while (waitpid (pid, NULL, __WALL) == -1 && errno == EINTR)
    ;
  return 0;
}

/* Why they cannot be made, and what changes it.  The settings that hold only
 * for ordinary users are no reason for root. */
static const char *
userns_remedy (int error, const char **cause)
{
  const int root = geteuid () == 0;

  *cause = NULL;
  if (sysctl_read ("/proc/sys/user/max_user_namespaces") == 0) {
    *cause = "user.max_user_namespaces is 0";
    return "sudo sysctl user.max_user_namespaces=15000";
  }
  if (error == ENOSPC) {
    *cause = "as many as user.max_user_namespaces allows";
    return "sudo sysctl user.max_user_namespaces=15000";
  }
  if (!root
      && sysctl_read ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
           == 1) {
    *cause = "AppArmor keeps them from programs without a profile";
    return "sudo sh contrib/apparmor/install /PATH/OF/coffer, or sudo sysctl "
           "kernel.apparmor_restrict_unprivileged_userns=0";
  }
  if (!root
      && sysctl_read ("/proc/sys/kernel/unprivileged_userns_clone") == 0) {
    *cause = "kernel.unprivileged_userns_clone is 0";
    return "sudo sysctl kernel.unprivileged_userns_clone=1";
  }
  if (error == EINVAL || error == ENOSYS)
    return "a kernel with all of CONFIG_*_NS";
  return "in a container: --security-opt seccomp=unconfined and "
         "apparmor=unconfined; a chroot: entered by systemd-nspawn; or another "
         "provider";
}

static int32_t
probe_namespaces (struct coffer_call *call)
{
  struct trial trial = { NULL, -1, 0 };
  const char *cause, *remedy;
  char value[160];
  int32_t code;
  int error = 0;

  if (trial_run (&trial) == -1)
    error = errno;
  else
    error = trial.step_errno;
  if (error != 0) {
    remedy = userns_remedy (error, &cause);
    snprintf (value, sizeof value, "cannot be %s%s: %s%s%s",
              trial.step ? "used: " : "made", trial.step ? trial.step : "",
              strerror (error), cause ? ": " : "", cause ? cause : "");
    return fact (call, "userns", "failed", value, "made one and mounted in it",
                 remedy, everything);
  }
  code = fact (call, "userns", "ok", "all seven namespaces can be made",
               "made one and mounted in it", NULL, NULL);
  if (code != COFFER_OK)
    return code;
  if (trial.proc_errno == 0)
    return fact (call, "proc", "ok", "a new one can be mounted",
                 "mounted one", NULL, NULL);
  snprintf (value, sizeof value, "a new one cannot be mounted: %s%s",
            strerror (trial.proc_errno),
            trial.proc_errno == EPERM
              ? ": something lies over parts of /proc here" : "");
  return fact (call, "proc", "failed", value, "tried to mount one",
               "in a container: --security-opt systempaths=unconfined; "
               "Kubernetes: procMount: Unmasked",
               everything);
}

/* ---- the rest ----------------------------------------------------------- */

static int32_t
probe_kernel (struct coffer_call *call)
{
  const char *why = "Linux 5.12 or newer";

  if (syscall (SYS_mount_setattr, -1, "", 0, NULL, 0) == -1
      && errno == ENOSYS)
    return fact (call, "mounts", "failed", "mount_setattr is not there",
                 "called it", why, everything);
  return fact (call, "mounts", "ok",
               geteuid () == 0 ? "detached and id-mapped" : "detached",
               "called mount_setattr", NULL, NULL);
}

static int32_t
probe_confinement (struct coffer_call *call)
{
  uint32_t action = SECCOMP_RET_KILL_PROCESS;
  long abi = landlock_abi ();
  char value[32];
  int32_t code;

  if (syscall (SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == -1)
    code = fact (call, "seccomp", "failed", "filters are not there",
                 "SECCOMP_GET_ACTION_AVAIL", "a kernel with CONFIG_SECCOMP",
                 everything);
  else
    code = fact (call, "seccomp", "ok", "filters", "SECCOMP_GET_ACTION_AVAIL",
                 NULL, NULL);
  if (code != COFFER_OK)
    return code;
  if (abi <= 0)
    return fact (call, "landlock", "absent", strerror (errno),
                 "landlock_create_ruleset",
                 "boot with landlock in the lsm= list, Linux 5.13 or newer",
                 NULL);
  snprintf (value, sizeof value, "ABI %ld", abi);
  return fact (call, "landlock", "ok", value, "landlock_create_ruleset", NULL,
               NULL);
}

static int32_t
probe_cgroup (struct coffer_call *call)
{
  const char *why = NULL, *narrows[3] = { NULL, NULL, NULL };
  unsigned bits = cgroup_usable (&why);
  char value[64];
  size_t n = 0;

  /* Processes are counted without a group as well. */
  if (!(bits & CGROUP_MEMORY))
    narrows[n++] = "limit.memory";
  if (!(bits & CGROUP_CPU))
    narrows[n++] = "limit.cpu";
  if (bits == 0)
    return fact (call, "cgroup", "absent", "limits are those of processes",
                 "looked for this process's own group", why, narrows);
  snprintf (value, sizeof value, "%s%s%s",
            bits & CGROUP_MEMORY ? "memory " : "",
            bits & CGROUP_PIDS ? "pids " : "", bits & CGROUP_CPU ? "cpu" : "");
  return fact (call, "cgroup", why ? "degraded" : "ok", value,
               "looked for this process's own group", why,
               n > 0 ? narrows : NULL);
}

/* Of workspaces that last: what lies in memory is always capped. */
static int32_t
probe_quota (struct coffer_call *call)
{
  static const char how[] = "looked for /dev/loop-control and mke2fs";

  if (geteuid () != 0)
    return fact (call, "quota", "degraded", "in memory alone", "geteuid",
                 "as root a file can be a workspace: -w FILE:rw", NULL);
  if (access ("/dev/loop-control", R_OK | W_OK) == -1)
    return fact (call, "quota", "degraded", "in memory alone", how,
                 "modprobe loop; a container needs /dev/loop-control and "
                 "/dev/loop*",
                 NULL);
  if (access ("/usr/sbin/mke2fs", X_OK) == -1
      && access ("/sbin/mke2fs", X_OK) == -1)
    return fact (call, "quota", "degraded", "in images that are there", how,
                 "install e2fsprogs", NULL);
  return fact (call, "quota", "ok", "in memory, and in images of a workspace",
               how, NULL, NULL);
}

static int32_t
probe_ids (struct linux_provider *self, struct coffer_call *call)
{
  const char *why = NULL;
  char value[64];

  if (ids_look (self, value, sizeof value, &why) == -1)
    return fact (call, "ids", "failed", why, "/proc/self/uid_map",
                 "run as an ordinary user", everything);
  return fact (call, "ids", "ok", value, "/proc/self/uid_map", NULL, NULL);
}

/* An ordinary user has one uid for all, and nothing to change that. */
static int32_t
probe_privileges (struct coffer_call *call)
{
  if (geteuid () == 0)
    return fact (call, "privileges", "ok", "each sandbox has ids of its own",
                 "geteuid", NULL, NULL);
  return fact (call, "privileges", "degraded",
               "an ordinary user: sandboxes share the caller's uid outside",
               "geteuid", "as root each sandbox has ids of its own", NULL);
}

static int32_t
probe_warm (struct coffer_call *call)
{
  static const char *const narrows[] = { "exec.warm", NULL };
  const char *python = zygote_python ();

  if (!WARM_BUILT)
    return fact (call, "warm", "off", "coffer was built without Python.h",
                 "the build", "install python3-dev, and build coffer anew",
                 NULL);
  if (python != NULL)
    return fact (call, "warm", "ok", python, "looked for python3", NULL,
                 NULL);
  return fact (call, "warm", "absent", "no interpreter",
               "looked for python3 in " PROGRAM_PATH,
               "install python3 there", narrows);
}

static int32_t
probe_runtime (struct linux_provider *self, struct coffer_call *call)
{
  static const char *const narrows[] = { "durable", "ttl", NULL };

  if (self->runtime >= 0)
    return COFFER_OK;
  return fact (call, "runtime", "absent", "no runtime folder", "open",
               "a writable XDG_RUNTIME_DIR or /tmp", narrows);
}

int32_t
linux_probe (struct coffer_call *call, void *data,
             const struct coffer_probe_opts *opts)
{
  struct linux_provider *self = data;
  int32_t code = sandbox_visit_all (self, call, 0);

  (void) opts;
  if (code == COFFER_OK)
    code = probe_namespaces (call);
  if (code == COFFER_OK)
    code = probe_kernel (call);
  if (code == COFFER_OK)
    code = probe_confinement (call);
  if (code == COFFER_OK)
    code = probe_cgroup (call);
  if (code == COFFER_OK)
    code = probe_quota (call);
  if (code == COFFER_OK)
    code = probe_ids (self, call);
  if (code == COFFER_OK)
    code = probe_privileges (call);
  if (code == COFFER_OK)
    code = probe_warm (call);
  if (code == COFFER_OK)
    code = probe_runtime (self, call);
  return code;
}
