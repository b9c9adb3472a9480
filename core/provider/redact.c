/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of a secret, and their replacement.  The search is plain: a
 * provider has a handful of secrets and its texts are short. */

#include "config.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>

#include "base/text.h"
#include "provider/redact.h"

#define HIDDEN "[hidden]"
#define BEGINNING 4             /* bytes that a secret is known by */

struct redactor {
  pthread_rwlock_t *lock;       /* of the patterns */
  atomic_int has;               /* there is one, which stays so */
  struct coffer_strings patterns;       /* the longest first */
  struct coffer_strings first, late;    /* patterns without these secrets; these */
};

static void
add_pattern (struct redactor *redactor, const char *pattern)
{
  size_t i;

  if (strlen (pattern) < sizeof HIDDEN - 1)
    return;
  for (i = 0; i < redactor->patterns.count; i++)
    if (strcmp (redactor->patterns.items[i], pattern) == 0)
      return;
  coffer_strings_add (&redactor->patterns, pattern);
}

static int
is_unreserved (unsigned char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
         || (c >= '0' && c <= '9') || (c != '\0' && strchr ("-._~", c));
}

/* plus: a space becomes "+", as in forms.  all: every byte is written so. */
static void
add_url (struct redactor *redactor, const char *secret, const char *fmt,
         int plus, int all)
{
  coffer_autobuffer struct coffer_buffer buffer = { 0 };
  const char *p;

  for (p = secret; *p; p++)
    if (!all && is_unreserved ((unsigned char) *p))
      coffer_buffer_add (&buffer, p, 1);
    else if (plus && *p == ' ')
      coffer_buffer_add (&buffer, "+", 1);
    else if (fmt[3] == 'X')
      coffer_buffer_printf (&buffer, "%%%02X", (unsigned char) *p);
    else
      coffer_buffer_printf (&buffer, "%%%02x", (unsigned char) *p);
  if (buffer.failed)
    redactor->patterns.failed = 1;
  else if (buffer.data)
    add_pattern (redactor, buffer.data);
  if (buffer.data)
    explicit_bzero (buffer.data, buffer.size);
}

/* The characters of the secret's base64 that depend on nothing around it,
 * when `before` bytes (modulo 3) stand in front. */
static void
add_base64 (struct redactor *redactor, const char *secret, size_t before)
{
  size_t size = strlen (secret), first, last, i;
  char *bytes = calloc (1, before + size), *text;

  if (!bytes) {
    redactor->patterns.failed = 1;
    return;
  }
  memcpy (bytes + before, secret, size);
  text = text_base64_encode (bytes, before + size);
  if (text) {
    first = (before * 8 + 5) / 6;
    last = (before + size) * 8 / 6;
    text[last] = '\0';
    add_pattern (redactor, text + first);
    for (i = first; i < last; i++)
      text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
    add_pattern (redactor, text + first);
    explicit_bzero (text, last);
  } else {
    redactor->patterns.failed = 1;
  }
  explicit_bzero (bytes, before + size);
  free (bytes);
  free (text);
}

/* Of \uXXXX: writers differ. */
static void
lower_digits (char *text)
{
  size_t i;

  for (; *text; text++) {
    if (*text != '\\')
      continue;
    if (!*++text)
      return;
    for (i = 1; *text == 'u' && i <= 4 && text[i]; i++)
      text[i] = (char) tolower ((unsigned char) text[i]);
  }
}

/* As it stands in a JSON document; not a word when it is no UTF-8, which JSON
 * cannot hold. */
static void
add_json (struct redactor *redactor, const char *secret, size_t flags)
{
  json_t *value = json_string (secret);
  char *text = value ? json_dumps (value, flags | JSON_ENCODE_ANY) : NULL;
  size_t size = text ? strlen (text) : 0;

  if (value && !text)
    redactor->patterns.failed = 1;
  if (size > 2) {
    text[size - 1] = '\0';      /* the quotes */
    add_pattern (redactor, text + 1);
    lower_digits (text);
    add_pattern (redactor, text + 1);
    explicit_bzero (text, size);
  }
  free (text);
  json_decref (value);
}

