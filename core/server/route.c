/* SPDX-License-Identifier: Apache-2.0 */
/* From a raw path to a row.  Patterns are compared segment by segment as they
 * are written: the tables are short, and the first row that fits is taken. */

#include <config.h>

#include "server/route.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/buffer.h>

#define REST "…}"

/* The {name…} at the end of a pattern. */
static int
is_rest (const char *pattern)
{
  const size_t n = strcspn (pattern, "/"), rest = sizeof REST - 1;

  return pattern[0] == '{' && n > rest && !pattern[n]
         && memcmp (pattern + n - rest, REST, rest) == 0;
}

/* One segment against its pattern; both are at its first byte. */
static int
segment_fits (const char *pattern, const char *path, struct route_match *match)
{
  const size_t n = strcspn (pattern, "/"), size = strcspn (path, "/");

  if (pattern[0] != '{')
    return n == size && memcmp (pattern, path, n) == 0;
  if (size == 0 || match->n_params == ROUTE_MAX_PARAMS)
    return 0;
  match->params[match->n_params].start = path;
  match->params[match->n_params++].size = size;
  return 1;
}

static int
path_fits (const char *pattern, const char *path, struct route_match *match)
{
  match->n_params = 0;
  while (*pattern == '/' && *path == '/') {
    pattern++;
    path++;
    if (is_rest (pattern)) {
      if (match->n_params == ROUTE_MAX_PARAMS)
        return 0;
      match->params[match->n_params].start = path;
      match->params[match->n_params++].size = strlen (path);
      return 1;
    }
    if (!segment_fits (pattern, path, match))
      return 0;
    pattern += strcspn (pattern, "/");
    path += strcspn (path, "/");
  }
  return !*pattern && !*path;
}

/* Each method once. */
static void
method_add (struct coffer_buffer *list, const char *method)
{
  if (list->data && strstr (list->data, method))
    return;
  coffer_buffer_printf (list, "%s%s", list->size ? ", " : "", method);
  if (strcmp (method, "GET") == 0)
    coffer_buffer_add_string (list, ", HEAD");
}

int
route_find (const char *method, const char *path, struct route_match *match,
            char **allowed, struct error **err)
{
  coffer_autobuffer struct coffer_buffer others = { 0 };
  const struct route *const *surface, *route;

  if (strcmp (method, "HEAD") == 0)
    method = "GET";
  for (surface = server_surfaces; *surface; surface++)
    for (route = *surface; route->method; route++) {
      if (!path_fits (route->path, path, match))
        continue;
      match->route = route;
      if (strcmp (route->method, method) == 0
          || strcmp (route->method, "*") == 0)
        return 0;
      method_add (&others, route->method);
    }
  if (!others.size)
    return error_set (err, E_NO_ROUTE, 0, "nothing is served at this path");
  error_set (err, E_METHOD, 0, "%s is not for this path, which has %s", method,
             others.data ? others.data : "");
  *allowed = coffer_buffer_steal (&others);
  return -1;
}

static int
hex_value (char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  c = (char) tolower ((unsigned char) c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *
route_decode (const char *text, size_t size, int slashes, int plus)
{
  char *out = malloc (size + 1);
  size_t i, n = 0;

  if (!out)
    return NULL;
  for (i = 0; i < size; i++) {
    int c = (unsigned char) text[i], high, low;

    if (c == '%') {
      high = i + 2 < size ? hex_value (text[i + 1]) : -1;
      low = i + 2 < size ? hex_value (text[i + 2]) : -1;
      c = high < 0 || low < 0 ? 0 : high << 4 | low;
      i += 2;
    } else if (c == '+' && plus)
      c = ' ';
    if (c == 0 || (c == '/' && !slashes)) {
      free (out);
      errno = EINVAL;
      return NULL;
    }
    out[n++] = (char) c;
  }
  out[n] = '\0';
  return out;
}
