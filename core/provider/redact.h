/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets that the host handed to a provider, and their removal from all that
 * the provider says.  A secret is looked for as it is, each of its lines, as
 * JSON writes it, URL-encoded (upper and lower case digits) and in base64 (both
 * alphabets, each of the three ways it can lie in a longer text).  What is found
 * becomes "[hidden]", in place: no pattern is shorter than that; a piece that
 * is shorter becomes as many "*".  Any other encoding is not looked for. */

#ifndef PROVIDER_REDACT_H
#define PROVIDER_REDACT_H

#include <stddef.h>

#include <jansson.h>

#include "base/error.h"
#include "contract/contract.h"

#define REDACT_MIN_BYTES 8
#define REDACT_LATE_MOST 16

struct redactor;

/* `secrets` is NULL-terminated, or NULL.  *skipped counts the ones that are
 * too short to be looked for. */
int redactor_new (char *const *secrets, struct redactor **out,
                  size_t *skipped, struct error **err);
/* One more, which came later: of these the last REDACT_LATE_MOST are looked for, as
 * tokens follow each other.  One that is too short is not.  Threads may be at work
 * with it. */
int redactor_add (struct redactor *redactor, const char *secret,
                  struct error **err);
/* Wipes. */
void redactor_free (struct redactor *redactor);

/* In place; NULL is fine. */
void redact_text (const struct redactor *redactor, char *text);

/* The end of what was said before, without anything hidden.  Zeros: nothing. */
struct redact_tail {
  char *bytes;
  size_t size;
};

/* In place, of a text that goes on where each of the tails ends: a secret that
 * comes in pieces is no less one.  What of it lies in this text is hidden, and
 * so is an end of the text with which one begins.  The text is added to each
 * tail. */
void redact_next (const struct redactor *redactor,
                  struct redact_tail *const *tails, size_t n_tails,
                  char *text);
void redact_tail_fini (struct redact_tail *tail);

/* Every text of a record that lies in memory of the host's own. */
void redact_record (const struct redactor *redactor,
                    const struct contract_record *record, void *data);
/* A copy with every string and key redacted; NULL when memory is out. */
json_t *redact_json (const struct redactor *redactor, const json_t *value);

#endif /* PROVIDER_REDACT_H */
