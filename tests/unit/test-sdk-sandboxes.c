/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lib/sandboxes.c and spec.c: what is refused before a sandbox is made, and
 * sandboxes that are folders, by what lies on disk and which processes run. */

#define _GNU_SOURCE

#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/process.h>
#include <coffer/sandboxes.h>
#include <coffer/spec.h>

#include "fakehost.h"

#define TIMEOUT_MS 20000

/* -- ids and specifications ---- */

static void
ids_are_names_and_no_paths (void **state)
{
  static const char *const good[] = {"a", "sb-01abc", "A_b-c.d", "0", "a..b"};
  static const char *const bad[] = {"", ".", "..", ".a", "a/b", "/a", "a b",
                                    "é", "a\n", "a:b", "~", NULL};
  char text[66];

  (void) state;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    assert_int_equal (coffer_id_is_valid (good[i]), 1);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_int_equal (coffer_id_is_valid (bad[i]), 0);
  memset (text, 'x', sizeof text);
  text[65] = '\0';
  assert_int_equal (coffer_id_is_valid (text), 0);
  text[64] = '\0';
  assert_int_equal (coffer_id_is_valid (text), 1);
}

static const struct coffer_sandbox_spec defaults = {
  .size = sizeof defaults, .lifeline = -1, .template_fd = -1,
};

