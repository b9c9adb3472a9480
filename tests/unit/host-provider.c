/* SPDX-License-Identifier: Apache-2.0 */
/* The host provider's table and sandboxes of it, for its tests. */

#define _GNU_SOURCE

#include "harness.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>

#include <coffer/fd.h>

#include "fakehost.h"
#include "host-provider.h"

const struct coffer_operations *
load_module (void)
{
  static const struct coffer_provider *provider;
  const struct coffer_provider *(*entry) (void);
  const char *build = getenv ("COFFER_BUILD");
  char path[600];
  void *module;

  if (provider)
    return provider->operations;
  snprintf (path, sizeof path, "%s/plugins/host/host.so", build ? build : ".");
  module = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  if (!module)
    fail_msg ("%s", dlerror ());
  *(void **) &entry = dlsym (module, COFFER_ENTRY_NAME);
  provider = entry ();
  assert_string_equal (provider->name, "host");
  return provider->operations;
}

void
open_provider (struct fixture *fixture)
{
  struct coffer_file helper = {.size = sizeof helper, .name = "coffer-keeper",
                               .fd = fixture->keeper};
  const struct coffer_file *const files[] = {&helper, NULL};
  struct coffer_open_opts opts = {
    .size = sizeof opts, .files = files, .runtime_dir = fixture->runtime,
    .state_dir = -1, .host = "test",
  };

  assert_int_equal (OP->open (&fixture->host.call, NULL, NULL, &opts), 0);
  fixture->self = fixture->host.self;
}

int
fixture_new (void **state)
{
  struct fixture *fixture = calloc (1, sizeof *fixture);
  const char *build = getenv ("COFFER_BUILD");
  char path[600];
  void *dir;

  if (!fixture || harness_folder_new (&dir) < 0)
    return -1;
  fixture->dir = dir;
  fixture->lifeline = -1;
  fixture->runtime = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  snprintf (path, sizeof path, "%s/plugins/host/coffer-keeper",
            build ? build : ".");
  fixture->keeper = open (path, O_RDONLY | O_CLOEXEC);
  if (fixture->keeper < 0)
    return -1;
  fixture->operations = load_module ();
  fakehost_init (&fixture->host, 8000);
  open_provider (fixture);
  *state = fixture;
  return 0;
}

int32_t
kill_sandbox (struct fixture *fixture, const char *id)
{
  fakehost_reset (&fixture->host, 15000);
  return OP->sandbox_kill (&fixture->host.call, fixture->self, id, NULL);
}

unsigned
entries (const char *dir)
{
  struct dirent *entry;
  unsigned n = 0;
  DIR *stream = opendir (dir);

  while ((entry = readdir (stream)))
    n += entry->d_name[0] != '.';
  closedir (stream);
  return n;
}

/* Nothing may be left by any test. */
int
fixture_free (void **state)
{
  struct fixture *fixture = *state;
  void *dir = fixture->dir;
  unsigned left;

  coffer_fd_close (&fixture->lifeline);
  kill_sandbox (fixture, SANDBOX);
  kill_sandbox (fixture, SANDBOX "-2");
  for (int i = 0; i < 2000 && entries (dir) > 0; i++)
    usleep (10000);
  left = entries (dir);
  OP->close (&fixture->host.call, fixture->self, NULL);
  fakehost_fini (&fixture->host);
  coffer_fd_close (&fixture->runtime);
  coffer_fd_close (&fixture->keeper);
  free (fixture);
  if (left > 0)
    print_error ("a sandbox's folder is left\n");
  return harness_folder_free (&dir) < 0 || left > 0 ? -1 : 0;
}

int32_t
create (struct fixture *fixture, const struct coffer_sandbox_spec *spec)
{
  struct coffer_sandbox_spec none = {.size = sizeof none, .lifeline = -1};

  fakehost_reset (&fixture->host, 8000);
  return OP->sandbox_create (&fixture->host.call, fixture->self, SANDBOX,
                             spec ? spec : &none, NULL);
}

int32_t
start_argv (struct fixture *fixture, const char *const *argv,
            const char *const *env, const char *cwd, int32_t in,
            const struct coffer_exec_start_opts *opts, struct run *run)
{
  int ends[2];
  int32_t code;

  *run = (struct run) {.out = -1};
  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  fakehost_reset (&fixture->host, 8000);
  code = OP->exec_start (&fixture->host.call, fixture->self, SANDBOX, argv,
                         env, cwd, in, ends[1], ends[1], opts);
  close (ends[1]);
  if (code) {
    close (ends[0]);
    return code;
  }
  run->out = ends[0];
  assert_int_equal (fakehost_count (&fixture->host, COFFER_REC_exec_info), 1);
  snprintf (run->exec, sizeof run->exec, "%s",
            FAKEHOST_GET (&fixture->host, exec_info, 0)->exec);
  return 0;
}

int32_t
start_script (struct fixture *fixture, const char *script, uint64_t timeout_ms,
              struct run *run)
{
  struct coffer_exec_start_opts opts = {.size = sizeof opts,
                                        .timeout_ms = timeout_ms};

  return start_argv (fixture, (const char *[]) {"sh", "-c", script, NULL},
                     NULL, NULL, -1, &opts, run);
}

void
wait_run (struct fixture *fixture, struct run *run)
{
  fakehost_reset (&fixture->host, 15000);
  assert_int_equal (OP->exec_wait (&fixture->host.call, fixture->self, SANDBOX,
                                   run->exec, NULL), 0);
  run->exit = *FAKEHOST_GET (&fixture->host, exec_exit, 0);
}

/* All that the command and whoever holds its pipe have written.  Fails when
 * somebody goes on holding it. */
void
read_output (struct run *run)
{
  int64_t deadline = SOON;
  struct coffer_buffer buffer = {0};
  char bytes[4096];
  ssize_t n = 1;

  while (n > 0) {
    if (coffer_wait_fd (run->out, POLLIN, deadline, -1) != 1)
      fail_msg ("somebody still holds the command's output");
    n = read (run->out, bytes, sizeof bytes);
    assert_true (n >= 0);
    coffer_buffer_add (&buffer, bytes, (size_t) n);
  }
  coffer_fd_close (&run->out);
  run->size = buffer.size;
  run->output = coffer_buffer_steal (&buffer);
}

void
run_free (struct run *run)
{
  coffer_fd_close (&run->out);
  free (run->output);
}

void
run_script (struct fixture *fixture, const char *script, struct run *run)
{
  assert_int_equal (start_script (fixture, script, 0, run), 0);
  read_output (run);
  wait_run (fixture, run);
}

void
read_line (struct run *run, char *line, size_t size)
{
  size_t n = 0;

  do
    if (coffer_wait_fd (run->out, POLLIN, SOON, -1) != 1
        || read (run->out, line + n, 1) != 1)
      fail_msg ("no line");
  while (line[n++] != '\n' && n < size - 1);
  line[n - 1] = '\0';
}

void
wait_for_runaways (struct run *run)
{
  char line[64];

  for (int i = 0; i < N_RUNAWAYS; i++)
    read_line (run, line, sizeof line);
}
