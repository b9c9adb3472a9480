/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of HTTP/1: see <coffer/http1.h>. */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <coffer/http1.h>

#define EXTRA_MAX 16384         /* bytes of trailers and chunk extensions */

/* ---- words --------------------------------------------------------------- */

static int
is_token_char (char c)
{
  return isalnum ((unsigned char) c)
         || (c && strchr ("!#$%&'*+-.^_`|~", c) != NULL);
}

int
coffer_http1_is_token (const char *text)
{
  const char *p;

  for (p = text; is_token_char (*p); p++)
    ;
  return p > text && !*p;
}

/* What may stand in a value; what is not ASCII is somebody's, as it is. */
static int
is_value (const char *text)
{
  for (; *text; text++)
    if (((unsigned char) *text < 0x20 && *text != '\t') || *text == 0x7f)
      return 0;
  return 1;
}

int
coffer_http1_list_has (const char *list, const char *word)
{
  const size_t size = strlen (word);
  const char *end;
  size_t n;

  for (; list; list = *end ? end + 1 : NULL) {
    list += strspn (list, " \t");
    end = list + strcspn (list, ",");
    for (n = (size_t) (end - list);
         n > 0 && (list[n - 1] == ' ' || list[n - 1] == '\t'); n--)
      ;
    if (n == size && strncasecmp (list, word, size) == 0)
      return 1;
  }
  return 0;
}

/* ---- the head ------------------------------------------------------------ */

ssize_t
coffer_http1_head_length (const char *bytes, size_t size)
{
  const size_t room = size < COFFER_HTTP1_HEAD_MAX ? size
                                                   : COFFER_HTTP1_HEAD_MAX;
  const char *at = bytes, *end = bytes + room;

  /* A line may end in a newline alone; a reply is not given on, so that nobody
   * can read it another way. */
  while ((at = memchr (at, '\n', (size_t) (end - at)))) {
    at++;
    if (at < end && *at == '\n')
      return at + 1 - bytes;
    if (at + 1 < end && at[0] == '\r' && at[1] == '\n')
      return at + 2 - bytes;
  }
  return room == COFFER_HTTP1_HEAD_MAX ? -1 : 0;
}

/* Cuts the line that begins at *at, and goes on to the next. */
static char *
next_line (char **at)
{
  char *line = *at, *end = strchr (line, '\n');

  if (!end)
    return NULL;
  *at = end + 1;
  if (end > line && end[-1] == '\r')
    end--;
  *end = '\0';
  return line;
}

