/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts of tenants.  See shares.h. */

#include <config.h>

#include "policy/shares.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define PART_NORMAL 50

static const struct {
  const char *key, *words;
} names[SHARES] = {
  [SHARE_REQUESTS] = { "requests", "requests at work" },
  [SHARE_TRANSFERS] = { "transfers", "transfers" },
  [SHARE_WATCHES] = { "watches", "watches of folders" },
  [SHARE_COMMANDS] = { "commands", "commands in the background" },
  [SHARE_LOGS] = { "logs", "bytes of logs" },
  [SHARE_QUEUE] = { "queue", "places where runs wait" },
  [SHARE_OUTPUT] = { "output", "bytes of output that is waited for" },
};

/* Of one tenant; one that has nothing is forgotten. */
struct account {
  struct account *next;
  uint64_t used[SHARES];
  char tenant[];
};

struct shares {
  int (*others) (void *data, const char *tenant);
  void *data;
  pthread_mutex_t lock;         /* all below */
  unsigned percent;
  uint64_t total[SHARES], used[SHARES];
  struct account *accounts;
};

int
shares_new (int (*others) (void *data, const char *tenant), void *data,
            struct shares **out, struct error **err)
{
  struct shares *shares = calloc (1, sizeof *shares);

  if (!shares)
    return error_set (err, E_NO_MEMORY, 0, "the shares of tenants");
  shares->others = others;
  shares->data = data;
  shares->percent = PART_NORMAL;
  pthread_mutex_init (&shares->lock, NULL);
  *out = shares;
  return 0;
}

void
shares_free (struct shares *shares)
{
  struct account *account, *next;

  if (!shares)
    return;
  for (account = shares->accounts; account; account = next) {
    next = account->next;
    free (account);
  }
  pthread_mutex_destroy (&shares->lock);
  free (shares);
}

void
shares_set (struct shares *shares, enum share share, uint64_t total)
{
  pthread_mutex_lock (&shares->lock);
  shares->total[share] = total;
  pthread_mutex_unlock (&shares->lock);
}

void
shares_set_part (struct shares *shares, unsigned percent)
{
  pthread_mutex_lock (&shares->lock);
  shares->percent = percent;
  pthread_mutex_unlock (&shares->lock);
}

/* ---- accounts ------------------------------------------------------------- */

static struct account **
account_at_locked (struct shares *shares, const char *tenant)
{
  struct account **p = &shares->accounts;

  while (*p && strcmp ((*p)->tenant, tenant) != 0)
    p = &(*p)->next;
  return p;
}

static struct account *
account_get_locked (struct shares *shares, const char *tenant)
{
  struct account **p = account_at_locked (shares, tenant);
  const size_t size = strlen (tenant) + 1;

  if (*p)
    return *p;
  *p = calloc (1, sizeof **p + size);
  if (*p)
    memcpy ((*p)->tenant, tenant, size);
  return *p;
}

static void
account_drop_locked (struct shares *shares, const char *tenant)
{
  struct account **p = account_at_locked (shares, tenant), *account = *p;
  size_t i;

  for (i = 0; account && i < SHARES; i++)
    if (account->used[i])
      return;
  if (account) {
    *p = account->next;
    free (account);
  }
}

static uint64_t
minus (uint64_t a, uint64_t b)
{
  return a > b ? a - b : 0;
}

/* The part of what others have left; rounded up, so that it is never nothing
 * while there is something. */
static uint64_t
part_locked (const struct shares *shares, enum share share, uint64_t own)
{
  uint64_t left = minus (shares->total[share], shares->used[share] - own);

  return left / 100 * shares->percent
         + (left % 100 * shares->percent + 99) / 100;
}

static uint64_t
left_locked (struct shares *shares, enum share share, const char *tenant)
{
  const struct account *account = *account_at_locked (shares, tenant);
  const uint64_t own = account ? account->used[share] : 0;
  const uint64_t room = minus (shares->total[share], shares->used[share]);
  const uint64_t part = minus (part_locked (shares, share, own), own);

  /* The question may need a file to be read: it is asked when it matters. */
  return part >= room || !shares->others (shares->data, tenant) ? room : part;
}

