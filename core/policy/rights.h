/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody may do with what belongs to a tenant, and who may change what all
 * tenants share. */

#ifndef POLICY_RIGHTS_H
#define POLICY_RIGHTS_H

/* Each implies those before it.  Operate is of no tenant: what it changes is
 * changed for all. */
enum caller_right { RIGHT_NONE = 0, RIGHT_VIEW = 1, RIGHT_RUN = 2,
                    RIGHT_MANAGE = 4, RIGHT_OPERATE = 8 };

#define TENANT_DEFAULT "default"

/* "view", "run", "manage", "operate" by number, and the number by its word (RIGHT_NONE:
 * there is no such). */
const char *right_name (unsigned right);
enum caller_right right_find (const char *name);
/* Their names, NULL-terminated. */
extern const char *const right_names[];

/* A right with all that it implies. */
unsigned right_all (enum caller_right right);

#endif /* POLICY_RIGHTS_H */
