/* SPDX-License-Identifier: Apache-2.0 */
/* What making a sandbox shares with telling how far that is. */

#ifndef SERVER_API_CREATE_H
#define SERVER_API_CREATE_H

#include "sandbox/sandbox.h"
#include "server/api/spec.h"

/* Makes it and lets it be observed.  sink: who is told how far it is; NULL. */
int create_make (struct request *request, const struct sandbox_request *spec,
                 const struct provider_sink *sink,
                 struct sandbox_record **record, json_t **applied,
                 struct error **err);
json_t *create_json (const struct sandbox_record *record,
                     json_t *take_applied);
/* 201, and where it is. */
int create_reply (struct request *request, const struct sandbox_record *record,
                  json_t *take_applied, struct error **err);

/* Makes it, and replies in lines from the first that the provider says of how
 * far it is; where it says nothing, as create_reply does.  Takes what `spec`
 * has. */
int create_follow (struct request *request, struct api_spec *spec,
                   struct error **err);

#endif /* SERVER_API_CREATE_H */
