/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-contained: becomes a program that is held without namespaces, for
 * machines that have none and whose operator has said that the container around
 * is the layer in their place.
 *
 *   coffer-contained UID ADDRESS FILE FILES PROCESSES SECONDS FOLDER PROGRAM…
 *
 * Standard input and output are the program's, its error output is descriptor 3.
 * A user id that nobody else has, limits of each process, no privileges,
 * Landlock and the strict filter are put on, each looked at again, and told on
 * descriptor 4 as facts; with one that does not hold nothing is started, and
 * {"error"} says which. */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter.h"
#include "landlock.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define ERRORS_FD 3
#define REPORT_FD 4
#define ARGUMENTS 8             /* up to PROGRAM */
/* Readable by all everywhere, and named by no rule. */
#define PROBE "/proc/self/status"

static char facts[1024];

static void die (const char *step) __attribute__ ((noreturn));

static void
die (const char *step)
{
  dprintf (REPORT_FD, "{\"error\":\"%s: %s\"}", step, strerror (errno));
  _exit (125);
}

static void
fact (const char *name, const char *value, const char *how)
{
  const size_t n = strlen (facts);

  snprintf (facts + n, sizeof facts - n,
            "%s{\"name\":\"%s\",\"state\":\"ok\",\"value\":\"%s\","
            "\"how\":\"%s\"}", n ? "," : "", name, value, how);
}

static unsigned long
number (const char *text)
{
  unsigned long value;
  char *end;

  errno = 0;
  value = strtoul (text, &end, 10);
  if (*text < '0' || *text > '9' || *end || errno) {
    errno = EINVAL;
    die ("an argument");
  }
  return value;
}

/* ---- user and limits ---------------------------------------------------- */

static void
become (uid_t uid, const char *text)
{
  uid_t real, effective, saved;

  if (uid == 0 || setgroups (0, NULL) < 0 || setresgid (uid, uid, uid) < 0
      || setresuid (uid, uid, uid) < 0)
    die ("a user of its own");
  if (getresuid (&real, &effective, &saved) < 0 || real != uid
      || effective != uid || saved != uid || setuid (0) == 0)
    die ("a user of its own does not hold");
  fact ("user", text, "getresuid");
}

static void
limit (int which, unsigned long value)
{
  struct rlimit limit = { value, value }, now;

  if (setrlimit ((__rlimit_resource_t) which, &limit) < 0
      || getrlimit ((__rlimit_resource_t) which, &now) < 0
      || now.rlim_max != value)
    die ("a limit");
}

static void
limits (char **argument)
{
  limit (RLIMIT_AS, number (argument[2]));
  limit (RLIMIT_FSIZE, number (argument[3]));
  limit (RLIMIT_NOFILE, number (argument[4]));
  limit (RLIMIT_NPROC, number (argument[5]));
  limit (RLIMIT_CPU, number (argument[6]));
  limit (RLIMIT_MEMLOCK, 0);
  limit (RLIMIT_MSGQUEUE, 0);
  /* One byte, so that no handler of the machine's runs. */
  limit (RLIMIT_CORE, 1);
  fact ("limits", "address, file, files, processes, cpu", "getrlimit");
}

/* ---- Landlock ----------------------------------------------------------- */

static void
allow (int ruleset, const struct landlock_shape *shape, const char *path,
       enum landlock_place place)
{
  struct {
    uint64_t access;
    int32_t fd;
  } __attribute__ ((packed)) rule = { landlock_grant (place, shape), -1 };

  rule.fd = open (path, O_PATH | O_CLOEXEC);
  if (rule.fd < 0 && errno == ENOENT)
    return;
  if (rule.fd < 0
      || syscall (SYS_landlock_add_rule, ruleset, 1, &rule, 0) < 0)
    die ("a rule of Landlock");
  close (rule.fd);
}

