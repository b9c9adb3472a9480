/* SPDX-License-Identifier: Apache-2.0 */
/* A profile applied to a request: concrete values, each with its origin. */

#ifndef SANDBOX_PROFILE_H
#define SANDBOX_PROFILE_H

#include "policy/profile.h"
#include "sandbox/sandbox.h"

struct profiled {
  struct sandbox_request request;       /* borrows from both */
  struct profile *profile;              /* NULL: none applies */
  json_t *report;                       /* NULL: nothing to say */
};

/* Resolves what was asked for with the profile that it names, else the
 * operator's default_profile, else none.  A locked field that the caller gives
 * another value, and a network that the profile does not list, are E_PROFILE;
 * what is above the profile's maximum is taken down to it, and said.  The
 * report: {"name", "source", "origin", "values": {FIELD: {"value", "origin"}},
 * "clamped": [{"field", "asked", "applied"}]}, where an origin is caller,
 * profile or config (of the name). */
int profile_apply (const struct place *place, const struct registry *registry,
                   const struct sandbox_request *asked, struct profiled *out,
                   struct error **err);
void profiled_fini (struct profiled *profiled);

/* The timeout of a command in a sandbox with this spec (of its record): what
 * was asked for (0: nothing), or what its profile says.  `unwatched`: a
 * terminal or the background, which have no default but the maximum and what
 * is locked. */
int profile_timeout (const char *spec, uint64_t asked_ms, int unwatched,
                     uint64_t *out, struct error **err);

/* Likewise the time from now that a sandbox is to live on. */
int profile_ttl (const char *spec, uint64_t asked_ms, uint64_t *out,
                 struct error **err);

#endif /* SANDBOX_PROFILE_H */
