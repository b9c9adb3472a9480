/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets that the host handed to a provider, and their removal from all that
 * the provider says.  A secret is looked for as it is, each of its lines, as
 * JSON writes it, URL-encoded (upper and lower case digits) and in base64 (both
 * alphabets, each of the three ways it can lie in a longer text).  What is found becomes "[hidden]", in place: no
 * pattern is shorter than that. */

#ifndef PROVIDER_REDACT_H
#define PROVIDER_REDACT_H

#include <stddef.h>

#include <jansson.h>

#include "base/error.h"
#include "contract/contract.h"

#define REDACT_MIN_BYTES 8

struct redactor;

/* `secrets` is NULL-terminated, or NULL.  *skipped counts the ones that are
 * too short to be looked for. */
int redactor_new (char *const *secrets, struct redactor **out,
                  size_t *skipped, struct error **err);
/* Wipes. */
void redactor_free (struct redactor *redactor);

/* In place; NULL is fine. */
void redact_text (const struct redactor *redactor, char *text);
/* Every text of a record that lies in memory of the host's own. */
void redact_record (const struct redactor *redactor,
                    const struct contract_record *record, void *data);
/* A copy with every string and key redacted; NULL when memory is out. */
json_t *redact_json (const struct redactor *redactor, const json_t *value);

#endif /* PROVIDER_REDACT_H */
