/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a sandbox: create, info, list, kill, and the orders in which
 * nobody would call them. */

#include <string.h>

#include "kit.h"

static void
expect_info (struct kit *kit, const struct kit_reply *reply, const char *id,
             const char *state, const char *what)
{
  const struct coffer_sandbox_info *info = kit_reply_sandbox_info (reply, 0);

  KIT_CHECK (kit, info, "%s: expected a sandbox_info, came none", what);
  KIT_CHECK (kit, info->sandbox && strcmp (info->sandbox, id) == 0,
             "%s: expected the sandbox %s, came %s", what, id,
             info->sandbox ? info->sandbox : "none");
  KIT_CHECK (kit, info->state && strcmp (info->state, state) == 0,
             "%s: expected the state %s, came %s", what, state,
             info->state ? info->state : "none");
}

static void
create_info_kill (struct kit *kit)
{
  const struct coffer_sandbox_spec spec = kit_spec (kit);
  struct kit_instance *in = kit_first (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *id = kit_new_id (kit);

  KIT_OK (kit, kit_sandbox_create (in, &reply, id, &spec, NULL), &reply,
          "create %s", id);
  expect_info (kit, &reply, id, "running", "create");
  KIT_OK (kit, kit_sandbox_info (in, &reply, id, NULL), &reply, "info of %s",
          id);
  expect_info (kit, &reply, id, "running", "info");
  KIT_OK (kit, kit_sandbox_kill (in, &reply, id, NULL), &reply, "kill %s", id);
  KIT_CODE (kit, kit_sandbox_info (in, &reply, id, NULL), &reply,
            COFFER_NOT_FOUND, "info of %s after its kill", id);
}

const struct kit_case kit_life_cases[] = {
  { "life.create-info-kill", "",
    "A sandbox is created, says what it is, is killed, and is gone.",
    create_info_kill },
  { NULL }
};
