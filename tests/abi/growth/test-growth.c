/* SPDX-License-Identifier: Apache-2.0 */
/* A host of the growing contract, built once for minor 0 and once for minor 1.
 * Each loads modules that were built for the one and for the other, through
 * the gate and the loader that the real host has. */

#include <config.h>

#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/utsname.h>

#include <coffer/path.h>

#include "contract/args.h"
#include "contract/codec.h"
#include "provider/loader.h"

#define RAN "COFFER_TEST_GREETER_RAN"

/* What the host keeps of one call. */
struct host_call {
  struct coffer_call call;      /* first */
  struct contract_arena *arena;
  const struct coffer_greeting *greeting;
  int echoes, unknown;
};

static int32_t
host_emit (struct coffer_call *call, uint32_t id, const void *data)
{
  struct host_call *host = (struct host_call *) (void *) call;
  const struct contract_record *record
    = contract_record_by_id (contract_builtin (), id);
  void *copy;

  if (record == NULL) {
    host->unknown++;
    return COFFER_UNSUPPORTED;
  }
  assert_int_equal (contract_copy_record (record, data, host->arena, &copy,
                                          NULL), 0);
  if (id == COFFER_REC_greeting)
    host->greeting = copy;
  else
    host->echoes++;
  return COFFER_OK;
}

static const struct coffer_host host_table
  = { .size = sizeof host_table, .emit = host_emit };

/* ---- loading ------------------------------------------------------------ */

static char *const claims[] = { (char *) "greet", NULL };

static int
load_from (int dir, const char *file, uint16_t minor, struct module **module,
           struct error **err)
{
  const struct module_claim claim = {
    .file = "greeter.so", .contract_major = 1, .contract_minor = minor,
    .threads = COFFER_THREADS_SERIAL, .capabilities = claims
  };
  const struct contract *contract = contract_builtin ();
  auto_elf_facts struct elf_facts *facts = NULL;
  char hash[SHA256_HEX_SIZE];
  int fd = integrity_copy (dir, file, 0, 0, hash, err);

  assert_true (fd >= 0);
  if (elf_gate_for (fd, file, contract, &facts, err) == 0
      && module_check (contract, &facts->note, &claim, err) == 0)
    return module_load (contract, fd, &facts->note, &claim, module, err);
  close (fd);
  return -1;
}

/* A file below tests/abi of the build. */
static int
load (const char *below, const char *file, uint16_t minor,
      struct module **module, struct error **err)
{
  char folder[4096];
  int dir, r;

