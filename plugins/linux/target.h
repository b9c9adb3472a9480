/* SPDX-License-Identifier: Apache-2.0 */
/* Where somebody wants to go, and whether that is in the list. */

#ifndef LINUX_TARGET_H
#define LINUX_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>

#define TARGET_NAME_MAX 253
#define POLICY_MAX 256

/* A name in its one form (lower case, no trailing dot), or an address. */
struct target {
  int family;                   /* 0: a name; AF_INET, AF_INET6 */
  uint16_t port;
  uint8_t address[16];
  char name[TARGET_NAME_MAX + 1];       /* of an address: its text */
};

/* -1: neither a name nor an address, of which there is one way to write each:
 * what resolvers read in several ways is refused.  Leaves the port alone. */
int target_host (const char *host, size_t size, struct target *out);
/* NAME:PORT, A.B.C.D:PORT or [V6]:PORT; without a port that is `port`, 0: it
 * must be there. */
int target_authority (const char *text, size_t size, uint16_t port,
                      struct target *out);
/* As it stands in an authority; of an address of version 6 in brackets. */
#define TARGET_TEXT_MAX (TARGET_NAME_MAX + 9)
void target_text (const struct target *target, int with_port,
                  char out[TARGET_TEXT_MAX]);

/* What is allowed: nothing but what is listed. */
struct policy {
  size_t count;
  struct {
    int below;                  /* *.NAME: what has labels before it */
    struct target target;
  } entries[POLICY_MAX];
};

/* -1: malformed; -2: there are too many. */
int policy_add (struct policy *policy, const char *entry);
int policy_allows (const struct policy *policy, const struct target *target);
/* Whether a name in the list may lead there: to what is public alone, and in
 * no disguise.  NULL, or a word that says what kind it is. */
const char *policy_forbids (const struct sockaddr *address);

#endif /* LINUX_TARGET_H */
