/* SPDX-License-Identifier: Apache-2.0 */
/* See idempotency.h. */

#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/text.h"
#include "server/api/idempotency.h"
#include "server/exchange.h"

#define KEY_MAX 255
#define BODY_MAX (256 << 10)
#define BYTES_MAX (64 << 20)    /* of all bodies in memory */
#define FILE_MAX (1 << 20)
#define DAY_NS (INT64_C (86400) * 1000000000)
/* Files that are added until old ones are looked for. */
#define SWEEP_EVERY 256

/* A name begins with these of its tenant's hash: whose it is shows without a
 * record of its own, in a file's name too. */
#define TENANT_DIGITS 16

/* What one tenant has. */
struct owner {
  struct owner *next;
  char tenant[TENANT_DIGITS];
  size_t count, bytes;
};

struct idempotent {
  struct idempotent *next;      /* lock, as all that follows */
  struct owner *owner;
  char name[SHA256_HEX_SIZE];   /* of the tenant; of the tenant and the key */
  char hash[SHA256_HEX_SIZE];   /* of the request */
  int64_t time_ns;              /* since the epoch */
  int working;
  int is_kept;                  /* on the disk */
  char sandbox[SANDBOX_ID_SIZE];        /* that it makes; "" */
  int again;                    /* it was named by an earlier process */
  int status;                   /* 0: no reply */
  char *type, *place, *body;
  size_t size;
};

struct idempotency {
  const struct place *place;
  pthread_mutex_t lock;
  struct idempotent *entries;   /* lock: the newest first */
  struct owner *owners;         /* lock */
  size_t count, added;          /* lock */
  size_t bytes;                 /* lock: of bodies */
};

static void
entry_free (struct idempotent *entry)
{
  if (!entry)
    return;
  free (entry->type);
  free (entry->place);
  free (entry->body);
  free (entry);
}
DEFINE_CLEANUP (struct idempotent *, entry_free, auto_entry)
#define auto_entry CLEANUP (auto_entry)

/* ---- files ---------------------------------------------------------------- */

static int
folder_open (const struct idempotency *idempotency)
{
  auto_free char *path = text_printf ("%s/idempotency",
                                      idempotency->place->state);

  return path ? place_open_dir (path, NULL) : -1;
}

static json_t *
entry_json (const struct idempotent *entry)
{
  json_t *json = json_pack ("{s:s, s:I, s:s}", "hash", entry->hash, "time_ns",
                            (json_int_t) entry->time_ns, "sandbox",
                            entry->sandbox);

  if (!entry->status)
    return json;
  json_object_set_new (json, "status", json_integer (entry->status));
  json_put_text (json, "type", entry->type);
  json_put_text (json, "place", entry->place);
  json_object_set_new (json, "body",
                       json_stringn (entry->body, entry->size));
  return json;
}

/* New, on the disk, in the old one's place. */
static int
entry_write (const struct idempotency *idempotency,
             const struct idempotent *entry)
{
  coffer_autoclose int dir = folder_open (idempotency), fd = -1;
  auto_free char *part = text_printf (".%s", entry->name), *text = NULL;
  auto_json json_t *json = entry_json (entry);

  if (dir < 0 || !part || !json || !(text = json_text (json)))
    return -1;
  fd = openat (dir, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW
                            | O_CLOEXEC, 0600);
  if (fd >= 0
      && coffer_write_all (fd, text, strlen (text))
           == (ssize_t) strlen (text)
      && fsync (fd) == 0 && renameat (dir, part, dir, entry->name) == 0)
    return 0;
  unlinkat (dir, part, 0);
  return -1;
}

static void
entry_unlink (const struct idempotency *idempotency, const char *name)
{
  coffer_autoclose int dir = folder_open (idempotency);

  if (dir >= 0)
    unlinkat (dir, name, 0);
}

static char *
copy_of (const json_t *json, const char *key)
{
  const char *text = json_string_value (json_object_get (json, key));

  return text ? strdup (text) : NULL;
}

