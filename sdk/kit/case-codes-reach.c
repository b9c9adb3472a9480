/* SPDX-License-Identifier: Apache-2.0 */
/* Each code of the contract: reached by a call that the claims of the provider
 * promise to end in it, or waived by what the manifest says; and what is said
 * beside a code.
 *
 * No code is left out by this file.  Where no way to one is claimed, that claim
 * waives it; the key `never` of the manifest does so for others, and then no
 * call of the whole run may have ended in it. */

#include <unistd.h>

#include "case.h"

/* ---- ways to a code ------------------------------------------------------ */

/* Each asks, and leaves what came in the reply; 0: there is nothing to ask. */

static int
ask_list (struct kit *kit, struct kit_reply *reply)
{
  kit_sandbox_list (kit_first (kit), reply, NULL);
  return 1;
}

/* Until one answers so: codes.unclaimed judges each. */
static int
ask_unclaimed (struct kit *kit, struct kit_reply *reply)
{
  const char *word;
  uint32_t op;
  int asked = 0;

  for (size_t i = 0; (op = kit_operation (i)) != 0; i++) {
    word = kit_operation_capability (op);
    if (*word == '\0' || kit_claims_in_manifest (kit, word))
      continue;
    asked = 1;
    if (kit_call_plain (kit_first (kit), reply, op, kit_sandbox (kit))
        == COFFER_UNSUPPORTED)
      break;
  }
  return asked;
}

static int
ask_malformed (struct kit *kit, struct kit_reply *reply)
{
  struct coffer_sandbox_spec spec = kit_spec (kit);

  spec.workdir = "not/absolute";
  kit_sandbox_create (kit_first (kit), reply, kit_new_id (kit), &spec, NULL);
  return 1;
}

static int
ask_with_wrong_secret (struct kit *kit, struct kit_reply *reply)
{
  const char **config = case_wrong_secrets (kit, "no");
  struct kit_instance *instance;

  if (kit_open_with (kit, config, 0, &instance, reply) == COFFER_OK)
    kit_sandbox_list (instance, reply, NULL);
  return 1;
}

static int
ask_outside (struct kit *kit, struct kit_reply *reply)
{
  uint8_t *bytes;
  size_t size;

  case_get (kit, reply, kit_sandbox (kit), "/proc/self/environ", NULL, &bytes,
            &size);
  return 1;
}

static int
ask_shut (struct kit *kit, struct kit_reply *reply)
{
  const char *const id = kit_sandbox (kit);
  uint8_t *bytes;
  size_t size;

  case_sh (kit, id, "mkdir kit-shut; echo x > kit-shut/f; chmod 0 kit-shut");
  case_get (kit, reply, id, "kit-shut/f", NULL, &bytes, &size);
  case_sh (kit, id, "chmod 700 kit-shut");
  return 1;
}

static int
ask_unknown (struct kit *kit, struct kit_reply *reply)
{
  kit_sandbox_info (kit_first (kit), reply, kit_new_id (kit), NULL);
  return 1;
}

static int
ask_twice (struct kit *kit, struct kit_reply *reply)
{
  const char *const id = kit_sandbox (kit);

  kit_file_mkdir (kit_first (kit), reply, id, "kit-twice", NULL);
  kit_file_mkdir (kit_first (kit), reply, id, "kit-twice", NULL);
  return 1;
}

static int
ask_full (struct kit *kit, struct kit_reply *reply)
{
  const struct coffer_file_mkdir_opts opts
    = { .size = sizeof opts, .parents = 1 };
  const char *const id = kit_sandbox (kit);

  kit_file_mkdir (kit_first (kit), reply, id, "kit-full/below", &opts);
  kit_file_remove (kit_first (kit), reply, id, "kit-full", NULL);
  return 1;
}

static int
ask_in_use (struct kit *kit, struct kit_reply *reply)
{
  kit_file_remove (kit_first (kit), reply, kit_sandbox (kit), ".", NULL);
  return 1;
}

static int
ask_too_much (struct kit *kit, struct kit_reply *reply)
{
  struct coffer_sandbox_spec spec = kit_spec (kit);
  const size_t size = 12 * CASE_MIB;
  const char *id;

  spec.disk_bytes = 8 * CASE_MIB;
  id = kit_sandbox_with (kit, kit_first (kit), &spec);
  case_put (kit, reply, id, "kit-much",
            memset (kit_memory (kit, size), 'x', size), size, NULL);
  return 1;
}

