/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the head of a request, strictly: what two readers could understand in
 * two ways (a lone CR or LF, a folded line, two lengths, a Host that is not the
 * URL's) is refused, not repaired.  Pure: bytes in, bytes out. */

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http.h"

#define BODY_LINE_MAX 8192      /* of chunk extensions and trailers */

static int
refuse (struct http_head *head, int status, const char *why)
{
  head->status = status;
  head->why = why;
  return -1;
}

static int
is_token (const char *s, size_t size)
{
  size_t i;

  for (i = 0; i < size; i++)
    if (!isalnum ((unsigned char) s[i])
        && (s[i] == '\0' || strchr ("!#$%&'*+-.^_`|~", s[i]) == NULL))
      return 0;
  return size > 0;
}

/* ---- lines ----------------------------------------------------------------- */

struct line {
  const char *at;
  size_t size;                  /* without its end */
};

/* The line at *at, which moves behind it. */
static struct line
line_next (const char **at, const char *end)
{
  struct line line = { *at, 0 };
  const char *lf = memchr (*at, '\n', (size_t) (end - *at));

  line.size = lf != NULL ? (size_t) (lf - *at) - 1 : (size_t) (end - *at);
  *at = lf != NULL ? lf + 1 : end;
  return line;
}

struct field {
  struct line name, value;
};

/* 0, or -1: it is no header field. */
static int
field_read (struct line line, struct field *field)
{
  const char *colon = memchr (line.at, ':', line.size);

  if (colon == NULL || !is_token (line.at, (size_t) (colon - line.at)))
    return -1;
  field->name = (struct line){ line.at, (size_t) (colon - line.at) };
  field->value = (struct line){ colon + 1,
                                line.size - field->name.size - 1 };
  while (field->value.size > 0
         && (field->value.at[0] == ' ' || field->value.at[0] == '\t')) {
    field->value.at++;
    field->value.size--;
  }
  while (field->value.size > 0
         && (field->value.at[field->value.size - 1] == ' '
             || field->value.at[field->value.size - 1] == '\t'))
    field->value.size--;
  return 0;
}

static int
line_is (struct line line, const char *word)
{
  return line.size == strlen (word)
         && strncasecmp (line.at, word, line.size) == 0;
}

/* Whether one of the words of a list, between commas, is that one. */
static int
list_names (struct line list, struct line word)
{
  const char *at = list.at, *end = list.at + list.size, *stop;

  while (at < end) {
    stop = memchr (at, ',', (size_t) (end - at));
    if (stop == NULL)
      stop = end;
    while (at < stop && (*at == ' ' || *at == '\t'))
      at++;
    if ((size_t) (stop - at) >= word.size
        && strncasecmp (at, word.at, word.size) == 0
        && strspn (at + word.size, " \t")
             >= (size_t) (stop - at) - word.size)
      return 1;
    at = stop + 1;
  }
  return 0;
}

/* Each byte of a head: lines end with CR LF, and nothing else is a control
 * character but a tab.  The size of the head; 0: it is not whole; -1. */
static long
head_scan (const char *bytes, size_t size)
{
  size_t i;

  for (i = 0; i < size; i++) {
    unsigned char c = (unsigned char) bytes[i];

    if (c == '\r') {
      if (i + 1 == size)
        return 0;
      if (bytes[i + 1] != '\n')
        return -1;
    } else if (c == '\n') {
      if (i == 0 || bytes[i - 1] != '\r')
        return -1;
      if (i >= 3 && bytes[i - 2] == '\n')
        return (long) i + 1;
      if (i == 1)
        return -1;              /* an empty line is no request */
    } else if ((c < 0x20 && c != '\t') || c == 0x7f)
      return -1;
  }
  return 0;
}

/* ---- the request line ------------------------------------------------------ */

struct request_line {
  struct line method, target, version;
};

static int
request_line_read (struct line line, struct request_line *out)
{
  const char *end = line.at + line.size;
  const char *first = memchr (line.at, ' ', line.size), *second;

  if (first == NULL)
    return -1;
  second = memchr (first + 1, ' ', (size_t) (end - first - 1));
  if (second == NULL || memchr (second + 1, ' ', (size_t) (end - second - 1)))
    return -1;
  out->method = (struct line){ line.at, (size_t) (first - line.at) };
  out->target = (struct line){ first + 1, (size_t) (second - first - 1) };
  out->version = (struct line){ second + 1, (size_t) (end - second - 1) };
  if (!is_token (out->method.at, out->method.size) || out->method.size > 32
      || out->target.size == 0
      || (!line_is (out->version, "HTTP/1.1")
          && !line_is (out->version, "HTTP/1.0")))
    return -1;
  return memchr (out->target.at, '\t', out->target.size) != NULL ? -1 : 0;
}

static size_t
url_authority (struct line url)
{
  size_t i = 0;

  while (i < url.size && strchr ("/?#", url.at[i]) == NULL)
    i++;
  return i;
}

static int
target_read (const struct request_line *line, struct http_head *head)
{
  struct line url = line->target;

  head->is_connect = line->method.size == 7
                     && memcmp (line->method.at, "CONNECT", 7) == 0;
  if (head->is_connect) {
    if (target_authority (url.at, url.size, 0, &head->target) == -1)
      return refuse (head, 400, "CONNECT is for NAME:PORT");
  } else {
    if (url.size >= 8 && strncasecmp (url.at, "https://", 8) == 0)
      return refuse (head, 400, "https is for CONNECT");
    if (url.size < 7 || strncasecmp (url.at, "http://", 7) != 0)
      return refuse (head, 400, "this is a proxy: ask for a whole http URL");
    url.at += 7;
    url.size -= 7;
    if (target_authority (url.at, url_authority (url), 80, &head->target)
          == -1)
      return refuse (head, 400, "the URL's host is no name");
    if (memchr (line->target.at, '#', line->target.size) != NULL)
      return refuse (head, 400, "a URL with a fragment is for nobody");
  }
  head->has_target = 1;
  return 0;
}

/* ---- the fields ------------------------------------------------------------ */

static int
length_read (struct line value, uint64_t *out)
{
  uint64_t length = 0;
  size_t i;

  if (value.size == 0 || value.size > 18)
    return -1;
  for (i = 0; i < value.size; i++) {
    if (value.at[i] < '0' || value.at[i] > '9')
      return -1;
    length = length * 10 + (uint64_t) (value.at[i] - '0');
  }
  *out = length;
  return 0;
}

/* The Host must say what the URL does: else a server would give what its
 * other names are for. */
static int
host_agrees (struct line value, const struct http_head *head)
{
  struct target host = head->target;

  if (target_authority (value.at, value.size, head->is_connect ? 0 : 80, &host)
        == -1) {
    /* curl's CONNECT has the port there, others' have none. */
    if (!head->is_connect
        || target_authority (value.at, value.size, head->target.port, &host)
             == -1)
      return 0;
  }
  return host.family == head->target.family
         && host.port == head->target.port
         && strcmp (host.name, head->target.name) == 0;
}

struct seen {
  int host, length, encoding;
};

static int
field_check (const struct field *field, struct http_head *head,
             struct seen *seen)
{
  if (line_is (field->name, "host")) {
    if (seen->host++ || !host_agrees (field->value, head))
      return refuse (head, 400, "Host is not what is asked for");
  } else if (line_is (field->name, "content-length")) {
    if (seen->length++ || length_read (field->value, &head->body.left) == -1)
      return refuse (head, 400, "Content-Length is not one number");
  } else if (line_is (field->name, "transfer-encoding")) {
    if (seen->encoding++ || !line_is (field->value, "chunked"))
      return refuse (head, 501, "of transfer encodings only chunked is known");
    head->body.chunked = 1;
  }
  return 0;
}

/* Behind its line.  A reader of HTTP/1.0 knows no chunks: to it the body would
 * be another request. */
static int
fields_read (const char *at, const char *end, int knows_chunks,
             struct http_head *head)
{
  struct seen seen = { 0, 0, 0 };
  struct field field;
  struct line line;

  while (at < end) {
    line = line_next (&at, end);
    if (line.size == 0)
      break;
    if (field_read (line, &field) == -1)
      return refuse (head, 400, "a header is malformed");
    if (field_check (&field, head, &seen) == -1)
      return -1;
  }
  if (seen.length && seen.encoding)
    return refuse (head, 400, "a body has one length, not two");
  if (seen.encoding && !knows_chunks)
    return refuse (head, 400, "HTTP/1.0 has no transfer encodings");
  if (head->is_connect && (head->body.left > 0 || seen.encoding))
    return refuse (head, 400, "CONNECT has no body");
  head->body.done = !head->body.chunked && head->body.left == 0;
  return 0;
}

int
http_read (const char *bytes, size_t size, struct http_head *head)
{
  struct request_line parts;
  const char *at = bytes;
  long found;

  memset (head, 0, sizeof *head);
  found = head_scan (bytes, size < HTTP_HEAD_MAX ? size : HTTP_HEAD_MAX);
  if (found == 0 && size >= HTTP_HEAD_MAX)
    return refuse (head, 431, "the headers are longer than 16 KiB");
  if (found < 0)
    return refuse (head, 400, "this is no HTTP request");
  if (found == 0)
    return 0;
  head->size = (size_t) found;
  if (request_line_read (line_next (&at, bytes + found), &parts) == -1)
    return refuse (head, 400, "the request line is malformed");
  if (target_read (&parts, head) == -1
      || fields_read (at, bytes + found, line_is (parts.version, "HTTP/1.1"),
                      head) == -1)
    return -1;
  return 1;
}

/* ---- what the server gets -------------------------------------------------- */

struct text {
  char *at;
};

static void
text_add (struct text *text, const char *bytes, size_t size)
{
  memcpy (text->at, bytes, size);
  text->at += size;
}

static void
text_word (struct text *text, const char *word)
{
  text_add (text, word, strlen (word));
}

/* Of this hop alone, by name or because Connection says so. */
static int
field_is_ours (const struct field *field, const char *at, const char *end)
{
  static const char *const names[]
    = { "connection", "keep-alive", "te", "trailer", "upgrade", "host",
        "proxy-connection", "proxy-authorization", "proxy-authenticate",
        "http2-settings" };
  struct field other;
  struct line line;
  size_t i;

  for (i = 0; i < sizeof names / sizeof names[0]; i++)
    if (line_is (field->name, names[i]))
      return 1;
  if (line_is (field->name, "content-length")
      || line_is (field->name, "transfer-encoding"))
    return 0;                   /* they say where the body ends */
  while (at < end) {
    line = line_next (&at, end);
    if (line.size > 0 && field_read (line, &other) == 0
        && line_is (other.name, "connection")
        && list_names (other.value, field->name))
      return 1;
  }
  return 0;
}

size_t
http_rewrite (const char *bytes, const struct http_head *head, char *out)
{
  const char *at = bytes, *end = bytes + head->size, *fields;
  struct text text = { out };
  char host[TARGET_TEXT_MAX];
  struct request_line parts;
  struct field field;
  struct line line, url;
  size_t skip;

  if (request_line_read (line_next (&at, end), &parts) == -1)
    return 0;
  url = parts.target;
  skip = 7 + url_authority ((struct line){ url.at + 7, url.size - 7 });
  text_add (&text, parts.method.at, parts.method.size);
  text_word (&text, " ");
  if (skip == url.size || url.at[skip] != '/')
    text_word (&text, "/");
  text_add (&text, url.at + skip, url.size - skip);
  text_word (&text, " ");
  text_add (&text, parts.version.at, parts.version.size);
  target_text (&head->target, head->target.port != 80, host);
  text_word (&text, "\r\nHost: ");
  text_word (&text, host);
  text_word (&text, "\r\n");
  for (fields = at; at < end;) {
    line = line_next (&at, end);
    if (line.size == 0 || field_read (line, &field) == -1
        || field_is_ours (&field, fields, end))
      continue;
    text_add (&text, line.at, line.size);
    text_word (&text, "\r\n");
  }
  text_word (&text, "Connection: close\r\n\r\n");
  return (size_t) (text.at - out);
}

/* ---- the body -------------------------------------------------------------- */

enum { CHUNK_SIZE, CHUNK_EXTENSION, CHUNK_SIZE_LF, CHUNK_DATA, CHUNK_CR,
       CHUNK_LF, TRAILER, TRAILER_LINE, TRAILER_LF, LAST_LF };

static int
hex_value (char c)
{
  return c >= '0' && c <= '9' ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* After a chunk's size, its data or the trailers. */
static void
chunk_begin (struct http_body *body)
{
  body->line = 0;
  body->state = body->left > 0 ? CHUNK_DATA : TRAILER;
}

static void
chunk_size_byte (struct http_body *body, char c)
{
  int digit = hex_value (c);

  if (digit >= 0 && body->line++ < 15)
    body->left = body->left * 16 + (uint64_t) digit;
  else if (digit < 0 && body->line > 0 && c == '\r')
    body->state = CHUNK_SIZE_LF;
  else if (digit < 0 && body->line > 0 && c == ';')
    body->state = CHUNK_EXTENSION;
  else
    body->bad = 1;
}

/* One byte of what stands around the data. */
static void
chunk_byte (struct http_body *body, char c)
{
  int is_text = (unsigned char) c >= 0x20 || c == '\t';

  switch (body->state) {
  case CHUNK_SIZE:
    chunk_size_byte (body, c);
    return;
  case CHUNK_EXTENSION:
  case TRAILER_LINE:
    if (c == '\r')
      body->state = body->state == TRAILER_LINE ? TRAILER_LF : CHUNK_SIZE_LF;
    else if (!is_text || ++body->line > BODY_LINE_MAX)
      body->bad = 1;
    return;
  case CHUNK_CR:
    body->bad = c != '\r';
    body->state = CHUNK_LF;
    return;
  case TRAILER:
    body->state = c == '\r' ? LAST_LF : TRAILER_LINE;
    body->bad = c != '\r' && (!is_text || ++body->line > BODY_LINE_MAX);
    return;
  default:                      /* a line feed is due */
    body->bad = c != '\n';
    if (body->state == LAST_LF)
      body->done = !body->bad;
    else if (body->state == TRAILER_LF)
      body->state = TRAILER;
    else if (body->state == CHUNK_LF) {
      body->left = body->line = 0;
      body->state = CHUNK_SIZE;
    } else
      chunk_begin (body);
  }
}

size_t
http_body_take (struct http_body *body, const char *bytes, size_t size)
{
  size_t at = 0, n;

  while (at < size && !body->done && !body->bad) {
    if (body->chunked && body->state != CHUNK_DATA) {
      chunk_byte (body, bytes[at]);
      at += !body->bad;
      continue;
    }
    n = size - at < body->left ? size - at : (size_t) body->left;
    at += n;
    body->left -= n;
    if (body->left == 0 && body->chunked)
      body->state = CHUNK_CR;
    else if (body->left == 0)
      body->done = 1;
  }
  return at;
}
