/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller may ask for, checked before anybody else sees it. */

#ifndef SANDBOX_REQUEST_H
#define SANDBOX_REQUEST_H

#include <coffer/buffer.h>

#include "policy/bounds.h"
#include "sandbox/sandbox.h"

#define REQUEST_MAX_ITEMS 1024          /* env, mounts, ports, metadata */
#define REQUEST_MAX_BYTES (1 << 20)     /* of one list */

/* Every field within its bounds: E_SANDBOX_SPEC with the field's name. */
int request_check (const struct sandbox_request *request, struct error **err);

/* One NAME=VALUE list or one absolute path, for exec as well. */
int request_check_env (const char *const *env, const char *field,
                       struct error **err);
int request_check_path (const char *path, const char *field,
                        struct error **err);
int request_check_user (const char *user, const char *field,
                        struct error **err);

/* What is asked for and not claimed is E_CAPABILITY; protecting defaults that
 * are not claimed likewise, unless accepted by name by the caller, in
 * `operator_accepts`, or by choosing a provider whose isolation is `none`.
 * Words of defaults that will not hold are added to not_applied. */
/* An operation that needs a capability: 0, or E_CAPABILITY. */
int claim_require (const struct provider *provider, const char *capability,
                   struct error **err);

int request_check_claims (const struct sandbox_request *request,
                          const struct provider *provider,
                          char *const *operator_accepts,
                          struct coffer_strings *not_applied,
                          struct error **err);

/* The ttl in force: the caller's, the default, or 0. */
uint64_t request_ttl (const struct sandbox_request *request,
                      const struct provider *provider);

/* The record's spec: what was asked for, of env the names alone. */
char *request_to_json (const struct sandbox_request *request,
                       struct error **err);

#endif /* SANDBOX_REQUEST_H */