/* What an earlier process has kept, or NULL. */
static struct idempotent *
entry_read (const struct idempotency *idempotency, const char *name)
{
  coffer_autoclose int dir = folder_open (idempotency), fd = -1;
  auto_entry struct idempotent *entry = calloc (1, sizeof *entry);
  auto_free char *text = NULL;
  auto_json json_t *json = NULL;
  const char *hash, *sandbox;
  size_t size;

  fd = dir < 0 ? -1 : openat (dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || !entry || coffer_read_whole (fd, FILE_MAX, &text, &size) < 0
      || json_parse (text, size, &json, NULL) < 0)
    return NULL;
  hash = json_string_value (json_object_get (json, "hash"));
  sandbox = json_string_value (json_object_get (json, "sandbox"));
  if (!hash || !sha256_is_hex (hash))
    return NULL;
  memcpy (entry->name, name, sizeof entry->name);
  memcpy (entry->hash, hash, sizeof entry->hash);
  if (sandbox && sandbox_id_valid (sandbox))
    memcpy (entry->sandbox, sandbox, sizeof entry->sandbox);
  entry->again = entry->sandbox[0] != '\0';
  entry->is_kept = 1;
  entry->time_ns = json_integer_value (json_object_get (json, "time_ns"));
  entry->status = (int) json_integer_value (json_object_get (json, "status"));
  entry->type = copy_of (json, "type");
  entry->place = copy_of (json, "place");
  entry->body = copy_of (json, "body");
  entry->size = entry->body ? strlen (entry->body) : 0;
  if (entry->status && !entry->body)
    return NULL;
  return steal (entry);
}

struct old_file {
  int64_t time;
  size_t rank;                  /* how many of its tenant's are newer */
  char name[SHA256_HEX_SIZE];
};

static int
newest_first (const struct old_file *x, const struct old_file *y)
{
  return x->time < y->time ? 1 : x->time > y->time ? -1 : 0;
}

static int
by_tenant (const void *a, const void *b)
{
  const struct old_file *x = a, *y = b;
  const int order = memcmp (x->name, y->name, TENANT_DIGITS);

  return order ? order : newest_first (x, y);
}

static int
by_rank (const void *a, const void *b)
{
  const struct old_file *x = a, *y = b;

  return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1)
                            : newest_first (x, y);
}

/* Of whoever has most the oldest come last. */
static void
files_sort (struct old_file *files, size_t n)
{
  size_t i;

  if (n == 0)
    return;
  qsort (files, n, sizeof *files, by_tenant);
  files[0].rank = 0;
  for (i = 1; i < n; i++)
    files[i].rank = memcmp (files[i].name, files[i - 1].name, TENANT_DIGITS)
                      ? 0 : files[i - 1].rank + 1;
  qsort (files, n, sizeof *files, by_rank);
}

/* Files of a day ago, beyond the number that is kept, and of what was killed
 * while it wrote one. */
