/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody may do with what belongs to a tenant. */

#ifndef POLICY_RIGHTS_H
#define POLICY_RIGHTS_H

/* Manage implies run, run implies view. */
enum caller_right { RIGHT_NONE = 0, RIGHT_VIEW = 1, RIGHT_RUN = 2,
                    RIGHT_MANAGE = 4 };

#define TENANT_DEFAULT "default"

/* "view", "run", "manage" by number, and the number by its word (RIGHT_NONE:
 * there is no such). */
const char *right_name (unsigned right);
enum caller_right right_find (const char *name);
/* Their names, NULL-terminated. */
extern const char *const right_names[];

/* A right with all that it implies. */
unsigned right_all (enum caller_right right);

#endif /* POLICY_RIGHTS_H */
