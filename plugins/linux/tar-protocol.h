/* SPDX-License-Identifier: Apache-2.0 */
/* What the module and coffer-tar agree on: coffer-tar export|import DEADLINE,
 * which is of CLOCK_MONOTONIC in nanoseconds, and these descriptors. */

#ifndef LINUX_TAR_PROTOCOL_H
#define LINUX_TAR_PROTOCOL_H

enum {
  TAR_FOLDER = 0,
  TAR_REPORT = 1,               /* and 2 */
  TAR_FILE = 3,                 /* a pipe, for the archive */
  TAR_CANCEL = 4                /* not there: nobody gives up */
};

#define TAR_LINE_MAX 8192
/* That it may last beyond the deadline: what was made is taken away. */
#define TAR_GRACE_NS (INT64_C (60) * 1000000000)

#endif /* LINUX_TAR_PROTOCOL_H */