/* Logs come in lines, and so does a key in a file. */
static void
add_lines (struct redactor *redactor, const char *secret)
{
  const char *line, *end;
  char *copy;

  for (line = secret; *line; line = end + strspn (end, "\r\n")) {
    end = line + strcspn (line, "\r\n");
    copy = strndup (line, (size_t) (end - line));
    if (!copy) {
      redactor->patterns.failed = 1;
      return;
    }
    if (end - line >= REDACT_MIN_BYTES)
      add_pattern (redactor, copy);
    explicit_bzero (copy, (size_t) (end - line));
    free (copy);
  }
}

static void
add_secret (struct redactor *redactor, const char *secret)
{
  size_t before;

  add_pattern (redactor, secret);
  add_json (redactor, secret, 0);
  add_json (redactor, secret, JSON_ESCAPE_SLASH);
  add_json (redactor, secret, JSON_ENSURE_ASCII);
  add_json (redactor, secret, JSON_ENSURE_ASCII | JSON_ESCAPE_SLASH);
  add_lines (redactor, secret);
  add_url (redactor, secret, "%02X", 0, 0);
  add_url (redactor, secret, "%02x", 0, 0);
  add_url (redactor, secret, "%02X", 1, 0);
  add_url (redactor, secret, "%02X", 0, 1);
  add_url (redactor, secret, "%02x", 0, 1);
  for (before = 0; before < 3; before++)
    add_base64 (redactor, secret, before);
}

static int
compare_length (const void *a, const void *b)
{
  size_t x = strlen (*(char *const *) a), y = strlen (*(char *const *) b);

  return x < y ? 1 : x > y ? -1 : 0;
}

/* The longest first: a secret may begin with another. */
static void
sort_patterns (struct redactor *redactor)
{
  if (redactor->patterns.count > 1)
    qsort (redactor->patterns.items, redactor->patterns.count,
           sizeof *redactor->patterns.items, compare_length);
  if (redactor->patterns.count > 0)
    atomic_store (&redactor->has, 1);
}

static void
strings_wipe (struct coffer_strings *strings)
{
  size_t i;

  for (i = 0; i < strings->count; i++)
    explicit_bzero (strings->items[i], strlen (strings->items[i]));
  coffer_strings_free (strings);
}

static struct redactor *
redactor_empty (void)
{
  struct redactor *redactor = calloc (1, sizeof *redactor);
  pthread_rwlock_t *lock = redactor ? malloc (sizeof *lock) : NULL;

  if (lock && pthread_rwlock_init (lock, NULL) == 0) {
    redactor->lock = lock;
    return redactor;
  }
  free (lock);
  free (redactor);
  return NULL;
}

int
redactor_new (char *const *secrets, struct redactor **out, size_t *skipped,
              struct error **err)
{
  struct redactor *redactor = redactor_empty ();

  *skipped = 0;
  if (!redactor)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  for (; secrets && *secrets; secrets++)
    if (strlen (*secrets) < REDACT_MIN_BYTES)
      (*skipped)++;
    else
      add_secret (redactor, *secrets);
  if (redactor->patterns.failed) {
    redactor_free (redactor);
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  }
  sort_patterns (redactor);
  *out = redactor;
  return 0;
}

/* All patterns anew, of the first secrets and of the late ones from `from` on, and
 * of one more; in `out`, which was empty. */
static void
patterns_with (const struct redactor *redactor, size_t from,
               const char *secret, struct redactor *out)
{
  size_t i;

  for (i = 0; i < redactor->first.count; i++)
    coffer_strings_add (&out->patterns, redactor->first.items[i]);
  for (i = from; i < redactor->late.count; i++) {
    coffer_strings_add (&out->late, redactor->late.items[i]);
    add_secret (out, redactor->late.items[i]);
  }
  coffer_strings_add (&out->late, secret);
  add_secret (out, secret);
}

static int
add_late_locked (struct redactor *redactor, const char *secret)
{
  struct redactor next = { .lock = NULL };
  size_t i;

  for (i = 0; i < redactor->late.count; i++)
    if (strcmp (redactor->late.items[i], secret) == 0)
      return 0;
  if (redactor->late.count == 0) {
    strings_wipe (&redactor->first);
    for (i = 0; i < redactor->patterns.count; i++)
      coffer_strings_add (&redactor->first, redactor->patterns.items[i]);
  }
  patterns_with (redactor, redactor->late.count >= REDACT_LATE_MOST, secret,
                 &next);
  if (redactor->first.failed || next.patterns.failed || next.late.failed) {
    strings_wipe (&next.patterns);
    strings_wipe (&next.late);
    return -1;
  }
  strings_wipe (&redactor->patterns);
  strings_wipe (&redactor->late);
  redactor->patterns = next.patterns;
  redactor->late = next.late;
  sort_patterns (redactor);
  return 0;
}

