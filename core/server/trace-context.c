/* SPDX-License-Identifier: Apache-2.0 */
/* See trace-context.h. */

#include <config.h>

#include <string.h>

#include "base/sha256.h"
#include "server/trace-context.h"

#define VERSION_0_SIZE 55       /* "00-" 32 "-" 16 "-" 2 */

static int
is_hex (const char *s, size_t size)
{
  size_t i;

  for (i = 0; i < size; i++)
    if (!strchr ("0123456789abcdef", s[i]) || s[i] == '\0')
      return 0;
  return 1;
}

static int
is_zero (const char *s, size_t size)
{
  return strspn (s, "0") >= size;
}

int
trace_context_parse (const char *header, struct trace_context *out)
{
  const size_t size = strlen (header);

  if (size < VERSION_0_SIZE || !is_hex (header, 2)
      || strncmp (header, "ff", 2) == 0 || header[2] != '-'
      || !is_hex (header + 3, 32) || header[35] != '-'
      || !is_hex (header + 36, 16) || header[52] != '-'
      || !is_hex (header + 53, 2))
    return -1;
  /* A later version may go on, behind one more dash. */
  if (size > VERSION_0_SIZE
      && (strncmp (header, "00", 2) == 0 || header[VERSION_0_SIZE] != '-'))
    return -1;
  if (is_zero (header + 3, 32) || is_zero (header + 36, 16))
    return -1;
  memcpy (out->trace, header + 3, 32);
  out->trace[32] = '\0';
  memcpy (out->parent, header + 36, 16);
  out->parent[16] = '\0';
  out->sampled = strchr ("13579bdf", header[54]) != NULL;
  return 0;
}

void
trace_context_of (const char *request, const char *header,
                  struct trace_context *out)
{
  char hex[SHA256_HEX_SIZE];

  sha256_hex (request, strlen (request), hex);
  if (header == NULL || trace_context_parse (header, out) < 0) {
    memcpy (out->trace, hex, 32);
    out->trace[32] = '\0';
    out->parent[0] = '\0';
    out->sampled = 1;
  }
  memcpy (out->span, hex + 32, 16);
  out->span[16] = '\0';
}