/* A command, or an input, that never ends. */
static void
wait_for_end (struct kit *kit, struct kit_reply *reply)
{
  static const char *const argv[] = { "/bin/sh", "-c", "exec sleep 1000",
                                      NULL };
  const char *const id = kit_sandbox (kit);
  int ends[2];

  if (kit_claims (kit, "exec")) {
    kit_exec_wait (kit_first (kit), reply, id,
                   kit_start (kit, id, argv, -1, -1, -1, NULL), NULL);
    return;
  }
  kit_pipe (kit, ends);
  kit_file_write (kit_first (kit), reply, id, "kit-silent", ends[0], NULL);
}

static int
ask_for_long (struct kit *kit, struct kit_reply *reply)
{
  reply->deadline_ms = 100;
  wait_for_end (kit, reply);
  reply->deadline_ms = 0;
  return 1;
}

static int
ask_and_leave (struct kit *kit, struct kit_reply *reply)
{
  reply->cancel_fd = kit_cancel_new (kit);
  kit_cancel (reply->cancel_fd);
  wait_for_end (kit, reply);
  reply->cancel_fd = -1;
  return 1;
}

static int
ask_nobody (struct kit *kit, struct kit_reply *reply)
{
  kit_port_dial (kit_first (kit), reply, kit_sandbox (kit), 30003, NULL);
  return 1;
}

static int
ask_for_no_reader (struct kit *kit, struct kit_reply *reply)
{
  const char *const id = kit_sandbox (kit);
  int ends[2];

  case_put_text (kit, id, "kit-unread", "for nobody");
  kit_pipe (kit, ends);
  case_close (&ends[0]);
  kit_file_read (kit_first (kit), reply, id, "kit-unread", ends[1], NULL);
  return 1;
}

static const struct way {
  int32_t code;
  const char *claims;           /* words by spaces; "": every provider */
  int (*ask) (struct kit *kit, struct kit_reply *reply);
  const char *what;
} ways[] = {
  { COFFER_OK, "", ask_list, "a list" },
  { COFFER_UNSUPPORTED, "", ask_unclaimed, "what is not claimed" },
  { COFFER_INVALID, "", ask_malformed, "a workdir that is not absolute" },
  { COFFER_UNAUTHENTICATED, "config.secret", ask_with_wrong_secret,
    "wrong credentials" },
  { COFFER_DENIED, "files", ask_outside, "a file_read below /proc" },
  { COFFER_DENIED, "exec files", ask_shut,
    "a file_read in a folder that its owner has shut" },
  { COFFER_NOT_FOUND, "", ask_unknown, "the info of no sandbox" },
  { COFFER_EXISTS, "files", ask_twice, "a folder that is made twice" },
  { COFFER_CONFLICT, "files", ask_full,
    "a folder that is removed and is not empty" },
  { COFFER_BUSY, "files", ask_in_use, "a file_remove of the workspace" },
  { COFFER_LIMIT, "files limit.disk", ask_too_much,
    "a file_write of 12 MiB to a disk of 8 MiB" },
  { COFFER_TIMEOUT, "exec", ask_for_long, "a wait that is over" },
  { COFFER_TIMEOUT, "files", ask_for_long, "a write that is over" },
  { COFFER_CANCELLED, "exec", ask_and_leave, "a wait that is cancelled" },
  { COFFER_CANCELLED, "files", ask_and_leave, "a write that is cancelled" },
  { COFFER_UNAVAILABLE, "ports", ask_nobody,
    "a port on which nothing listens" },
  { COFFER_IO, "files", ask_for_no_reader,
    "a file_read into a pipe whose reader is gone" },
};

/* ---- reached, or waived by claim ----------------------------------------- */

static int
all_claimed (struct kit *kit, const char *claims)
{
  char *words = kit_text (kit, "%s", claims), *word;

  while ((word = strsep (&words, " ")) != NULL)
    if (*word != '\0' && !kit_claims (kit, word))
      return 0;
  return 1;
}

static const char *
operation_that_saw (struct kit *kit, int32_t code)
{
  uint32_t op;

  for (size_t i = 0; (op = kit_operation (i)) != 0; i++)
    if (kit_code_seen (kit, op, code))
      return kit_operation_name (op);
  return "a call";
}

/* 1: one of the ways that are claimed leads there.  0: what was asked and came
 * instead, or NULL when nothing could be asked, and then why. */
