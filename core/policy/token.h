/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: what a program shows a daemon to be known as somebody's.
 *
 * A token is cft_ID_SECRET, whose secret is 256 random bits.  It is shown once,
 * when it is made; what is kept, in tokens.json below the state folder, is the
 * SHA-256 of the secret, which nobody can guess back from so many bits. */

#ifndef POLICY_TOKEN_H
#define POLICY_TOKEN_H

#include <stdint.h>

#include <jansson.h>

#include "base/error.h"
#include "base/place.h"
#include "policy/rights.h"

#define TOKEN_PREFIX "cft_"
#define TOKENS_MAX 1024
#define TOKEN_ID_SIZE 9         /* with the NUL */

struct token_request {
  const char *name;             /* for people: letters, digits, "._-" */
  const char *tenant;           /* NULL: the default one */
  enum caller_right right;
  uint64_t ttl_ms;              /* 0: it does not expire */
};

/* Makes one; *text is the caller's, who wipes it. *out: as token_list says. */
int token_create (const struct place *place,
                  const struct token_request *request, char **text,
                  json_t **out, struct error **err);
/* [{"id","name","tenant","rights","created_ns","expires_ns"}]; expires_ns null
 * when it does not. */
int token_list (const struct place *place, json_t **out, struct error **err);
/* By its id, or by its name when only one has that: E_NOT_FOUND, E_INVALID. */
int token_revoke (const struct place *place, const char *which, json_t **out,
                  struct error **err);

/* ---- for who is shown tokens --------------------------------------------- */

/* All there are, from the state folder and from systemd's credential
 * "tokens.json"; any thread. */
struct tokens;

struct token_owner {
  char *id, *name, *tenant;
  unsigned rights;              /* with all that it implies */
};
void token_owner_fini (struct token_owner *owner);

int tokens_open (const struct place *place, struct tokens **out,
                 struct error **err);
void tokens_free (struct tokens *tokens);
/* How many count now; and whether one of them is another tenant's. */
size_t tokens_count (struct tokens *tokens);
int tokens_others (struct tokens *tokens, const char *tenant);
/* Looks whether any were made or revoked; then asks of one by its id whether it
 * counts, as it was at that look. */
void tokens_look (struct tokens *tokens);
int tokens_valid (struct tokens *tokens, const char *id);
/* Whose a token is.  What was made or revoked meanwhile counts at once; a file
 * that cannot be read then leaves what was read last.  Takes as long for an id
 * that is not there as for a wrong secret.  0: nobody's; 1; -1: no memory. */
int tokens_verify (struct tokens *tokens, const char *text,
                   struct token_owner *owner);

#endif /* POLICY_TOKEN_H */
