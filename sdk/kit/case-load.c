/* SPDX-License-Identifier: Apache-2.0 */
/* Loading: what the module says of itself, what `open` and `probe` do, and two
 * of it side by side. */

#include "case.h"

/* What cannot be opened fails here, and nothing else is asked of it.  Note,
 * descriptor, manifest and table were compared before `open` was reached. */
static void
opens (struct kit *kit)
{
  kit_first (kit);
}

/* ---- probe --------------------------------------------------------------- */

static int
is_one_of (const char *word, const char *const *list)
{
  for (; word && *list; list++)
    if (strcmp (word, *list) == 0)
      return 1;
  return 0;
}

static int
is_text (const char *text)
{
  return text && *text;
}

static void
check_fact (struct kit *kit, const struct coffer_fact *fact)
{
  static const char *const states[] = { "ok", "absent", "off", "degraded",
                                        "failed", NULL };

  KIT_CHECK (kit, is_text (fact->name),
             "probe: expected a name in each fact, one has none");
  KIT_CHECK (kit, is_one_of (fact->state, states),
             "probe: expected ok, absent, off, degraded or failed as the state "
             "of %s, came %s", fact->name, fact->state ? fact->state : "none");
  KIT_CHECK (kit, is_text (fact->how),
             "probe: expected how %s was read back, came nothing", fact->name);
}

static void
probe_facts (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT, again = KIT_REPLY_INIT;
  const struct coffer_fact *fact, *other;
  size_t i, k;

  KIT_OK (kit, kit_probe (kit_first (kit), &reply, NULL), &reply, "probe");
  KIT_OK (kit, kit_probe (kit_first (kit), &again, NULL), &again,
          "probe again");
  KIT_CHECK (kit, reply.n_records > 0,
             "probe: expected at least one fact, came none");
  KIT_CHECK (kit, reply.n_records == again.n_records,
             "probe: expected as many facts the second time, came %zu after "
             "%zu", again.n_records, reply.n_records);
  for (i = 0; (fact = kit_reply_fact (&reply, i)); i++) {
    check_fact (kit, fact);
    for (k = 0; k < i && (other = kit_reply_fact (&reply, k)); k++)
      KIT_CHECK (kit, strcmp (fact->name, other->name) != 0,
                 "probe: expected each fact once, %s came twice", fact->name);
  }
}

/* Taking away what is not claimed says that somebody reads another manifest;
 * taking away without anything wrong gives an operator no next step. */
static void
probe_narrows (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_fact *fact;
  const char *const *word;
  size_t i;

  KIT_OK (kit, kit_probe (kit_first (kit), &reply, NULL), &reply, "probe");
  for (i = 0; (fact = kit_reply_fact (&reply, i)); i++)
    for (word = fact->narrows; word && *word; word++) {
      KIT_CHECK (kit, kit_claims_in_manifest (kit, *word),
                 "probe: the fact %s takes away %s, which the manifest does "
                 "not claim", fact->name, *word);
      KIT_CHECK (kit, !fact->state || strcmp (fact->state, "ok") != 0,
                 "probe: the fact %s is ok and takes away %s", fact->name,
                 *word);
      KIT_CHECK (kit, is_text (fact->value),
                 "probe: expected a reason why %s is taken away, the fact %s "
                 "has no value", *word, fact->name);
    }
}

/* ---- configuration ------------------------------------------------------- */

/* Refused or taken, but never a reason to fall over; the host has checked
 * nothing of these. */
static void
config_malformed (struct kit *kit)
{
  const struct kit_config_key *key;
  struct kit_reply reply = KIT_REPLY_INIT;
  struct kit_instance *instance;
  size_t i, k;

  for (i = 0; (key = kit_config_key (kit, i)); i++) {
    const char *const values[] = {
      "", "no such value", "-1", "99999999999999999999999",
      "\xff\xfe", kit_random_word (kit, 5000), "http://[::1", "%00\n"
    };

    for (k = 0; k < sizeof values / sizeof values[0]; k++) {
      const char *const config[]
        = { kit_text (kit, "%s=%s", key->key, values[k]), NULL };

      kit_open_with (kit, config, 0, &instance, &reply);
      KIT_CHECK (kit, !reply.fault,
                 "open with %s malformed (the %zuth value): expected an "
                 "instance or a code, came %s", key->key, k,
                 kit_shown (kit, &reply));
      if (instance)
        kit_close_instance (instance);
    }
  }
}

/* Where it is noticed is the provider's own: at `open`, or at the first
 * question. */