int
redactor_add (struct redactor *redactor, const char *secret,
              struct error **err)
{
  int r = 0;

  if (strlen (secret) < REDACT_MIN_BYTES)
    return 0;
  pthread_rwlock_wrlock (redactor->lock);
  r = add_late_locked (redactor, secret);
  pthread_rwlock_unlock (redactor->lock);
  return r < 0 ? error_set (err, E_NO_MEMORY, 0, "out of memory") : 0;
}

void
redactor_free (struct redactor *redactor)
{
  if (!redactor)
    return;
  strings_wipe (&redactor->patterns);
  strings_wipe (&redactor->first);
  strings_wipe (&redactor->late);
  pthread_rwlock_destroy (redactor->lock);
  free (redactor->lock);
  free (redactor);
}

/* Most providers have no secrets, and lock nothing. */
static int
has_patterns (const struct redactor *redactor)
{
  return redactor && atomic_load (&redactor->has);
}

void
redact_text (const struct redactor *redactor, char *text)
{
  size_t i, size;
  char *at;

  if (!has_patterns (redactor) || !text)
    return;
  pthread_rwlock_rdlock (redactor->lock);
  for (i = 0; i < redactor->patterns.count; i++) {
    size = strlen (redactor->patterns.items[i]);
    at = text;
    while ((at = strstr (at, redactor->patterns.items[i])) != NULL) {
      memcpy (at, HIDDEN, sizeof HIDDEN - 1);
      at += sizeof HIDDEN - 1;
      memmove (at, at + size - (sizeof HIDDEN - 1),
               strlen (at + size - (sizeof HIDDEN - 1)) + 1);
    }
  }
  pthread_rwlock_unlock (redactor->lock);
}

/* ---- texts that go on ----------------------------------------------------- */

struct joined {
  char *bytes;
  size_t before, size;          /* of the tail, and of all */
  char *hide;                   /* one a byte of the text */
};

static void
hide_range (struct joined *joined, size_t from, size_t to)
{
  if (from < joined->before)
    from = joined->before;
  if (from < to)
    memset (joined->hide + from - joined->before, 1, to - from);
}

static void
hide_pattern (struct joined *joined, const char *pattern)
{
  size_t size = strlen (pattern), i = 0;
  const char *at;

  for (; i < joined->size; i = (size_t) (at - joined->bytes) + 1) {
    at = memmem (joined->bytes + i, joined->size - i, pattern, size);
    if (!at)
      break;
    hide_range (joined, (size_t) (at - joined->bytes),
                (size_t) (at - joined->bytes) + size);
  }
  for (i = size - 1; i >= BEGINNING; i--)
    if (i <= joined->size
        && memcmp (joined->bytes + joined->size - i, pattern, i) == 0) {
      hide_range (joined, joined->size - i, joined->size);
      break;
    }
}

/* Without memory nothing is shown. */
static void
hide_joined (const struct redactor *redactor, const struct redact_tail *tail,
             const char *text, size_t size, char *hide)
{
  struct joined joined = { .before = tail->size, .size = tail->size + size,
                           .hide = hide };
  size_t i;

  joined.bytes = malloc (joined.size + 1);
  if (!joined.bytes) {
    memset (hide, 1, size);
    return;
  }
  if (tail->size > 0)
    memcpy (joined.bytes, tail->bytes, tail->size);
  memcpy (joined.bytes + tail->size, text, size);
  for (i = 0; i < redactor->patterns.count; i++)
    hide_pattern (&joined, redactor->patterns.items[i]);
  explicit_bzero (joined.bytes, joined.size);
  free (joined.bytes);
}

