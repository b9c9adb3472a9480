/* SPDX-License-Identifier: Apache-2.0 */
/* What all tenants share, and how much of it one of them may have.
 *
 * There is one rule.  A tenant has at most a part (half, unless it is set
 * otherwise) of what the others have left, and one at least: two tenants that
 * take all they can leave room for a third, and so on.  While nobody else is
 * known, one may have all of it. */

#ifndef POLICY_SHARES_H
#define POLICY_SHARES_H

#include <stdint.h>

#include "base/error.h"

enum share {
  SHARE_REQUESTS,               /* at work */
  SHARE_TRANSFERS,              /* of files and archives */
  SHARE_WATCHES,                /* of folders */
  SHARE_COMMANDS,               /* in the background */
  SHARE_LOGS,                   /* bytes of what those write */
  SHARE_QUEUE,                  /* places where runs wait */
  SHARE_OUTPUT,                 /* bytes of output that is waited for */
  SHARES
};

/* In all that takes one, NULL is one without bounds; so is a tenant that is
 * NULL, which has a part of no share. */
struct shares;

/* others: whether there is any tenant besides this one; any thread. */
int shares_new (int (*others) (void *data, const char *tenant), void *data,
                struct shares **out, struct error **err);
void shares_free (struct shares *shares);
/* How much there is for all; of what is taken already nothing is taken away. */
void shares_set (struct shares *shares, enum share share, uint64_t total);
/* What part one tenant may have, 1 to 100. */
void shares_set_part (struct shares *shares, unsigned percent);

/* E_LIMIT, with details.share, when the tenant may not have so much more. */
int shares_take (struct shares *shares, enum share share, const char *tenant,
                 uint64_t amount, struct error **err);
/* What is taken whether it may be or not. */
void shares_add (struct shares *shares, enum share share, const char *tenant,
                 uint64_t amount);
void shares_give (struct shares *shares, enum share share, const char *tenant,
                  uint64_t amount);
/* How much more it may have. */
uint64_t shares_left (struct shares *shares, enum share share,
                      const char *tenant);

/* What somebody holds of one, to be given back at once.  NULL: no bounds. */
struct share_hold {
  struct shares *shares;
  enum share share;
  const char *tenant;           /* borrowed */
  uint64_t taken;
};
int share_hold_more (struct share_hold *hold, uint64_t amount,
                     struct error **err);
void share_hold_give (struct share_hold *hold);

#endif /* POLICY_SHARES_H */
