/* SPDX-License-Identifier: Apache-2.0 */
/* Whose logs of commands are, and what they take of their tenant's share of the
 * room.  A tenant is remembered as long as there are logs: when they go, the
 * sandbox may be known to nobody any more. */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "sandbox/exec-log-private.h"

struct log_owner {
  struct log_owner *next;
  char *tenant;
  char sandbox[SANDBOX_ID_SIZE];
};

static struct log_owner **
owner_at_locked (struct exec_logs *logs, const char *sandbox)
{
  struct log_owner **p = &logs->known;

  while (*p && strcmp ((*p)->sandbox, sandbox) != 0)
    p = &(*p)->next;
  return p;
}

const char *
exec_log_owner_locked (struct exec_logs *logs, const char *sandbox)
{
  struct log_owner *owner = *owner_at_locked (logs, sandbox);

  if (owner || !logs->owners.tenant_of || !sandbox_id_valid (sandbox))
    return owner ? owner->tenant : NULL;
  owner = calloc (1, sizeof *owner);
  if (owner)
    owner->tenant = logs->owners.tenant_of (logs->owners.data, sandbox);
  if (!owner || !owner->tenant) {
    free (owner);
    return NULL;
  }
  memcpy (owner->sandbox, sandbox, SANDBOX_ID_SIZE);
  owner->next = logs->known;
  logs->known = owner;
  return owner->tenant;
}

char *
exec_logs_tenant (struct exec_logs *logs, const char *sandbox)
{
  const char *tenant;
  char *copy = NULL;

  pthread_mutex_lock (&logs->lock);
  tenant = exec_log_owner_locked (logs, sandbox);
  if (tenant)
    copy = strdup (tenant);
  pthread_mutex_unlock (&logs->lock);
  return copy;
}

void
exec_log_owner_forget (struct exec_logs *logs, const char *sandbox)
{
  struct log_owner **p, *owner;

  pthread_mutex_lock (&logs->lock);
  p = owner_at_locked (logs, sandbox);
  owner = *p;
  if (owner)
    *p = owner->next;
  pthread_mutex_unlock (&logs->lock);
  if (owner)
    free (owner->tenant);
  free (owner);
}

void
exec_log_owners_free (struct exec_logs *logs)
{
  while (logs->known)
    exec_log_owner_forget (logs, logs->known->sandbox);
}

/* ---- room ----------------------------------------------------------------- */

void
exec_logs_used (struct exec_logs *logs, const char *tenant, uint64_t bytes)
{
  atomic_fetch_add (&logs->used, bytes);
  shares_add (logs->owners.shares, SHARE_LOGS, tenant, bytes);
}

/* Never below nothing: that would be more than all caps. */
void
exec_logs_freed (struct exec_logs *logs, const char *tenant, uint64_t bytes)
{
  uint_fast64_t used = atomic_load (&logs->used);

  while (!atomic_compare_exchange_weak (&logs->used, &used,
                                        used > bytes ? used - bytes : 0))
    ;
  shares_give (logs->owners.shares, SHARE_LOGS, tenant, bytes);
}

uint64_t
exec_logs_left (struct exec_logs *logs, const char *tenant)
{
  const uint64_t all = atomic_load (&logs->used);
  const uint64_t left = all < logs->cap_all ? logs->cap_all - all : 0;
  const uint64_t own = shares_left (logs->owners.shares, SHARE_LOGS, tenant);

  return own < left ? own : left;
}
