/* SPDX-License-Identifier: Apache-2.0 */
/* See rights.h. */

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rights.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define ASK_VERSION 1
#define RULE_PATH 1
#define RULE_PORT 2
#define PORT_CONNECT 2

const char *
limits_lower (const struct rights_limit *limits, size_t count)
{
  struct rlimit now;
  size_t i;

  for (i = 0; i < count; i++) {
    if (getrlimit ((__rlimit_resource_t) limits[i].which, &now) == -1)
      return "getrlimit";
    if (now.rlim_max > limits[i].most)
      now.rlim_max = limits[i].most;
    now.rlim_cur = now.rlim_max;
    if (setrlimit ((__rlimit_resource_t) limits[i].which, &now) == -1)
      return "setrlimit";
  }
  return NULL;
}

const char *
capabilities_drop (void)
{
  struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
  struct __user_cap_data_struct none[2];

  memset (none, 0, sizeof none);
  if (prctl (PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1
      || syscall (SYS_capset, &header, none) == -1)
    return "capset";
  if (prctl (PR_SET_DUMPABLE, 0, 0, 0, 0) == -1
      || prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
    return "no_new_privs";
  return NULL;
}

/* ---- Landlock ------------------------------------------------------------- */

long
landlock_abi (void)
{
  const long abi
    = syscall (SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);

  return abi == -1 && (errno == ENOSYS || errno == EOPNOTSUPP) ? 0 : abi;
}

int
landlock_allow (int ruleset, int fd, uint64_t access)
{
  const struct {
    uint64_t access;
    int32_t fd;
  } __attribute__ ((packed)) rule = { access, fd };

  return syscall (SYS_landlock_add_rule, ruleset, RULE_PATH, &rule, 0) == -1
    ? -1 : 0;
}

int
landlock_allow_port (int ruleset, uint64_t port)
{
  const struct {
    uint64_t access, port;
  } rule = { PORT_CONNECT, port };

  return syscall (SYS_landlock_add_rule, ruleset, RULE_PORT, &rule, 0) == -1
    ? -1 : 0;
}

const char *
landlock_restrict (const struct landlock_shape *shape,
                   int (*rules) (int ruleset, const void *data),
                   const void *data)
{
  const int fd = (int) syscall (SYS_landlock_create_ruleset, &shape->handled,
                                shape->size, 0);
  const char *failed = NULL;

  if (fd < 0)
    return "landlock_create_ruleset";
  if (rules (fd, data) == -1)
    failed = "landlock_add_rule";
  else if (syscall (SYS_landlock_restrict_self, fd, 0) == -1)
    failed = "landlock_restrict_self";
  close (fd);
  return failed;
}
