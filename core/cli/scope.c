/* SPDX-License-Identifier: Apache-2.0 */
/* The login of an ordinary user has a control group that is not theirs to
 * divide; systemd gives a command one that is, when it is asked:
 * systemd-run --scope -p Delegate=yes keeps the process, its descriptors and its
 * exit status, and starts it again in that group.
 *
 * The program is looked for in fixed places, never in PATH, and must be root's
 * own: whoever can write to a folder of PATH would otherwise be run by this. */

#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/scope.h"

#define TRIED "COFFER_SCOPE"

static int
needs_group (const struct cli *cli, const struct error *error)
{
  const json_t *reported
    = error ? json_object_get (error->details, "reported") : NULL;
  const char *word
    = json_string_value (json_object_get (reported, "requirement"));

  return word && strcmp (word, "cgroup") == 0 && cli->command && !cli->group
         && strcmp (cli->command->words, "run") == 0;
}

/* The manager that would be asked is there: systemd-run would otherwise fail in
 * words of its own, and ours would be lost. */
static int
manager_answers (void)
{
  char path[64];
  struct stat st;

  if (lstat ("/run/systemd/system", &st) < 0 || !S_ISDIR (st.st_mode))
    return 0;
  if (geteuid () == 0)
    return 1;
  snprintf (path, sizeof path, "/run/user/%lu/systemd/private",
            (unsigned long) geteuid ());
  return lstat (path, &st) == 0 && st.st_uid == geteuid ();
}

static const char *
program_find (void)
{
  static const char *const paths[]
    = { "/usr/bin/systemd-run", "/bin/systemd-run" };
  struct stat st;
  size_t i;

  for (i = 0; i < sizeof paths / sizeof *paths; i++)
    if (stat (paths[i], &st) == 0 && S_ISREG (st.st_mode) && st.st_uid == 0
        && !(st.st_mode & 022) && access (paths[i], X_OK) == 0)
      return paths[i];
  return NULL;
}

static int
self_find (char path[PATH_MAX])
{
  struct stat self, named;
  ssize_t n = readlink ("/proc/self/exe", path, PATH_MAX - 1);

  if (n <= 0)
    return -1;
  path[n] = '\0';
  return stat ("/proc/self/exe", &self) == 0 && stat (path, &named) == 0
             && self.st_ino == named.st_ino && self.st_dev == named.st_dev
    ? 0 : -1;
}

static int
environment_set (void)
{
  char runtime[64];

  if (setenv (TRIED, "1", 1) < 0)
    return -1;
  snprintf (runtime, sizeof runtime, "/run/user/%lu",
            (unsigned long) geteuid ());
  return geteuid () == 0 ? 0 : setenv ("XDG_RUNTIME_DIR", runtime, 0);
}

void
scope_run_again (const struct cli *cli, char **argv, const struct error *error)
{
  char self[PATH_MAX];
  const char *program = program_find (), **again;
  const char *const first[]
    = { "systemd-run", geteuid () == 0 ? "--system" : "--user", "--scope",
        "--quiet", "--collect", "-p", "Delegate=yes", "--", self };
  const size_t n_first = sizeof first / sizeof *first;
  size_t n;

  if (!needs_group (cli, error) || getenv (TRIED) || !program
      || !manager_answers () || self_find (self) < 0)
    return;
  for (n = 0; argv[n]; n++)
    ;
  again = calloc (n_first + n + 1, sizeof *again);
  if (!again || environment_set () < 0) {
    free (again);
    return;
  }
  memcpy (again, first, sizeof first);
  if (n > 1)
    memcpy (again + n_first, argv + 1, (n - 1) * sizeof *again);
  execv (program, (char **) again);
  free (again);
}
