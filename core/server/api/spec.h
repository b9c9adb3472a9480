/* SPDX-License-Identifier: Apache-2.0 */
/* The body that a sandbox is made by. */

#ifndef SERVER_API_SPEC_H
#define SERVER_API_SPEC_H

#include "server/api/fields.h"
#include "server/http.h"

struct api_spec {
  struct sandbox_request request;       /* borrows from the body and below */
  struct coffer_strings env, metadata, ports, allow, accept;
  struct sandbox_mount *mounts;
  size_t n_mounts;
  char *workdir;
};

/* Folders of the host are had beneath serve.allowed_roots alone, with what the
 * caller may do there. */
int api_spec_read (const struct request *request, struct api_spec *out,
                   struct error **err);
void api_spec_fini (struct api_spec *spec);
#define auto_api_spec __attribute__ ((cleanup (api_spec_fini)))

/* E_DENIED for what a request may not ask to be reached. */
int api_allow_check (const struct request *request, const char *const *allow,
                     struct error **err);
/* mounts.c: opens what a caller names, into out->source and source_fd. */
int api_mount_open (const struct request *request, const char *source,
                    int writable, struct sandbox_mount *out,
                    struct error **err);

#endif /* SERVER_API_SPEC_H */
