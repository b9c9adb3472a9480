/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and answers SOCKS 5.  Pure: bytes in, bytes out. */

#include <arpa/inet.h>
#include <string.h>

#include "socks.h"

int
socks_greeting (const char *bytes, size_t size, size_t *used)
{
  size_t methods;

  if (size > 0 && bytes[0] != 5)
    return -1;
  if (size < 2)
    return 0;
  methods = (unsigned char) bytes[1];
  if (methods == 0)
    return -1;
  if (size < 2 + methods)
    return 0;
  *used = 2 + methods;
  /* "No authentication" must be among what is offered. */
  return memchr (bytes + 2, 0, methods) != NULL ? 1 : -1;
}

/* The size of the address and its port that follow the type; 0: no such type. */
static size_t
address_size (const unsigned char *bytes, size_t size)
{
  switch (bytes[3]) {
  case 1:
    return 4 + 2;
  case 4:
    return 16 + 2;
  case 3:
    return size < 5 ? 2 : 1 + (size_t) bytes[4] + 2;
  default:
    return 0;
  }
}

static int
address_read (const unsigned char *at, int type, struct target *target)
{
  char text[INET6_ADDRSTRLEN];

  if (type == 3)                /* an address there counts as one */
    return target_host ((const char *) at + 1, at[0], target);
  if (inet_ntop (type == 1 ? AF_INET : AF_INET6, at, text, sizeof text)
        == NULL)
    return -1;
  return target_host (text, strlen (text), target);
}

int
socks_request (const char *data, size_t size, size_t *used,
               struct target *target, enum socks_reply *reply)
{
  const unsigned char *bytes = (const unsigned char *) data;
  size_t more;

  *reply = SOCKS_FAILED;
  if (size > 0 && bytes[0] != 5)
    return -1;
  if (size < 4)
    return 0;
  if (bytes[2] != 0)
    return -1;
  more = address_size (bytes, size);
  *reply = more == 0 ? SOCKS_NO_ADDRESS : SOCKS_NO_COMMAND;
  if (more == 0 || bytes[1] != 1)
    return -1;
  if (size < 4 + more)
    return 0;
  *used = 4 + more;
  *reply = SOCKS_NO_ADDRESS;
  if (address_read (bytes + 4, bytes[3], target) == -1)
    return -1;
  target->port = (uint16_t) (bytes[*used - 2] << 8 | bytes[*used - 1]);
  if (target->port == 0)
    return -1;
  *reply = SOCKS_OK;
  return 1;
}

void
socks_answer (enum socks_reply reply, char out[SOCKS_ANSWER_SIZE])
{
  memset (out, 0, SOCKS_ANSWER_SIZE);
  out[0] = 5;
  out[1] = (char) reply;
  out[3] = 1;
}
