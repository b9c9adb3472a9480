/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer provider enable`: what was dropped in by hand is checked and gets a
 * receipt, what has not shown that it keeps the contract is tried by the kit,
 * and then the operator's file says that it is meant. */

#include <config.h>

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "cli/kit.h"
#include "cli/output.h"
#include "cli/provider.h"
#include "provider/enable.h"

/* -- the kit --------------------------------------------------------------- */

/* An interrupt is the kit's to answer: it clears away, and ends. */
static int
spawn_kit (char *const *words, int program, pid_t *pid)
{
  auto_free char *path = text_printf ("/proc/self/fd/%d", program);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t ours;
  int r;

  if (path == NULL)
    return ENOMEM;
  sigemptyset (&ours);
  sigaddset (&ours, SIGINT);
  sigaddset (&ours, SIGQUIT);
  posix_spawn_file_actions_init (&actions);
  posix_spawn_file_actions_adddup2 (&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawnattr_init (&attributes);
  posix_spawnattr_setsigdefault (&attributes, &ours);
  posix_spawnattr_setflags (&attributes, POSIX_SPAWN_SETSIGDEF);
  r = posix_spawn (pid, path, &actions, &attributes, words, environ);
  posix_spawnattr_destroy (&attributes);
  posix_spawn_file_actions_destroy (&actions);
  return r;
}

static int
wait_kit (char *const *words, int program)
{
  const struct sigaction ignore = { .sa_handler = SIG_IGN };
  struct sigaction on_int, on_quit;
  pid_t pid = 0;
  int r;

  sigaction (SIGINT, &ignore, &on_int);
  sigaction (SIGQUIT, &ignore, &on_quit);
  r = spawn_kit (words, program, &pid);
  /* Each of its cases has a deadline. */
  while (r == 0 && waitpid (pid, NULL, 0) < 0 && errno == EINTR)
    ;
  sigaction (SIGINT, &on_int, NULL);
  sigaction (SIGQUIT, &on_quit, NULL);
  return r;
}

/* As `coffer kit ID --record`, with its results on standard error.  What
 * counts is what it recorded. */
static int
run_kit (struct cli *cli, const struct place *place, const char *id,
         struct error **err)
{
  coffer_autoclose int program = kit_open_program (place, err);
  char *words[6] = { (char *) "coffer-kit", (char *) "--record" };
  size_t n = 2;
  int r;

  if (program < 0)
    return -1;
  if (cli->yes)
    words[n++] = (char *) "--yes";
  words[n++] = (char *) "--";
  words[n++] = (char *) id;
  words[n] = NULL;
  output_note ("%s has not shown yet that it keeps the contract: the conformance"
               " kit tries it", id);
  r = wait_kit (words, program);
  return r == 0 ? 0 : error_set (err, E_IO, r, "start coffer-kit");
}

/* -- enable ---------------------------------------------------------------- */

/* Nobody who could answer the kit's question: not even begun. */
static int
check_asking (const struct cli *cli, const char *id, struct error **err)
{
  if (cli->yes || (isatty (STDIN_FILENO) && isatty (STDERR_FILENO)))
    return 0;
  error_set (err, E_NOT_CONFORMANT, 0, "provider %s has to be tried by the"
             " conformance kit, which makes sandboxes with it", id);
  error_hint (err, "coffer provider enable %s --yes tries it without being"
              " asked", id);
  return -1;
}

static int
judge (void *data, const char *id, struct error **err)
{
  struct cli *cli = data;

  return check_asking (cli, id, err) < 0
           ? -1 : run_kit (cli, cli->place, id, err);
}

int
provider_enable_run (struct cli *cli, struct error **err)
{
  const struct place *place;
  int changed = 0;

  if (cli_place (cli, &place, err) < 0
      || provider_enable (place, cli->args[0], judge, cli, &changed, err) < 0)
    return -1;
  return provider_print_state (cli, place, changed, err);
}
