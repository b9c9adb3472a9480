/* SPDX-License-Identifier: Apache-2.0 */
/* SOCKS version 5, without a password: CONNECT alone. */

#ifndef PROXY_SOCKS_H
#define PROXY_SOCKS_H

#include "../target.h"

/* Answers of RFC 1928. */
enum socks_reply {
  SOCKS_OK = 0,
  SOCKS_FAILED = 1,
  SOCKS_DENIED = 2,             /* by the list */
  SOCKS_UNREACHABLE = 4,
  SOCKS_REFUSED = 5,
  SOCKS_TIMEOUT = 6,
  SOCKS_NO_COMMAND = 7,
  SOCKS_NO_ADDRESS = 8          /* of no known type, or no name */
};

#define SOCKS_ANSWER_SIZE 10

/* Both: 1 and *used: it is whole; 0: more must come; -1: refused. */
int socks_greeting (const char *bytes, size_t size, size_t *used);
int socks_request (const char *bytes, size_t size, size_t *used,
                   struct target *target, enum socks_reply *reply);
void socks_answer (enum socks_reply reply, char out[SOCKS_ANSWER_SIZE]);

#endif /* PROXY_SOCKS_H */