  snprintf (folder, sizeof folder, "%s/tests/abi/%s",
            getenv ("COFFER_BUILD"), below);
  dir = open (folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  assert_true (dir >= 0);
  r = load_from (dir, file, minor, module, err);
  close (dir);
  return r;
}

static struct module *
loaded (const char *file, uint16_t minor)
{
  auto_error struct error *err = NULL;
  struct module *module = NULL;

  unsetenv (RAN);
  if (load ("growth", file, minor, &module, &err) < 0)
    fail_msg ("%s: %s", file, err->message);
  assert_non_null (getenv (RAN));
  return module;
}

static void
host_call_init (struct host_call *call)
{
  *call = (struct host_call){
    .call = { .size = sizeof call->call, .host = &host_table },
    .arena = contract_arena_new ()
  };
}

static int32_t
call_greet (struct module *module, struct host_call *call,
            const struct coffer_wish *wish,
            const struct coffer_greet_opts *opts)
{
  const struct contract_args_greet args = { "Ada", wish, opts };
  const struct contract_op *op
    = contract_op_by_id (contract_builtin (), COFFER_OP_greet);
  union contract_value values[CONTRACT_MAX_ARGS + 1];

  host_call_init (call);
  contract_args_values (op, &args, values);
  return contract_invoke (module->calls, op, module->operations, &call->call,
                          NULL, values);
}

/* ---- what holds for every pair ------------------------------------------ */

static void
greets_as_the_first_minor_did (struct module *module)
{
  const struct coffer_wish more = { .size = sizeof more, .what = "more" };
  const struct coffer_wish *const further[] = { &more, NULL };
  const struct coffer_wish wish = { .size = sizeof wish, .what = "a rest" };
  const struct coffer_greet_opts opts
    = { .size = sizeof opts, .times = 3, .loud = 1, .more = further };
  struct host_call call;

  assert_int_equal (call_greet (module, &call, &wish, &opts), COFFER_OK);
  assert_non_null (call.greeting);
  assert_int_equal (call.greeting->size, sizeof *call.greeting);
  assert_string_equal (call.greeting->words, "Ada, a rest");
  assert_int_equal (call.greeting->times, 3);
  assert_int_equal (call.greeting->loud, 1);
  contract_arena_free (call.arena);

  assert_int_equal (call_greet (module, &call, &wish, NULL), COFFER_OK);
  assert_int_equal (call.greeting->times, 1);
  contract_arena_free (call.arena);
}

#if COFFER_CONTRACT_MINOR == 0

static void
host_0_takes_a_module_of_minor_0 (void **state)
{
  struct module *module = loaded ("greeter-0.so", 0);

  (void) state;
  assert_int_equal (module->operations->size,
                    sizeof (struct coffer_operations));
  greets_as_the_first_minor_did (module);
  module_free (module);
}

static void
host_0_takes_a_module_of_minor_1_that_can_live_with_it (void **state)
{
  const struct coffer_wish wish = { .size = sizeof wish };
  struct module *module = loaded ("greeter-1.so", 1);
  struct host_call call;

  (void) state;
  assert_true (module->operations->size > sizeof (struct coffer_operations));
  greets_as_the_first_minor_did (module);
  /* Its longer greeting is cut to ours; its new record is not taken. */
  assert_int_equal (call_greet (module, &call, &wish, NULL), COFFER_OK);
  assert_int_equal (call.greeting->size, sizeof *call.greeting);
  assert_int_equal (call.unknown, 1);
  assert_int_equal (call.echoes, 0);
  contract_arena_free (call.arena);
  module_free (module);
}

static void
host_0_refuses_a_module_that_needs_minor_1 (void **state)
{
  auto_error struct error *err = NULL;
  struct module *module = NULL;

  (void) state;
  unsetenv (RAN);
  assert_int_equal (load ("growth", "greeter-1-only.so", 1, &module, &err), -1);
  assert_int_equal (err->number, 8004);
  assert_non_null (strstr (err->message, "1.1"));
  assert_null (module);
  assert_null (getenv (RAN));   /* no code of it ran */
}

#else

static void
host_1_takes_a_module_of_minor_0 (void **state)
{
  const struct coffer_wish wish = { .size = sizeof wish };
  struct module *module = loaded ("greeter-0.so", 0);
  struct host_call call;

  (void) state;
  assert_true (module->operations->size < sizeof (struct coffer_operations));
  greets_as_the_first_minor_did (module);
  /* What its greeting does not reach is the default. */
  assert_int_equal (call_greet (module, &call, &wish, NULL), COFFER_OK);
  assert_null (call.greeting->language);
  assert_int_equal (call.greeting->mood, 0);
  assert_int_equal (call.greeting->card, -1);
  assert_int_equal (call.echoes, 0);
  contract_arena_free (call.arena);
  module_free (module);
}

static void
a_module_of_minor_0_does_not_have_what_came_later (void **state)
{
  const struct coffer_wish wish = { .size = sizeof wish };
  const struct coffer_wish urgent = { .size = sizeof urgent, .urgency = 1 };
  const struct coffer_wish *const further[] = { &wish, &urgent, NULL };
  const struct coffer_greet_opts opts
    = { .size = sizeof opts, .language = "fr" };
  const struct coffer_greet_opts nested
    = { .size = sizeof nested, .more = further };
  const union contract_value values[2] = { { .str = "Ada" }, { .rec = NULL } };
  struct module *module = loaded ("greeter-0.so", 0);
  const struct contract_op *part
    = contract_op_by_id (contract_builtin (), COFFER_OP_part);
  struct host_call call;

  (void) state;
#define REFUSED(wish, opts)                                                   \
  assert_int_equal (call_greet (module, &call, wish, opts),                   \
                    COFFER_UNSUPPORTED);                                      \
  assert_null (call.greeting);                                                \
  contract_arena_free (call.arena)
  REFUSED (&wish, &opts);       /* never dropped in silence */
  REFUSED (&urgent, NULL);
  REFUSED (&wish, &nested);
  host_call_init (&call);
  assert_int_equal (contract_invoke (module->calls, part, module->operations,
                                     &call.call, NULL, values),
                    COFFER_UNSUPPORTED);
  contract_arena_free (call.arena);
  module_free (module);
}

static void
takes_all_of_minor_1 (const char *file)
{
  const struct coffer_wish wish = { .size = sizeof wish, .urgency = 5 };
  const struct coffer_greet_opts opts
    = { .size = sizeof opts, .language = "fr" };
  const union contract_value values[2] = { { .str = "Ada" }, { .rec = NULL } };
  struct module *module = loaded (file, 1);
  struct host_call call;

  greets_as_the_first_minor_did (module);
  assert_int_equal (call_greet (module, &call, &wish, &opts), COFFER_OK);
  assert_string_equal (call.greeting->language, "fr");
  assert_int_equal (call.greeting->mood, 5);
  assert_int_equal (call.echoes, 1);
  contract_arena_free (call.arena);
  host_call_init (&call);
  assert_int_equal (
    contract_invoke (module->calls,
                     contract_op_by_id (contract_builtin (), COFFER_OP_part),
                     module->operations, &call.call, NULL, values),
    COFFER_OK);
  assert_string_equal (call.greeting->words, "Ada");
  contract_arena_free (call.arena);
  module_free (module);
}

static void
host_1_takes_modules_of_minor_1 (void **state)
{
  (void) state;
  takes_all_of_minor_1 ("greeter-1.so");
  takes_all_of_minor_1 ("greeter-1-only.so");
}

#endif

static void
a_module_of_another_major_is_refused (void **state)
{
  auto_error struct error *err = NULL;
  struct module *module = NULL;

  (void) state;
  assert_int_equal (load (".", "witness-0-1.so", 1, &module, &err), -1);
  assert_int_equal (err->number, 8004);
  assert_null (getenv ("COFFER_TEST_WITNESS_RAN"));
}

/* ---- modules that were kept ---------------------------------------------- */

/* The tree may be somebody else's, or links to it: a copy of our own. */
static void
copy_kept (int from, const char *name, int to)
{
  int source = openat (from, name, O_RDONLY | O_CLOEXEC);
  int target = openat (to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  char bytes[65536];
  ssize_t n = read (source, bytes, sizeof bytes);

  assert_true (n > 0 && n < (ssize_t) sizeof bytes);
  assert_int_equal (write (target, bytes, (size_t) n), n);
  close (source);
  close (target);
}

static void
load_kept (int dir, const char *name)
{
  auto_error struct error *err = NULL;
  struct module *module = NULL;
  unsigned minor;

  assert_int_equal (sscanf (name, "greeter-1.%u.so", &minor), 1);
  if (load_from (dir, name, (uint16_t) minor, &module, &err) < 0)
    fail_msg ("%s: %s", name, err->message);
  greets_as_the_first_minor_did (module);
  module_free (module);
}

static void
remove_tree (const char *path)
{
  int root = open ("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

  assert_int_equal (coffer_remove_beneath (root, path, 1, NULL), 0);
  close (root);
}

static void
every_module_that_was_kept_still_loads (void **state)
{
  char path[4096], temporary[] = "/tmp/coffer-kept-XXXXXX";
  int own, count = 0;
  struct utsname machine;
  struct dirent *entry;
  DIR *kept;

  (void) state;
  uname (&machine);
  snprintf (path, sizeof path, "%s/tests/abi/modules/%s",
            getenv ("COFFER_SOURCE"), machine.machine);
  kept = opendir (path);
  if (!kept)
    skip_missing ("modules that were kept for this machine");
  assert_non_null (mkdtemp (temporary));
  own = open (temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while ((entry = readdir (kept)))
    if (strstr (entry->d_name, ".so")) {
      copy_kept (dirfd (kept), entry->d_name, own);
      load_kept (own, entry->d_name);
      count++;
    }
  assert_true (count >= 2);
  closedir (kept);
  close (own);
  remove_tree (temporary);
}

/* What -DCOFFER_CONTRACT_MINOR=0 leaves is the contract as it was then. */
static void
rows_of_a_later_minor_are_not_there (void **state)
{
  const struct contract *contract = contract_builtin ();

  (void) state;
  assert_int_equal (contract->major, 1);
  assert_int_equal (contract->minor, COFFER_CONTRACT_MINOR);
  assert_int_equal (contract->n_ops, COFFER_CONTRACT_MINOR ? 4 : 3);
  assert_int_equal (contract->n_records, COFFER_CONTRACT_MINOR ? 3 : 2);
  for (size_t i = 0; i < contract->n_ops; i++)
    assert_true (contract->ops[i].since <= contract->minor);
  for (size_t i = 0; i < contract->n_records; i++)
    for (size_t n = 0; n < contract->records[i].n_fields; n++)
      assert_true (contract->records[i].fields[n].since <= contract->minor);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
#if COFFER_CONTRACT_MINOR == 0
    cmocka_unit_test (host_0_takes_a_module_of_minor_0),
    cmocka_unit_test (host_0_takes_a_module_of_minor_1_that_can_live_with_it),
    cmocka_unit_test (host_0_refuses_a_module_that_needs_minor_1),
#else
    cmocka_unit_test (host_1_takes_a_module_of_minor_0),
    cmocka_unit_test (a_module_of_minor_0_does_not_have_what_came_later),
    cmocka_unit_test (host_1_takes_modules_of_minor_1),
#endif
    cmocka_unit_test (every_module_that_was_kept_still_loads),
    cmocka_unit_test (a_module_of_another_major_is_refused),
    cmocka_unit_test (rows_of_a_later_minor_are_not_there),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
