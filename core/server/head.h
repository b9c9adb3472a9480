/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the head of a request is written as it must be, to the byte.
 *
 * The HTTP library takes what others read another way: a line that ends with
 * LF alone, a CR within one, a value that ends at a NUL, folded lines, a line
 * without a name.  Behind something that counts such a head differently, the
 * rest of one request would be the next one here. */

#ifndef SERVER_HEAD_H
#define SERVER_HEAD_H

#include <microhttpd.h>

/* As the library gives them for the first call of a request; of the target also
 * a copy as it came, since what lies there has been taken apart. */
int head_is_strict (struct MHD_Connection *http, const char *method,
                    const char *target, const char *as_it_came,
                    const char *version);

#endif /* SERVER_HEAD_H */
