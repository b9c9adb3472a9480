/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-tar: a folder of a sandbox as tar, or a tar into it, for the module,
 * which is kept small.  What may be hostile is read here, by a process with the
 * ids of the sandbox's user, no capabilities, and a Landlock domain of that one
 * folder where the kernel has one that lets it rename (ABI 2); the caller's
 * giving up and its deadline are seen here, so that what was begun is taken
 * back.  It answers with lines: "W text" for a warning, and "E code text"
 * last. */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coffer/files.h>

#include "landlock.h"
#include "tar-protocol.h"

#define COUNT(array) (sizeof (array) / sizeof (array)[0])

#ifdef __has_feature
#if __has_feature (address_sanitizer) || __has_feature (thread_sanitizer)
#define SANITIZED               /* which takes more memory than there is */
#endif
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SANITIZED
#endif

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

/* ---- what it says ---------------------------------------------------------- */

static void
say (const char *word, int32_t code, const char *text)
{
  char line[TAR_LINE_MAX];
  int n;

  n = code < 0 ? snprintf (line, sizeof line - 1, "%s %s", word, text)
               : snprintf (line, sizeof line - 1, "%s %d %s", word, (int) code,
                           text);
  if (n > (int) sizeof line - 2)
    n = (int) sizeof line - 2;
  for (char *at = line; (at = strchr (at, '\n')) != NULL;)
    *at = ' ';
  line[n] = '\n';
  /* Nobody to tell it to is no reason to leave half of the work. */
  (void) !write (TAR_REPORT, line, (size_t) n + 1);
}

static int32_t
said_fail (struct coffer_call *call, int32_t code, int32_t retryable,
           const char *message, const char *details)
{
  (void) call;
  (void) retryable;
  (void) details;
  say ("E", code, message);
  return code;
}

static void
said_log (struct coffer_call *call, int32_t level, const char *text)
{
  (void) call;
  (void) level;
  say ("W", -1, text);
}

/* ---- what it may ----------------------------------------------------------- */

static int
limits_set (void)
{
  static const struct {
    int which;
    rlim_t most;
  } limits[] = {
    { RLIMIT_CORE, 0 },
    { RLIMIT_NOFILE, 1024 },
#ifndef SANITIZED
    { RLIMIT_DATA, 160 << 20 },
#endif
  };
  struct rlimit now;
  size_t i;

  for (i = 0; i < COUNT (limits); i++) {
    if (getrlimit ((__rlimit_resource_t) limits[i].which, &now) == -1)
      return -1;
    if (now.rlim_max > limits[i].most)
      now.rlim_max = limits[i].most;
    now.rlim_cur = now.rlim_max;
    if (setrlimit ((__rlimit_resource_t) limits[i].which, &now) == -1)
      return -1;
  }
  return 0;
}

static int
capabilities_drop (void)
{
  struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
  struct __user_cap_data_struct none[2];

  memset (none, 0, sizeof none);
  return prctl (PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1
           || syscall (SYS_capset, &header, none) == -1
           || prctl (PR_SET_DUMPABLE, 0, 0, 0, 0) == -1
           || prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1
    ? -1 : 0;
}

/* The folder, and nothing else; no device or program is made or run.  What a
 * first ABI forbids, renaming from one folder to another, is the work here. */
static int
landlock_enter (void)
{
  const long abi = syscall (SYS_landlock_create_ruleset, NULL, 0, 1);
  const struct landlock_shape shape = landlock_negotiate (abi, 1);
  struct {
    uint64_t access;
    int32_t fd;
  } __attribute__ ((packed)) rule = { 0, TAR_FOLDER };
  int fd, r;

  if (abi < 2)
    return 0;
  rule.access = shape.handled.files
                & ~(uint64_t) (LL_EXECUTE | LL_MAKE_CHAR | LL_MAKE_BLOCK);
  fd = (int) syscall (SYS_landlock_create_ruleset, &shape.handled, shape.size,
                      0);
  if (fd < 0)
    return -1;
  r = syscall (SYS_landlock_add_rule, fd, 1, &rule, 0) == -1
          || syscall (SYS_landlock_restrict_self, fd, 0) == -1
    ? -1 : 0;
  close (fd);
  return r;
}

/* ---- the work -------------------------------------------------------------- */

static const struct coffer_host host = {
  .size = sizeof host, .fail = said_fail, .log = said_log
};

int
main (int argc, char **argv)
{
  struct coffer_call call = { .size = sizeof call, .host = &host,
                              .cancel_fd = TAR_CANCEL };
  int32_t code = COFFER_INTERNAL;

  prctl (PR_SET_NAME, "coffer-tar");    /* it has no file to be called after */
  if (argc != 3)
    return 2;
  call.deadline_ns = strtoll (argv[2], NULL, 10);
  if (fcntl (TAR_CANCEL, F_GETFD) == -1)
    call.cancel_fd = -1;
  if (limits_set () == -1 || capabilities_drop () == -1
      || landlock_enter () == -1)
    code = coffer_fail_errno (&call, errno, "coffer-tar's own rights");
  else if (strcmp (argv[1], "export") == 0)
    code = coffer_files_export (&call, TAR_FOLDER, "/", TAR_FILE);
  else
    code = coffer_files_import (&call, TAR_FOLDER, "/", TAR_FILE);
  if (code == COFFER_OK)
    say ("E", COFFER_OK, "");
  _exit (0);
}
