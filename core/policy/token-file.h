/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of tokens: what is kept of each. */

#ifndef POLICY_TOKEN_FILE_H
#define POLICY_TOKEN_FILE_H

#include "base/sha256.h"
#include "policy/token.h"

#define TOKEN_SECRET_SIZE 53    /* 256 bits in base32 */
#define TOKEN_FILE "tokens.json"

struct token {
  char id[TOKEN_ID_SIZE];
  char *name, *tenant;
  enum caller_right right;
  int64_t created_ns, expires_ns;       /* since the epoch; 0: never */
  char sha256[SHA256_HEX_SIZE];
};

struct token_list {
  size_t count;
  struct token *items;
};

void token_list_fini (struct token_list *list);
/* A trusted file in `dir`; none is an empty list. */
int token_list_read (int dir, const char *shown, struct token_list *list,
                     struct error **err);
int token_list_write (int dir, const char *shown, const struct token_list *list,
                      struct error **err);
/* Without the hash. */
json_t *token_json (const struct token *token);
/* "cft_ID_SECRET" taken apart: the secret in it, or NULL. */
const char *token_split (const char *text, char id[TOKEN_ID_SIZE]);
int token_name_valid (const char *name);

#endif /* POLICY_TOKEN_FILE_H */
