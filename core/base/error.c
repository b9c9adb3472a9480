/* SPDX-License-Identifier: Apache-2.0 */
/* The error object and the table of public codes. */

#include <config.h>

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

static const struct error_info table[] = {
#define E(number, name, meaning, exit_status, http, retryable, todo)          \
  { number, #name, meaning, exit_status, http, RETRY_##retryable, todo },
#include "base/errors.def"
#undef E
};

/* What error_set hands out when memory for a real one is out: it is never
 * freed, and the setters leave it alone. */
static struct error no_memory = { .number = E_NO_MEMORY,
                                  .retryable = RETRY_YES };

const struct error_info *
error_table (size_t *count)
{
  *count = sizeof table / sizeof table[0];
  return table;
}

const struct error_info *
error_lookup (int number)
{
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    if (table[i].number == number)
      return &table[i];
  }
  return NULL;
}

/* More than any path; a message may quote what is as long as a command line
 * can be. */
#define LINE_MAX_BYTES 6144
#define LINE_HEAD_BYTES 5120

static int
continues_character (char c)
{
  return ((unsigned char) c & 0xc0) == 0x80;
}

/* A message is one line that can be read, whatever was formatted into it. */
static void
one_line (char *s)
{
  static const char gap[] = "…";
  size_t size = strlen (s), head = LINE_HEAD_BYTES, tail;

  if (size > LINE_MAX_BYTES) {
    tail = size - (LINE_MAX_BYTES - LINE_HEAD_BYTES - sizeof gap);
    while (head > 0 && continues_character (s[head]))
      head--;
    while (tail < size && continues_character (s[tail]))
      tail++;
    memcpy (s + head, gap, sizeof gap - 1);
    memmove (s + head + sizeof gap - 1, s + tail, size - tail + 1);
  }
  for (; *s; s++) {
    if (*s == '\n' || *s == '\r')
      *s = ' ';
  }
}

__attribute__ ((format (printf, 2, 0))) static char *
message_new (int sys_errno, const char *fmt, va_list args)
{
  auto_free char *text = NULL;
  char *full;

  if (vasprintf (&text, fmt, args) < 0) {
    text = NULL;
    return NULL;
  }
  one_line (text);
  if (!sys_errno)
    return steal (text);
  if (asprintf (&full, "%s: %s", text, strerror (sys_errno)) < 0)
    return NULL;
  return full;
}

int
error_set (struct error **err, int number, int sys_errno, const char *fmt, ...)
{
  const struct error_info *info = error_lookup (number);
  struct error *e;
  va_list args;

  if (!err)
    return -1;
  error_free (*err);
  *err = &no_memory;
  e = calloc (1, sizeof *e);
  if (!e)
    return -1;
  va_start (args, fmt);
  e->message = message_new (sys_errno, fmt, args);
  va_end (args);
  if (!e->message) {
    free (e);
    return -1;
  }
  e->number = number;
  e->sys_errno = sys_errno;
  e->retryable = info ? info->retryable : RETRY_UNKNOWN;
  *err = e;
  return -1;
}

int
error_wrap (struct error **err, const char *fmt, ...)
{
  auto_free char *context = NULL;
  char *full;
  va_list args;
  int n;

  if (!err || !*err || *err == &no_memory)
    return -1;
  va_start (args, fmt);
  n = vasprintf (&context, fmt, args);
  va_end (args);
  if (n < 0) {
    context = NULL;
    return -1;
  }
  one_line (context);
  if (asprintf (&full, "%s: %s", context, (*err)->message) < 0)
    return -1;
  free ((*err)->message);
  (*err)->message = full;
  return -1;
}

void
error_hint (struct error **err, const char *fmt, ...)
{
  char *hint;
  va_list args;
  int n;

  if (!err || !*err || *err == &no_memory)
    return;
  va_start (args, fmt);
  n = vasprintf (&hint, fmt, args);
  va_end (args);
  if (n < 0)
    return;
  one_line (hint);
  free ((*err)->hint);
  (*err)->hint = hint;
}

void
error_hint_id (struct error **err, const char *id)
{
  const struct error_info *info = err && *err ? error_lookup ((*err)->number)
                                              : NULL;
  const char *at = info ? strstr (info->todo, "ID") : NULL;

  if (at)
    error_hint (err, "%.*s%s%s", (int) (at - info->todo), info->todo, id,
                at + strlen ("ID"));
}

void
error_detail (struct error **err, const char *key, json_t *take_value)
{
  if (!err || !*err || *err == &no_memory) {
    json_decref (take_value);
    return;
  }
  if (!(*err)->details)
    (*err)->details = json_object ();
  /* A detail that does not fit in memory is left out: the error stays. */
  json_object_set_new ((*err)->details, key, take_value);
}

void
error_free (struct error *err)
{
  if (!err || err == &no_memory)
    return;
  free (err->message);
  free (err->hint);
  json_decref (err->details);
  free (err);
}

int
error_move (struct error **err, struct error *take_from)
{
  if (!err) {
    error_free (take_from);
    return -1;
  }
  if (*err != take_from)
    error_free (*err);
  *err = take_from;
  return -1;
}

const char *
error_message (const struct error *err)
{
  return err->message ? err->message : "out of memory";
}

const char *
error_next_step (const struct error *err)
{
  const struct error_info *info = error_lookup (err->number);

  if (err->hint)
    return err->hint;
  return info ? info->todo : NULL;
}

/* Text that may hold bytes which are not UTF-8 (file names do). */
static json_t *
text_to_json (const char *s)
{
  auto_free char *safe = NULL;
  json_t *value;

  if (!s)
    return json_null ();
  value = json_string (s);
  if (value)
    return value;
  safe = text_escape (s, strlen (s));
  return safe ? json_string (safe) : NULL;
}

static const char *const retryable_names[] = {
  [RETRY_NO] = "no", [RETRY_YES] = "yes", [RETRY_UNKNOWN] = "unknown",
};

json_t *
error_to_json (const struct error *err)
{
  const struct error_info *info = error_lookup (err->number);
  char code[16];

  snprintf (code, sizeof code, "E%04d", err->number);
  return json_pack ("{s:{s:s, s:s, s:o, s:o, s:s, s:O?}}", "error",
                    "code", code,
                    "name", info ? info->name : "UNKNOWN",
                    "message", text_to_json (error_message (err)),
                    "hint", text_to_json (error_next_step (err)),
                    "retryable", retryable_names[err->retryable],
                    "details", err->details);
}

int
error_print (const struct error *err, int json)
{
  const struct error_info *info = error_lookup (err->number);
  const char *message = error_message (err), *next = error_next_step (err);

  if (json) {
    auto_json json_t *object = error_to_json (err);
    auto_free char *text = json_text (object);

    printf ("%s\n", text ? text : "{}");
  } else {
    auto_free char *shown = text_escape (message, strlen (message));

    fflush (stdout);
    fprintf (stderr, "coffer: E%d: %s\n", err->number, shown ? shown : "");
    if (next)
      fprintf (stderr, "  hint: %s\n", next);
  }
  return info ? info->exit_status : 1;
}