/* Every field of the contract, set to something and nothing else. */
static int32_t
check_field (struct fakehost *host, const char *name, const char *const *kept)
{
  static const char *const vector[] = {"x", NULL};
  static const struct coffer_mount mount = {.size = sizeof mount};
  static const struct coffer_mount *const mounts[] = {&mount, NULL};
  struct coffer_sandbox_spec spec = defaults;

#define VALUE_str "/x"
#define VALUE_text "x"
#define VALUE_strv vector
#define VALUE_u32 1
#define VALUE_u64 (UINT64_C (1) << 63)
#define VALUE_flag 1
#define VALUE_fd 0
#define SET(type, field, since, doc)                                          \
  if (strcmp (name, #field) == 0)                                             \
    spec.field = VALUE_##type;
#define RSET(type, record, field, since, doc)                                 \
  if (strcmp (name, #field) == 0)                                             \
    spec.field = mounts;
  COFFER_FIELDS_sandbox_spec (SET, RSET)
  fakehost_reset (host, TIMEOUT_MS);
  return coffer_spec_check (&host->call, "a", &spec, kept);
}

static void
a_field_that_is_not_kept_is_refused_by_name (void **state)
{
#define NAME(type, field, since, doc) #field,
#define RNAME(type, record, field, since, doc) #field,
  static const char *const names[] = {
    COFFER_FIELDS_sandbox_spec (NAME, RNAME)
  };
  struct fakehost host;

  (void) state;
  fakehost_init (&host, TIMEOUT_MS);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *const kept[] = {"none", names[i], NULL};

    assert_int_equal (check_field (&host, names[i], kept), COFFER_OK);
    assert_int_equal (host.failures, 0);
    if (strcmp (names[i], "template_fd") == 0)
      continue;                 /* comes with template_name */
    assert_int_equal (check_field (&host, names[i], NULL), COFFER_UNSUPPORTED);
    assert_int_equal (host.failures, 1);
    assert_memory_equal (host.message, names[i], strlen (names[i]));
  }
  fakehost_fini (&host);
}

static int32_t
check_exec (struct fakehost *host, const char *name, const char *const *kept)
{
  static const char *const argv[] = {"true", NULL};
  struct coffer_exec_start_opts spec = {.size = sizeof spec};

  COFFER_OPTS_exec_start (SET, RSET)
  fakehost_reset (host, TIMEOUT_MS);
  return coffer_exec_check (&host->call, argv, NULL, 0, &spec, kept);
}

static void
an_option_of_a_command_that_is_not_kept_is_refused_by_name (void **state)
{
  static const char *const names[] = {COFFER_OPTS_exec_start (NAME, RNAME)};
  struct fakehost host;

  (void) state;
  fakehost_init (&host, TIMEOUT_MS);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *const kept[] = {"none", names[i], NULL};

    assert_int_equal (check_exec (&host, names[i], kept), COFFER_OK);
    assert_int_equal (check_exec (&host, names[i], NULL), COFFER_UNSUPPORTED);
    assert_memory_equal (host.message, names[i], strlen (names[i]));
  }
  fakehost_fini (&host);
}

static void
a_command_that_makes_no_sense_is_invalid (void **state)
{
  static const char *const argv[] = {"true", NULL}, *const none[] = {NULL};
  static const char *const kept[] = {"tty", "rows", "columns", NULL};
  struct coffer_exec_start_opts opts = {.size = sizeof opts, .tty = 1};
  struct fakehost host;

  (void) state;
  fakehost_init (&host, TIMEOUT_MS);
  assert_int_equal (coffer_exec_check (&host.call, argv, "/", -1, NULL, NULL),
                    COFFER_OK);
  assert_int_equal (coffer_exec_check (&host.call, none, NULL, -1, NULL, NULL),
                    COFFER_INVALID);
  assert_int_equal (coffer_exec_check (&host.call, argv, "x", -1, NULL, NULL),
                    COFFER_INVALID);
  assert_int_equal (coffer_exec_check (&host.call, argv, "/", -1, &opts, kept),
                    COFFER_INVALID);
  opts.rows = 4096;
  assert_int_equal (coffer_exec_check (&host.call, argv, "/", 0, &opts, kept),
                    COFFER_OK);
  opts.columns = 4097;
  assert_int_equal (coffer_exec_check (&host.call, argv, "/", 0, &opts, kept),
                    COFFER_INVALID);
  fakehost_fini (&host);
}

static void
defaults_and_what_a_caller_does_not_know_are_no_demand (void **state)
{
  static const char *const none[] = {NULL};
  struct coffer_sandbox_spec spec = defaults;
  struct fakehost host;

  (void) state;
  fakehost_init (&host, TIMEOUT_MS);
  spec.env = spec.allow = spec.ports = none;
  assert_int_equal (coffer_spec_check (&host.call, "a", &spec, NULL),
                    COFFER_OK);
  assert_int_equal (coffer_spec_check (&host.call, "a", NULL, NULL),
                    COFFER_OK);
  spec = defaults;
  spec.size = 8;                /* of an older caller, with rubbish behind */
  spec.memory_bytes = 1;
  assert_int_equal (coffer_spec_check (&host.call, "a", &spec, NULL),
                    COFFER_OK);
  spec = defaults;
  spec.workdir = "relative";
  assert_int_equal (coffer_spec_check (&host.call, "a", &spec, NULL),
                    COFFER_INVALID);
  assert_int_equal (coffer_spec_check (&host.call, "../a", &defaults, NULL),
                    COFFER_INVALID);
  assert_int_equal (coffer_spec_check (&host.call, NULL, &defaults, NULL),
                    COFFER_INVALID);
  fakehost_fini (&host);
}

/* -- a set of them ---- */

struct place {
  char *dir;
  int runtime;
  char mark[48];                /* the variable's name */
  struct fakehost host;
  struct coffer_sandboxes *set;
};

static unsigned
count_entries (const char *path)
{
  DIR *dir = opendir (path);
  struct dirent *entry;
  unsigned n = 0;

  while (dir && (entry = readdir (dir)))
    n += entry->d_name[0] != '.';
  if (dir)
    closedir (dir);
  return n;
}

static int
place_new (void **state)
{
  struct place *place = calloc (1, sizeof *place);
  static unsigned n;
  void *dir;

  if (!place || harness_folder_new (&dir) < 0)
    return -1;
  place->dir = dir;
  place->runtime = open (dir, O_PATH | O_CLOEXEC);
  snprintf (place->mark, sizeof place->mark, "COFFER_TEST_%ld_%u",
            (long) getpid (), n++);
  fakehost_init (&place->host, TIMEOUT_MS);
  place->set = coffer_sandboxes_new (place->runtime, place->mark);
  *state = place;
  return place->set ? 0 : -1;
}

/* Nothing of a set is left, on disk or running. */
static int
place_free (void **state)
{
  struct place *place = *state;
  void *dir = place->dir;
  int left;

  coffer_sandboxes_free (place->set);
  left = count_entries (place->dir) != 0
         || coffer_process_signal_marked (place->mark, 0) != 0;
  fakehost_fini (&place->host);
  coffer_fd_close (&place->runtime);
  free (place);
  return harness_folder_free (&dir) || left ? -1 : 0;
}

static struct coffer_call *
next_call (struct place *place)
{
  fakehost_reset (&place->host, TIMEOUT_MS);
  return &place->host.call;
}

static struct coffer_sandbox *
create (struct place *place, const char *id,
        const struct coffer_sandbox_spec *spec)
{
  struct coffer_sandbox *sandbox = NULL;

  assert_int_equal (coffer_sandboxes_create (next_call (place), place->set, id,
                                             spec ? spec : &defaults,
                                             &sandbox), COFFER_OK);
  assert_non_null (sandbox);
  return sandbox;
}

static int32_t
find (struct place *place, const char *id)
{
  struct coffer_sandbox *sandbox;
  int32_t code = coffer_sandboxes_find (next_call (place), place->set, id,
                                        &sandbox);

  if (code == COFFER_OK)
    coffer_sandbox_put (sandbox);
  return code;
}

static void
start_sleep (struct place *place, const struct coffer_sandbox *sandbox)
{
  const struct coffer_process process = {
    .argv = (const char *const[]) {"sleep", "60", NULL}, .in = -1, .out = -1,
    .err = -1,
  };

  assert_int_equal (coffer_commands_start (next_call (place),
                                           sandbox->commands, &process, NULL),
                    COFFER_OK);
}

static void
one_is_made_found_and_killed (void **state)
{
  static const char *const env[] = {"A=1", "B=\xff", NULL};
  static const char *const metadata[] = {"who=café", NULL};
  struct place *place = *state;
  struct coffer_sandbox_spec spec = defaults;
  struct coffer_sandbox *sandbox;
  struct stat by_path, by_folder;
  char *path;

  spec.env = env;
  spec.metadata = metadata;
  sandbox = create (place, "box-1", &spec);
  assert_string_equal (sandbox->id, "box-1");
  assert_string_equal (sandbox->workdir, sandbox->path);
  assert_string_equal (sandbox->env.items[1], "B=\xff");
  assert_string_equal (sandbox->metadata.items[0], "who=café");
  assert_true (sandbox->created_ns > 0);
  assert_int_equal (stat (sandbox->path, &by_path), 0);
  assert_int_equal (fstat (sandbox->folder, &by_folder), 0);
  assert_int_equal (by_path.st_ino, by_folder.st_ino);
  assert_int_equal (by_path.st_mode & 07777, 0700);
  path = strdup (sandbox->path);
  start_sleep (place, sandbox);
  coffer_sandbox_put (sandbox);
  assert_int_equal (find (place, "box-1"), COFFER_OK);
  assert_int_equal (find (place, "box-2"), COFFER_NOT_FOUND);
  assert_int_equal (coffer_sandboxes_kill (next_call (place), place->set,
                                           "box-1"), COFFER_OK);
  assert_int_equal (access (path, F_OK), -1);
  assert_int_equal (coffer_process_signal_marked (place->mark, 0), 0);
  assert_int_equal (coffer_sandboxes_kill (next_call (place), place->set,
                                           "box-1"), COFFER_NOT_FOUND);
  assert_int_equal (place->host.failures, 1);
  free (path);
}

static void
an_id_that_exists_is_the_same_sandbox (void **state)
{
  struct place *place = *state;
  struct coffer_sandbox_spec spec = defaults;
  struct coffer_sandbox *first, *second;

  spec.workdir = "/somewhere";
  first = create (place, "a", &spec);
  second = create (place, "a", NULL);
  assert_ptr_equal (first, second);
  assert_string_equal (second->workdir, "/somewhere");
  coffer_sandbox_put (first);
  coffer_sandbox_put (second);
  assert_int_equal (find (place, "a"), COFFER_OK);
}

/* What a call holds stays whole until it lets go. */
static void
one_that_is_killed_meanwhile_can_still_be_read (void **state)
{
  struct place *place = *state;
  struct coffer_sandbox *held = create (place, "a", NULL), *again;

  assert_int_equal (coffer_sandboxes_kill (next_call (place), place->set, "a"),
                    COFFER_OK);
  again = create (place, "a", NULL);
  assert_ptr_not_equal (held, again);
  assert_string_equal (held->id, "a");
  coffer_sandbox_put (held);
  assert_int_equal (find (place, "a"), COFFER_OK);
  coffer_sandbox_put (again);
}

static void
the_end_of_a_lifeline_is_the_sandboxs (void **state)
{
  struct place *place = *state;
  struct coffer_sandbox_spec spec = defaults;
  struct coffer_sandbox *sandbox;
  int ends[2];

  assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
  spec.lifeline = ends[0];
  sandbox = create (place, "a", &spec);
  coffer_fd_close (&ends[0]);   /* a copy is kept */
  start_sleep (place, sandbox);
  coffer_sandbox_put (sandbox);
  assert_int_equal (find (place, "a"), COFFER_OK);
  coffer_fd_close (&ends[1]);
  assert_int_equal (find (place, "a"), COFFER_NOT_FOUND);
  assert_int_equal (coffer_process_signal_marked (place->mark, 0), 0);
}

static int32_t
emit_id (struct coffer_call *call, const struct coffer_sandbox *sandbox)
{
  const struct coffer_sandbox_info info = {.size = sizeof info,
                                           .sandbox = sandbox->id};

  return coffer_emit_sandbox_info (call, &info);
}

static void
each_of_them_is_visited (void **state)
{
  struct place *place = *state;
  char id[16];

  for (int i = 0; i < 30; i++) {
    snprintf (id, sizeof id, "n%d", i);
    coffer_sandbox_put (create (place, id, NULL));
  }
  assert_int_equal (coffer_sandboxes_each (next_call (place), place->set,
                                           emit_id), COFFER_OK);
  assert_int_equal (fakehost_count (&place->host, COFFER_REC_sandbox_info),
                    30);
  next_call (place);
  place->host.emit_answer = COFFER_CANCELLED;
  assert_int_equal (coffer_sandboxes_each (&place->host.call, place->set,
                                           emit_id), COFFER_CANCELLED);
  assert_int_equal (fakehost_count (&place->host, COFFER_REC_sandbox_info), 1);
}

static void
a_lifeline_that_is_closed_is_refused_and_leaves_nothing (void **state)
{
  struct place *place = *state;
  struct coffer_sandbox_spec spec = defaults;
  struct coffer_sandbox *sandbox;

  spec.lifeline = 987;
  assert_int_equal (coffer_sandboxes_create (next_call (place), place->set,
                                             "a", &spec, &sandbox),
                    coffer_code_from_errno (EBADF));
  assert_int_equal (place->host.failures, 1);
  assert_int_equal (find (place, "a"), COFFER_NOT_FOUND);
  coffer_sandbox_put (create (place, "a", NULL));
}

/* The folder of an instance that was killed goes with the next one's start;
 * that of one that lives stays. */
static void
what_a_killed_instance_left_is_swept (void **state)
{
  struct place *place = *state;
  struct coffer_sandboxes *second;
  int status;
  pid_t pid = fork ();

  if (pid == 0) {
    struct coffer_sandboxes *set = coffer_sandboxes_new (place->runtime,
                                                         place->mark);

    if (set)
      kill (getpid (), SIGKILL);
    _exit (1);
  }
  assert_int_equal (waitpid (pid, &status, 0), pid);
  assert_true (WIFSIGNALED (status));
  assert_int_equal (count_entries (place->dir), 2);
  second = coffer_sandboxes_new (place->runtime, place->mark);
  assert_non_null (second);
  assert_int_equal (count_entries (place->dir), 2);
  coffer_sandbox_put (create (place, "a", NULL));
  coffer_sandboxes_free (second);
  assert_int_equal (count_entries (place->dir), 1);
  assert_int_equal (find (place, "a"), COFFER_OK);
}

static void
without_a_folder_there_is_no_set (void **state)
{
  struct place *place = *state;
  coffer_autoclose int null = open ("/dev/null", O_RDONLY | O_CLOEXEC);

  assert_null (coffer_sandboxes_new (-1, place->mark));
  assert_int_equal (errno, EBADF);
  assert_null (coffer_sandboxes_new (null, place->mark));
  assert_int_equal (errno, ENOTDIR);
  coffer_sandboxes_free (NULL);
}

/* Threads that make, find and kill the same few, all the time. */
struct worker {
  struct coffer_sandboxes *set;
  pthread_t thread;
  int wrong;
};

static void *
work (void *data)
{
  static const char *const ids[] = {"a", "b"};
  struct worker *worker = data;
  struct coffer_sandbox *sandbox;
  struct fakehost host;
  int32_t code;

  fakehost_init (&host, TIMEOUT_MS);
  for (int i = 0; i < 20; i++) {
    const char *id = ids[i % 2];

    fakehost_reset (&host, TIMEOUT_MS);
    code = coffer_sandboxes_create (&host.call, worker->set, id, &defaults,
                                    &sandbox);
    worker->wrong |= code != COFFER_OK || strcmp (sandbox->id, id) != 0;
    if (code == COFFER_OK)
      coffer_sandbox_put (sandbox);
    code = coffer_sandboxes_kill (&host.call, worker->set, id);
    worker->wrong |= code != COFFER_OK && code != COFFER_NOT_FOUND;
  }
  fakehost_fini (&host);
  return NULL;
}

static void
threads_make_and_kill_side_by_side (void **state)
{
  struct place *place = *state;
  struct worker workers[6] = {0};

  for (int i = 0; i < 6; i++) {
    workers[i].set = place->set;
    assert_int_equal (pthread_create (&workers[i].thread, NULL, work,
                                      &workers[i]), 0);
  }
  for (int i = 0; i < 6; i++) {
    pthread_join (workers[i].thread, NULL);
    assert_int_equal (workers[i].wrong, 0);
  }
}

int
main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, place_new, place_free)
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (ids_are_names_and_no_paths),
    cmocka_unit_test (a_field_that_is_not_kept_is_refused_by_name),
    cmocka_unit_test (
      an_option_of_a_command_that_is_not_kept_is_refused_by_name),
    cmocka_unit_test (a_command_that_makes_no_sense_is_invalid),
    cmocka_unit_test (defaults_and_what_a_caller_does_not_know_are_no_demand),
    TEST (one_is_made_found_and_killed),
    TEST (an_id_that_exists_is_the_same_sandbox),
    TEST (one_that_is_killed_meanwhile_can_still_be_read),
    TEST (the_end_of_a_lifeline_is_the_sandboxs),
    TEST (each_of_them_is_visited),
    TEST (a_lifeline_that_is_closed_is_refused_and_leaves_nothing),
    TEST (what_a_killed_instance_left_is_swept),
    TEST (without_a_folder_there_is_no_set),
    TEST (threads_make_and_kill_side_by_side),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