static int
try_ways (struct kit *kit, int32_t code, const char **came, const char **why)
{
  *came = *why = NULL;
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    struct kit_reply reply = KIT_REPLY_INIT;

    if (ways[i].code != code)
      continue;
    if (!all_claimed (kit, ways[i].claims)) {
      *why = kit_text (kit, "no claim of %s, for %s", ways[i].claims,
                       ways[i].what);
      continue;
    }
    if (!ways[i].ask (kit, &reply)) {
      *why = "every operation is claimed";
      continue;
    }
    if (reply.code == code && !reply.fault)
      return 1;
    *came = kit_text (kit, "%s: came %s", ways[i].what,
                      kit_shown (kit, &reply));
    kit_reply_reset (&reply);
  }
  return 0;
}

/* A fault of the provider itself is what no call may end in. */
static int
is_never (struct kit *kit, int32_t code)
{
  return code == COFFER_INTERNAL || kit_says_never (kit, code);
}

static void
judge_never (struct kit *kit, int32_t code, const char *name)
{
  const char *came, *why;

  try_ways (kit, code, &came, &why);
  KIT_CHECK (kit, !kit_code_seen (kit, 0, code),
             "%s, which %s: expected of no call, %s ended in it", name,
             code == COFFER_INTERNAL ? "is a fault of the provider itself"
                                     : "the manifest says never comes",
             operation_that_saw (kit, code));
  kit_note (kit, "%s: never came, as %s", name,
            code == COFFER_INTERNAL ? "the contract demands"
                                    : "the manifest claims");
}

static void
judge (struct kit *kit, int32_t code, const char *name)
{
  const char *came, *why;

  if (is_never (kit, code)) {
    judge_never (kit, code, name);
    return;
  }
  if (try_ways (kit, code, &came, &why)) {
    kit_note (kit, "%s: reached", name);
    return;
  }
  KIT_CHECK (kit, !came && why,
             "%s: expected of %s; where it never comes, the manifest says so "
             "in `never`", name, came ? came : "a call");
  kit_note (kit, "%s: waived by claim: %s", name, why);
}

/* ---- answers that other cases take as they come --------------------------- */

static void
ask_refused (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *const id = kit_sandbox (kit);
  uint8_t *bytes;
  size_t size;

  ask_unknown (kit, &reply);
  ask_malformed (kit, &reply);
  if (kit_claims (kit, "exec"))
    kit_exec_wait (kit_first (kit), &reply, id, "kit-no-such", NULL);
  if (kit_claims (kit, "files")) {
    case_put (kit, &reply, id, kit_random_word (kit, 256), "x", 1, NULL);
    case_get (kit, &reply, id, "", NULL, &bytes, &size);
    case_get (kit, &reply, id, "kit/../none", NULL, &bytes, &size);
    kit_file_rename (kit_first (kit), &reply, id, "kit-none", "kit-new", NULL);
  }
  kit_reply_reset (&reply);
}

static void
codes_reached (struct kit *kit)
{
#define CODE(number, name, retryable, doc) { number, #name },
  static const struct {
    int32_t code;
    const char *name;
  } codes[] = { COFFER_CODES (CODE) };

  ask_refused (kit);
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
    judge (kit, codes[i].code, codes[i].name);
}

static void
codes_known (struct kit *kit)
{
  ask_refused (kit);
  KIT_CHECK (kit, !kit_found (kit, KIT_FOUND_CODE),
             "all calls of the run: expected codes of the contract; %s",
             kit_found (kit, KIT_FOUND_CODE));
}

static void
codes_retryable (struct kit *kit)
{
  ask_refused (kit);
  KIT_CHECK (kit, !kit_found (kit, KIT_FOUND_RETRYABLE),
             "all calls of the run: expected yes, no or unknown about trying "
             "again, and no yes where the code says no; %s",
             kit_found (kit, KIT_FOUND_RETRYABLE));
}

const struct kit_case kit_code_reach_cases[] = {
  { "codes.reached", "",
    "Every code is reached by a call that the claims promise to end in it; or "
    "no way to it is claimed; or the manifest says that it never comes, and in "
    "the whole run it did not, as INTERNAL never does.", codes_reached, 60000,
    KIT_LAST },
  { "codes.known", "",
    "In the whole run every call ended in a code of the contract.",
    codes_known, 0, KIT_LAST },
  { "codes.retryable", "",
    "In the whole run what was said of trying again is yes, no or unknown, and "
    "never yes of a code whose row in the contract says no.", codes_retryable,
    0, KIT_LAST },
  { NULL }
};
