/* SPDX-License-Identifier: Apache-2.0 */
/* Making, listing and revoking tokens.  See token.h. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/token-file.h"

#define LOCK_NAME "tokens.lock"

/* The list, locked against other writers. */
struct edit {
  int dir, lock;
  char *shown;
  struct token_list list;
};

static void
edit_fini (struct edit *edit)
{
  coffer_fd_close (&edit->dir);
  coffer_fd_close (&edit->lock);
  free (edit->shown);
  token_list_fini (&edit->list);
}

static int
edit_begin (const struct place *place, struct edit *edit, struct error **err)
{
  *edit = (struct edit){ .lock = -1 };
  edit->dir = place_open_dir (place->state, err);
  if (edit->dir < 0)
    return -1;
  edit->shown = text_printf ("%s/" TOKEN_FILE, place->state);
  if (!edit->shown)
    return error_set (err, E_NO_MEMORY, 0, "the tokens");
  edit->lock = openat (edit->dir, LOCK_NAME,
                       O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (edit->lock < 0 || flock (edit->lock, LOCK_EX) < 0)
    return error_set (err, E_IO, errno, "lock %s/" LOCK_NAME, place->state);
  return token_list_read (edit->dir, edit->shown, &edit->list, err);
}
#define auto_edit __attribute__ ((cleanup (edit_fini)))

/* ---- making ----------------------------------------------------------------- */

/* 5 bits a character: no bias. */
static int
random_text (char *out, size_t size)
{
  static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
  size_t i;

  if (getrandom (out, size - 1, 0) != (ssize_t) size - 1)
    return -1;
  for (i = 0; i < size - 1; i++)
    out[i] = digits[(unsigned char) out[i] % 32];
  out[size - 1] = '\0';
  return 0;
}

static int
check_request (const struct token_request *request, struct error **err)
{
  if (!token_name_valid (request->name))
    return error_set (err, E_INVALID, 0, "a token's name has 1 to 64 letters,"
                      " digits, dots, dashes and underscores");
  if (request->tenant && !text_is_id (request->tenant))
    return error_set (err, E_INVALID, 0, "a tenant's name is a letter and then"
                      " letters, digits and dashes, in lower case");
  return 0;
}

static int
add_token (struct token_list *list, const struct token_request *request,
           const char *secret, struct error **err)
{
  struct token *items, *token;

  if (list->count >= TOKENS_MAX)
    return error_set (err, E_LIMIT, 0, "there are %d tokens already",
                      TOKENS_MAX);
  items = realloc (list->items, (list->count + 1) * sizeof *items);
  if (!items)
    return error_set (err, E_NO_MEMORY, 0, "a token");
  list->items = items;
  token = &items[list->count];
  *token = (struct token){ .right = request->right };
  list->count++;
  token->name = strdup (request->name);
  token->tenant = strdup (request->tenant ? request->tenant : TENANT_DEFAULT);
  token->created_ns = coffer_realtime_ns ();
  if (request->ttl_ms)
    token->expires_ns
      = token->created_ns + (int64_t) (request->ttl_ms * 1000000);
  if (!token->name || !token->tenant)
    return error_set (err, E_NO_MEMORY, 0, "a token");
  if (random_text (token->id, sizeof token->id) < 0)
    return error_set (err, E_IO, errno, "random bytes");
  sha256_hex (secret, strlen (secret), token->sha256);
  return 0;
}

int
token_create (const struct place *place, const struct token_request *request,
              char **text, json_t **out, struct error **err)
{
  auto_edit struct edit edit = { .dir = -1, .lock = -1 };
  char secret[TOKEN_SECRET_SIZE];
  const struct token *token;
  int result = -1;

  if (check_request (request, err) < 0)
    return -1;
  if (random_text (secret, sizeof secret) < 0)
    return error_set (err, E_IO, errno, "random bytes");
  if (edit_begin (place, &edit, err) == 0
      && add_token (&edit.list, request, secret, err) == 0
      && token_list_write (edit.dir, edit.shown, &edit.list, err) == 0) {
    token = &edit.list.items[edit.list.count - 1];
    *text = text_printf (TOKEN_PREFIX "%s_%s", token->id, secret);
    *out = token_json (token);
    result = *text && *out ? 0 : error_set (err, E_NO_MEMORY, 0, "a token");
  }
  explicit_bzero (secret, sizeof secret);
  return result;
}

/* ---- listing and revoking ---------------------------------------------------- */

int
token_list (const struct place *place, json_t **out, struct error **err)
{
  auto_edit struct edit edit = { .dir = -1, .lock = -1 };
  auto_json json_t *array = json_array ();
  size_t i;

  if (!array)
    return error_set (err, E_NO_MEMORY, 0, "the tokens");
  if (edit_begin (place, &edit, err) < 0)
    return -1;
  for (i = 0; i < edit.list.count; i++)
    if (json_array_append_new (array, token_json (&edit.list.items[i])) < 0)
      return error_set (err, E_NO_MEMORY, 0, "the tokens");
  *out = steal (array);
  return 0;
}

static int
find_token (const struct token_list *list, const char *which, size_t *at,
            struct error **err)
{
  size_t i, n = 0;

  for (i = 0; i < list->count; i++)
    if (strcmp (list->items[i].id, which) == 0) {
      *at = i;
      return 0;
    } else if (strcmp (list->items[i].name, which) == 0) {
      *at = i;
      n++;
    }
  if (n == 1)
    return 0;
  if (n == 0) {
    error_set (err, E_NOT_FOUND, 0, "no token %s", which);
    error_hint (err, "coffer token list shows those that there are");
    return -1;
  }
  error_set (err, E_INVALID, 0, "%zu tokens are called %s", n, which);
  error_hint (err, "name one by its id: coffer token list");
  return -1;
}

int
token_revoke (const struct place *place, const char *which, json_t **out,
              struct error **err)
{
  auto_edit struct edit edit = { .dir = -1, .lock = -1 };
  auto_json json_t *shown = NULL;
  struct token *items;
  size_t at = 0;

  if (edit_begin (place, &edit, err) < 0
      || find_token (&edit.list, which, &at, err) < 0)
    return -1;
  items = edit.list.items;
  shown = token_json (&items[at]);
  if (!shown)
    return error_set (err, E_NO_MEMORY, 0, "a token");
  free (items[at].name);
  free (items[at].tenant);
  edit.list.count--;
  memmove (items + at, items + at + 1,
           (edit.list.count - at) * sizeof *items);
  if (token_list_write (edit.dir, edit.shown, &edit.list, err) < 0)
    return -1;
  *out = steal (shown);
  return 0;
}
