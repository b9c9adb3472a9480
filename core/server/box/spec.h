/* SPDX-License-Identifier: Apache-2.0 */
/* What a session is made with: a JSON object with all fields of the table in
 * spec.c.  Sessions of one name are one while what callers give of it agrees. */

#ifndef SERVER_BOX_SPEC_H
#define SERVER_BOX_SPEC_H

#include "base/json.h"
#include "server/http.h"
#include "sandbox/sandbox.h"

#define BOX_ID_MAX 200          /* bytes of a session's or process's name */
/* Of a session's sandbox, put off while the session is there: what it may live
 * on when the daemon does not. */
#define BOX_LIFE_MS UINT64_C (3600000)

/* 1 to BOX_ID_MAX bytes of text without control characters and slashes, which
 * paths of the API could not carry. */
int box_id_check (const char *field, const char *id, struct error **err);

/* The fields of a spec that `body` gives, each within its bounds: *given.  Any
 * other key must be one of `besides` (NULL-terminated). */
int box_spec_read (const json_t *body, const char *const *besides,
                   json_t **given, struct error **err);
/* With the defaults in the place of what is not given.  A profile that is named
 * has its own: then resources which are not given are null. */
json_t *box_spec_fill (const json_t *given);
/* E_SESSION_CONFLICT, with the field, unless all that is given is so. */
int box_spec_match (const char *id, const json_t *spec, const json_t *given,
                    struct error **err);

/* What to ask the host for.  A folder of the host is shown as any other surface
 * does: beneath the roots that the operator allows, with what the caller may do
 * there.  Borrows from `spec`. */
struct box_request {
  struct sandbox_request request;
  const char **allow;
  const char *metadata[2];
  char *label;
  struct sandbox_mount mount;   /* of host_path */
};
int box_request_make (const struct request *request, const char *id, const json_t *spec,
                      struct box_request *out, struct error **err);
/* Leaves out limits that nobody has asked for and that this provider does not
 * know: its own defaults hold then. */
void box_request_fit (struct box_request *request, const json_t *asked,
                      const struct provider *provider);
void box_request_fini (struct box_request *request);

#endif /* SERVER_BOX_SPEC_H */
