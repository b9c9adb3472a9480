/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a worker gives up what it could do: limits and
 * capabilities, no_new_privs, Landlock, seccomp last. */

#include "config.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "provider/worker/rights.h"

#define DEFAULT_MEMORY (UINT64_C (256) * 1024 * 1024)
#define DEFAULT_FILES 256
#define DEFAULT_PROCESSES 64

static uint64_t
or_default (uint64_t value, uint64_t otherwise)
{
  return value > 0 ? value : otherwise;
}

/* Hard for a strict worker.  Soft for the others: their sandboxes inherit the
 * hard ones. */
static int
set_limit (int strict, int resource, uint64_t value, struct error **err)
{
  struct rlimit limit;

  if (getrlimit (resource, &limit) < 0)
    return error_set (err, E_PERMISSION, errno, "read a limit");
  if (limit.rlim_max != RLIM_INFINITY && value > limit.rlim_max)
    value = limit.rlim_max;
  limit.rlim_cur = value;
  if (strict)
    limit.rlim_max = value;
  if (setrlimit (resource, &limit) < 0)
    return error_set (err, E_PERMISSION, errno, "set a limit");
  return 0;
}

/* RLIMIT_NPROC counts all tasks of the user.  What the whole system runs now
 * is no less than that, so that this much more is always there for us, and a
 * storm of threads still ends.  The kernel does not hold root to it. */
static uint64_t
task_limit (const struct rights *rights)
{
  coffer_autoclose int fd = open ("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  char text[128] = "";
  unsigned long tasks = 0;

  if (fd < 0 || read (fd, text, sizeof text - 1) < 0
      || sscanf (text, "%*s %*s %*s %*u/%lu", &tasks) != 1)
    tasks = 4096;
  return tasks + or_default (rights->processes, DEFAULT_PROCESSES)
         + rights->calls;
}

static int
apply_limits (const struct rights *rights, struct error **err)
{
  int strict = rights->strict;

  if (set_limit (strict, RLIMIT_NOFILE,
                 or_default (rights->files, DEFAULT_FILES), err) < 0
      || set_limit (strict, RLIMIT_CORE, 0, err) < 0)
    return -1;
#ifndef COFFER_SANITIZERS
  if (set_limit (strict, RLIMIT_DATA,
                 or_default (rights->memory_bytes, DEFAULT_MEMORY), err) < 0)
    return -1;
#endif
  if (strict && geteuid () != 0
      && set_limit (1, RLIMIT_NPROC, task_limit (rights), err) < 0)
    return -1;
  return 0;
}

/* Root without capabilities is an owner of files like any other. */
static int
drop_capabilities (struct error **err)
{
  struct __user_cap_header_struct header = {
    .version = _LINUX_CAPABILITY_VERSION_3
  };
  struct __user_cap_data_struct none[2] = { { 0 } };

  prctl (PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (syscall (SYS_capset, &header, none) < 0)
    return error_set (err, E_PERMISSION, errno, "drop the capabilities");
  return 0;
}

static int
apply_landlock (const struct rights *rights, json_t *applied,
                struct error **err)
{
  int abi = landlock_apply (rights, err);

  if (abi < 0)
    return -1;
  json_object_set_new (applied, "landlock", json_integer (abi));
  if (abi > 0)
    return abi;
  if (!rights->allow_degraded)
    return error_set (err, E_PERMISSION, 0,
                      "this kernel has no Landlock, so that read, write and "
                      "exec cannot be enforced");
  json_object_set_new (applied, "degraded", json_true ());
  return 0;
}

int
rights_apply (const struct rights *rights, json_t *applied,
              struct error **err)
{
  int abi = 0;

  if (apply_limits (rights, err) < 0)
    return -1;
  if (rights->strict) {
    umask (077);
    if (drop_capabilities (err) < 0)
      return -1;
#ifndef COFFER_SANITIZERS
    /* Yama lets only ancestors trace, unless they are named. */
    if (rights->hold)
      prctl (PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    else if (prctl (PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
      return error_set (err, E_PERMISSION, errno, "forbid dumps");
#endif
  }
  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
    return error_set (err, E_PERMISSION, errno, "no_new_privs");
  if (rights->strict) {
    abi = apply_landlock (rights, applied, err);
    if (abi < 0)
      return -1;
  }
  if (filter_apply (rights, abi, err) < 0)
    return -1;
  json_object_set_new (applied, "seccomp",
                       json_string (rights->strict ? "allow-list"
                                                   : "deny-list"));
  return 0;
}
