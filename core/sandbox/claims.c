/* SPDX-License-Identifier: Apache-2.0 */
/* What a request needs against what a provider claims.
 *
 * Two tables: what the caller asked for, which is given or refused, and the
 * defaults.  A default that protects is refused as well, unless somebody who
 * may has accepted by its word that it will not hold; any other is named. */

#include "config.h"

#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "sandbox/request.h"

struct asked {
  const char *capability;
  int is_asked;
  const char *field;
};

static int
network_is (const struct sandbox_request *request, const char *word)
{
  return request->network && strcmp (request->network, word) == 0;
}

static int
fail_claim (const struct provider *provider, const char *capability,
            const char *why, struct error **err)
{
  error_set (err, E_CAPABILITY, 0, "provider %s does not claim %s%s%s",
             provider_id (provider), capability, why ? ", " : "",
             why ? why : "");
  error_hint_id (err, provider_id (provider));
  error_detail (err, "provider", json_string (provider_id (provider)));
  error_detail (err, "capability", json_string (capability));
  return -1;
}

int
claim_require (const struct provider *provider, const char *capability,
               struct error **err)
{
  return provider_claims (provider, capability)
           ? 0 : fail_claim (provider, capability, NULL, err);
}

/* A provider that isolates nothing says so itself, on every run, and is only
 * ever reached by its name. */
static int
isolates_nothing (const struct provider *provider)
{
  const struct manifest *manifest = provider_manifest (provider);

  return manifest && manifest->isolation_kind
         && strcmp (manifest->isolation_kind, "none") == 0;
}

/* Services of this machine listen there for its own users: a caller has it only
 * where a profile says so, or where nothing is isolated anyway. */
static int
check_host_network (const struct sandbox_request *request,
                    const struct provider *provider, struct error **err)
{
  if (!network_is (request, "host") || request->host_network
      || isolates_nothing (provider))
    return 0;
  error_set (err, E_PROFILE, 0, "network: host is only had with a profile"
             " that lists it");
  error_detail (err, "field", json_string ("network"));
  error_hint (err, "name one, such as --profile network-extended, or reach"
              " names by --net allow --allow NAME:PORT");
  return -1;
}

/* A folder may be shown by binding or by copying. */
static int
check_mounts (const struct sandbox_request *request,
              const struct provider *provider, struct error **err)
{
  if (request->n_mounts == 0 || provider_claims (provider, "mounts.bind")
      || provider_claims (provider, "mounts.sync"))
    return 0;
  return fail_claim (provider, "mounts.bind", "which the mounts ask for", err);
}

static int
check_asked (const struct sandbox_request *request,
             const struct provider *provider, struct error **err)
{
  const struct asked table[] = {
    { "exec.warm", request->warm != NULL, "what waits inside" },
    { "durable", !request->ephemeral, "a sandbox that outlives this process" },
    { "ttl", request->asked_ttl && request->ttl_ms, "ttl" },
    { "network.none", network_is (request, "none"), "network" },
    { "network.host", network_is (request, "host"), "network" },
    { "network.allow", network_is (request, "allow"), "network" },
    { "ports", request->ports && request->ports[0], "ports" },
    { "limit.memory", request->memory_bytes != 0, "memory" },
    { "limit.cpu", request->cpu_millis != 0, "cpus" },
    { "limit.pids", request->pids != 0, "pids" },
    { "limit.disk", request->disk_bytes || request->inodes,
      request->disk_bytes ? "disk" : "inodes" },
    { "quota.hard", text_list_has (request->require, "quota.hard"),
      "require" },
  };
  size_t i;

  for (i = 0; i < sizeof table / sizeof table[0]; i++)
    if (table[i].is_asked && !provider_claims (provider, table[i].capability)) {
      char why[128];

      snprintf (why, sizeof why, "which %s asks for", table[i].field);
      return fail_claim (provider, table[i].capability, why, err);
    }
  if (!request->network && request->allow && request->allow[0]) {
    error_set (err, E_SANDBOX_SPEC, 0, "allow: goes only with network allow");
    error_hint (err, "add --net allow, or leave --allow out");
    error_detail (err, "field", json_string ("allow"));
    return -1;
  }
  if (check_host_network (request, provider, err) < 0)
    return -1;
  return check_mounts (request, provider, err);
}

static int
refuse_protecting (const struct provider *provider, const char *capability,
                   struct error **err)
{
  fail_claim (provider, capability, "a default that protects this host", err);
  error_hint (err, "accept it by name, --accept %s, or `accept: [%s]` in"
              " coffer.yaml", capability, capability);
  return -1;
}

int
request_check_claims (const struct sandbox_request *request,
                      const struct provider *provider,
                      char *const *operator_accepts,
                      struct coffer_strings *not_applied, struct error **err)
{
  const struct asked protecting[] = {
    { "network.none", request->network == NULL, NULL },
    { "user.unprivileged", request->user == NULL, NULL },
    { "limit.memory", request->memory_bytes == 0, NULL },
    { "limit.pids", request->pids == 0, NULL },
    { "limit.disk", request->disk_bytes == 0 && request->inodes == 0, NULL },
    { "root.readonly", !request->root_writable, NULL },
  };
  size_t i;

  if (check_asked (request, provider, err) < 0)
    return -1;
  for (i = 0; i < sizeof protecting / sizeof protecting[0]; i++) {
    const char *word = protecting[i].capability;

    if (!protecting[i].is_asked || provider_claims (provider, word))
      continue;
    if (isolates_nothing (provider)) {
      coffer_strings_add (not_applied, word);
      continue;
    }
    if (!text_list_has (request->accept, word)
        && !text_list_has ((const char *const *) operator_accepts, word))
      return refuse_protecting (provider, word, err);
    coffer_strings_add (not_applied, word);
    log_event (LOG_LEVEL_WARNING, "sandbox", "%s does not hold with provider"
               " %s, as accepted", word, provider_id (provider));
  }
  if (!request->ephemeral && !request->asked_ttl
      && !provider_claims (provider, "ttl")) {
    coffer_strings_add (not_applied, "ttl");
    log_event (LOG_LEVEL_WARNING, "sandbox", "no ttl with provider %s: the"
               " sandbox lives until it is killed", provider_id (provider));
  }
  return not_applied->failed
           ? error_set (err, E_NO_MEMORY, 0, "the request") : 0;
}

uint64_t
request_ttl (const struct sandbox_request *request,
             const struct provider *provider)
{
  if (request->asked_ttl)
    return request->ttl_ms;
  if (request->ephemeral || !provider_claims (provider, "ttl"))
    return 0;
  return request->ttl_ms ? request->ttl_ms : REQUEST_TTL_DEFAULT_MS;
}
