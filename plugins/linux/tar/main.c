/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-tar: a folder of a sandbox as tar, or a tar into it, for the module,
 * which is kept small.  What may be hostile is read here, by a process with the
 * ids of the sandbox's user and few rights (confine.c); the caller's giving up
 * and its deadline are seen here, so that what was begun is taken back.  It
 * answers with lines: "W text" for a warning, and "E code text" last. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <coffer/files.h>

#include "confine.h"
#include "tar-protocol.h"

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
  const char *failed;
  char step[96];

  prctl (PR_SET_NAME, "coffer-tar");    /* it has no file to be called after */
  if (argc != 3)
    return 2;
  call.deadline_ns = strtoll (argv[2], NULL, 10);
  if (fcntl (TAR_CANCEL, F_GETFD) == -1)
    call.cancel_fd = -1;
  failed = tar_confine (TAR_FOLDER);
  if (failed != NULL) {
    snprintf (step, sizeof step, "coffer-tar's own rights: %s", failed);
    code = coffer_fail_errno (&call, errno, step);
  } else if (strcmp (argv[1], "export") == 0)
    code = coffer_files_export (&call, TAR_FOLDER, "/", TAR_FILE);
  else
    code = coffer_files_import (&call, TAR_FOLDER, "/", TAR_FILE);
  if (code == COFFER_OK)
    say ("E", COFFER_OK, "");
  _exit (0);
}
