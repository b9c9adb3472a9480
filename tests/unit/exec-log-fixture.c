/* SPDX-License-Identifier: Apache-2.0 */
/* See exec-log-fixture.h. */

#include "config.h"

#include "harness.h"

#include <fcntl.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "exec-log-fixture.h"

void
logs_open (struct fixture *f, uint64_t cap, uint64_t cap_all)
{
  struct error *error = NULL;

  if (exec_logs_open (&f->place, cap, cap_all, NULL, &f->logs, &error) < 0)
    fail_msg ("%s", error_message (error));
}

int
fixture_new (void **state)
{
  struct fixture *f = calloc (1, sizeof *f);

  if (!f || harness_folder_new (&f->home) < 0
      || asprintf (&f->place.state, "%s/state", (char *) f->home) < 0
      || sandbox_id_new (f->sandbox, NULL) < 0)
    return -1;
  log_set_level (LOG_LEVEL_ERROR);
  *state = f;
  logs_open (f, CAP, 4 * CAP);
  return 0;
}

int
fixture_free (void **state)
{
  struct fixture *f = *state;
  int r;

  exec_logs_close (f->logs);
  r = harness_folder_free (&f->home);
  free (f->place.state);
  free (f);
  return r;
}

struct exec_log *
log_new (struct fixture *f, const char *exec)
{
  struct exec_log *log = NULL;
  struct error *error = NULL;

  if (exec_log_new (f->logs, f->sandbox, exec,
                    json_pack ("{s:s}", "exec", exec), &log, &error) < 0)
    fail_msg ("%s", error_message (error));
  return log;
}

struct exec_log *
log_again (struct fixture *f, const char *exec)
{
  struct exec_log *log = NULL;
  struct error *error = NULL;

  if (exec_log_find (f->logs, f->sandbox, exec, &log, &error) < 0)
    fail_msg ("%s", error_message (error));
  exec_log_recover (log);
  return log;
}

void
pipe_new (int ends[2])
{
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  assert_int_equal (fcntl (ends[0], F_SETFL, O_NONBLOCK), 0);
}

int
take_all (struct exec_log *log, int stream, int pipe)
{
  int r;

  while ((r = exec_log_take (log, stream, pipe)) > 0)
    ;
  return r;
}

void
put (struct exec_log *log, int stream, int ends[2], const char *text)
{
  assert_int_equal (coffer_write_all (ends[1], text, strlen (text)),
                    (ssize_t) strlen (text));
  assert_int_equal (take_all (log, stream, ends[0]), 0);
}
