/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to coffer-proxy: whatever comes out of a sandbox.  What is taken is
 * one request for one place, however its bytes are cut. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "socks.h"

#define CHECK(condition) do { if (!(condition)) abort (); } while (0)

static void
check_target (const struct target *target)
{
  struct target again = *target;

  CHECK (target->port != 0);
  CHECK (strlen (target->name) > 0 && strlen (target->name) <= TARGET_NAME_MAX);
  CHECK (strpbrk (target->name, " \t\r\n/@%,*[]") == NULL);
  /* Its form is its own form. */
  CHECK (target_host (target->name, strlen (target->name), &again) == 0);
  CHECK (strcmp (again.name, target->name) == 0);
  CHECK (again.family == target->family);
}

static void
check_http (const char *bytes, size_t size)
{
  char *out = malloc (HTTP_HEAD_MAX + HTTP_HEAD_MORE);
  struct http_head head, rewritten;
  struct http_body whole, byte;
  size_t n, i, took = 0;

  CHECK (out != NULL);
  if (http_read (bytes, size, &head) == 1) {
    check_target (&head.target);
    CHECK (head.size <= size && head.size <= HTTP_HEAD_MAX);
    CHECK (http_read (bytes, head.size - 1, &rewritten) == 0);
    if (!head.is_connect) {
      n = http_rewrite (bytes, &head, out);
      CHECK (n > 0 && n <= head.size + HTTP_HEAD_MORE);
      /* It is no proxy's request any more, and it is one. */
      CHECK (http_read (out, n, &rewritten) == -1);
      CHECK (memmem (out, n, "\r\n\r\n", 4) == out + n - 4);
    }
    whole = byte = head.body;
    n = http_body_take (&whole, bytes + head.size, size - head.size);
    CHECK (n <= size - head.size);
    for (i = head.size; i < size && !byte.done && !byte.bad; i++)
      took += http_body_take (&byte, bytes + i, 1);
    CHECK (took == n && byte.done == whole.done && byte.bad == whole.bad);
  }
  free (out);
}

static void
check_socks (const char *bytes, size_t size)
{
  enum socks_reply reply;
  struct target target;
  size_t used = 0;

  memset (&target, 0, sizeof target);
  if (socks_greeting (bytes, size, &used) == 1)
    CHECK (used <= size);
  if (socks_request (bytes, size, &used, &target, &reply) == 1) {
    CHECK (used <= size && reply == SOCKS_OK);
    check_target (&target);
  }
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  char *bytes = malloc (size + 1);      /* its end is the sanitizer's */

  CHECK (bytes != NULL);
  if (size > 0)
    memcpy (bytes, data, size);
  check_http (bytes, size);
  check_socks (bytes, size);
  free (bytes);
  return 0;
}
