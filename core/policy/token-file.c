/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.json: read strictly, written as a new file that replaces the old. */

#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/path.h>
#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/token-file.h"

#define FILE_MAX (1 << 20)
#define NAME_MAX_SIZE 64

static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

int
token_name_valid (const char *name)
{
  const size_t n = strspn (name, "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

  return n > 0 && n <= NAME_MAX_SIZE && name[n] == '\0';
}

const char *
token_split (const char *text, char id[TOKEN_ID_SIZE])
{
  const size_t prefix = sizeof TOKEN_PREFIX - 1, n = TOKEN_ID_SIZE - 1;

  if (strncmp (text, TOKEN_PREFIX, prefix) != 0
      || strspn (text + prefix, digits) != n || text[prefix + n] != '_')
    return NULL;
  memcpy (id, text + prefix, n);
  id[n] = '\0';
  text += prefix + n + 1;
  return strspn (text, digits) == TOKEN_SECRET_SIZE - 1
                 && text[TOKEN_SECRET_SIZE - 1] == '\0'
             ? text : NULL;
}

void
token_list_fini (struct token_list *list)
{
  size_t i;

  for (i = 0; i < list->count; i++) {
    free (list->items[i].name);
    free (list->items[i].tenant);
  }
  free (list->items);
  *list = (struct token_list){ 0 };
}

json_t *
token_json (const struct token *token)
{
  return json_pack ("{s:s, s:s, s:s, s:s, s:I, s:o}", "id", token->id, "name",
                    token->name, "tenant", token->tenant, "rights",
                    right_name (token->right), "created_ns",
                    (json_int_t) token->created_ns, "expires_ns",
                    token->expires_ns ? json_integer (token->expires_ns)
                                      : json_null ());
}

/* ---- reading --------------------------------------------------------------- */

static int
read_times (const json_t *object, struct token *token)
{
  const json_t *created = json_object_get (object, "created_ns");
  const json_t *expires = json_object_get (object, "expires_ns");

  token->created_ns = json_integer_value (created);
  token->expires_ns = json_integer_value (expires);
  return json_is_integer (created)
         && (json_is_null (expires)
             || (json_is_integer (expires) && token->expires_ns > 0));
}

/* 1: a token; 0: it is none; -1: no memory. */
static int
read_one (const json_t *object, struct token *token)
{
  const char *id = json_string_value (json_object_get (object, "id"));
  const char *name = json_string_value (json_object_get (object, "name"));
  const char *tenant = json_string_value (json_object_get (object, "tenant"));
  const char *rights = json_string_value (json_object_get (object, "rights"));
  const char *hash = json_string_value (json_object_get (object, "sha256"));

  if (!id || !name || !tenant || !rights || !hash
      || strlen (id) != TOKEN_ID_SIZE - 1
      || strspn (id, digits) != TOKEN_ID_SIZE - 1 || !token_name_valid (name)
      || !text_is_id (tenant) || !sha256_is_hex (hash)
      || (token->right = right_find (rights)) == RIGHT_NONE
      || !read_times (object, token))
    return 0;
  memcpy (token->id, id, sizeof token->id);
  memcpy (token->sha256, hash, sizeof token->sha256);
  token->name = strdup (name);
  token->tenant = strdup (tenant);
  return token->name && token->tenant ? 1 : -1;
}

static int
read_array (const json_t *root, const char *shown, struct token_list *list,
            struct error **err)
{
  const json_t *array = json_object_get (root, "tokens"), *one;
  size_t i;

  if (!json_is_array (array) || json_array_size (array) > TOKENS_MAX)
    return error_set (err, E_CONFIG, 0, "%s is no list of tokens", shown);
  list->items = calloc (json_array_size (array) + 1, sizeof *list->items);
  if (!list->items)
    return error_set (err, E_NO_MEMORY, 0, "%s", shown);
  json_array_foreach (array, i, one) {
    const int r = read_one (one, &list->items[i]);

    list->count = i + 1;
    if (r < 0)
      return error_set (err, E_NO_MEMORY, 0, "%s", shown);
    if (r == 0)
      return error_set (err, E_CONFIG, 0, "%s: entry %zu is no token", shown,
                        i + 1);
  }
  return 0;
}

int
token_list_read (int dir, const char *shown, struct token_list *list,
                 struct error **err)
{
  struct token_list found = { 0 };
  struct error *error = NULL;
  auto_json json_t *root = NULL;
  auto_free char *bytes = NULL;
  size_t size;

  if (place_read_trusted (dir, TOKEN_FILE, shown, FILE_MAX, E_CONFIG, &bytes,
                          &size, &error) < 0) {
    if (error->sys_errno != ENOENT)
      return error_move (err, error);
    error_free (error);
    *list = found;
    return 0;
  }
  if (json_parse (bytes, size, &root, &error) < 0) {
    error_set (err, E_CONFIG, 0, "%s: %s", shown, error_message (error));
    error_free (error);
    return -1;
  }
  if (read_array (root, shown, &found, err) < 0) {
    token_list_fini (&found);
    return -1;
  }
  *list = found;
  return 0;
}

/* ---- writing --------------------------------------------------------------- */

static char *
list_text (const struct token_list *list)
{
  auto_json json_t *array = json_array ();
  auto_json json_t *root = NULL;
  size_t i;

  for (i = 0; array && i < list->count; i++) {
    json_t *one = token_json (&list->items[i]);

    if (!one
        || json_object_set_new (one, "sha256",
                                json_string (list->items[i].sha256)) < 0) {
      json_decref (one);
      return NULL;
    }
    if (json_array_append_new (array, one) < 0)
      return NULL;
  }
  root = json_pack ("{s:O}", "tokens", array);
  return root ? json_text (root) : NULL;
}

int
token_list_write (int dir, const char *shown, const struct token_list *list,
                  struct error **err)
{
  auto_free char *text = list_text (list);
  struct coffer_new_file file = { 0 };
  int failed = 0;

  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "%s", shown);
  if (coffer_new_file_begin (&file, dir, TOKEN_FILE, 0600, 0) < 0)
    return error_set (err, E_IO, errno, "write %s", shown);
  if (coffer_write_all (file.fd, text, strlen (text)) < 0
      || coffer_new_file_commit (&file, 1, 0) < 0)
    failed = errno;
  coffer_new_file_abort (&file);
  return failed ? error_set (err, E_IO, failed, "write %s", shown) : 0;
}
