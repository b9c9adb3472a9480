/* SPDX-License-Identifier: Apache-2.0 */
/* Records and secrets: what is judged over all that a run has seen, and
 * what is answered to operations that are not claimed. */

#include <string.h>
#include <unistd.h>

#include "kit.h"

/* ---- operations that are not claimed ------------------------------------- */

/* What an effect would show in: the sandbox itself, the list, its files. */
struct state {
  size_t listed;
  const char *state;
  int64_t expires_ns;
  const char *files;
};

static void
state_take (struct kit *kit, const char *sandbox, struct state *state)
{
  struct kit_instance *in = kit_first (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_sandbox_info *info;
  struct kit_exec exec = { 0 };

  KIT_OK (kit, kit_sandbox_list (in, &reply, NULL), &reply, "list");
  state->listed = reply.n_records;
  KIT_OK (kit, kit_sandbox_info (in, &reply, sandbox, NULL), &reply, "info");
  info = kit_reply_sandbox_info (&reply, 0);
  KIT_CHECK (kit, info, "info: expected a sandbox_info, came none");
  state->state = kit_text (kit, "%s", info->state ? info->state : "none");
  state->expires_ns = info->expires_ns;
  state->files = "";
  if (kit_claims (kit, "exec")) {
    kit_shell (kit, sandbox, &exec, "ls -A .", NULL);
    state->files = (const char *) exec.out;
  }
  kit_reply_reset (&reply);
}

static void
state_compare (struct kit *kit, const struct state *before,
               const struct state *after, const char *name)
{
  KIT_CHECK (kit, before->listed == after->listed,
             "%s, which is not claimed: expected no effect, the list had %zu "
             "sandboxes and has %zu", name, before->listed, after->listed);
  KIT_CHECK (kit, strcmp (before->state, after->state) == 0,
             "%s, which is not claimed: expected no effect, the sandbox was %s "
             "and is %s", name, before->state, after->state);
  KIT_CHECK (kit, before->expires_ns == after->expires_ns,
             "%s, which is not claimed: expected no effect, the sandbox has "
             "another end", name);
  KIT_CHECK (kit, strcmp (before->files, after->files) == 0,
             "%s, which is not claimed: expected no effect, the workspace "
             "had %s and has %s", name, before->files, after->files);
}

/* The calls go past the host's own check, which would answer for it. */
static void
unclaimed (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *sandbox = kit_sandbox (kit), *word;
  struct state before, after;
  uint32_t op;
  size_t i;

  for (i = 0; (op = kit_operation (i)); i++) {
    word = kit_operation_capability (op);
    if (!*word || kit_claims_in_manifest (kit, word))
      continue;
    state_take (kit, sandbox, &before);
    KIT_CODE (kit, kit_call_plain (kit_first (kit), &reply, op, sandbox),
              &reply, COFFER_UNSUPPORTED, "%s, as %s is not claimed",
              kit_operation_name (op), word);
    KIT_CHECK (kit, reply.n_records == 0,
               "%s, which is not claimed: expected UNSUPPORTED and no record, "
               "came %zu records", kit_operation_name (op), reply.n_records);
    state_take (kit, sandbox, &after);
    state_compare (kit, &before, &after, kit_operation_name (op));
  }
}

/* ---- over the whole run -------------------------------------------------- */

static void
emits_once (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *id = kit_sandbox (kit);

  KIT_OK (kit, kit_sandbox_info (kit_first (kit), &reply, id, NULL), &reply,
          "info of %s", id);
  KIT_CHECK (kit, !kit_found (kit, KIT_FOUND_EMIT),
             "all calls of the run: expected each record of its operation and "
             "those that stand alone once; %s", kit_found (kit, KIT_FOUND_EMIT));
}

static void
config_secret (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;

  KIT_OK (kit, kit_probe (kit_first (kit), &reply, NULL), &reply, "probe");
  kit_sandbox (kit);
  KIT_CHECK (kit, !kit_found (kit, KIT_FOUND_SECRET),
             "all messages, details, records and log lines of the run: "
             "expected no secret of the configuration; %s",
             kit_found (kit, KIT_FOUND_SECRET));
}

const struct kit_case kit_codes_cases[] = {
  { "codes.unclaimed", "",
    "Every operation that is not claimed answers UNSUPPORTED at once, and "
    "changes nothing.", unclaimed, 60000 },
  { "codes.emits-once", "",
    "In the whole run an operation emitted only its own records, and one that "
    "stands alone once.", emits_once, 0, KIT_LAST },
  { "codes.config-secret", "config.secret",
    "In the whole run no message, detail, record or log line had a secret of "
    "the configuration.", config_secret, 0, KIT_LAST },
  { NULL }
};
