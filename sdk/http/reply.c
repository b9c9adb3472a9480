/* SPDX-License-Identifier: Apache-2.0 */
/* What a reply means: its code, and a line for people that says what was asked
 * of whom and what came of it.  What a server says is nobody's text: secrets
 * are hidden before it is cut, what moves a cursor is escaped. */

#define _GNU_SOURCE

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "client.h"

#define SAID_MOST 300           /* bytes of a server's text in a message */
#define HEADERS_MOST 256

/* ---- the head ---- */

/* "HTTP/1.1 404 Not Found": each begins a head, as that of a 100 does. */
static int
take_status (struct http_exchange *exchange, const char *line, size_t size)
{
  const char *space = memchr (line, ' ', size);

  coffer_strings_free (&exchange->reply->headers);
  exchange->reply->status = space && (size_t) (line + size - space) > 3
                              ? atoi (space + 1) : 0;
  return 0;
}

int
http_reply_take_line (struct http_exchange *exchange, const char *line,
                      size_t size)
{
  struct coffer_strings *headers = &exchange->reply->headers;

  exchange->head_size += size;
  if (exchange->head_size > exchange->http->head_most)
    return -1;
  while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r'))
    size--;
  exchange->has_head = size == 0;
  if (size > 5 && strncmp (line, "HTTP/", 5) == 0)
    return take_status (exchange, line, size);
  if (memchr (line, ':', size)) {
    if (headers->count >= HEADERS_MOST)
      return -1;
    coffer_strings_printf (headers, "%.*s", (int) size, line);
  }
  return headers->failed ? -1 : 0;
}

const char *
coffer_http_header (const struct coffer_http_reply *reply, const char *name)
{
  const size_t size = strlen (name);
  const char *line;

  for (size_t i = 0; i < reply->headers.count; i++) {
    line = reply->headers.items[i];
    if (strncasecmp (line, name, size) == 0 && line[size] == ':')
      return line + size + 1 + strspn (line + size + 1, " \t");
  }
  return NULL;
}

/* ---- codes ---- */

int32_t
http_status_code (int status)
{
  switch (status) {
  case 401: case 407:
    return COFFER_UNAUTHENTICATED;
  case 403:
    return COFFER_DENIED;
  case 404: case 410:
    return COFFER_NOT_FOUND;
  case 405: case 501:
    return COFFER_UNSUPPORTED;
  case 408: case 504:
    return COFFER_TIMEOUT;
  case 409: case 412: case 423:
    return COFFER_CONFLICT;
  case 413: case 507:
    return COFFER_LIMIT;
  case 429:
    return COFFER_BUSY;
  case 500:
    return COFFER_IO;
  default:
    break;
  }
  if (status / 100 == 2 || status == 304)
    return COFFER_OK;
  return status / 100 == 4 ? COFFER_INVALID
         : status / 100 == 5 ? COFFER_UNAVAILABLE : COFFER_IO;
}

int32_t
http_errno_code (int code)
{
  return code == ETIMEDOUT ? COFFER_TIMEOUT
         : code == ECANCELED ? COFFER_CANCELLED : COFFER_IO;
}

/* ---- what the server said ---- */

static int
type_is (const struct coffer_http_reply *reply, const char *kind)
{
  const char *type = coffer_http_header (reply, "Content-Type");
  const size_t size = type ? strcspn (type, "; \t") : 0;
  const size_t want = strlen (kind);

  return size >= want && strncasecmp (type + size - want, kind, want) == 0
         && (size == want || type[size - want - 1] == '/'
             || type[size - want - 1] == '+');
}

static json_t *
body_json (const struct http_exchange *exchange)
{
  if (!type_is (exchange->reply, "json") || exchange->text.size == 0)
    return NULL;
  return json_loadb (exchange->text.data, exchange->text.size,
                     JSON_DECODE_ANY, NULL);
}

/* Where services put the sentence for people. */
static const char *
sentence (const json_t *value, int depth)
{
  static const char *const keys[] = { "message", "error", "detail", "msg",
                                      "error_description", "title", "reason",
                                      "cause" };
  const char *found = json_string_value (value);

  for (size_t i = 0; !found && json_is_object (value) && depth < 3
                     && i < sizeof keys / sizeof keys[0]; i++)
    found = sentence (json_object_get (value, keys[i]), depth + 1);
  return found && *found ? found : NULL;
}

