/* SPDX-License-Identifier: Apache-2.0 */
/* The system call filters by what they do to a process in a sandbox: each row
 * that refuses is tried there, in both profiles, and the errno that comes back
 * is the row's; what ends a process ends it. */

#include "harness.h"

#include <errno.h>
#include <seccomp.h>
#include <signal.h>

#include "filter-table.h"
#include "linux-host.h"

#define LENGTH(array) (sizeof (array) / sizeof (array)[0])

static struct linux_host host;
static struct outcome outcome;

static const struct row {
  const char *name;
  char action[2];
  int number;
} rows[] = {
#define X(name, general, strict, number) \
  { #name, { FILTER_##general, FILTER_##strict }, number },
  FILTER_CALLS (X)
#undef X
};

static int
row_number (const struct row *row)
{
  int found = seccomp_syscall_resolve_name (row->name);

  return found == __NR_SCMP_ERROR ? row->number : found;
}

static char
number_action (int nr, int strict)
{
  size_t i;

  for (i = 0; i < LENGTH (rows); i++)
    if (row_number (&rows[i]) == nr)
      return rows[i].action[strict];
  return 'N';
}

static void
sandbox_make (int strict, int single)
{
  struct coffer_sandbox_spec spec
    = { .size = sizeof spec, .lifeline = -1,
        .filter = strict ? "strict" : "general",
        .single_exec = (uint32_t) single };

  host_kill (&host, "calls");   /* what a failed test may have left */
  if (host_create (&host, "calls", &spec) != COFFER_OK)
    fail_msg ("%s", host.error);
  assert_non_null (strstr (host.facts, strict ? "seccomp.profile ok strict"
                                              : "seccomp.profile ok general"));
  host_payload (&host, "calls");
}

static void
payload_run (const char *name, const char *argument)
{
  const char *argv[] = { "./payload", name, argument, NULL };

  assert_int_equal (host_run (&host, "calls", argv, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
}

static void
payload_held (const char *name, const char *argument)
{
  payload_run (name, argument);
  if (host.exit.code != 0)
    fail_msg ("%s: code %d signal %d %s\n%s%s", name, host.exit.code,
              host.exit.signal, host.failure, outcome.out, outcome.err);
}

/* uretprobe and uprobe: newer kernels ask no filter about them, and end by
 * SIGILL whoever calls them from anywhere but the kernel's own trampoline. */
static int
number_unfiltered (int nr)
{
#if defined __x86_64__
  return nr == 335 || nr == 336;
#else
  (void) nr;
  return 0;
#endif
}

/* Every number that is refused without a look at its arguments. */
static void
refusals_try (int strict)
{
  char list[16384];
  size_t size = 0;
  int nr, tried = 0;
  char action;

  for (nr = 0; nr < 600; nr++) {
    action = number_action (nr, strict);
    if ((action != 'E' && action != 'N') || number_unfiltered (nr))
      continue;
    size += (size_t) snprintf (list + size, sizeof list - size, "%s%d %d",
                               size ? "," : "", nr,
                               action == 'E' ? EPERM : ENOSYS);
    assert_true (size < sizeof list);
    tried++;
  }
  assert_true (tried > 200);
  payload_held ("calls", list);
  payload_held ("calls", "1023 38,1073741823 38,-1 38");
}

static void
every_refusal_of_general_is_seen_inside (void **state)
{
  (void) state;
  sandbox_make (0, 0);
  refusals_try (0);
  assert_int_equal (host_kill (&host, "calls"), COFFER_OK);
}

static void
every_refusal_of_strict_is_seen_inside (void **state)
{
  char list[32];
  size_t i;
  int ended = 0;

  (void) state;
  sandbox_make (1, 0);
  refusals_try (1);
  for (i = 0; i < LENGTH (rows); i++) {
    if (rows[i].action[1] != 'K' || row_number (&rows[i]) < 0)
      continue;
    snprintf (list, sizeof list, "%d 1", row_number (&rows[i]));
    payload_run ("calls", list);
    if (host.exit.signal != SIGSYS)
      fail_msg ("%s: code %d signal %d\n%s", rows[i].name, host.exit.code,
                host.exit.signal, outcome.out);
    ended++;
  }
  assert_true (ended > 30);
  assert_int_equal (host_kill (&host, "calls"), COFFER_OK);
}

/* As the init's own child, and as a monitor's. */
static void
native_code_in_strict_starts_nothing (void **state)
{
  int single;

  (void) state;
  for (single = 0; single < 2; single++) {
    sandbox_make (1, single);
    payload_held ("strict", NULL);
    assert_int_equal (host_kill (&host, "calls"), COFFER_OK);
  }
}

static void
a_command_that_is_not_there_is_told_so_in_strict (void **state)
{
  const char *argv[] = { "no-such-program", NULL };

  (void) state;
  sandbox_make (1, 1);
  assert_int_equal (host_run (&host, "calls", argv, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_int_equal (host.exit.failure_errno, ENOENT);
  assert_int_equal (host_kill (&host, "calls"), COFFER_OK);
}

static void
python_works_in_strict (void **state)
{
  static const char script[]
    = "import collections, datetime, decimal, errno, json, math, os, random, "
      "re, statistics, tempfile, threading\n"
      "seen = []\n"
      "t = [threading.Thread(target=lambda: seen.append(1)) "
      "for _ in range(4)]\n"
      "[x.start() for x in t]; [x.join() for x in t]\n"
      "def no(f, *a):\n"
      "  try: f(*a)\n"
      "  except PermissionError: return 'no'\n"
      "  return 'yes'\n"
      "print(len(seen), json.dumps({'x': 6 * 7}), no(os.fork), "
      "no(os.execv, '/bin/true', ['true']), "
      "no(os.posix_spawn, '/bin/true', ['true'], {}), no(os.kill, 1, 0), "
      "no(os.symlink, '/etc/passwd', 'x'), open('/etc/passwd').read(4), "
      "tempfile.gettempdir())\n"
      "with tempfile.TemporaryDirectory() as d: open(d + '/x', 'w').close()\n";
  const char *argv[] = { "/usr/bin/python3", "-I", "-c", script, NULL };

  (void) state;
  if (access (argv[0], X_OK) != 0)
    skip_missing ("python3");
  sandbox_make (1, 1);
  assert_int_equal (host_run (&host, "calls", argv, NULL, NULL, 20000,
                              &outcome),
                    COFFER_OK);
  assert_string_equal (outcome.err, "");
  assert_string_equal (outcome.out, "4 {\"x\": 42} no no no no no root /tmp\n");
  assert_int_equal (host_kill (&host, "calls"), COFFER_OK);
}

/* Outside they run, where the kernel knows them; inside their first call is
 * their last. */
static void
programs_of_32_bits_do_not_run (void **state)
{
  const char *build = getenv ("COFFER_BUILD");
  char command[4096], text[256] = "";
  FILE *outside;
  size_t n;

  (void) state;
  snprintf (command, sizeof command,
            "'%s/tests/unit/linux-payload' programs", build ? build : ".");
  outside = popen (command, "re");
  assert_non_null (outside);
  n = fread (text, 1, sizeof text - 1, outside);
  text[n] = '\0';
  pclose (outside);
  sandbox_make (0, 1);
  payload_held ("programs", NULL);
  assert_int_equal (host_kill (&host, "calls"), COFFER_OK);
  if (strstr (text, "machine 3: status 2a00") == NULL)
    skip_missing ("a kernel that runs programs of 32 bits");
}

static void
another_filter_is_refused (void **state)
{
  struct coffer_sandbox_spec spec
    = { .size = sizeof spec, .lifeline = -1, .filter = "none" };

  (void) state;
  assert_int_equal (host_create (&host, "calls", &spec), COFFER_INVALID);
  assert_non_null (strstr (host.error, "filter"));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (every_refusal_of_general_is_seen_inside),
    cmocka_unit_test (every_refusal_of_strict_is_seen_inside),
    cmocka_unit_test (native_code_in_strict_starts_nothing),
    cmocka_unit_test (a_command_that_is_not_there_is_told_so_in_strict),
    cmocka_unit_test (python_works_in_strict),
    cmocka_unit_test (programs_of_32_bits_do_not_run),
    cmocka_unit_test (another_filter_is_refused),
  };

  return LINUX_TESTS_RUN (&host, "linux: the filters inside", tests);
}
