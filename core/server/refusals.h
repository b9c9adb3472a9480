/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals in the audit log: whoever is refused may ask again at once, and would
 * fill it.  Of one caller and one kind the first of ten seconds are written one
 * by one, those that follow as one line with their number.  Any thread. */

#ifndef SERVER_REFUSALS_H
#define SERVER_REFUSALS_H

#include "base/json.h"

struct refusals;

/* write takes a line of such a number; on a thread of its own, or of who calls
 * refusals_free. */
int refusals_new (void (*write) (void *data, json_t *line), void *data,
                  struct refusals **out, struct error **err);
/* Writes what was not written yet. */
void refusals_free (struct refusals *refusals);

/* One of which this is the line, with "who", "tenant", "event", "status" and
 * "verdict" as far as there are any.  1: it is for the caller to write; 0: it was
 * counted. */
int refusals_note (struct refusals *refusals, const json_t *line);

#endif /* SERVER_REFUSALS_H */
