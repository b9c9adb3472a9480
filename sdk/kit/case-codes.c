/* SPDX-License-Identifier: Apache-2.0 */
/* Codes, records and secrets: what is judged over all that a run has seen, and
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
    reply.deadline_ms = 3000;
    KIT_CODE (kit, kit_call_plain (kit_first (kit), &reply, op, sandbox),
              &reply, COFFER_UNSUPPORTED, "%s, as %s is not claimed",
              kit_operation_name (op), word);
    KIT_CHECK (kit, reply.duration_us < 1000000 && reply.n_records == 0,
               "%s, which is not claimed: expected UNSUPPORTED at once and no "
               "record, came %zu records after %lld ms",
               kit_operation_name (op), reply.n_records,
               (long long) reply.duration_us / 1000);
    state_take (kit, sandbox, &after);
    state_compare (kit, &before, &after, kit_operation_name (op));
  }
}

/* ---- each code ----------------------------------------------------------- */

static void
provoke_not_found (struct kit *kit, struct kit_reply *reply)
{
  kit_sandbox_info (kit_first (kit), reply, kit_new_id (kit), NULL);
}

static void
provoke_exists (struct kit *kit, struct kit_reply *reply)
{
  const char *id = kit_sandbox (kit);

  kit_file_mkdir (kit_first (kit), reply, id, "kit-twice", NULL);
  kit_file_mkdir (kit_first (kit), reply, id, "kit-twice", NULL);
}

static void
provoke_conflict (struct kit *kit, struct kit_reply *reply)
{
  const char *id = kit_sandbox (kit);
  const struct coffer_file_mkdir_opts opts
    = { .size = sizeof opts, .parents = 1 };

  kit_file_mkdir (kit_first (kit), reply, id, "kit-full/below", &opts);
  kit_file_remove (kit_first (kit), reply, id, "kit-full", NULL);
}

static void
provoke_timeout (struct kit *kit, struct kit_reply *reply)
{
  static const char *const argv[]
    = { "/bin/sh", "-c", "exec sleep 1000", NULL };
  const char *id = kit_sandbox (kit);
  const char *exec = kit_start (kit, id, argv, -1, -1, -1, NULL);

  reply->deadline_ms = 100;
  kit_exec_wait (kit_first (kit), reply, id, exec, NULL);
  reply->deadline_ms = 0;
}

static void
provoke_cancelled (struct kit *kit, struct kit_reply *reply)
{
  static const char *const argv[]
    = { "/bin/sh", "-c", "exec sleep 1000", NULL };
  const char *id = kit_sandbox (kit);
  const char *exec = kit_start (kit, id, argv, -1, -1, -1, NULL);

  reply->cancel_fd = kit_cancel_new (kit);
  kit_cancel (reply->cancel_fd);
  kit_exec_wait (kit_first (kit), reply, id, exec, NULL);
  reply->cancel_fd = -1;
}

static void
provoke_invalid (struct kit *kit, struct kit_reply *reply)
{
  struct coffer_sandbox_spec spec = kit_spec (kit);

  spec.workdir = "not/absolute";
  kit_sandbox_create (kit_first (kit), reply, kit_new_id (kit), &spec, NULL);
}

/* What each code needs to be reached: a claim, or nothing that a kit could
 * make happen. */
static const struct {
  int32_t code;
  const char *claim;            /* NULL: waived, see why */
  const char *why;
  void (*provoke) (struct kit *kit, struct kit_reply *reply);
} codes[] = {
  { COFFER_OK, "", NULL, NULL },
  { COFFER_UNSUPPORTED, NULL, "case codes.unclaimed", NULL },
  { COFFER_INVALID, "", NULL, provoke_invalid },
  { COFFER_UNAUTHENTICATED, NULL, "case load.wrong-credentials", NULL },
  { COFFER_DENIED, NULL, "no claim makes a refusal certain", NULL },
  { COFFER_NOT_FOUND, "", NULL, provoke_not_found },
  { COFFER_EXISTS, "files", NULL, provoke_exists },
  { COFFER_CONFLICT, "files", NULL, provoke_conflict },
  { COFFER_BUSY, NULL, "no claim makes anything busy", NULL },
  { COFFER_LIMIT, NULL, "no claim says at which call a limit shows", NULL },
  { COFFER_TIMEOUT, "exec", NULL, provoke_timeout },
  { COFFER_CANCELLED, "exec", NULL, provoke_cancelled },
  { COFFER_UNAVAILABLE, NULL, "nothing here takes a service away", NULL },
  { COFFER_IO, NULL, "no claim makes a disk fail", NULL },
  { COFFER_INTERNAL, NULL, "a fault of the provider itself", NULL },
};

static void
codes_reached (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  size_t i;

  for (i = 0; i < sizeof codes / sizeof codes[0]; i++) {
    const int seen = kit_code_seen (kit, 0, codes[i].code);

    if (!codes[i].claim || (*codes[i].claim
                            && !kit_claims (kit, codes[i].claim))) {
      kit_note (kit, "%s: %s, waived: %s", kit_code_name (codes[i].code),
                seen ? "seen" : "not seen", codes[i].why ? codes[i].why
                : kit_text (kit, "%s is not claimed", codes[i].claim));
      continue;
    }
    if (codes[i].provoke)
      codes[i].provoke (kit, &reply);
    else
      kit_sandbox_list (kit_first (kit), &reply, NULL);
    KIT_CHECK (kit, reply.code == codes[i].code && !reply.fault,
               "what must be %s: came %s%s", kit_code_name (codes[i].code),
               kit_shown (kit, &reply),
               seen ? ", though other cases have seen it" : "");
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
  KIT_CHECK (kit, !kit_strange_emit (kit),
             "all calls of the run: expected each record of its operation and "
             "those that stand alone once; %s", kit_strange_emit (kit));
}

static void
config_secret (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;

  KIT_OK (kit, kit_probe (kit_first (kit), &reply, NULL), &reply, "probe");
  kit_sandbox (kit);
  KIT_CHECK (kit, !kit_secret_shown (kit),
             "all messages, details, records and log lines of the run: "
             "expected no secret of the configuration; %s",
             kit_secret_shown (kit));
}

const struct kit_case kit_codes_cases[] = {
  { "codes.unclaimed", "",
    "Every operation that is not claimed answers UNSUPPORTED at once, and "
    "changes nothing.", unclaimed, 30000 },
  { "codes.reached", "",
    "Every code that the claims let one reach is reached; the others are "
    "listed with why they are waived.", codes_reached, 0, KIT_LAST },
  { "codes.emits-once", "",
    "In the whole run an operation emitted only its own records, and one that "
    "stands alone once.", emits_once, 0, KIT_LAST },
  { "codes.config-secret", "config.secret",
    "In the whole run no message, detail, record or log line had a secret of "
    "the configuration.", config_secret, 0, KIT_LAST },
  { NULL }
};
