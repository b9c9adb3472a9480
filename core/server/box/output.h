/* SPDX-License-Identifier: Apache-2.0 */
/* What a command has printed, as text for a model: its head and its tail. */

#ifndef SERVER_BOX_OUTPUT_H
#define SERVER_BOX_OUTPUT_H

#include "base/json.h"
#include "sandbox/capture.h"

#define BOX_OUTPUT_LIMIT 51200          /* bytes of one stream, unless said */
#define BOX_OUTPUT_LIMIT_MAX (1 << 20)

/* At most `limit` bytes of it: three fifths from its beginning, the rest from
 * its end, and between them how much is missing.  Bytes that are no text become
 * U+FFFD.  NULL: out of memory. */
json_t *box_output (const struct capture *capture, size_t limit,
                    int *truncated);

#endif /* SERVER_BOX_OUTPUT_H */
