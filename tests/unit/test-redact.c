/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a provider: secrets that are hidden in it, in whatever form
 * and pieces, and the lines that the journal keeps. */

#include "config.h"

#include "harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/log.h"
#include "base/text.h"
#include "provider-fixture.h"
#include "provider/journal.h"
#include "provider/redact.h"

/* ---- redaction ------------------------------------------------------------ */

static void
assert_hidden (const char *secret, const char *text, const char *want)
{
  char *secrets[2] = { (char *) secret, NULL };
  struct redactor *redactor;
  char *copy = strdup (text);
  size_t skipped;

  assert_int_equal (redactor_new (secrets, &redactor, &skipped, NULL), 0);
  redact_text (redactor, copy);
  assert_string_equal (copy, want);
  redactor_free (redactor);
  free (copy);
}

static void
secrets_are_hidden_in_each_form (void **state)
{
  (void) state;
  assert_hidden ("hunter2hunter2", "a hunter2hunter2, hunter2hunter2b",
                 "a [hidden], [hidden]b");
  assert_hidden ("a b/c+d?e", "x=a%20b%2Fc%2Bd%3Fe&y", "x=[hidden]&y");
  assert_hidden ("a b/c+d?e", "x=a%20b%2fc%2bd%3fe&y", "x=[hidden]&y");
  assert_hidden ("a b/c+d?e", "x=a+b%2Fc%2Bd%3Fe&y", "x=[hidden]&y");
  assert_hidden ("hunter2hunter2", "hunter2 hunter 2", "hunter2 hunter 2");
  assert_hidden ("12345678", "12345678", "[hidden]");
  assert_hidden ("say \"no\"\\/caf\303\251",
                 "{\"k\":\"say \\\"no\\\"\\\\/caf\303\251\"}",
                 "{\"k\":\"[hidden]\"}");
  assert_hidden ("say \"no\"\\/caf\303\251",
                 "{\"k\":\"say \\\"no\\\"\\\\\\/caf\\u00E9\"}",
                 "{\"k\":\"[hidden]\"}");
  assert_hidden ("caf\303\251-\303\240-la", "\"caf\\u00e9-\\u00e0-la\"",
                 "\"[hidden]\"");
  assert_hidden ("first-line\nsecond-line\r\n", "{\"k\":\"first-line\\nsecond-"
                 "line\\r\\n\"}", "{\"k\":\"[hidden]\"}");
  assert_hidden ("first-line\nsecond-line\r\n", "read: second-line",
                 "read: [hidden]");
}

/* Of a secret that begins with another nothing is left behind it. */
static void
longer_secrets_are_hidden_first (void **state)
{
  char *secrets[] = { (char *) "password", (char *) "password-of-root", NULL };
  struct redactor *redactor;
  char text[] = "password-of-root password";
  size_t skipped;

  (void) state;
  assert_int_equal (redactor_new (secrets, &redactor, &skipped, NULL), 0);
  redact_text (redactor, text);
  assert_string_equal (text, "[hidden] [hidden]");
  redactor_free (redactor);
}

/* Whatever stands before and behind it, no eight characters of its base64
 * that are its own are left. */
static void
secrets_are_hidden_in_base64_wherever_they_lie (void **state)
{
  static const char secret[] = "sk-\xc3\xa9\xff?>0123456789";
  size_t before, behind;

  (void) state;
  for (before = 0; before < 7; before++)
    for (behind = 0; behind < 4; behind++) {
      char *secrets[2] = { (char *) secret, NULL };
      auto_free char *plain = text_printf ("%.*s%s%.*s", (int) before,
                                           "abcdefg", secret, (int) behind,
                                           "xyz");
      auto_free char *text = text_base64_encode (plain, strlen (plain));
      struct redactor *redactor;
      size_t skipped, left;

      redactor_new (secrets, &redactor, &skipped, NULL);
      redact_text (redactor, text);
      assert_non_null (strstr (text, "[hidden]"));
      /* What is left around it: at most the neighbours and an edge. */
      left = strlen (text) - strlen ("[hidden]");
      assert_true (left <= (before + behind + 2) * 4 / 3 + 6);
      redactor_free (redactor);
    }
}

/* The oldest of the late ones are left at last, and the first never. */
static void
secrets_that_come_late_are_hidden_too (void **state)
{
  char *secrets[2] = { (char *) "the-first-secret", NULL };
  char text[] = "the-first-secret the-late-one00 the-late-one17 the-late-one";
  struct redactor *redactor;
  size_t skipped;
  char late[32];
  int i;

  (void) state;
  assert_int_equal (redactor_new (secrets, &redactor, &skipped, NULL), 0);
  for (i = 0; i < REDACT_LATE_MOST + 2; i++) {
    snprintf (late, sizeof late, "the-late-one%02d", i);
    assert_int_equal (redactor_add (redactor, late, NULL), 0);
    assert_int_equal (redactor_add (redactor, late, NULL), 0);
  }
  assert_int_equal (redactor_add (redactor, "short", NULL), 0);
  redact_text (redactor, text);
  assert_string_equal (text, "[hidden] the-late-one00 [hidden] the-late-one");
  redactor_free (redactor);
  assert_int_equal (redactor_new (NULL, &redactor, &skipped, NULL), 0);
  assert_int_equal (redactor_add (redactor, "the-late-one", NULL), 0);
  snprintf (late, sizeof late, "say the-late-one");
  redact_text (redactor, late);
  assert_string_equal (late, "say [hidden]");
  redactor_free (redactor);
}

