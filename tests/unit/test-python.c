/* SPDX-License-Identifier: Apache-2.0 */
/* What comes back from the runner, which anybody may have written, and what is
 * kept of a stream. */

#include <config.h>

#include "harness.h"

#include "base/json.h"
#include "python/channel.h"
#include "python/kept.h"

#define ACCEPTED "{\"accepted\":true,\"violations\":[],\"layers\":[\"ast\"]}"
#define TOLD "{\"result\":\"4\",\"error\":null,\"cut\":false,"                \
             "\"memory\":false,\"skipped\":0}"

static void
add_frame (struct coffer_buffer *out, char kind, const char *bytes,
           size_t size)
{
  const unsigned char head[5] = { (unsigned char) kind,
                                  (unsigned char) (size >> 24),
                                  (unsigned char) (size >> 16),
                                  (unsigned char) (size >> 8),
                                  (unsigned char) size };

  coffer_buffer_add (out, head, sizeof head);
  coffer_buffer_add (out, bytes, size);
}

static void
add_text (struct coffer_buffer *out, char kind, const char *text)
{
  add_frame (out, kind, text, strlen (text));
}

static void
add_artifact (struct coffer_buffer *out, const char *name, size_t name_size,
              size_t size)
{
  char *payload = calloc (1, 2 + name_size + size + 1);

  assert_non_null (payload);
  payload[0] = (char) (name_size >> 8);
  payload[1] = (char) name_size;
  memcpy (payload + 2, name, name_size);
  memset (payload + 2 + name_size, 'x', size);
  add_frame (out, 'A', payload, 2 + name_size + size);
  free (payload);
}

/* All of the stream at once, and the verdict of frames_add. */
static int
taken (const struct coffer_buffer *stream, struct frames *frames)
{
  return frames_add (frames, stream->data, stream->size);
}

static void
frames_come_in_any_pieces (void **state)
{
  coffer_autobuffer struct coffer_buffer stream = { 0 };
  struct frames frames = { 0 };
  size_t i;

  (void) state;
  add_text (&stream, 'V', ACCEPTED);
  add_text (&stream, 'R', TOLD);
  add_artifact (&stream, VECTOR_NAME, strlen (VECTOR_NAME), 5);
  for (i = 0; i < stream.size; i++)
    assert_int_equal (frames_add (&frames, stream.data + i, 1), 0);
  assert_true (json_is_true (json_object_get (frames.verdict, "accepted")));
  assert_string_equal (json_string_value (json_object_get (frames.told,
                                                           "result")), "4");
  assert_int_equal (json_array_size (frames.artifacts), 1);
  assert_string_equal (json_string_value (json_object_get (
                         json_array_get (frames.artifacts, 0), "data")),
                       "eHh4eHg=");
  frames_fini (&frames);
}

/* Each is refused, and what was taken before stays. */
static void
what_has_another_form_is_left (void **state)
{
  static const struct {
    char kind;
    const char *text;
  } bad[] = {
    { 'V', ACCEPTED },          /* a second verdict */
    { 'V', "" }, { 'R', "" }, { 'X', "x" }, { 0, "x" },
    { 'R', "{\"result\":1}" }, { 'R', "[]" }, { 'R', "{" },
    { 'R', "{\"result\":null,\"error\":null,\"cut\":1,\"memory\":false,"
           "\"skipped\":0}" },
    { 'R', "{\"result\":\"\\u0000\",\"error\":null,\"cut\":false,"
           "\"memory\":false,\"skipped\":0}" },
    { 'R', TOLD " " TOLD },
    { 'A', "x" }, { 'A', "\xff\xffx" },
  };
  size_t i;

  (void) state;
  for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    coffer_autobuffer struct coffer_buffer stream = { 0 };
    struct frames frames = { 0 };

    add_text (&stream, 'V', ACCEPTED);
    assert_int_equal (taken (&stream, &frames), 0);
    coffer_buffer_clear (&stream);
    add_text (&stream, bad[i].kind, bad[i].text);
    add_text (&stream, 'R', TOLD);
    assert_int_equal (taken (&stream, &frames), -1);
    assert_non_null (frames.verdict);
    assert_null (frames.told);
    assert_int_equal (taken (&stream, &frames), -1);
    frames_fini (&frames);
  }
}

static void
nothing_counts_before_the_verdict (void **state)
{
  coffer_autobuffer struct coffer_buffer told = { 0 }, file = { 0 };
  struct frames frames = { 0 };

  (void) state;
  add_text (&told, 'R', TOLD);
  add_artifact (&file, "a", 1, 1);
  assert_int_equal (taken (&told, &frames), -1);
  frames_fini (&frames);
  assert_int_equal (taken (&file, &frames), -1);
  assert_null (frames.artifacts);
  frames_fini (&frames);
}

