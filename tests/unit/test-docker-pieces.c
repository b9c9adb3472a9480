/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that become files of an image and bytes again, and images that are not as
 * they were made. */

#define _GNU_SOURCE

#include "harness.h"

#include <fcntl.h>

#include <coffer/buffer.h>
#include <coffer/provider.h>

#include "pieces.h"

static int32_t
gather (void *data, const void *bytes, size_t size)
{
  struct coffer_buffer *out = data;

  coffer_buffer_add (out, bytes, size);
  return COFFER_OK;
}

static void
write_out (struct coffer_buffer *tar, const char *bytes, size_t size,
           size_t step)
{
  struct pieces_writer writer;

  assert_int_equal (pieces_begin (&writer, gather, tar), COFFER_OK);
  for (size_t at = 0; at < size; at += step)
    assert_int_equal (pieces_add (&writer, bytes + at,
                                  step < size - at ? step : size - at),
                      COFFER_OK);
  assert_int_equal (pieces_end (&writer), COFFER_OK);
  pieces_free (&writer);
}

/* 1: it was whole. */
static int
read_back (const struct coffer_buffer *tar, size_t step,
           struct coffer_buffer *out)
{
  struct pieces_reader reader;
  int32_t code = COFFER_OK;

  pieces_open (&reader, gather, out);
  for (size_t at = 0; at < tar->size && code == COFFER_OK; at += step)
    code = pieces_read (&reader, tar->data + at,
                        step < tar->size - at ? step : tar->size - at);
  return code == COFFER_OK && reader.has_ended;
}

static char *
noise (size_t size)
{
  char *bytes = malloc (size + 1);
  uint32_t state = 7;

  assert_non_null (bytes);
  for (size_t i = 0; i < size; i++) {
    state = state * 1664525 + 1013904223;
    bytes[i] = (char) (state >> 24);
  }
  return bytes;
}

static void
test_there_and_back (void **state)
{
  static const size_t sizes[] = {0, 1, 511, 512, PIECE_BYTES - 1, PIECE_BYTES,
                                 PIECE_BYTES + 1, 3 * PIECE_BYTES + 4321};
  static const size_t steps[] = {1000, 65536, 10 << 20};

  (void) state;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    for (size_t k = 0; k < 3; k++) {
      coffer_autobuffer struct coffer_buffer tar = {0}, out = {0};
      char *bytes = noise (sizes[i]);

      write_out (&tar, bytes, sizes[i], steps[k]);
      assert_int_equal (tar.size % 512, 0);
      assert_true (read_back (&tar, steps[2 - k], &out));
      assert_int_equal (out.size, sizes[i]);
      assert_true (sizes[i] == 0 || memcmp (out.data, bytes, sizes[i]) == 0);
      free (bytes);
    }
}

