/* SPDX-License-Identifier: Apache-2.0 */
/* Saved states of a sandbox. */

#include <time.h>

#include "case.h"

/* Made, and copied out of the reply; removed by the case. */
static struct coffer_snapshot
snapshot_make (struct kit *kit, const char *sandbox, const char *name)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_snapshot *record;
  struct coffer_snapshot made;

  KIT_OK (kit,
          kit_snapshot_create (kit_first (kit), &reply, sandbox, name, NULL),
          &reply, "snapshot_create");
  record = kit_reply_snapshot (&reply, 0);
  KIT_CHECK (kit, record != NULL && record->snapshot != NULL
                    && record->snapshot[0] != '\0',
             "snapshot_create emitted no snapshot with an id");
  made = *record;
  made.snapshot = kit_text (kit, "%s", record->snapshot);
  made.name = record->name ? kit_text (kit, "%s", record->name) : NULL;
  kit_reply_reset (&reply);
  return made;
}

static int
snapshot_listed (struct kit *kit, const char *snapshot, const char **name)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_snapshot *record;
  int found = 0;

  KIT_OK (kit, kit_snapshot_list (kit_first (kit), &reply, NULL), &reply,
          "snapshot_list");
  for (size_t i = 0; (record = kit_reply_snapshot (&reply, i)) != NULL; i++)
    if (record->snapshot != NULL && strcmp (record->snapshot, snapshot) == 0) {
      found++;
      if (name != NULL)
        *name = kit_text (kit, "%s", record->name ? record->name : "");
    }
  kit_reply_reset (&reply);
  return found;
}

static void
snapshot_drop (struct kit *kit, const char *snapshot)
{
  struct kit_reply reply = KIT_REPLY_INIT;

  KIT_OK (kit,
          kit_snapshot_delete (kit_first (kit), &reply, snapshot, NULL),
          &reply, "snapshot_delete");
  kit_reply_reset (&reply);
}

static void
snapshots_create (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const name = kit_text (kit, "caf\xc3\xa9 %s",
                                     kit_random_word (kit, 8));
  const int64_t before = (int64_t) time (NULL);
  const struct coffer_snapshot one = snapshot_make (kit, sandbox, name);
  const struct coffer_snapshot two = snapshot_make (kit, sandbox, NULL);
  const int64_t created = one.created_ns / 1000000000;
  const char *listed = "";
  int found = snapshot_listed (kit, one.snapshot, &listed);

  snapshot_drop (kit, one.snapshot);
  snapshot_drop (kit, two.snapshot);
  KIT_CHECK (kit, strcmp (one.snapshot, two.snapshot) != 0,
             "two snapshots have the id %s", one.snapshot);
  KIT_CHECK (kit, found == 1 && strcmp (listed, name) == 0,
             "snapshot_list was to have %s once, with the name \"%s\": %d "
             "times, \"%s\"",
             one.snapshot, name, found, listed);
  KIT_CHECK (kit, one.name != NULL && strcmp (one.name, name) == 0,
             "a snapshot with the name \"%s\" was said to be \"%s\"", name,
             one.name ? one.name : "");
  KIT_CHECK (kit, created >= before - 60 && created <= before + 120,
             "a snapshot of now was said to be of %" PRId64
             " seconds from now", created - before);
}

static void
snapshots_delete (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const struct coffer_snapshot one = snapshot_make (kit, sandbox, "one");
  const struct coffer_snapshot two = snapshot_make (kit, sandbox, "two");
  int left, other;

  snapshot_drop (kit, one.snapshot);
  left = snapshot_listed (kit, one.snapshot, NULL);
  other = snapshot_listed (kit, two.snapshot, NULL);
  snapshot_drop (kit, two.snapshot);
  KIT_CHECK (kit, left == 0, "a snapshot that was deleted is in the list");
  KIT_CHECK (kit, other == 1, "a snapshot is %d times in the list after "
             "another was deleted", other);
  case_sh (kit, sandbox, "true");
}

static void
snapshots_unknown (struct kit *kit)
{
  struct kit_instance *const first = kit_first (kit);
  struct kit_reply reply = KIT_REPLY_INIT;

  KIT_CODE (kit,
            kit_snapshot_create (first, &reply, kit_new_id (kit), "x", NULL),
            &reply, COFFER_NOT_FOUND, "snapshot_create of no sandbox");
  KIT_CODE (kit,
            kit_snapshot_delete (first, &reply, kit_random_word (kit, 20),
                                 NULL),
            &reply, COFFER_NOT_FOUND, "snapshot_delete of no snapshot");
  KIT_CODE (kit, kit_snapshot_delete (first, &reply, "../..", NULL), &reply,
            COFFER_NOT_FOUND, "snapshot_delete of \"../..\"");
  kit_reply_reset (&reply);
}

/* A new sandbox begins as the other was when it was saved. */
static void
snapshots_restore (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const word = kit_random_word (kit, 30);
  struct coffer_sandbox_spec spec = kit_spec (kit);
  struct coffer_snapshot saved;
  const char *other, *text;

  case_sh (kit, sandbox, "printf %s > f; mkdir -p d/e; ln -s ../f d/l; "
           "printf '#!/bin/sh\\nexit 0\\n' > run; chmod 750 run", word);
  saved = snapshot_make (kit, sandbox, "saved");
  case_sh (kit, sandbox, "rm -r d; echo later > f; : > new");
  spec.template_name = saved.snapshot;
  other = kit_sandbox_with (kit, kit_first (kit), &spec);
  text = case_sh (kit, other, "cat f; echo; ls -A; cat d/l; test -d d/e && "
                  "./run && echo whole");
  snapshot_drop (kit, saved.snapshot);
  KIT_CHECK (kit, strcmp (text, kit_text (kit, "%s\nd\nf\nrun\n%swhole\n",
                                          word, word)) == 0,
             "a sandbox made of a snapshot was to have its files: \"%s\"",
             case_shown (kit, text, strlen (text)));
}

const struct kit_case kit_snapshot_cases[] = {
  { "snapshots.create", "snapshot",
    "A snapshot has an id of its own, the name that it was given, and is in "
    "the list.",
    snapshots_create },
  { "snapshots.delete", "exec snapshot",
    "A snapshot that was deleted is gone, and another and the sandbox are not.",
    snapshots_delete },
  { "snapshots.restore", "exec snapshot",
    "A sandbox whose template_name is a snapshot's id begins with its files.",
    snapshots_restore },
  { "snapshots.unknown", "snapshot",
    "Of no sandbox, and of no snapshot, it is NOT_FOUND.", snapshots_unknown },
  { NULL }
};