/* As much as a secret may lie in beside the next text. */
static void
tail_add (struct redact_tail *tail, const char *text, size_t size,
          size_t most)
{
  size_t old = size < most ? most - size : 0;
  char *bytes = malloc (most + 1);

  if (old > tail->size)
    old = tail->size;
  if (size > most) {
    text += size - most;
    size = most;
  }
  if (bytes && old > 0)
    memcpy (bytes, tail->bytes + tail->size - old, old);
  if (bytes)
    memcpy (bytes + old, text, size);
  redact_tail_fini (tail);
  tail->bytes = bytes;
  tail->size = bytes ? old + size : 0;
}

void
redact_tail_fini (struct redact_tail *tail)
{
  if (tail->bytes)
    explicit_bzero (tail->bytes, tail->size);
  free (tail->bytes);
  tail->bytes = NULL;
  tail->size = 0;
}

static void
write_hidden (char *text, const char *hide)
{
  size_t i = 0, run;
  char *out = text;

  while (text[i]) {
    for (run = 0; text[i + run] && hide[i + run]; run++)
      ;
    if (run >= sizeof HIDDEN - 1)
      out = mempcpy (out, HIDDEN, sizeof HIDDEN - 1);
    else if (run > 0)
      out = (char *) memset (out, '*', run) + run;
    else
      *out++ = text[i];
    i += run > 0 ? run : 1;
  }
  *out = '\0';
}

void
redact_next (const struct redactor *redactor,
             struct redact_tail *const *tails, size_t n_tails, char *text)
{
  size_t size = strlen (text), i;
  char *hide;

  if (!has_patterns (redactor) || size == 0)
    return;
  hide = calloc (1, size + 1);
  if (!hide) {
    *text = '\0';
    return;
  }
  pthread_rwlock_rdlock (redactor->lock);
  for (i = 0; i < n_tails; i++)
    hide_joined (redactor, tails[i], text, size, hide);
  for (i = 0; i < n_tails; i++)
    tail_add (tails[i], text, size, strlen (redactor->patterns.items[0]) - 1);
  pthread_rwlock_unlock (redactor->lock);
  write_hidden (text, hide);
  free (hide);
}

/* The record was copied by the host, so that its texts may be written. */
static void
redact_field (const struct redactor *redactor,
              const struct contract_field *field, char *at)
{
  char **texts;
  void **records;

  switch (field->type) {
  case CONTRACT_STR:
  case CONTRACT_TEXT:
    redact_text (redactor, *(char **) (void *) at);
    break;
  case CONTRACT_STRV:
    for (texts = *(char ***) (void *) at; texts && *texts; texts++)
      redact_text (redactor, *texts);
    break;
  case CONTRACT_REC:
    redact_record (redactor, field->record, *(void **) (void *) at);
    break;
  case CONTRACT_RECV:
    for (records = *(void ***) (void *) at; records && *records; records++)
      redact_record (redactor, field->record, *records);
    break;
  default:
    break;
  }
}

void
redact_record (const struct redactor *redactor,
               const struct contract_record *record, void *data)
{
  uint16_t i;

  if (!has_patterns (redactor) || !data)
    return;
  for (i = 0; i < record->n_fields; i++)
    redact_field (redactor, &record->fields[i],
                  (char *) data + record->fields[i].offset);
}

static json_t *
redact_string (const struct redactor *redactor, const char *text)
{
  char *copy = strdup (text);
  json_t *out;

  if (!copy)
    return NULL;
  redact_text (redactor, copy);
  out = json_string (copy);
  free (copy);
  return out;
}

static json_t *
redact_object (const struct redactor *redactor, const json_t *value)
{
  json_t *out = json_object (), *item, *name;
  const char *key;

  json_object_foreach ((json_t *) value, key, item) {
    name = redact_string (redactor, key);
    if (!name
        || json_object_set_new (out, json_string_value (name),
                                redact_json (redactor, item)) < 0) {
      json_decref (name);
      json_decref (out);
      return NULL;
    }
    json_decref (name);
  }
  return out;
}

json_t *
redact_json (const struct redactor *redactor, const json_t *value)
{
  json_t *out, *item;
  size_t i;

  if (json_is_string (value))
    return redact_string (redactor, json_string_value (value));
  if (json_is_object (value))
    return redact_object (redactor, value);
  if (!json_is_array (value))
    return json_copy ((json_t *) value);
  out = json_array ();
  json_array_foreach (value, i, item)
    if (json_array_append_new (out, redact_json (redactor, item)) < 0) {
      json_decref (out);
      return NULL;
    }
  return out;
}
