/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest module: it opens, says that all is well, and makes nothing. */

#include <stdlib.h>

#include <coffer/provider.h>

struct demo {
  unsigned probes;
};

static int32_t
demo_open (struct coffer_call *call, void *none, const char *const *config,
           const struct coffer_open_opts *opts)
{
  struct demo *demo = calloc (1, sizeof *demo);

  (void) none;
  (void) config;                /* KEY=VALUE, copy what is to be kept */
  (void) opts;
  if (demo == NULL)
    return coffer_fail (call, COFFER_LIMIT, "out of memory");
  return coffer_opened (call, demo);
}

static int32_t
demo_close (struct coffer_call *call, void *self,
            const struct coffer_close_opts *opts)
{
  (void) call;
  (void) opts;
  free (self);
  return COFFER_OK;
}

static int32_t
demo_probe (struct coffer_call *call, void *self,
            const struct coffer_probe_opts *opts)
{
  struct demo *demo = self;
  const struct coffer_fact fact = {
    .size = sizeof fact, .name = "probes", .state = "ok",
    .value = demo->probes++ ? "again" : "first", .how = "counted"
  };

  (void) opts;
  return coffer_emit_fact (call, &fact);
}

static int32_t
demo_sandbox_create (struct coffer_call *call, void *self,
                     const char *sandbox,
                     const struct coffer_sandbox_spec *spec,
                     const struct coffer_sandbox_create_opts *opts)
{
  (void) self;
  (void) sandbox;
  (void) spec;
  (void) opts;
  return coffer_fail (call, COFFER_UNAVAILABLE, "demo makes nothing");
}

static int32_t
demo_sandbox_info (struct coffer_call *call, void *self, const char *sandbox,
                   const struct coffer_sandbox_info_opts *opts)
{
  (void) self;
  (void) sandbox;
  (void) opts;
  return coffer_fail (call, COFFER_NOT_FOUND, "no such sandbox");
}

static int32_t
demo_sandbox_list (struct coffer_call *call, void *self,
                   const struct coffer_sandbox_list_opts *opts)
{
  (void) call;
  (void) self;
  (void) opts;
  return COFFER_OK;             /* nothing emitted: the list is empty */
}

static int32_t
demo_sandbox_kill (struct coffer_call *call, void *self, const char *sandbox,
                   const struct coffer_sandbox_kill_opts *opts)
{
  (void) self;
  (void) sandbox;
  (void) opts;
  return coffer_fail (call, COFFER_NOT_FOUND, "no such sandbox");
}

static const struct coffer_operations operations = {
  .size = sizeof operations,
  .open = demo_open,
  .close = demo_close,
  .probe = demo_probe,
  .sandbox_create = demo_sandbox_create,
  .sandbox_info = demo_sandbox_info,
  .sandbox_list = demo_sandbox_list,
  .sandbox_kill = demo_sandbox_kill,
};

COFFER_PROVIDER (demo, COFFER_THREADS_SERIAL, 0, operations)