static void
wrong_credentials (struct kit *kit)
{
  const char **config = case_wrong_secrets (kit, "kit"), *secret;
  struct kit_reply reply = KIT_REPLY_INIT;
  struct kit_instance *instance;
  size_t i;

  if (kit_open_with (kit, config, 0, &instance, &reply) == COFFER_OK)
    kit_sandbox_list (instance, &reply, NULL);
  for (i = 0; config[i]; i++) {
    secret = strchr (config[i], '=') + 1;
    KIT_CHECK (kit, !strstr (reply.message, secret)
               && !strstr (reply.details, secret)
               && !strstr (reply.log, secret)
               && !strstr (reply.message, "[hidden]")
               && !strstr (reply.log, "[hidden]"),
               "wrong credentials: expected no word of the secret %.*s, it is "
               "in the message, the details or the log",
               (int) strcspn (config[i], "="), config[i]);
  }
  KIT_CHECK (kit, reply.code == COFFER_UNAUTHENTICATED && !reply.fault,
             "open and list with wrong credentials: expected UNAUTHENTICATED, "
             "came %s", kit_shown (kit, &reply));
  KIT_CHECK (kit, reply.error_number == 1001,
             "wrong credentials: expected E1001, came E%d",
             reply.error_number);
}

/* ---- side by side -------------------------------------------------------- */

static int
is_listed (struct kit *kit, struct kit_instance *instance, const char *id)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_sandbox_info *info;
  int found = 0;
  size_t i;

  KIT_OK (kit, kit_sandbox_list (instance, &reply, NULL), &reply, "list");
  for (i = 0; (info = kit_reply_sandbox_info (&reply, i)); i++)
    found += info->sandbox && strcmp (info->sandbox, id) == 0;
  kit_reply_reset (&reply);
  return found;
}

static void
two_instances (struct kit *kit)
{
  struct kit_instance *first = kit_first (kit), *second = kit_another (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *id = kit_sandbox (kit);

  KIT_OK (kit, kit_sandbox_info (second, &reply, id, NULL), &reply,
          "info of %s by a second instance of the same host", id);
  KIT_CHECK (kit, is_listed (kit, second, id) == 1,
             "list by a second instance: expected %s once", id);
  KIT_OK (kit, kit_sandbox_kill (second, &reply, id, NULL), &reply,
          "kill of %s by a second instance", id);
  KIT_CODE (kit, kit_sandbox_info (first, &reply, id, NULL), &reply,
            COFFER_NOT_FOUND, "info of %s by the first after the second killed "
            "it", id);
  KIT_CHECK (kit, is_listed (kit, first, id) == 0,
             "list by the first after the second killed %s: expected it gone",
             id);
  kit_close_instance (second);
  KIT_OK (kit, kit_sandbox_list (first, &reply, NULL), &reply,
          "list by the first after the second was closed");
}

static void
another_host (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *id = kit_sandbox (kit);
  struct kit_instance *other;

  KIT_OK (kit, kit_open_with (kit, NULL, 1, &other, &reply), &reply,
          "open for another host");
  KIT_CHECK (kit, is_listed (kit, other, id) == 0,
             "list by another host: expected nothing of this one's, %s is in "
             "it", id);
  KIT_CODE (kit, kit_sandbox_info (other, &reply, id, NULL), &reply,
            COFFER_NOT_FOUND, "info of %s by another host", id);
  KIT_CODE (kit, kit_sandbox_kill (other, &reply, id, NULL), &reply,
            COFFER_NOT_FOUND, "kill of %s by another host", id);
  KIT_OK (kit, kit_sandbox_info (kit_first (kit), &reply, id, NULL), &reply,
          "info of %s by its own host after another tried to kill it", id);
}

const struct kit_case kit_load_cases[] = {
  { "load.opens", "",
    "The module is loaded, agrees with its manifest, its note and its "
    "descriptor, and opens.", opens },
  { "load.probe-facts", "",
    "probe emits at least one fact, each once, with a name, a state of the "
    "closed list and how it was read back, and the same ones again.",
    probe_facts },
  { "load.probe-narrows", "",
    "probe only takes away what the manifest claims, and says why.",
    probe_narrows },
  { "load.config-malformed", "config",
    "A configuration of malformed values is refused or taken, and ends no "
    "worker.", config_malformed, 60000 },
  { "load.wrong-credentials", "config.secret",
    "Wrong credentials are UNAUTHENTICATED (E1001), and are never shown.",
    wrong_credentials },
  { "load.two-instances", "durable",
    "Two instances of one host side by side see and kill the same sandboxes.",
    two_instances },
  { "load.another-host", "",
    "An instance opened for another host neither sees nor ends this one's "
    "sandboxes.", another_host },
  { NULL }
};