uint64_t
shares_left (struct shares *shares, enum share share, const char *tenant)
{
  uint64_t left;

  if (!shares || !tenant)
    return UINT64_MAX;
  pthread_mutex_lock (&shares->lock);
  left = left_locked (shares, share, tenant);
  pthread_mutex_unlock (&shares->lock);
  return left;
}

/* ---- taking and giving ---------------------------------------------------- */

static int
refuse_locked (struct shares *shares, enum share share, const char *tenant,
               uint64_t amount, struct error **err)
{
  const struct account *account = *account_at_locked (shares, tenant);
  const uint64_t total = shares->total[share];
  const int full = minus (total, shares->used[share]) < amount;

  if (full)
    error_set (err, E_LIMIT, 0, "%ju of %ju %s are taken, and there is no room"
               " for more", (uintmax_t) shares->used[share],
               (uintmax_t) total, names[share].words);
  else
    error_set (err, E_LIMIT, 0, "tenant %s has %ju of %ju %s, which is its"
               " share", tenant,
               (uintmax_t) (account ? account->used[share] : 0),
               (uintmax_t) total, names[share].words);
  error_hint (err, full ? "some must end first"
                        : "some of its own must end first;"
                          " serve.limits.tenant_share says how much of what the"
                          " others leave one tenant may have");
  error_detail (err, "share", json_string (names[share].key));
  return -1;
}

static int
take_locked (struct shares *shares, enum share share, const char *tenant,
             uint64_t amount, struct error **err)
{
  struct account *account = account_get_locked (shares, tenant);

  if (!account)
    return error_set (err, E_NO_MEMORY, 0, "the shares of tenants");
  if (amount > left_locked (shares, share, tenant)) {
    refuse_locked (shares, share, tenant, amount, err);
    account_drop_locked (shares, tenant);
    return -1;
  }
  account->used[share] += amount;
  shares->used[share] += amount;
  return 0;
}

int
shares_take (struct shares *shares, enum share share, const char *tenant,
             uint64_t amount, struct error **err)
{
  int r;

  if (!shares || !tenant)
    return 0;
  pthread_mutex_lock (&shares->lock);
  r = take_locked (shares, share, tenant, amount, err);
  pthread_mutex_unlock (&shares->lock);
  return r;
}

void
shares_add (struct shares *shares, enum share share, const char *tenant,
            uint64_t amount)
{
  struct account *account;

  if (!shares || !tenant)
    return;
  pthread_mutex_lock (&shares->lock);
  account = account_get_locked (shares, tenant);
  if (account) {
    account->used[share] += amount;
    shares->used[share] += amount;
  }
  pthread_mutex_unlock (&shares->lock);
}

void
shares_give (struct shares *shares, enum share share, const char *tenant,
             uint64_t amount)
{
  struct account *account;

  if (!shares || !tenant)
    return;
  pthread_mutex_lock (&shares->lock);
  account = *account_at_locked (shares, tenant);
  if (account) {
    if (amount > account->used[share])
      amount = account->used[share];
    account->used[share] -= amount;
    shares->used[share] -= amount;
    account_drop_locked (shares, tenant);
  }
  pthread_mutex_unlock (&shares->lock);
}

/* ---- what is held --------------------------------------------------------- */

int
share_hold_more (struct share_hold *hold, uint64_t amount, struct error **err)
{
  if (!hold)
    return 0;
  if (shares_take (hold->shares, hold->share, hold->tenant, amount, err) < 0)
    return -1;
  hold->taken += amount;
  return 0;
}

void
share_hold_give (struct share_hold *hold)
{
  if (hold->taken)
    shares_give (hold->shares, hold->share, hold->tenant, hold->taken);
  hold->taken = 0;
}
