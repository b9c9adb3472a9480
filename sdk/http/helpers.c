/* SPDX-License-Identifier: Apache-2.0 */
/* What callers of <coffer/http.h> would all write. */

#include <ctype.h>
#include <string.h>

#include <jansson.h>

#include <coffer/http.h>

void
coffer_http_add_encoded (struct coffer_buffer *out, const char *text)
{
  const unsigned char *p = (const unsigned char *) text;

  for (; *p; p++)
    if (*p < 0x80 && (isalnum (*p) || strchr ("-._~", *p)))
      coffer_buffer_add (out, p, 1);
    else
      coffer_buffer_printf (out, "%%%02X", *p);
}

static int32_t
take (struct coffer_http_json_lines *lines, const char *line, size_t size)
{
  json_t *value;
  int32_t code;

  if (size == 0)
    return COFFER_OK;
  value = json_loadb (line, size, JSON_DECODE_ANY, NULL);
  if (!value)
    return COFFER_IO;
  code = lines->take (lines->data, value);
  json_decref (value);
  return code;
}

int32_t
coffer_http_json_lines (void *data, const void *bytes, size_t size)
{
  struct coffer_http_json_lines *lines = data;
  int32_t code = COFFER_OK;
  const char *in = bytes, *line;
  size_t used, n;
  int r = 1;

  lines->lines.most = lines->most;
  while (r == 1 && code == COFFER_OK) {
    r = coffer_lines_read (&lines->lines, in, size, &used, &line, &n);
    in += used;
    size -= used;
    if (r == 1)
      code = take (lines, line, n);
  }
  return r < 0 ? COFFER_LIMIT : code;
}

int32_t
coffer_http_json_lines_end (struct coffer_http_json_lines *lines)
{
  int32_t code = COFFER_OK;
  const char *line;
  size_t n;

  if (coffer_lines_end (&lines->lines, &line, &n))
    code = take (lines, line, n);
  coffer_lines_fini (&lines->lines);
  memset (&lines->lines, 0, sizeof lines->lines);
  return code;
}