static void
files_sweep (const struct idempotency *idempotency, uint64_t most)
{
  int dir = folder_open (idempotency);
  DIR *stream = dir < 0 ? NULL : fdopendir (dir);
  struct old_file *files = NULL, *grown;
  size_t n = 0, i;
  struct dirent *entry;
  struct stat st;
  const int64_t oldest = (coffer_realtime_ns () - DAY_NS) / 1000000000;

  if (!stream) {
    coffer_fd_close (&dir);
    return;
  }
  while ((entry = readdir (stream))) {
    const int is_part = entry->d_name[0] == '.';

    if (!sha256_is_hex (entry->d_name + is_part)
        || fstatat (dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
      continue;
    /* One that is being written now is younger. */
    if (is_part && st.st_mtime < oldest)
      unlinkat (dir, entry->d_name, 0);
    if (is_part)
      continue;
    grown = reallocarray (files, n + 1, sizeof *files);
    if (!grown)
      break;
    files = grown;
    files[n].time = st.st_mtime;
    memcpy (files[n++].name, entry->d_name, SHA256_HEX_SIZE);
  }
  files_sort (files, n);
  for (i = 0; i < n; i++)
    if (i >= most || files[i].time < oldest)
      unlinkat (dir, files[i].name, 0);
  free (files);
  closedir (stream);
}

/* ---- entries -------------------------------------------------------------- */

static struct idempotent **
find_locked (struct idempotency *idempotency, const char *name)
{
  struct idempotent **p;

  for (p = &idempotency->entries; *p; p = &(*p)->next)
    if (strcmp ((*p)->name, name) == 0)
      return p;
  return NULL;
}

/* -1: no memory, and the entry is not taken. */
static int
insert_locked (struct idempotency *idempotency, struct idempotent *entry)
{
  struct owner *owner = idempotency->owners;

  while (owner && memcmp (owner->tenant, entry->name, TENANT_DIGITS) != 0)
    owner = owner->next;
  if (!owner) {
    owner = calloc (1, sizeof *owner);
    if (!owner)
      return -1;
    memcpy (owner->tenant, entry->name, TENANT_DIGITS);
    owner->next = idempotency->owners;
    idempotency->owners = owner;
  }
  entry->owner = owner;
  owner->count++;
  owner->bytes += entry->size;
  entry->next = idempotency->entries;
  idempotency->entries = entry;
  idempotency->count++;
  idempotency->bytes += entry->size;
  return 0;
}

static void
remove_locked (struct idempotency *idempotency, struct idempotent **p)
{
  struct idempotent *entry = *p;
  struct owner *owner = entry->owner, **q = &idempotency->owners;

  *p = entry->next;
  idempotency->count--;
  idempotency->bytes -= entry->size;
  owner->bytes -= entry->size;
  if (--owner->count == 0) {
    while (*q != owner)
      q = &(*q)->next;
    *q = owner->next;
    free (owner);
  }
  entry_free (entry);
}

/* Of whoever has most, in number or bytes, the oldest that is not at work: nobody
 * pushes out what others keep before they keep more.  `forget`: on the disk, too.
 * -1: there is none. */
static int
drop_oldest_locked (struct idempotency *idempotency, int forget)
{
  struct idempotent **p, **last = NULL;

  for (p = &idempotency->entries; *p; p = &(*p)->next)
    if (!(*p)->working
        && (!last || (*p)->owner == (*last)->owner
            || (forget ? (*p)->owner->count > (*last)->owner->count
                       : (*p)->owner->bytes > (*last)->owner->bytes)))
      last = p;
  if (!last)
    return -1;
  if (forget && (*last)->is_kept)
    entry_unlink (idempotency, (*last)->name);
  remove_locked (idempotency, last);
  return 0;
}

static int
make_room_locked (struct idempotency *idempotency, uint64_t most)
{
  while (idempotency->count >= most)
    if (drop_oldest_locked (idempotency, 1) < 0)
      return -1;
  return 0;
}

/* How many are kept. */
static uint64_t
most_of (const struct request *request)
{
  return exchange_of (request)->config->limits.keys;
}

/* One that there is, of today; in memory or on the disk. */
static struct idempotent *
look_up_locked (struct idempotency *idempotency, const char *name)
{
  struct idempotent **p = find_locked (idempotency, name), *entry;

  if (!p) {
    entry = entry_read (idempotency, name);
    if (entry && insert_locked (idempotency, entry) < 0)
      entry_free (steal (entry));
    if (!entry)
      return NULL;
    p = &idempotency->entries;
  }
  entry = *p;
  if (entry->working || coffer_realtime_ns () - entry->time_ns <= DAY_NS)
    return entry;
  if (entry->is_kept)
    entry_unlink (idempotency, name);
  remove_locked (idempotency, p);
  return NULL;
}

static int
refuse_other (struct error **err)
{
  return error_set (err, E_IDEMPOTENCY, 0,
                    "this Idempotency-Key was used for another request");
}

static int
replay_locked (struct request *request, const struct idempotent *entry,
               struct error **err)
{
  if (reply_bytes (request, entry->status,
                   entry->type ? entry->type : "application/json",
                   entry->body, entry->size, err) < 0
      || (entry->place
          && reply_header (request, "Location", entry->place, err) < 0)
      || reply_header (request, "Idempotency-Replayed", "true", err) < 0)
    return -1;
  return 1;
}

static int
begin_locked (struct idempotency *idempotency, struct request *request,
              const char *name, const char *hash, struct idempotent **out,
              struct error **err)
{
  struct idempotent *entry = look_up_locked (idempotency, name);

  if (entry && strcmp (entry->hash, hash) != 0)
    return refuse_other (err);
  if (entry && entry->working)
    return error_set (err, E_BUSY, 0, "the request of this Idempotency-Key is "
                      "still at work");
  if (entry && entry->status)
    return replay_locked (request, entry, err);
  if (!entry) {
    if (make_room_locked (idempotency, most_of (request)) < 0)
      return error_set (err, E_LIMIT, 0, "%zu requests with a key are at work",
                        idempotency->count);
    entry = calloc (1, sizeof *entry);
    if (!entry)
      return error_set (err, E_NO_MEMORY, 0, "a request");
    memcpy (entry->name, name, sizeof entry->name);
    memcpy (entry->hash, hash, sizeof entry->hash);
    if (insert_locked (idempotency, entry) < 0) {
      free (entry);
      return error_set (err, E_NO_MEMORY, 0, "a request");
    }
  }
  entry->time_ns = coffer_realtime_ns ();
  entry->working = 1;
  *out = entry;
  return 0;
}

/* ---- a request ------------------------------------------------------------ */

static void
add_text (SHA2_CTX *context, const char *text)
{
  if (text)
    sha256_add (context, text, strlen (text));
  sha256_add (context, "", 1);
}

/* What makes it the same: method, path, query, body.  Of a body that is a
 * stream its length and what is said of its content. */
static void
request_hash (const struct request *request, char out[SHA256_HEX_SIZE])
{
  const struct exchange *exchange = exchange_of (request);
  SHA2_CTX context;

  sha256_begin (&context);
  add_text (&context, request->method);
  add_text (&context, exchange->uri);
  add_text (&context, exchange->query);
  add_text (&context, request_header (request, "Content-Type"));
  if (request->body_fd >= 0) {
    add_text (&context, request_header (request, "Content-Length"));
    add_text (&context, request_header (request, "X-Content-Sha256"));
  } else if (request->body_text)
    sha256_add (&context, request->body_text, request->body_size);
  sha256_end (&context, out);
}

static void
name_hash (const struct request *request, const char *key,
           char out[SHA256_HEX_SIZE])
{
  char tenant[SHA256_HEX_SIZE];
  SHA2_CTX context;

  sha256_begin (&context);
  add_text (&context, request->caller.tenant);
  sha256_end (&context, tenant);
  sha256_begin (&context);
  add_text (&context, request->caller.tenant);
  add_text (&context, key);
  sha256_end (&context, out);
  memcpy (out, tenant, TENANT_DIGITS);
}

static int
key_check (const char *key, struct error **err)
{
  size_t n = strlen (key), i;

  for (i = 0; i < n; i++)
    if (key[i] <= ' ' || key[i] > '~')
      break;
  if (n == 0 || n > KEY_MAX || i < n)
    return error_set (err, E_REQUEST, 0, "Idempotency-Key has 1 to %d visible "
                      "ASCII characters", KEY_MAX);
  return 0;
}

int
idempotency_begin (struct request *request, struct idempotent **out,
                   struct error **err)
{
  struct idempotency *idempotency = request->server->idempotency;
  const char *key = request->route->flags & ROUTE_MUTATES
                      ? request_header (request, "Idempotency-Key") : NULL;
  char name[SHA256_HEX_SIZE], hash[SHA256_HEX_SIZE];
  int r;

  *out = NULL;
  if (!key)
    return 0;
  if (key_check (key, err) < 0)
    return -1;
  name_hash (request, key, name);
  request_hash (request, hash);
  pthread_mutex_lock (&idempotency->lock);
  r = begin_locked (idempotency, request, name, hash, out, err);
  pthread_mutex_unlock (&idempotency->lock);
  return r;
}

static const char *
reply_place (const struct reply *reply)
{
  size_t i;

  for (i = 0; i + 1 < reply->headers.count; i += 2)
    if (strcasecmp (reply->headers.items[i], "Location") == 0)
      return reply->headers.items[i + 1];
  return NULL;
}

/* 0 when the reply is kept. */
static int
reply_keep (struct idempotent *entry, const struct reply *reply)
{
  const char *place = reply_place (reply);

  if (!reply->bytes || reply->size > BODY_MAX || reply->status >= 300)
    return -1;
  entry->body = malloc (reply->size + 1);
  entry->type = reply->type ? strdup (reply->type) : NULL;
  entry->place = place ? strdup (place) : NULL;
  if (!entry->body)
    return -1;
  memcpy (entry->body, reply->bytes, reply->size);
  entry->body[reply->size] = '\0';
  entry->size = reply->size;
  entry->status = reply->status;
  return 0;
}

void
idempotency_end (struct request *request, struct idempotent *take, int done)
{
  struct idempotency *idempotency = request->server->idempotency;
  struct idempotent **p;

  if (!take)
    return;
  pthread_mutex_lock (&idempotency->lock);
  if (done && reply_keep (take, request->reply) == 0) {
    idempotency->bytes += take->size;
    take->owner->bytes += take->size;
    while (idempotency->bytes > BYTES_MAX
           && drop_oldest_locked (idempotency, 0) == 0)
      ;
    /* On the disk before anybody is told. */
    if (take->is_kept && entry_write (idempotency, take) < 0)
      log_event (LOG_LEVEL_WARNING, "http", "%s: its reply is kept in memory "
                 "only", request->id);
    take->working = 0;
  } else {
    if (take->is_kept)
      entry_unlink (idempotency, take->name);
    p = find_locked (idempotency, take->name);
    if (p)
      remove_locked (idempotency, p);
  }
  pthread_mutex_unlock (&idempotency->lock);
}

int
idempotency_sandbox (struct request *request, const char **id, int *again,
                     struct error **err)
{
  struct idempotency *idempotency = request->server->idempotency;
  struct idempotent *entry = exchange_of (request)->idempotent;
  struct provider_call call = request_call (request);
  json_t *info = NULL;
  int r, sweep;

  *id = NULL;
  *again = 0;
  if (!entry)
    return 0;
  if (entry->again
      && sandbox_check_tenant (request->server->host, entry->sandbox,
                               request->caller.tenant, NULL) == 0
      && sandbox_info (request->server->host, entry->sandbox, &call, &info,
                       NULL) == 0) {
    json_decref (info);
    *id = entry->sandbox;
    *again = 1;
    return 0;
  }
  /* Nothing came of it, and what is left of that is cleared away by its name. */
  if (sandbox_id_new (entry->sandbox, err) < 0)
    return -1;
  pthread_mutex_lock (&idempotency->lock);
  r = entry_write (idempotency, entry);
  entry->is_kept = r == 0;
  sweep = ++idempotency->added % SWEEP_EVERY == 0;
  pthread_mutex_unlock (&idempotency->lock);
  if (sweep)
    files_sweep (idempotency, most_of (request));
  if (r < 0)
    return error_set (err, E_IO, errno, "%s/idempotency",
                      idempotency->place->state);
  *id = entry->sandbox;
  return 0;
}

/* ---- all of them ---------------------------------------------------------- */

int
idempotency_open (const struct place *place, uint64_t most,
                  struct idempotency **out, struct error **err)
{
  struct idempotency *idempotency = calloc (1, sizeof *idempotency);

  if (!idempotency)
    return error_set (err, E_NO_MEMORY, 0, "the server");
  idempotency->place = place;
  pthread_mutex_init (&idempotency->lock, NULL);
  files_sweep (idempotency, most);
  *out = idempotency;
  return 0;
}

void
idempotency_close (struct idempotency *idempotency)
{
  if (!idempotency)
    return;
  while (idempotency->entries)
    remove_locked (idempotency, &idempotency->entries);
  pthread_mutex_destroy (&idempotency->lock);
  free (idempotency);
}
