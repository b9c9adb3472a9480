/* SPDX-License-Identifier: Apache-2.0 */
/* The program that is called `coffer`, where there is a C library for it that
 * starts at once: it executes the one that knows all (libexec/coffer/coffer).
 *
 * The start of that one takes as long as the kernel takes for the first process
 * of a sandbox.  So for a run as most are, a helper begins that process
 * meanwhile.  Nobody has read the configuration yet or all of the command line:
 * when another sandbox is wanted than that, or none, it ends, and has cost a
 * processor some moments.  What fails here is told by no one; it is done once
 * more, by the other. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/place.h"
#include "base/text.h"
#include "cli/begun.h"
#include "provider/integrity.h"

#define PROVIDER "linux"

int coffer_linux_front (int init, int runtime_dir, int channel);
extern const char coffer_linux_init[], coffer_linux_init_end[];

static int channel[2];

/* ---- what is begun ------------------------------------------------------- */

/* Options for which a sandbox is begun otherwise, or not at all, wherever they
 * stand before the command. */
static int
is_otherwise (const char *word)
{
  static const char *const names[]
    = { "profile", "template", "net", "mem", "cpus", "pids", "disk", "python",
        "provider", "host", "help", "version" };
  size_t i;

  if (strcmp (word, "-h") == 0)
    return 1;
  for (i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strncmp (word, "--", 2) == 0
        && strncmp (word + 2, names[i], strlen (names[i])) == 0)
      return 1;
  return 0;
}

/* A provider by its variable, as far as it counts. */
static int
is_elsewhere (const char *name)
{
  const char *value = getenv (name);

  return value && *value && strcmp (value, PROVIDER) != 0;
}

static int
is_usual (int argc, char **argv)
{
  int i;

  if (argc < 3 || strcmp (argv[1], "run") != 0 || getauxval (AT_SECURE)
      || is_elsewhere ("COFFER_PROVIDER") || is_elsewhere ("BOX_BACKEND"))
    return 0;
  for (i = 0; i <= STDERR_FILENO; i++)
    if (fcntl (i, F_GETFD) < 0)
      return 0;
  for (i = 2; i < argc && strcmp (argv[i], "--") != 0; i++)
    if (is_otherwise (argv[i]))
      return 0;
  return 1;
}

/* In memory that the process has given up, or is about to. */
static int
help (void *none)
{
  coffer_autoclose int dir = -1, init = -1;
  struct place *place;
  char *runtime;

  (void) none;
  close (channel[0]);
  if (place_find (&place, NULL) < 0)
    _exit (1);
  runtime = place_provider_runtime (place, PROVIDER);
  /* Nothing is made there: it may yet be refused. */
  dir = runtime ? place_open_trusted_dir (runtime, NULL) : -1;
  init = dir < 0 ? -1
    : integrity_keep ("coffer-init", coffer_linux_init,
                      (size_t) (coffer_linux_init_end - coffer_linux_init),
                      NULL);
  _exit (init < 0 || coffer_linux_front (init, dir, channel[1]) == -1);
}

/* The helper shares this process's memory: from here on nothing is asked of
 * the C library but to execute. */
static void
begin (void)
{
  static char stack[131072] __attribute__ ((aligned (64)));
  static char text[sizeof BEGUN_VARIABLE + 64] = BEGUN_VARIABLE "=";
  pid_t helper;

  if (putenv (text) != 0
      || socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) < 0)
    return;
  helper = clone (help, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
  close (channel[1]);
  if (helper < 0) {
    close (channel[0]);
    return;
  }
  fcntl (channel[0], F_SETFD, 0);
  snprintf (text, sizeof text, BEGUN_VARIABLE "=" BEGUN_FORMAT,
            (int) getpid (), channel[0], (int) helper);
}

/* ---- what is executed ---------------------------------------------------- */

/* Installed below another root (DESTDIR) both are there. */
static void
execute_below (char **argv)
{
  static const char own[] = FRONT_PATH;
  char self[PATH_MAX], path[PATH_MAX];
  ssize_t n = readlink ("/proc/self/exe", self, sizeof self - 1);
  const ssize_t below = n - (ssize_t) strlen (own);

  if (below <= 0)
    return;
  self[n] = '\0';
  if (strcmp (self + below, own) == 0
      && snprintf (path, sizeof path, "%.*s%s/coffer", (int) below, self,
                   place_builtin_libexec) < (int) sizeof path)
    execv (path, argv);
}

static void
execute (char **argv)
{
  char path[PATH_MAX];

  execute_below (argv);
  snprintf (path, sizeof path, "%s/coffer", place_builtin_libexec);
  execv (path, argv);
  dprintf (STDERR_FILENO, "coffer: E%d: execute %s: %s\n"
           "hint: coffer is not whole: install it again\n", E_IO, path,
           strerror (errno));
}

int
main (int argc, char **argv)
{
  if (is_usual (argc, argv))
    begin ();
  execute (argv);
  return 125;
}