/* What tar programs make of it is what the engines are given. */
static void
test_is_a_tar (void **state)
{
  coffer_autobuffer struct coffer_buffer tar = {0};
  char *bytes = noise (PIECE_BYTES + 5);
  const char *path = harness_path (*state, "pieces.tar");
  char line[256], command[128], seen[512] = "";
  FILE *list;
  int fd;

  write_out (&tar, bytes, PIECE_BYTES + 5, 4096);
  free (bytes);
  fd = open (path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  assert_int_equal (write (fd, tar.data, tar.size), tar.size);
  close (fd);
  snprintf (command, sizeof command, "tar -tf %s", path);
  list = popen (command, "re");
  assert_non_null (list);
  while (fgets (line, sizeof line, list))
    strncat (seen, line, sizeof seen - strlen (seen) - 1);
  assert_int_equal (pclose (list), 0);
  assert_string_equal (seen, "coffer-snapshot/\ncoffer-snapshot/000000\n"
                             "coffer-snapshot/000001\ncoffer-snapshot/end\n");
}

/* Each byte that is another, and each end that comes too early, is found. */
static void
test_spoilt (void **state)
{
  coffer_autobuffer struct coffer_buffer tar = {0};
  char *bytes = noise (700);
  size_t ends = 0;

  (void) state;
  write_out (&tar, bytes, 700, 700);
  free (bytes);
  for (size_t at = 512; at < tar.size - 1024; at++) {
    coffer_autobuffer struct coffer_buffer out = {0};
    int is_padding = (at >= 1024 + 700 && at < 2048) || at >= 2560 + 69;
    int is_beside = at % 512 == 148 + 7 && (at < 1024 || at / 512 == 4);

    tar.data[at] ^= 1;
    if (!is_padding && !is_beside)      /* the sum, which ends before that */
      assert_false (read_back (&tar, 512, &out));
    tar.data[at] ^= 1;
  }
  for (size_t size = tar.size; size > 0; size -= 4) {
    coffer_autobuffer struct coffer_buffer out = {0};
    struct coffer_buffer part = {.data = tar.data, .size = size};

    ends += (size_t) read_back (&part, 100, &out);
  }
  assert_true (ends < (1024 + 512) / 4 + 1);
}

static void
move (char *tar, size_t to, size_t from)
{
  char kept[1024];

  memcpy (kept, tar + to, sizeof kept);
  memcpy (tar + to, tar + from, sizeof kept);
  memcpy (tar + from, kept, sizeof kept);
}

/* Files in another order, twice, left out, and others among them. */
static void
test_other_files (void **state)
{
  coffer_autobuffer struct coffer_buffer tar = {0}, two = {0}, out = {0};
  coffer_autobuffer struct coffer_buffer without = {0};

  (void) state;
  write_out (&tar, "x", 1, 1);
  write_out (&two, "x", 1, 1);
  move (two.data, 512, 512 + 1024);     /* the end before its piece */
  assert_false (read_back (&two, 512, &out));
  coffer_buffer_add (&without, tar.data, 512);
  coffer_buffer_add (&without, tar.data + 512 + 1024,
                     tar.size - 512 - 1024);
  assert_false (read_back (&without, 512, &out));
  coffer_buffer_clear (&without);
  coffer_buffer_add (&without, tar.data, 512 + 1024);
  coffer_buffer_add (&without, tar.data + 512, tar.size - 512);
  assert_false (read_back (&without, 512, &out));
  tar.data[156 + 512] = '2';            /* a link, though with a wrong sum */
  assert_false (read_back (&tar, 512, &out));
}

/* ---- images that nobody here has written -------------------------------- */

struct entry {
  const char *name;
  char type;
  const char *size;             /* of the header, as it stands there; NULL: right */
  const char *body;             /* NULL: zeros */
  size_t bytes;                 /* of the body; 0: as long as that is */
};

static void
put_sum (char *header)
{
  unsigned total = 0;
  char sum[16];

  memset (header + 148, ' ', 8);
  for (size_t i = 0; i < 512; i++)
    total += (unsigned char) header[i];
  snprintf (sum, sizeof sum, "%06o", total);
  memcpy (header + 148, sum, 7);
}

static void
add_entry (struct coffer_buffer *tar, const struct entry *entry)
{
  size_t bytes = entry->body && !entry->bytes ? strlen (entry->body)
                                              : entry->bytes;
  char header[512] = "", size[16];
  static const char zeros[512];

  strncpy (header, entry->name, 100);
  snprintf (size, sizeof size, "%011zo", bytes);
  memcpy (header + 124, entry->size ? entry->size : size, 12);
  header[156] = entry->type;
  memcpy (header + 257, "ustar\0" "00", 8);
  put_sum (header);
  coffer_buffer_add (tar, header, sizeof header);
  for (size_t at = 0; at < bytes; at += 512) {
    size_t n = bytes - at < 512 ? bytes - at : 512;

    coffer_buffer_add (tar, entry->body ? entry->body + at : zeros, n);
    coffer_buffer_add (tar, zeros, 512 - n);
  }
}

/* Of entries, the last with an empty name. */
static int
is_taken (const struct entry *entries)
{
  coffer_autobuffer struct coffer_buffer tar = {0}, out = {0};
  static const char zeros[1024];

  for (; entries->name; entries++)
    add_entry (&tar, entries);
  coffer_buffer_add (&tar, zeros, sizeof zeros);
  return read_back (&tar, 1000, &out);
}

#define FOLDER {PIECES_FOLDER "/", '5', NULL, NULL, 0}
#define FIRST {PIECES_FOLDER "/000000", '0', NULL, "x", 0}
#define SHA_X "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
#define SHA_XX "5dde896887f6754c9b15bfe3a441ae4806df2fde94001311e08bf110622e0bbe"
#define END(text) {PIECES_FOLDER "/end", '0', NULL, (text), 0}
#define END_X END ("1 1 " SHA_X "\n")

static void
test_taken (void **state)
{
  static const struct entry plain[] = {FOLDER, FIRST, END_X, {0}};
  static const struct entry told[] = {
    FOLDER, {"a", 'x', NULL, "y", 0}, FIRST, {"b", 'x', NULL, NULL, 65536},
    END_X, {0}
  };

  (void) state;
  assert_true (is_taken (plain));
  assert_true (is_taken (told));
}

/* Each has one thing that no snapshot has. */
static void
test_hostile (void **state)
{
  static const struct entry cases[][6] = {
    {FOLDER, {PIECES_FOLDER "/../000000", '0', NULL, "x", 0}, END_X},
    {FOLDER, {"../" PIECES_FOLDER "/000000", '0', NULL, "x", 0}, END_X},
    {FOLDER, {"/" PIECES_FOLDER "/000000", '0', NULL, "x", 0}, END_X},
    {FOLDER, {"/etc/000000", '0', NULL, "x", 0}, END_X},
    {FOLDER, {"000000", '0', NULL, "x", 0}, END_X},
    {FOLDER, {PIECES_FOLDER "/d/000000", '0', NULL, "x", 0}, END_X},
    {FOLDER, {PIECES_FOLDER "/0", '0', NULL, "x", 0}, END_X},
    {FOLDER, FIRST, FIRST, END ("1 2 " SHA_XX "\n")},
    {FOLDER, FIRST, {PIECES_FOLDER "/000001", '0', NULL, "x", 0},
     END ("1 2 " SHA_XX "\n")},
    {FOLDER, FIRST, {PIECES_FOLDER "/000002", '0', NULL, "x", 0},
     END ("1 2 " SHA_XX "\n")},
    {FOLDER, FIRST, {PIECES_FOLDER "/000001", '0', NULL, NULL, 0}, END_X},
    {FOLDER, {PIECES_FOLDER "/000000", '0', NULL, NULL, PIECE_BYTES + 1},
     END_X},
    {FOLDER, {PIECES_FOLDER "/000000", '0', "-0000000001", "x", 0}, END_X},
    {FOLDER, {PIECES_FOLDER "/000000", '0', "77777777777", "x", 0}, END_X},
    {FOLDER, {PIECES_FOLDER "/000000", '0', "0000000008 ", "x", 0}, END_X},
    {FOLDER, {PIECES_FOLDER "/000000", '0', "\xff\xff\xff\xff\xff\xff\xff"
              "\xff\xff\xff\xff\xff", "x", 0}, END_X},
    {FOLDER, {PIECES_FOLDER "/000000", '2', NULL, NULL, 0}, END_X},
    {FOLDER, {PIECES_FOLDER "/000000", '1', NULL, NULL, 0}, END_X},
    {FOLDER, {PIECES_FOLDER "/000000", '3', NULL, NULL, 0}, END_X},
    {FOLDER, {PIECES_FOLDER "/000000", 'S', NULL, "x", 0}, END_X},
    {FOLDER, {PIECES_FOLDER "/x", '5', NULL, "x", 0}, FIRST, END_X},
    {FOLDER, {"big", 'x', NULL, NULL, 65537}, FIRST, END_X},
    {FOLDER, FIRST},
    {FOLDER, FIRST, {PIECES_FOLDER "/end", '0', NULL, NULL, 0}},
    {FOLDER, FIRST, {PIECES_FOLDER "/end", '0', NULL, NULL, 129}},
    {FOLDER, FIRST, END ("1 1 " SHA_XX "\n")},
    {FOLDER, FIRST, END ("1 2 " SHA_X "\n")},
    {FOLDER, FIRST, END ("1 -1 " SHA_X "\n")},
    {FOLDER, FIRST, END ("2 1 " SHA_X "\n")},
    {FOLDER, FIRST, END ("1 99999999999999999999 " SHA_X "\n")},
    {FOLDER, FIRST, END ("1 1 " SHA_X)},
    {FOLDER, FIRST, END_X, END_X},
    {FOLDER, FIRST, END_X, {"more", '5', NULL, NULL, 0}},
  };

  (void) state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    if (is_taken (cases[i]))
      fail_msg ("case %zu was taken", i);
}

/* There could be no end to what is left out. */
static void
test_endless (void **state)
{
  static const struct entry other = {"other", 'x', NULL, "y", 0};
  struct pieces_reader reader;
  coffer_autobuffer struct coffer_buffer out = {0}, entry = {0};
  static const char zeros[4096];
  size_t n = 0;

  (void) state;
  add_entry (&entry, &other);
  pieces_open (&reader, gather, &out);
  while (n < 100 && pieces_read (&reader, entry.data, entry.size) == COFFER_OK)
    n++;
  assert_in_range (n, 1, 16);
  pieces_open (&reader, gather, &out);
  for (n = 0; n < 100 && pieces_read (&reader, zeros, sizeof zeros)
              == COFFER_OK; n++)
    ;
  assert_in_range (n, 3, 16);
}

/* Behind the end an engine has whatever it likes: none of it is taken for more of
 * the end, for which there is no room. */
static void
test_behind_the_end (void **state)
{
  static const struct entry other = {"other", 'x', NULL, NULL, 4096};
  coffer_autobuffer struct coffer_buffer tar = {0}, out = {0};

  (void) state;
  write_out (&tar, "x", 1, 1);
  add_entry (&tar, &other);             /* behind the tar's end */
  assert_false (read_back (&tar, 512, &out));
  assert_false (read_back (&tar, 5000, &out));
  coffer_buffer_clear (&tar);
  write_out (&tar, "x", 1, 1);
  tar.size -= 1024;
  assert_true (read_back (&tar, 512, &out));
  add_entry (&tar, &other);
  assert_false (read_back (&tar, 512, &out));
  assert_false (read_back (&tar, 5000, &out));
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_there_and_back), cmocka_unit_test (test_is_a_tar),
    cmocka_unit_test (test_spoilt), cmocka_unit_test (test_other_files),
    cmocka_unit_test (test_taken), cmocka_unit_test (test_hostile),
    cmocka_unit_test (test_endless), cmocka_unit_test (test_behind_the_end),
  };

  return cmocka_run_group_tests_name ("docker-pieces", tests,
                                      harness_folder_new,
                                      harness_folder_free);
}