static void
allow_all (int ruleset, const struct landlock_shape *shape)
{
  static const char *const programs[]
    = { "/usr", "/bin", "/lib", "/lib64", "/etc/alternatives",
        "/etc/fonts" };
  static const char *const files[]
    = { "/etc/ld.so.cache", "/etc/localtime", "/etc/matplotlibrc" };
  static const char *const devices[]
    = { "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom" };
  size_t i;

  for (i = 0; i < sizeof programs / sizeof programs[0]; i++)
    allow (ruleset, shape, programs[i], LANDLOCK_PROGRAMS);
  for (i = 0; i < sizeof files / sizeof files[0]; i++)
    allow (ruleset, shape, files[i], LANDLOCK_SHOWN_FILE);
  for (i = 0; i < sizeof devices / sizeof devices[0]; i++)
    allow (ruleset, shape, devices[i], LANDLOCK_SHARED_FILE);
  allow (ruleset, shape, ".", LANDLOCK_DATA);
}

static int
probe_opens (void)
{
  const int fd = open (PROBE, O_RDONLY | O_CLOEXEC);

  if (fd >= 0)
    close (fd);
  return fd >= 0;
}

static void
landlock_enter (void)
{
  const long abi = syscall (SYS_landlock_create_ruleset, NULL, 0, 1);
  const struct landlock_shape shape = landlock_negotiate (abi, 1);
  char value[32];
  int ruleset;

  if (shape.size == 0 || !probe_opens ())
    die ("Landlock");
  ruleset = (int) syscall (SYS_landlock_create_ruleset, &shape.handled,
                           shape.size, 0);
  if (ruleset < 0)
    die ("Landlock");
  allow_all (ruleset, &shape);
  if (syscall (SYS_landlock_restrict_self, ruleset, 0) < 0)
    die ("Landlock");
  close (ruleset);
  if (probe_opens ())
    die ("Landlock does not hold");
  snprintf (value, sizeof value, "ABI %ld", abi);
  fact ("landlock", value,
        "a file outside its rules opened before, and not after");
}

/* ---- the filter --------------------------------------------------------- */

static void
filter_enter (uint64_t *secret)
{
  const struct sock_fprog program
    = { sizeof filter_strict / sizeof filter_strict[0], filter_strict };

  if (getrandom (secret, sizeof *secret, 0) != (ssize_t) sizeof *secret)
    die ("a secret");
  filter_strict[FILTER_SECRET_LOW].k = (uint32_t) *secret;
  filter_strict[FILTER_SECRET_HIGH].k = (uint32_t) (*secret >> 32);
  if (syscall (SYS_seccomp, 1 /* filter */, 0, &program) < 0)
    die ("the filter");
  if (syscall (SYS_getppid) != -1 || errno != EPERM)
    die ("the filter does not hold");
  fact ("seccomp", "2", "a call that it refuses was refused");
  fact ("seccomp.profile", "strict",
        "a call that only this one refuses was refused");
}

static void
report (void)
{
  static char whole[sizeof facts + 32];
  const int n = snprintf (whole, sizeof whole, "{\"facts\":[%s]}", facts);

  if (write (REPORT_FD, whole, (size_t) n) != n)
    _exit (125);
}

int
main (int argc, char **argv)
{
  static char *environment[]
    = { (char *) "PATH=/usr/bin:/bin", (char *) "LANG=C.UTF-8",
        (char *) "HOME=.", (char *) "TMPDIR=.", NULL };
  uint64_t secret;

  if (argc <= ARGUMENTS || chdir (argv[7]) < 0)
    die ("its folder");
  become ((uid_t) number (argv[1]), argv[1]);
  limits (argv);
  if (dup2 (ERRORS_FD, 2) < 0 || setsid () < 0
      || prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
      || prctl (PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
    die ("no new privileges");
  fact ("no_new_privs", "1", "PR_GET_NO_NEW_PRIVS");
  landlock_enter ();
  if (syscall (SYS_close_range, REPORT_FD + 1, ~0U, 0) < 0
      || fcntl (REPORT_FD, F_SETFD, FD_CLOEXEC) < 0 || close (ERRORS_FD) < 0)
    die ("descriptors");
  fact ("container", "declared by the operator", "configuration");
  filter_enter (&secret);
  report ();
  syscall (SYS_execve, argv[ARGUMENTS], argv + ARGUMENTS, environment, 0L, 0L,
           secret);
  _exit (127);
}
