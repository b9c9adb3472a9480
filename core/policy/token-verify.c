/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a token is.  See token.h. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "policy/token-file.h"

/* A folder with a list in it, and how the list was when it was read. */
struct source {
  int dir;                      /* -1: there is none */
  char *shown;
  struct stat seen;             /* all zero: there was none */
  struct token_list list;
};

#define N_SOURCES 2

struct tokens {
  pthread_mutex_t lock;         /* all below */
  struct source sources[N_SOURCES];     /* the state folder, credentials */
};

void
token_owner_fini (struct token_owner *owner)
{
  free (owner->id);
  free (owner->name);
  free (owner->tenant);
  *owner = (struct token_owner){ 0 };
}

/* ---- reading what changed ---------------------------------------------------- */

static int
same_file (const struct stat *a, const struct stat *b)
{
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino
         && a->st_size == b->st_size
         && a->st_mtim.tv_sec == b->st_mtim.tv_sec
         && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec
         && a->st_ctim.tv_sec == b->st_ctim.tv_sec
         && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Of a file that says nothing of use it was seen that it does.  One that could
 * not be read just now, for want of a descriptor say, may revoke a token: it is
 * read at the next request. */
static int
is_transient (const struct error *error)
{
  return error->sys_errno != 0 || error->number == E_NO_MEMORY;
}

static int
source_refresh (struct source *source, struct error **err)
{
  struct token_list list = { 0 };
  struct error *error = NULL;
  struct stat st = { 0 };

  if (source->dir < 0)
    return 0;
  if (fstatat (source->dir, TOKEN_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
    memset (&st, 0, sizeof st);
  if (same_file (&st, &source->seen))
    return 0;
  if (token_list_read (source->dir, source->shown, &list, &error) < 0) {
    if (!is_transient (error))
      source->seen = st;
    return error_move (err, error);
  }
  source->seen = st;
  token_list_fini (&source->list);
  source->list = list;
  return 0;
}

static void
refresh_locked (struct tokens *tokens)
{
  size_t i;

  for (i = 0; i < N_SOURCES; i++) {
    auto_error struct error *error = NULL;

    if (source_refresh (&tokens->sources[i], &error) < 0)
      log_event (LOG_LEVEL_ERROR, "tokens", "those of before still count: %s",
                 error_message (error));
  }
}

/* ---- opening ------------------------------------------------------------------ */

static int
source_open (struct source *source, const char *path, int make,
             struct error **err)
{
  source->dir = make ? place_open_dir (path, err)
                     : place_open_trusted_dir (path, err);
  if (source->dir < 0)
    return -1;
  source->shown = text_printf ("%s/" TOKEN_FILE, path);
  if (!source->shown)
    return error_set (err, E_NO_MEMORY, 0, "the tokens");
  return source_refresh (source, err);
}

int
tokens_open (const struct place *place, struct tokens **out,
             struct error **err)
{
  const char *credentials = secure_getenv ("CREDENTIALS_DIRECTORY");
  struct tokens *tokens = calloc (1, sizeof *tokens);

  if (!tokens)
    return error_set (err, E_NO_MEMORY, 0, "the tokens");
  pthread_mutex_init (&tokens->lock, NULL);
  tokens->sources[0].dir = tokens->sources[1].dir = -1;
  if (source_open (&tokens->sources[0], place->state, 1, err) < 0
      || (credentials && credentials[0] == '/'
          && source_open (&tokens->sources[1], credentials, 0, err) < 0)) {
    tokens_free (tokens);
    return -1;
  }
  *out = tokens;
  return 0;
}

void
tokens_free (struct tokens *tokens)
{
  size_t i;

  if (!tokens)
    return;
  for (i = 0; i < N_SOURCES; i++) {
    coffer_fd_close (&tokens->sources[i].dir);
    free (tokens->sources[i].shown);
    token_list_fini (&tokens->sources[i].list);
  }
  pthread_mutex_destroy (&tokens->lock);
  free (tokens);
}

/* ---- asking -------------------------------------------------------------------- */

static int
counts (const struct token *token)
{
  return token->expires_ns == 0 || token->expires_ns > coffer_realtime_ns ();
}

size_t
tokens_count (struct tokens *tokens)
{
  size_t i, j, n = 0;

  pthread_mutex_lock (&tokens->lock);
  refresh_locked (tokens);
  for (i = 0; i < N_SOURCES; i++)
    for (j = 0; j < tokens->sources[i].list.count; j++)
      n += counts (&tokens->sources[i].list.items[j]) != 0;
  pthread_mutex_unlock (&tokens->lock);
  return n;
}

int
tokens_others (struct tokens *tokens, const char *tenant)
{
  size_t i, j;
  int found = 0;

  pthread_mutex_lock (&tokens->lock);
  refresh_locked (tokens);
  for (i = 0; i < N_SOURCES; i++)
    for (j = 0; j < tokens->sources[i].list.count && !found; j++)
      found = counts (&tokens->sources[i].list.items[j])
              && strcmp (tokens->sources[i].list.items[j].tenant, tenant) != 0;
  pthread_mutex_unlock (&tokens->lock);
  return found;
}

/* In the same time, wherever they differ. */
static int
same_hash (const char *a, const char *b)
{
  volatile unsigned char difference = 0;
  size_t i;

  for (i = 0; i < SHA256_HEX_SIZE - 1; i++)
    difference |= (unsigned char) (a[i] ^ b[i]);
  return difference == 0;
}

static const struct token *
find_locked (const struct tokens *tokens, const char *id)
{
  size_t i, j;

  for (i = 0; i < N_SOURCES; i++)
    for (j = 0; j < tokens->sources[i].list.count; j++)
      if (strcmp (tokens->sources[i].list.items[j].id, id) == 0)
        return &tokens->sources[i].list.items[j];
  return NULL;
}

void
tokens_look (struct tokens *tokens)
{
  pthread_mutex_lock (&tokens->lock);
  refresh_locked (tokens);
  pthread_mutex_unlock (&tokens->lock);
}

int
tokens_valid (struct tokens *tokens, const char *id)
{
  const struct token *token;
  int valid;

  pthread_mutex_lock (&tokens->lock);
  token = find_locked (tokens, id);
  valid = token && counts (token);
  pthread_mutex_unlock (&tokens->lock);
  return valid;
}

static int
owner_fill (struct token_owner *owner, const struct token *token)
{
  owner->id = strdup (token->id);
  owner->name = strdup (token->name);
  owner->tenant = strdup (token->tenant);
  owner->rights = right_all (token->right);
  if (owner->id && owner->name && owner->tenant)
    return 1;
  token_owner_fini (owner);
  return -1;
}

int
tokens_verify (struct tokens *tokens, const char *text,
               struct token_owner *owner)
{
  static const char nobody[SHA256_HEX_SIZE]
    = "0000000000000000000000000000000000000000000000000000000000000000";
  char id[TOKEN_ID_SIZE], hash[SHA256_HEX_SIZE];
  const char *secret = token_split (text, id);
  const struct token *token;
  int result = 0;

  if (!secret)
    return 0;
  sha256_hex (secret, strlen (secret), hash);
  pthread_mutex_lock (&tokens->lock);
  refresh_locked (tokens);
  token = find_locked (tokens, id);
  if (same_hash (token ? token->sha256 : nobody, hash) && token
      && counts (token))
    result = owner_fill (owner, token);
  pthread_mutex_unlock (&tokens->lock);
  return result;
}