/* One line without secrets, of at most SAID_MOST bytes; NULL: nothing. */
static char *
shown (const struct http_exchange *exchange, const char *text, size_t size)
{
  struct coffer_buffer line = { 0 };
  char *copy = strndup (text, size);
  size_t n;

  if (!copy)
    return NULL;
  http_secrets_hide (&exchange->http->secrets, copy);
  n = strlen (copy);
  while (n > 0 && isspace ((unsigned char) copy[n - 1]))
    n--;
  for (size_t i = 0; i < n; i++)
    if (copy[i] == '\n' || copy[i] == '\r' || copy[i] == '\t')
      copy[i] = ' ';
  if (n > SAID_MOST) {
    n = SAID_MOST;
    while (n > 0 && ((unsigned char) copy[n] & 0xc0) == 0x80)
      n--;
    coffer_buffer_add_escaped (&line, copy, n);
    coffer_buffer_add_string (&line, "...");
  } else {
    coffer_buffer_add_escaped (&line, copy, n);
  }
  free (copy);
  if (line.size == 0)
    coffer_buffer_free (&line);
  return line.size > 0 ? coffer_buffer_steal (&line) : NULL;
}

static char *
said (const struct http_exchange *exchange)
{
  json_t *json = body_json (exchange);
  const char *text = sentence (json, 0);
  char *line = NULL;

  if (text)
    line = shown (exchange, text, strlen (text));
  else if (exchange->text.size > 0
           && (type_is (exchange->reply, "plain")
               || !coffer_http_header (exchange->reply, "Content-Type")))
    line = shown (exchange, exchange->text.data, exchange->text.size);
  json_decref (json);
  return line;
}

/* ---- the message ---- */

/* Without the query, which may hold more than people need. */
static char *
message (const struct http_exchange *exchange, const char *what)
{
  struct coffer_buffer text = { 0 };
  char *line;

  coffer_buffer_printf (&text, "%.16s %s%.*s: ", exchange->method,
                        exchange->origin->is_unix ? ""
                                                  : exchange->origin->url,
                        (int) strcspn (exchange->path ? exchange->path : "",
                                       "?"),
                        exchange->path ? exchange->path : "");
  coffer_buffer_add_string (&text, what);
  line = coffer_buffer_steal (&text);
  if (line)
    http_secrets_hide (&exchange->http->secrets, line);
  return line;
}

static char *
status_message (const struct http_exchange *exchange)
{
  struct coffer_http_reply *reply = exchange->reply;
  char *what = NULL, *line;

  if (asprintf (&what, "the answer is %d%s%s%s", reply->status,
                reply->said ? ": " : "", reply->said ? reply->said : "",
                !reply->said && type_is (reply, "html")
                  ? ", with a page for a browser" : "") < 0)
    return NULL;
  line = message (exchange, what);
  free (what);
  return line;
}

/* Of a failure's text that is libcurl's or ours: escaped as well, since a
 * certificate's names are in it. */
static char *
why_message (const struct http_exchange *exchange)
{
  char *why = shown (exchange, exchange->why, strlen (exchange->why));
  char *line = message (exchange, why ? why : "it failed");

  free (why);
  return line;
}

int32_t
http_reply_finish (struct http_exchange *exchange, int32_t code)
{
  struct coffer_http_reply *reply = exchange->reply;
  const int by_status = code == COFFER_OK;

  if (by_status && !(exchange->request->flags & COFFER_HTTP_ANY_STATUS))
    code = http_status_code (reply->status);
  reply->code = code;
  reply->retryable = exchange->is_vain ? COFFER_RETRY_NO
                                       : COFFER_RETRY_DEFAULT;
  if (code == COFFER_OK)
    reply->json = body_json (exchange);
  else if (by_status)
    reply->said = said (exchange);
  if (code != COFFER_OK)
    reply->message = by_status ? status_message (exchange)
                               : why_message (exchange);
  if (exchange->text.size > 0) {
    reply->size = exchange->text.size;
    reply->body = coffer_buffer_steal (&exchange->text);
  }
  return code;
}

void
coffer_http_reply_fini (struct coffer_http_reply *reply)
{
  free (reply->body);
  json_decref (reply->json);
  free (reply->message);
  free (reply->said);
  coffer_strings_free (&reply->headers);
  memset (reply, 0, sizeof *reply);
}

int32_t
coffer_http_fail (struct coffer_call *call,
                  const struct coffer_http_reply *reply)
{
  const int32_t code = reply->code != COFFER_OK ? reply->code
                                                : COFFER_INTERNAL;

  return coffer_fail_with (call, code, reply->retryable,
                           reply->message ? reply->message
                                          : "out of memory", NULL);
}