/* A size alone says that it will be too much: nothing is waited for. */
static void
a_size_is_refused_before_the_bytes_come (void **state)
{
  struct frames frames = { 0 };

  (void) state;
  assert_int_equal (frames_add (&frames, "V\xff\xff\xff\xff", 5), -1);
  frames_fini (&frames);
  assert_int_equal (frames_add (&frames, "A\x00\x50\x00\x00", 5), -1);
  frames_fini (&frames);
}

static void
names_of_artifacts_lead_nowhere (void **state)
{
  static const char *const names[]
    = { "", "/a", "a/", "..", "a/../b", "./a", "a//b", "\xff", "a\xed\xa0\x80" };
  char longest[ARTIFACT_NAME_MAX + 2];
  size_t i;

  (void) state;
  memset (longest, 'n', sizeof longest);
  for (i = 0; i <= sizeof names / sizeof names[0]; i++) {
    const int last = i == sizeof names / sizeof names[0];
    const char *name = last ? longest : names[i];
    coffer_autobuffer struct coffer_buffer stream = { 0 };
    struct frames frames = { 0 };

    add_text (&stream, 'V', ACCEPTED);
    add_artifact (&stream, name, last ? sizeof longest - 1 : strlen (name), 1);
    assert_int_equal (taken (&stream, &frames), -1);
    frames_fini (&frames);
  }
}

static void
artifacts_are_counted_and_summed (void **state)
{
  struct frames frames = { 0 };
  char name[16];
  int i;

  (void) state;
  for (i = 0; i <= ARTIFACTS_COUNT; i++) {
    coffer_autobuffer struct coffer_buffer stream = { 0 };

    if (i == 0)
      add_text (&stream, 'V', ACCEPTED);
    snprintf (name, sizeof name, "%d", i);
    add_artifact (&stream, name, strlen (name), 1);
    assert_int_equal (taken (&stream, &frames), i == ARTIFACTS_COUNT ? -1 : 0);
  }
  frames_fini (&frames);
  for (i = 0; i < 3; i++) {
    coffer_autobuffer struct coffer_buffer stream = { 0 };

    if (i == 0)
      add_text (&stream, 'V', ACCEPTED);
    add_artifact (&stream, "a", 1, ARTIFACT_MAX);
    assert_int_equal (taken (&stream, &frames), i == 2 ? -1 : 0);
  }
  assert_int_equal (json_array_size (frames.artifacts), 2);
  frames_fini (&frames);
}

static void
a_stream_is_kept_as_text (void **state)
{
  struct kept kept = { 0 };
  auto_json json_t *text = NULL, *noted = NULL;

  (void) state;
  kept_add (&kept, "a\0b\xff\xe2\x82", 6);
  kept_add (&kept, "\xac\n", 2);
  text = kept_json (&kept, NULL);
  assert_int_equal (json_string_length (text), 3 + 3 + 3 + 1);
  assert_memory_equal (json_string_value (text), "a\0b\xef\xbf\xbd€\n", 10);
  noted = kept_json (&kept, "over");
  assert_non_null (strstr (json_string_value (noted) + 3, "\nover\n"));
  kept_fini (&kept);
}

static void
of_a_long_stream_head_and_tail_are_kept (void **state)
{
  struct kept kept = { 0 };
  auto_json json_t *text = NULL;
  const char *shown;
  char line[32];
  int i;

  (void) state;
  for (i = 0; i < 200000; i++)
    kept_add (&kept, line, (size_t) snprintf (line, sizeof line, "%d\n", i));
  text = kept_json (&kept, NULL);
  shown = json_string_value (text);
  assert_memory_equal (shown, "0\n1\n2\n", 6);
  assert_non_null (strstr (shown, "bytes are left out here]\n"));
  assert_string_equal (shown + strlen (shown) - 14, "199998\n199999\n");
  assert_true (json_string_length (text) < KEPT_HEAD + KEPT_TAIL + 64);
  assert_true (kept.room <= KEPT_HEAD + 2 * KEPT_TAIL);
  kept_fini (&kept);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (frames_come_in_any_pieces),
    cmocka_unit_test (what_has_another_form_is_left),
    cmocka_unit_test (nothing_counts_before_the_verdict),
    cmocka_unit_test (a_size_is_refused_before_the_bytes_come),
    cmocka_unit_test (names_of_artifacts_lead_nowhere),
    cmocka_unit_test (artifacts_are_counted_and_summed),
    cmocka_unit_test (a_stream_is_kept_as_text),
    cmocka_unit_test (of_a_long_stream_head_and_tail_are_kept),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
