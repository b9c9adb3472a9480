/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a sandbox: create, info, list, kill, and the orders in which
 * nobody would call them. */

#include <string.h>
#include <time.h>
#include <unistd.h>

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
expect_state (struct kit *kit, const char *id, const char *state,
              const char *what)
{
  struct kit_reply reply = KIT_REPLY_INIT;

  KIT_OK (kit, kit_sandbox_info (kit_first (kit), &reply, id, NULL), &reply,
          "info of %s %s", id, what);
  expect_info (kit, &reply, id, state, what);
  kit_reply_reset (&reply);
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

/* ---- what info says ------------------------------------------------------ */

static int
same_strings (const char *const *a, const char *const *b)
{
  while (a && b && *a && *b && strcmp (*a, *b) == 0)
    a++, b++;
  return (!a || !*a) && (!b || !*b);
}

static int64_t
now_ns (void)
{
  struct timespec now;

  clock_gettime (CLOCK_REALTIME, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

#define MINUTE_NS 60000000000LL

static void
info_says (struct kit *kit)
{
  const char *const metadata[]
    = { kit_text (kit, "a=%s", kit_random_word (kit, 8)), "b=café ☃ 'q\"",
        "empty=", "c==d=", NULL };
  struct coffer_sandbox_spec spec = kit_spec (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_sandbox_info *info;
  int64_t before = now_ns ();
  const char *id;

  spec.metadata = metadata;
  id = kit_sandbox_with (kit, kit_first (kit), &spec);
  KIT_OK (kit, kit_sandbox_info (kit_first (kit), &reply, id, NULL), &reply,
          "info of %s", id);
  expect_info (kit, &reply, id, "running", "info");
  info = kit_reply_sandbox_info (&reply, 0);
  KIT_CHECK (kit, same_strings (info->metadata, metadata),
             "info of a sandbox with metadata: expected it as it was given, "
             "came something else");
  KIT_CHECK (kit, info->isolation
             && strcmp (info->isolation, kit_isolation (kit)) == 0,
             "info: expected the isolation %s, as the manifest says, came %s",
             kit_isolation (kit), info->isolation ? info->isolation : "none");
  KIT_CHECK (kit, info->workspace && info->workspace[0] == '/',
             "info: expected an absolute workspace, came %s",
             info->workspace ? info->workspace : "none");
  /* A service's clock may be another one; a made-up time is not near. */
  KIT_CHECK (kit, info->created_ns == 0
             || (info->created_ns > before - 5 * MINUTE_NS
                 && info->created_ns < now_ns () + 5 * MINUTE_NS),
             "info: expected the time of its making, came %lld",
             (long long) info->created_ns);
  KIT_CHECK (kit, info->expires_ns == 0,
             "info of a sandbox without a ttl: expected no end, came %lld",
             (long long) info->expires_ns);
}

static void
info_unknown (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *id = kit_new_id (kit);

  KIT_CODE (kit, kit_sandbox_info (kit_first (kit), &reply, id, NULL), &reply,
            COFFER_NOT_FOUND, "info of %s, which was never made", id);
  KIT_CHECK (kit, reply.n_records == 0, "info of a sandbox that was never "
             "made: expected no record, came %zu", reply.n_records);
  KIT_CODE (kit, kit_sandbox_kill (kit_first (kit), &reply, id, NULL), &reply,
            COFFER_NOT_FOUND, "kill of %s, which was never made", id);
}

/* ---- create twice -------------------------------------------------------- */

static size_t
count_listed (struct kit *kit, const char *id)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_sandbox_info *info;
  size_t i, found = 0;

  KIT_OK (kit, kit_sandbox_list (kit_first (kit), &reply, NULL), &reply,
          "list");
  for (i = 0; (info = kit_reply_sandbox_info (&reply, i)); i++)
    found += info->sandbox && strcmp (info->sandbox, id) == 0;
  kit_reply_reset (&reply);
  return found;
}

static void
create_twice (struct kit *kit)
{
  const struct coffer_sandbox_spec spec = kit_spec (kit);
  struct kit_instance *in = kit_first (kit);
  struct kit_reply first = KIT_REPLY_INIT, second = KIT_REPLY_INIT;
  const char *id = kit_sandbox (kit), *one, *two;

  KIT_OK (kit, kit_sandbox_info (in, &first, id, NULL), &first, "info of %s",
          id);
  KIT_OK (kit, kit_sandbox_create (in, &second, id, &spec, NULL), &second,
          "create %s a second time", id);
  expect_info (kit, &second, id, "running", "create a second time");
  one = kit_reply_sandbox_info (&first, 0)->native_id;
  two = kit_reply_sandbox_info (&second, 0)->native_id;
  KIT_CHECK (kit, strcmp (one ? one : "", two ? two : "") == 0,
             "create twice: expected one sandbox, came %s and then %s",
             one ? one : "none", two ? two : "none");
  KIT_CHECK (kit, count_listed (kit, id) == 1,
             "list after create twice: expected %s once, came %zu times", id,
             count_listed (kit, id));
}

struct race {
  const char *id;
  struct coffer_sandbox_spec spec;
};

static void
race_create (struct kit *kit, void *data, size_t index)
{
  const struct race *race = data;
  struct kit_reply reply = KIT_REPLY_INIT;

  KIT_OK (kit, kit_sandbox_create (kit_first (kit), &reply, race->id,
                                   &race->spec, NULL),
          &reply, "create %s at once with others (the %zuth)", race->id,
          index);
  kit_reply_reset (&reply);
}

static void
create_race (struct kit *kit)
{
  struct race race = { kit_new_id (kit), kit_spec (kit) };
  struct kit_reply reply = KIT_REPLY_INIT;

  kit_threads (kit, 4, race_create, &race);
  KIT_CHECK (kit, count_listed (kit, race.id) == 1,
             "list after four creates of %s at once: expected it once, came "
             "%zu times", race.id, count_listed (kit, race.id));
  KIT_OK (kit, kit_sandbox_kill (kit_first (kit), &reply, race.id, NULL),
          &reply, "kill %s", race.id);
  KIT_CODE (kit, kit_sandbox_info (kit_first (kit), &reply, race.id, NULL),
            &reply, COFFER_NOT_FOUND, "info of %s after its kill", race.id);
}

/* ---- the list ------------------------------------------------------------ */

static void
list_agrees (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *ids[3];
  size_t i;

  for (i = 0; i < 3; i++)
    ids[i] = kit_sandbox (kit);
  for (i = 0; i < 3; i++)
    KIT_CHECK (kit, count_listed (kit, ids[i]) == 1,
               "list of three sandboxes: expected %s once, came %zu times",
               ids[i], count_listed (kit, ids[i]));
  KIT_OK (kit, kit_sandbox_kill (kit_first (kit), &reply, ids[1], NULL),
          &reply, "kill %s", ids[1]);
  for (i = 0; i < 3; i++)
    KIT_CHECK (kit, count_listed (kit, ids[i]) == (i != 1),
               "list after one of three was killed: expected %s %s, came %zu "
               "times", ids[i], i == 1 ? "gone" : "once",
               count_listed (kit, ids[i]));
}

/* What is listed is what is there: each has an info of its own. */
static void
list_has_infos (struct kit *kit)
{
  struct kit_reply list = KIT_REPLY_INIT;
  const struct coffer_sandbox_info *info;
  size_t i;

  kit_sandbox (kit);
  kit_sandbox (kit);
  KIT_OK (kit, kit_sandbox_list (kit_first (kit), &list, NULL), &list, "list");
  KIT_CHECK (kit, kit_reply_sandbox_info (&list, 1),
             "list of two sandboxes: expected two records at least");
  for (i = 0; (info = kit_reply_sandbox_info (&list, i)); i++) {
    KIT_CHECK (kit, info->sandbox && *info->sandbox,
               "list: expected an id in each record, one has none");
    expect_state (kit, info->sandbox, info->state ? info->state : "running",
                  "that is in the list");
  }
}

/* ---- kill ---------------------------------------------------------------- */

static void
kill_twice (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *id = kit_sandbox (kit);

  KIT_OK (kit, kit_sandbox_kill (kit_first (kit), &reply, id, NULL), &reply,
          "kill %s", id);
  KIT_CODE (kit, kit_sandbox_kill (kit_first (kit), &reply, id, NULL), &reply,
            COFFER_NOT_FOUND, "kill %s again", id);
  KIT_CHECK (kit, count_listed (kit, id) == 0,
             "list after the kill of %s: expected it gone, it is there", id);
}

struct marked {
  struct kit *kit;
  const char *mark;
  int at_least;                 /* else: none */
};

static int
marked_test (void *data)
{
  const struct marked *marked = data;
  const int n = kit_marked_processes (marked->kit, marked->mark);

  return marked->at_least ? n >= marked->at_least : n == 0;
}

/* The second path: the machine's own list of processes.  Where it does not
 * show them, a stream that the command holds open says the same. */
static void
kill_ends_all (struct kit *kit)
{
  struct marked marked = { kit, kit_random_word (kit, 20), 2 };
  const char *const argv[]
    = { "/bin/sh", "-c", "sleep 1000 & sleep 1000 & echo up; wait; : $1",
        "kit", marked.mark, NULL };
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *id = kit_sandbox (kit);
  int out[2];
  char c[3];
  size_t size;

  kit_pipe (kit, out);
  kit_start (kit, id, argv, -1, out[1], -1, NULL);
  close (out[1]);
  KIT_CHECK (kit, read (out[0], c, 3) == 3,
             "a command that says when it is up: expected 3 bytes, came none");
  if (kit_sees_processes (kit)) {
    marked.at_least = 1;
    kit_wait_until (kit, marked_test, &marked,
                    "the command is among the machine's processes");
  }
  KIT_OK (kit, kit_sandbox_kill (kit_first (kit), &reply, id, NULL), &reply,
          "kill %s", id);
  kit_read_all (kit, out[0], sizeof c, &size);
  KIT_CHECK (kit, size == 0,
             "kill of %s with a command under way: expected the end of its "
             "stdout, came %zu bytes", id, size);
  marked.at_least = 0;
  if (kit_sees_processes (kit))
    kit_wait_until (kit, marked_test, &marked,
                    "after the kill none of its processes is left");
}

/* Every operation that names a sandbox. */
static void
gone (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *id = kit_sandbox (kit), *word;
  uint32_t op;
  size_t i;

  KIT_OK (kit, kit_sandbox_kill (kit_first (kit), &reply, id, NULL), &reply,
          "kill %s", id);
  for (i = 0; (op = kit_operation (i)); i++) {
    word = kit_operation_capability (op);
    if (op == COFFER_OP_open || op == COFFER_OP_close || op == COFFER_OP_probe
        || op == COFFER_OP_sandbox_create || op == COFFER_OP_sandbox_list
        || op == COFFER_OP_warm_open || op == COFFER_OP_snapshot_list
        || op == COFFER_OP_snapshot_delete
        || (*word && !kit_claims (kit, word)))
      continue;
    KIT_CODE (kit, kit_call_plain (kit_first (kit), &reply, op, id), &reply,
              COFFER_NOT_FOUND, "%s on a sandbox that was killed",
              kit_operation_name (op));
  }
}

/* ---- orders -------------------------------------------------------------- */

static void
accept (struct kit *kit, const struct kit_reply *reply, const char *what)
{
  KIT_CHECK (kit, !reply->fault && (reply->code == COFFER_OK
                                    || reply->code == COFFER_CONFLICT),
             "%s: expected OK or CONFLICT, came %s", what,
             kit_shown (kit, reply));
}

static void
pause_orders (struct kit *kit)
{
  struct kit_instance *in = kit_first (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *id = kit_sandbox (kit);

  kit_sandbox_resume (in, &reply, id, NULL);
  accept (kit, &reply, "resume of what runs");
  expect_state (kit, id, "running", "after a resume of what runs");
  KIT_OK (kit, kit_sandbox_pause (in, &reply, id, NULL), &reply, "pause");
  expect_state (kit, id, "paused", "after a pause");
  kit_sandbox_pause (in, &reply, id, NULL);
  accept (kit, &reply, "pause of what is paused");
  expect_state (kit, id, "paused", "after a second pause");
  KIT_OK (kit, kit_sandbox_resume (in, &reply, id, NULL), &reply, "resume");
  expect_state (kit, id, "running", "after a resume");
  KIT_OK (kit, kit_sandbox_pause (in, &reply, id, NULL), &reply,
          "pause once more");
  KIT_OK (kit, kit_sandbox_kill (in, &reply, id, NULL), &reply,
          "kill of what is paused");
  KIT_CODE (kit, kit_sandbox_info (in, &reply, id, NULL), &reply,
            COFFER_NOT_FOUND, "info after the kill of what was paused");
}

static int64_t
expires (struct kit *kit, const struct kit_reply *reply, const char *what)
{
  const struct coffer_sandbox_info *info = kit_reply_sandbox_info (reply, 0);

  KIT_CHECK (kit, info, "%s: expected a sandbox_info, came none", what);
  return info->expires_ns;
}

static void
extend_orders (struct kit *kit)
{
  struct coffer_sandbox_spec spec = kit_spec (kit);
  struct kit_instance *in = kit_first (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  int64_t first, second, now;
  const char *id;

  spec.ttl_ms = 600000;
  id = kit_sandbox_with (kit, in, &spec);
  KIT_OK (kit, kit_sandbox_info (in, &reply, id, NULL), &reply, "info");
  first = expires (kit, &reply, "info");
  now = now_ns ();
  KIT_CHECK (kit, first > now + 5 * MINUTE_NS && first < now + 15 * MINUTE_NS,
             "info of a sandbox with a ttl of 600 s: expected its end in about "
             "600 s, came %lld s", (long long) ((first - now) / 1000000000));
  KIT_OK (kit, kit_sandbox_extend (in, &reply, id, 1800000, NULL), &reply,
          "extend to 1800 s");
  second = expires (kit, &reply, "extend");
  KIT_CHECK (kit, second > first + 10 * MINUTE_NS,
             "extend from 600 to 1800 s: expected an end 1200 s later, came "
             "%lld s", (long long) ((second - first) / 1000000000));
  KIT_OK (kit, kit_sandbox_info (in, &reply, id, NULL), &reply, "info");
  KIT_CHECK (kit, expires (kit, &reply, "info") / 1000000000
             == second / 1000000000,
             "info after extend: expected the end that extend said, came "
             "another one");
}

const struct kit_case kit_life_cases[] = {
  { "life.create-info-kill", "",
    "A sandbox is created, says what it is, is killed, and is gone.",
    create_info_kill },
  { "life.info-says", "",
    "info tells metadata byte for byte, isolation as the manifest has it, a "
    "workspace, and times that can be true.", info_says },
  { "life.info-unknown", "",
    "info and kill of what was never made are NOT_FOUND.", info_unknown },
  { "life.create-twice", "",
    "Creating under one id twice makes one sandbox.", create_twice },
  { "life.create-race", "",
    "Creating under one id four times at once makes one sandbox.",
    create_race },
  { "life.list-agrees", "",
    "The list has each living sandbox once, and no other of this host.",
    list_agrees },
  { "life.list-has-infos", "",
    "Whatever is in the list has an info with the same state.",
    list_has_infos },
  { "life.kill-twice", "", "Killing what is gone is NOT_FOUND.", kill_twice },
  { "life.kill-ends-all", "exec",
    "A kill ends every process inside, as the machine itself says.",
    kill_ends_all },
  { "life.gone", "",
    "Every operation on a sandbox that was killed is NOT_FOUND.", gone },
  { "life.pause-orders", "pause",
    "Pause and resume in any order, and a kill while paused.", pause_orders },
  { "life.extend-orders", "ttl",
    "A ttl sets an end, extend sets a later one, and info says it.",
    extend_orders },
  { NULL }
};
