/* SPDX-License-Identifier: Apache-2.0 */
/* What a call by the table costs in process, beside a direct call of the same
 * function in the same run: the bare libffi call (contract_invoke), and the
 * whole of dispatch (provider_invoke) with a real module.
 *   bench-dispatch [LIMIT]     host overhead in ns that is too much; 1000
 * Prints "NAME VALUE" lines; exits 1 when a limit is passed. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "provider/provider.h"
#include "provider/seal.h"

#include "place.h"

#define BATCHES 101
#define CALLS 20000             /* in a batch */

/* ---- what is called ----------------------------------------------------- */

static uint64_t called;

static int32_t
count_exec_start (struct coffer_call *call, void *self, const char *sandbox,
                  const char *const *argv, const char *const *env,
                  const char *cwd, int32_t in, int32_t out, int32_t err,
                  const struct coffer_exec_start_opts *opts)
{
  (void) call;
  (void) self;
  (void) sandbox;
  (void) argv;
  (void) env;
  (void) cwd;
  (void) opts;
  called += (uint64_t) (in + out + err);
  return COFFER_OK;
}

static int32_t
count_exec_list (struct coffer_call *call, void *self, const char *sandbox,
                 const struct coffer_exec_list_opts *opts)
{
  (void) call;
  (void) self;
  (void) opts;
  called += (uint64_t) sandbox[0];
  return COFFER_OK;
}

static const struct coffer_operations counters = {
  .size = sizeof counters,
  .exec_start = count_exec_start,
  .exec_list = count_exec_list,
};

/* Through memory, as a module's vtable is: the compiler cannot see into it. */
static const struct coffer_operations *volatile vtable = &counters;

struct subject {
  struct contract_calls *calls;
  struct provider *provider;
  const struct contract_op *start, *list;
  union contract_value start_values[CONTRACT_MAX_ARGS + 1];
  union contract_value list_values[CONTRACT_MAX_ARGS + 1];
};

static const char *const argv[] = { "true", NULL };

static int
direct_start (struct subject *subject)
{
  (void) subject;
  return vtable->exec_start (NULL, NULL, "sb", argv, NULL, NULL, 1, 1, 1,
                             NULL);
}

static int
ffi_start (struct subject *subject)
{
  return contract_invoke (subject->calls, subject->start, vtable, NULL, NULL,
                          subject->start_values);
}

static int
direct_list (struct subject *subject)
{
  (void) subject;
  return vtable->exec_list (NULL, NULL, "sb", NULL);
}

static int
ffi_list (struct subject *subject)
{
  return contract_invoke (subject->calls, subject->list, vtable, NULL, NULL,
                          subject->list_values);
}

static int
dispatch_list (struct subject *subject)
{
  return provider_invoke (subject->provider, COFFER_OP_exec_list,
                          subject->list_values, NULL, NULL);
}

/* ---- measuring ---------------------------------------------------------- */

static int
compare_doubles (const void *a, const void *b)
{
  const double left = *(const double *) a, right = *(const double *) b;

  return left < right ? -1 : left > right;
}

/* Median over batches, in ns a call; negative when a call failed. */
static double
measure (int (*run) (struct subject *), struct subject *subject)
{
  double batch[BATCHES];

  for (int i = 0; i < BATCHES; i++) {
    int64_t began = coffer_now_ns ();

    for (int n = 0; n < CALLS; n++)
      if (run (subject) != COFFER_OK)
        return -1;
    batch[i] = (double) (coffer_now_ns () - began) / CALLS;
  }
  qsort (batch, BATCHES, sizeof batch[0], compare_doubles);
  return batch[BATCHES / 2];
}

/* 1 when it failed or passed the limit. */
static int
report (const char *name, double direct, double by_table, double limit)
{
  printf ("%s_direct_ns %.1f\n%s_ns %.1f\n%s_overhead_ns %.1f\n", name,
          direct, name, by_table, name, by_table - direct);
  if (direct < 0 || by_table < 0) {
    printf ("# %s: a call failed\n", name);
    return 1;
  }
  if (by_table - direct > limit)
    printf ("# %s: more than %.0f ns of overhead\n", name, limit);
  return by_table - direct > limit;
}

/* ---- a shipped provider of our own -------------------------------------- */

/* It runs in this process: no worker is needed. */
static int
place_make (const char *folder, struct place *place, struct error **err)
{
  const char *build = getenv ("COFFER_BUILD"), *source
    = getenv ("COFFER_SOURCE");
  auto_free char *module = text_printf ("%s/tests/e2e/modules/parrot.so",
                                        build ? build : ".");
  auto_free char *manifest = text_printf (
    "%s/tests/e2e/modules/parrot.yaml", source ? source : "src");
  auto_free char *sealed = text_printf ("%s/parrot.yaml", folder);
  struct seal_report report;

  if (bench_place_make (place, folder, "parrot", module, folder, err) < 0
      || seal_manifest (manifest, folder, sealed, &report, err) < 0)
    return -1;
  seal_report_fini (&report);
  return 0;
}

/* ---- the three measurements --------------------------------------------- */

static int
bench_ffi (struct subject *subject, double limit)
{
  return report ("ffi_exec_start", measure (direct_start, subject),
                 measure (ffi_start, subject), limit)
         | report ("ffi_exec_list", measure (direct_list, subject),
                   measure (ffi_list, subject), limit);
}

static int
bench_dispatch (struct subject *subject, const struct place *place,
                double limit, struct error **err)
{
  auto_registry struct registry *registry = NULL;
  auto_provider struct provider *provider = NULL;
  const struct registry_entry *entry;

  if (registry_load_one (place, "parrot", &registry, err) < 0
      || registry_find (registry, "parrot", &entry, err) < 0
      || provider_open (entry, place, PROVIDER_IN_PROCESS, &provider, err)
           < 0)
    return -1;
  subject->provider = provider;
  return report ("dispatch_exec_list", measure (direct_list, subject),
                 measure (dispatch_list, subject), limit);
}

static int
subject_init (struct subject *subject, struct error **err)
{
  const struct contract *contract = contract_builtin ();
  const struct contract_args_exec_start start
    = { .sandbox = "sb", .argv = argv, .in = 1, .out = 1, .err = 1 };
  const struct contract_args_exec_list list = { .sandbox = "sb" };

  subject->start = contract_op_by_id (contract, COFFER_OP_exec_start);
  subject->list = contract_op_by_id (contract, COFFER_OP_exec_list);
  contract_args_values (subject->start, &start, subject->start_values);
  contract_args_values (subject->list, &list, subject->list_values);
  return contract_calls_new (contract, contract->minor, &subject->calls, err);
}

int
main (int argc, char **argv_)
{
  double limit = argc > 1 ? strtod (argv_[1], NULL) : 1000;
  char folder[] = "/tmp/coffer-bench-XXXXXX";
  struct subject subject = { NULL };
  auto_error struct error *err = NULL;
  auto_place struct place *place = calloc (1, sizeof *place);
  int failed, r = -1;

  if (!place || subject_init (&subject, &err) < 0 || !mkdtemp (folder))
    return 2;
  failed = bench_ffi (&subject, limit);
  if (place_make (folder, place, &err) == 0)
    r = bench_dispatch (&subject, place, limit, &err);
  if (r < 0)
    printf ("# dispatch: %s\n", err ? error_message (err) : "failed");
  bench_place_unmake (folder, "parrot");
  contract_calls_free (subject.calls);
  return failed || r != 0 || called == 0;
}