static void
short_secrets_are_counted_and_left (void **state)
{
  char *secrets[] = { (char *) "short", (char *) "longenough", NULL };
  struct redactor *redactor;
  char text[] = "short longenough";
  size_t skipped;

  (void) state;
  assert_int_equal (redactor_new (secrets, &redactor, &skipped, NULL), 0);
  assert_int_equal (skipped, 1);
  redact_text (redactor, text);
  assert_string_equal (text, "short [hidden]");
  redactor_free (redactor);
}

static void
json_is_redacted_with_its_keys (void **state)
{
  char *secrets[] = { (char *) "hunter2hunter2", NULL };
  struct redactor *redactor;
  size_t skipped;
  json_t *json = json_pack ("{s:[s, {s:i}], s:b}", "a", "x hunter2hunter2",
                            "hunter2hunter2", 1, "c", 1);
  json_t *clean;
  char *text;

  (void) state;
  redactor_new (secrets, &redactor, &skipped, NULL);
  clean = redact_json (redactor, json);
  text = json_dumps (clean, JSON_COMPACT);
  assert_string_equal (text,
                       "{\"a\":[\"x [hidden]\",{\"[hidden]\":1}],\"c\":true}");
  free (text);
  json_decref (json);
  json_decref (clean);
  redactor_free (redactor);
}

/* ---- the gate, the journal ------------------------------------------------ */

/* What a reader has who joins the lines. */
static void
join_lines (const char *secret, const char *const *lines, char *out,
            size_t size)
{
  char *const secrets[] = { (char *) secret, NULL };
  struct redact_tail tail = { NULL, 0 }, *tails[] = { &tail };
  struct redactor *redactor;
  size_t skipped;

  assert_int_equal (redactor_new (secrets, &redactor, &skipped, NULL), 0);
  *out = '\0';
  for (; *lines; lines++) {
    char *line = strdup (*lines);
    redact_next (redactor, tails, 1, line);
    assert_true (strlen (line) <= strlen (*lines));
    assert_true (strlen (out) + strlen (line) < size);
    strcat (out, line);
    free (line);
  }
  redact_tail_fini (&tail);
  redactor_free (redactor);
}

static void
a_secret_in_pieces_is_hidden (void **state)
{
  static const char secret[] = "sk-live/0123456789+abc def";
  const char *lines[64] = { NULL };
  char pieces[64][32], out[256], *tail;
  size_t at, size, n;

  (void) state;
  /* Two pieces, wherever the cut is, and all pieces of one size. */
  for (at = 1; at < sizeof secret - 1; at++) {
    snprintf (pieces[0], sizeof pieces[0], "a %.*s", (int) at, secret);
    snprintf (pieces[1], sizeof pieces[1], "%s z", secret + at);
    lines[0] = pieces[0], lines[1] = pieces[1], lines[2] = NULL;
    join_lines (secret, lines, out, sizeof out);
    assert_null (strstr (out, secret));
    assert_null (strstr (out, "0123456789"));
    tail = out + strlen (out) - 2;
    assert_string_equal (tail, " z");
    assert_memory_equal (out, "a ", 2);
  }
  for (size = 1; size < 12; size++) {
    for (n = 0, at = 0; at < sizeof secret - 1; at += size)
      snprintf (pieces[n], sizeof pieces[n], "%.*s", (int) size, secret + at),
        lines[n] = pieces[n], n++;
    lines[n] = NULL;
    join_lines (secret, lines, out, sizeof out);
    assert_null (strstr (out, "live"));
    assert_null (strstr (out, "0123"));
    assert_null (strstr (out, "def"));
  }
}

static void
what_is_no_secret_stays_in_pieces (void **state)
{
  static const char *const lines[] = { "ask", "sk-", "sk-live", "sk-livX",
                                       "", "one sk-live/0123456789+abc def.",
                                       NULL };
  char out[256];

  (void) state;
  join_lines ("sk-live/0123456789+abc def", lines, out, sizeof out);
  assert_string_equal (out, "asksk-*******sk-livXone [hidden].");
}

static void
the_journal_keeps_the_last_lines (void **state)
{
  struct journal journal;
  uint64_t mark, dropped;
  char line[32];
  json_t *lines;
  int i, kept = 0;

  (void) state;
  journal_init (&journal);
  journal_add (&journal, "before");
  mark = journal_mark (&journal);
  for (i = 0; i < 3; i++) {
    snprintf (line, sizeof line, "line %d", i);
    journal_add (&journal, line);
  }
  lines = journal_since (&journal, mark);
  assert_int_equal (json_array_size (lines), 3);
  assert_string_equal (json_string_value (json_array_get (lines, 0)),
                       "line 0");
  json_decref (lines);
  for (i = 0; i < 5000; i++)
    if (journal_admit (&journal, &dropped)) {
      journal_add (&journal, "flood");
      kept++;
    }
  assert_in_range (kept, JOURNAL_BURST - 10, 2 * JOURNAL_BURST + 10);
  lines = journal_since (&journal, mark);
  assert_int_equal (json_array_size (lines), JOURNAL_LINES);
  json_decref (lines);
  journal_fini (&journal);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (secrets_are_hidden_in_each_form),
    cmocka_unit_test (secrets_are_hidden_in_base64_wherever_they_lie),
    cmocka_unit_test (longer_secrets_are_hidden_first),
    cmocka_unit_test (secrets_that_come_late_are_hidden_too),
    cmocka_unit_test (short_secrets_are_counted_and_left),
    cmocka_unit_test (json_is_redacted_with_its_keys),
    cmocka_unit_test (a_secret_in_pieces_is_hidden),
    cmocka_unit_test (what_is_no_secret_stays_in_pieces),
    cmocka_unit_test (the_journal_keeps_the_last_lines),
  };

  log_set_level (LOG_LEVEL_ERROR);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
