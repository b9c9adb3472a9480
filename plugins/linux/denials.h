/* SPDX-License-Identifier: Apache-2.0 */
/* What a proxy has refused, in a file that its provider reads: a head, and
 * then places of fixed size.  The proxy reads what comes out of a sandbox, so
 * that the reader takes nothing in the file on trust. */

#ifndef LINUX_DENIALS_H
#define LINUX_DENIALS_H

#include <stdint.h>

#define DENIALS_MAX 64
#define DENIAL_HOST_MAX 256

enum denial_reason {
  DENIAL_NOT_LISTED = 1,
  DENIAL_ADDRESS = 2            /* it leads where no name may */
};

struct denial {
  int64_t last_ns;              /* CLOCK_REALTIME */
  uint32_t count;
  uint16_t port;
  uint16_t reason;
  char host[DENIAL_HOST_MAX];   /* ends with a NUL */
};

struct denials {
  uint32_t count;               /* of the places */
  uint32_t others;              /* for which there was no place */
  int64_t others_ns;            /* when there was the last of them */
  struct denial places[DENIALS_MAX];
};

#endif /* LINUX_DENIALS_H */