/* "HTTP/1.1 200 OK" */
static int
parse_status (const char *line, int *status)
{
  if (strncmp (line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1')
      || line[8] != ' ' || line[9] < '1' || line[9] > '5'
      || !isdigit ((unsigned char) line[10])
      || !isdigit ((unsigned char) line[11])
      || (line[12] != '\0' && line[12] != ' ') || !is_value (line))
    return -1;
  *status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
  return 0;
}

static int
parse_header (char *line, struct coffer_http1_header *out)
{
  char *colon = strchr (line, ':'), *value, *end;

  if (!colon)
    return -1;
  *colon = '\0';
  if (!coffer_http1_is_token (line))
    return -1;
  value = colon + 1 + strspn (colon + 1, " \t");
  for (end = value + strlen (value);
       end > value && (end[-1] == ' ' || end[-1] == '\t'); end--)
    ;
  *end = '\0';
  if (!is_value (value))
    return -1;
  *out = (struct coffer_http1_header){ line, value };
  return 0;
}

const char *
coffer_http1_header (const struct coffer_http1_head *head, const char *name)
{
  const char *value = NULL;
  size_t i;

  for (i = 0; i < head->count; i++)
    if (strcasecmp (head->headers[i].name, name) == 0) {
      if (value)
        return NULL;
      value = head->headers[i].value;
    }
  return value;
}

static size_t
count_headers (const struct coffer_http1_head *head, const char *name)
{
  size_t i, n = 0;

  for (i = 0; i < head->count; i++)
    n += strcasecmp (head->headers[i].name, name) == 0;
  return n;
}

/* Decimal digits and nothing else. */
static int
parse_length (const char *text, uint64_t *out)
{
  uint64_t value = 0;

  if (!*text)
    return -1;
  for (; *text; text++)
    if (!isdigit ((unsigned char) *text)
        || __builtin_mul_overflow (value, (uint64_t) 10, &value)
        || __builtin_add_overflow (value, (uint64_t) (*text - '0'), &value)
        || value > INT64_MAX)
      return -1;
  *out = value;
  return 0;
}

/* Where the body ends, beyond doubt or not at all. */
static int
find_framing (struct coffer_http1_head *head, int no_body)
{
  const size_t lengths = count_headers (head, "Content-Length");
  const size_t codings = count_headers (head, "Transfer-Encoding");
  const char *length = coffer_http1_header (head, "Content-Length");
  const char *coding = coffer_http1_header (head, "Transfer-Encoding");

  if (lengths + codings > 1
      || (length && parse_length (length, &head->size) < 0)
      || (coding && strcasecmp (coding, "chunked") != 0))
    return -1;
  head->sized = length != NULL;
  if (no_body || head->status < 200 || head->status == 204
      || head->status == 304)
    head->framing = COFFER_HTTP1_NONE;
  else if (coding)
    head->framing = COFFER_HTTP1_CHUNKED;
  else
    head->framing = length ? COFFER_HTTP1_SIZED : COFFER_HTTP1_TO_END;
  return 0;
}

/* NULL, or what is wrong with it. */
static const char *
parse (struct coffer_http1_head *head, size_t size, int no_body)
{
  char *at = head->text, *line;

  if (memchr (head->text, '\0', size))
    return "it has a NUL";
  line = next_line (&at);
  if (!line || parse_status (line, &head->status) < 0)
    return "it has no status line of HTTP/1";
  while ((line = next_line (&at)) && *line) {
    if (head->count == COFFER_HTTP1_HEADERS_MAX)
      return "it has too many headers";
    if (parse_header (line, &head->headers[head->count]) < 0)
      return "it has a line that is no header";
    head->count++;
  }
  return find_framing (head, no_body) < 0
           ? "where its body ends is not clear" : NULL;
}

const char *
coffer_http1_head_parse (const char *bytes, size_t size, int no_body,
                         struct coffer_http1_head *out)
{
  const char *wrong = "there is no memory for it";

  memset (out, 0, sizeof *out);
  out->text = malloc (size + 1);
  if (out->text) {
    memcpy (out->text, bytes, size);
    out->text[size] = '\0';
    wrong = parse (out, size, no_body);
  }
  if (wrong)
    coffer_http1_head_fini (out);
  return wrong;
}

void
coffer_http1_head_fini (struct coffer_http1_head *head)
{
  free (head->text);
  head->text = NULL;
  head->count = 0;
}

/* ---- the body ------------------------------------------------------------ */

void
coffer_http1_body_init (struct coffer_http1_body *body,
                        const struct coffer_http1_head *head)
{
  memset (body, 0, sizeof *body);
  body->framing = head->framing;
  body->left = head->framing == COFFER_HTTP1_SIZED ? head->size : UINT64_MAX;
  body->state = COFFER_HTTP1_DATA;
  if (head->framing == COFFER_HTTP1_CHUNKED)
    body->state = COFFER_HTTP1_CHUNK_SIZE;
  else if (head->framing == COFFER_HTTP1_NONE || body->left == 0)
    body->state = COFFER_HTTP1_OVER;
}

static int
size_digit (struct coffer_http1_body *body, char c)
{
  const int value = isdigit ((unsigned char) c) ? c - '0'
                    : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                         : -1;

  if (value < 0 || body->digits == 15)
    return -1;
  body->left = (body->digits++ ? body->left : 0) << 4 | (unsigned) value;
  return 0;
}

/* After the line of a chunk's size. */
static void
chunk_begin (struct coffer_http1_body *body)
{
  body->state = body->left > 0 ? COFFER_HTTP1_DATA : COFFER_HTTP1_TRAILER;
  body->digits = 0;
  body->line = 0;
}

/* A trailer is read over: whose header it would be is not asked any more. */
static int
trailer_char (struct coffer_http1_body *body, char c)
{
  if (c == '\n') {
    if (body->line == 0)
      body->state = COFFER_HTTP1_OVER;
    body->line = 0;
    return 0;
  }
  if (c == '\r')
    return 0;
  body->line = 1;
  return ++body->extra > EXTRA_MAX ? -1 : 0;
}

static int
chunk_char (struct coffer_http1_body *body, char c)
{
  switch (body->state) {
  case COFFER_HTTP1_CHUNK_SIZE:
    if (c != '\r' && c != ';' && c != ' ' && c != '\t')
      return size_digit (body, c);
    body->state = c == '\r' ? COFFER_HTTP1_CHUNK_LF
                            : COFFER_HTTP1_CHUNK_EXTENSION;
    return body->digits > 0 ? 0 : -1;
  case COFFER_HTTP1_CHUNK_EXTENSION:
    if (c == '\r')
      body->state = COFFER_HTTP1_CHUNK_LF;
    return c == '\n' || ++body->extra > EXTRA_MAX ? -1 : 0;
  case COFFER_HTTP1_CHUNK_LF:
    chunk_begin (body);
    return c == '\n' ? 0 : -1;
  case COFFER_HTTP1_CHUNK_CR_AFTER:
    body->state = COFFER_HTTP1_CHUNK_LF_AFTER;
    return c == '\r' ? 0 : -1;
  case COFFER_HTTP1_CHUNK_LF_AFTER:
    body->state = COFFER_HTTP1_CHUNK_SIZE;
    return c == '\n' ? 0 : -1;
  default:
    return trailer_char (body, c);
  }
}

static void
take_data (struct coffer_http1_body *body, size_t n)
{
  if (body->framing == COFFER_HTTP1_TO_END)
    return;
  body->left -= n;
  if (body->left == 0)
    body->state = body->framing == COFFER_HTTP1_CHUNKED
                    ? COFFER_HTTP1_CHUNK_CR_AFTER : COFFER_HTTP1_OVER;
}

int
coffer_http1_body_read (struct coffer_http1_body *body, const char *in,
                        size_t size, size_t *used, const char **data,
                        size_t *n)
{
  size_t i = 0;

  *n = 0;
  *data = in;
  while (i < size && body->state != COFFER_HTTP1_DATA
         && body->state != COFFER_HTTP1_OVER)
    if (chunk_char (body, in[i++]) < 0)
      return -1;
  if (i < size && body->state == COFFER_HTTP1_DATA) {
    *data = in + i;
    *n = size - i < body->left ? size - i : (size_t) body->left;
    i += *n;
    take_data (body, *n);
  }
  *used = i;
  return 0;
}
