/* SPDX-License-Identifier: Apache-2.0 */
/* The head is still there when a request is handed over: the library reads it
 * where it received it, and writes NUL for what it has taken, the space or
 * colon behind a name and each CR and LF of a line's end.  So all that it gives
 * stands in one piece of memory, of a size that it tells, and what is not
 * accounted for by that is what it was lenient with.  Versions from 1.0 on are
 * as strict by themselves (MHD_OPTION_STRICT_FOR_CLIENT), and keep it another
 * way. */

#include <config.h>

#include "server/head.h"

#include <string.h>

#include <coffer/http1.h>

struct head {
  const char *at, *end;         /* what is not accounted for yet */
  int odd;
};

static int
is_control (char c)
{
  return ((unsigned char) c < ' ' && c != '\t') || c == 0x7f;
}

/* The next `size` bytes are what stands at `where`. */
static void
take (struct head *head, const char *where, size_t size)
{
  head->odd |= head->at != where || (size_t) (head->end - head->at) < size;
  if (!head->odd)
    head->at += size;
}

/* The next bytes were the end of a line, or one byte between two words. */
static void
take_gone (struct head *head, size_t size)
{
  for (; !head->odd && size > 0; size--) {
    head->odd = head->at == head->end || *head->at != '\0';
    head->at += !head->odd;
  }
}

static void
take_blanks (struct head *head)
{
  while (head->at < head->end && (*head->at == ' ' || *head->at == '\t'))
    head->at++;
}

static enum MHD_Result
take_line (void *data, enum MHD_ValueKind kind, const char *name,
           const char *value)
{
  struct head *head = data;
  const char *p;

  (void) kind;
  for (p = value ? value : ""; *p; p++)
    head->odd |= is_control (*p);
  head->odd |= !value || !coffer_http1_is_token (name);
  if (head->odd)
    return MHD_NO;
  take (head, name, strlen (name));
  take_gone (head, 1);
  if (!head->odd)
    take_blanks (head);
  take (head, value, strlen (value));
  take_gone (head, 2);
  return head->odd ? MHD_NO : MHD_YES;
}

static void
take_first_line (struct head *head, const char *method, const char *target,
                 const char *as_it_came, const char *version)
{
  const char *p;

  head->odd = !coffer_http1_is_token (method);
  for (p = as_it_came; *p; p++)
    head->odd |= is_control (*p) || *p == '\t';
  take (head, method, strlen (method));
  take_gone (head, 1);
  take (head, target, strlen (as_it_came));
  take_gone (head, 1);
  take (head, version, strlen (version));
  take_gone (head, 2);
}

int
head_is_strict (struct MHD_Connection *http, const char *method,
                const char *target, const char *as_it_came,
                const char *version)
{
  const union MHD_ConnectionInfo *info
    = MHD_get_connection_info (http, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  struct head head = { .at = method };

  if (strncmp (MHD_get_version (), "0.", 2) != 0)
    return 1;
  if (!info)
    return 0;
  head.end = method + info->header_size;
  take_first_line (&head, method, target, as_it_came, version);
  if (!head.odd)
    MHD_get_connection_values (http, MHD_HEADER_KIND, take_line, &head);
  take_gone (&head, 2);
  return !head.odd && head.at == head.end;
}
