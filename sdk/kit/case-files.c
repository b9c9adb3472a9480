/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox from outside: bytes, replacing, modes, ranges, kinds.
 * What the provider says is compared with what a command inside finds. */

#include <poll.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "case.h"

/* ---- bytes --------------------------------------------------------------- */

static void
empty (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_file_stat *stat;
  uint8_t *bytes;
  size_t size;

  KIT_OK (kit, case_put (kit, &reply, sandbox, "empty", "", 0, NULL), &reply,
          "file_write of no bytes");
  stat = kit_reply_file_stat (&reply, 0);
  KIT_CHECK (kit, stat != NULL && stat->size_bytes == 0
                    && stat->moved_bytes == 0,
             "file_write of no bytes was to emit a file_stat with no size and "
             "nothing moved");
  case_sh (kit, sandbox, "test -f empty && ! test -s empty");
  KIT_OK (kit, case_get (kit, &reply, sandbox, "empty", NULL, &bytes, &size),
          &reply, "file_read of an empty file");
  KIT_CHECK (kit, size == 0, "%zu bytes of an empty file were read", size);
  kit_reply_reset (&reply);
}

static void
write_bytes (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const size_t size = 200000 + kit_random_below (kit, 100000);
  const uint8_t *const bytes = kit_random_bytes (kit, size);
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_file_stat *stat;
  const char *came;

  KIT_OK (kit, case_put (kit, &reply, sandbox, "bytes", bytes, size, NULL),
          &reply, "file_write of %zu bytes", size);
  stat = kit_reply_file_stat (&reply, 0);
  KIT_CHECK (kit, stat != NULL && stat->moved_bytes == size
                    && stat->size_bytes == size,
             "file_write of %zu bytes said that %" PRIu64 " were moved and the "
             "file has %" PRIu64,
             size, stat ? stat->moved_bytes : 0, stat ? stat->size_bytes : 0);
  came = case_cksum_inside (kit, sandbox, "bytes");
  KIT_CHECK (kit, strcmp (came, case_cksum (kit, bytes, size)) == 0,
             "a file of random bytes was written: its checksum and size inside "
             "were to be %s, and are %s",
             case_cksum (kit, bytes, size), came);
  kit_reply_reset (&reply);
}

static void
read_bytes (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const word = kit_random_word (kit, 15);
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_file_stat *stat;
  const char *wanted;
  uint8_t *bytes;
  size_t size;

  case_sh (kit, sandbox, "yes %s | head -c 250001 > made; "
           "printf '\\000\\001\\377\\n' >> made", word);
  wanted = case_cksum_inside (kit, sandbox, "made");
  KIT_OK (kit, case_get (kit, &reply, sandbox, "made", NULL, &bytes, &size),
          &reply, "file_read of a file that was made inside");
  KIT_CHECK (kit, strcmp (wanted, case_cksum (kit, bytes, size)) == 0,
             "a file with the checksum and size %s inside was read as %s",
             wanted, case_cksum (kit, bytes, size));
  stat = kit_reply_file_stat (&reply, 0);
  KIT_CHECK (kit, stat != NULL && stat->moved_bytes == size,
             "file_read gave %zu bytes and said %" PRIu64, size,
             stat ? stat->moved_bytes : 0);
  kit_reply_reset (&reply);
}

static void
large (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const size_t size = 64 * CASE_MIB + 1, block = CASE_MIB;
  uint8_t *const bytes = kit_memory (kit, size);
  struct kit_reply reply = KIT_REPLY_INIT;
  uint8_t *came;
  const char *text;
  size_t came_size;

  memcpy (bytes, kit_random_bytes (kit, block), block);
  for (size_t at = block; at < size; at++)
    bytes[at] = (uint8_t) (bytes[at - block] + 1);
  KIT_OK (kit, case_put (kit, &reply, sandbox, "large", bytes, size, NULL),
          &reply, "file_write of 64 MiB");
  text = case_cksum_inside (kit, sandbox, "large");
  KIT_CHECK (kit, strcmp (text, case_cksum (kit, bytes, size)) == 0,
             "a file of 64 MiB was written: its checksum and size inside were "
             "to be %s, and are %s",
             case_cksum (kit, bytes, size), text);
  KIT_OK (kit,
          case_get (kit, &reply, sandbox, "large", NULL, &came, &came_size),
          &reply, "file_read of 64 MiB");
  case_same_bytes (kit, came, came_size, bytes, size, "64 MiB that were read");
  kit_reply_reset (&reply);
}

static void
ranges (struct kit *kit)
{
  static const struct {
    uint64_t offset, length;
  } asked[] = { { 0, 1 }, { 1, 0 }, { 500, 100 }, { 999, 0 }, { 999, 100 },
                { 0, 5000 }, { 1000 }, { 5000, 10 },
                { UINT64_C (1) << 40, 0 } };
  const char *const sandbox = kit_sandbox (kit);
  const char *const text = kit_random_word (kit, 1000);
  struct kit_reply reply = KIT_REPLY_INIT;

  case_put_text (kit, sandbox, "range", text);
  for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
    const struct coffer_file_read_opts opts
      = { .size = sizeof opts, .offset_bytes = asked[i].offset,
          .length_bytes = asked[i].length };
    const size_t from = asked[i].offset < 1000 ? asked[i].offset : 1000;
    size_t wanted = 1000 - from, size;
    uint8_t *bytes;

    if (asked[i].length != 0 && asked[i].length < wanted)
      wanted = asked[i].length;
    KIT_OK (kit,
            case_get (kit, &reply, sandbox, "range", &opts, &bytes, &size),
            &reply, "file_read of %" PRIu64 " bytes from %" PRIu64,
            asked[i].length, asked[i].offset);
    case_same_bytes (kit, bytes, size, text + from, wanted,
                     kit_text (kit, "%" PRIu64 " bytes from %" PRIu64
                               " of a file of 1000",
                               asked[i].length, asked[i].offset));
  }
  kit_reply_reset (&reply);
}

/* ---- replacing ----------------------------------------------------------- */

/* A command reads all the while. */
static void
replace_whole (struct kit *kit)
{
  const size_t size = 300000;
  const char *const sandbox = kit_sandbox (kit);
  const uint8_t *const bodies[]
    = { kit_random_bytes (kit, size), kit_random_bytes (kit, size) };
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *sums[2];
  struct case_run run;
  char *text, *line, *rest;

  for (int i = 0; i < 2; i++)
    sums[i] = case_cksum (kit, bodies[i], size);
  KIT_OK (kit, case_put (kit, &reply, sandbox, "f", bodies[0], size, NULL),
          &reply, "file_write");
  case_start (kit, sandbox,
              "echo began; while [ ! -e stop ]; do cksum < f || exit 1; done",
              0, NULL, &run);
  case_until (&run, "began");
  for (int i = 1; i <= 40; i++)
    KIT_OK (kit,
            case_put (kit, &reply, sandbox, "f", bodies[i % 2], size, NULL),
            &reply, "file_write over a file");
  case_put_text (kit, sandbox, "stop", "");
  text = case_rest (&run, NULL);
  case_expect_code (kit, case_wait (&run), 0,
                    "a command that reads a file which is replaced");
  for (line = strtok_r (text, "\n", &rest); line != NULL;
       line = strtok_r (NULL, "\n", &rest))
    KIT_CHECK (kit, strcmp (line, "began") == 0 || strcmp (line, sums[0]) == 0
                      || strcmp (line, sums[1]) == 0,
               "a file was replaced by another and back: a command saw neither "
               "(%s) nor (%s) but (%s)",
               sums[0], sums[1], line);
  kit_reply_reset (&reply);
}

struct cut {
  struct kit_reply reply;
  const char *sandbox, *bytes;
  int in[2];
  int32_t code;
};

static void
cut_work (struct kit *kit, void *data, size_t index)
{
  struct cut *cut = data;

  if (index == 0) {
    cut->code = kit_file_write (kit_first (kit), &cut->reply, cut->sandbox,
                                "f", cut->in[0], NULL);
    return;
  }
  (void) !coffer_write_all (cut->in[1], cut->bytes, 50000);
  /* So that some of it has most likely been taken. */
  poll (NULL, 0, 30);
  kit_cancel (cut->reply.cancel_fd);
}

static void
write_cancelled (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const old = kit_random_word (kit, 1000);
  struct cut cut = { .reply = KIT_REPLY_INIT, .sandbox = sandbox };
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *names;
  uint8_t *bytes;
  size_t size;

  case_put_text (kit, sandbox, "f", old);
  cut.bytes = kit_random_word (kit, 50000);
  kit_pipe (kit, cut.in);
  cut.reply.cancel_fd = kit_cancel_new (kit);
  kit_threads (kit, 2, cut_work, &cut);
  KIT_CHECK (kit, cut.code == COFFER_CANCELLED,
             "file_write was cancelled in its middle, and was to say "
             "CANCELLED: %s",
             kit_shown (kit, &cut.reply));
  kit_reply_reset (&cut.reply);
  KIT_OK (kit, case_get (kit, &reply, sandbox, "f", NULL, &bytes, &size),
          &reply, "file_read after a file_write that was cancelled");
  case_same_bytes (kit, bytes, size, old, 1000,
                   "a file after a file_write of it that was cancelled");
  names = case_sh (kit, sandbox, "ls -A");
  KIT_CHECK (kit, strcmp (names, "f\n") == 0,
             "a file_write that was cancelled left something behind: \"%s\"",
             case_shown (kit, names, strlen (names)));
  kit_reply_reset (&reply);
}

static void
exclusive (struct kit *kit)
{
  const struct coffer_file_write_opts opts
    = { .size = sizeof opts, .exclusive = 1 };
  const char *const sandbox = kit_sandbox (kit);
  const char *const old = kit_random_word (kit, 20);
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *text;

  KIT_OK (kit, case_put (kit, &reply, sandbox, "f", old, 20, &opts), &reply,
          "exclusive file_write of a new file");
  KIT_CODE (kit, case_put (kit, &reply, sandbox, "f", "new", 3, &opts), &reply,
            COFFER_EXISTS, "exclusive file_write over a file");
  text = case_sh (kit, sandbox, "cat f; ls -A");
  KIT_CHECK (kit, strcmp (text, kit_text (kit, "%sf\n", old)) == 0,
             "after an exclusive file_write over a file its bytes and the "
             "folder were to be as before: \"%s\"",
             case_shown (kit, text, strlen (text)));
  kit_reply_reset (&reply);
}

static void
parents (struct kit *kit)
{
  const struct coffer_file_write_opts opts
    = { .size = sizeof opts, .parents = 1 };
  const char *const sandbox = kit_sandbox (kit);
  const char *const text = kit_random_word (kit, 20);
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *came;

  KIT_CODE (kit, case_put (kit, &reply, sandbox, "a/b/f", text, 20, NULL),
            &reply, COFFER_NOT_FOUND, "file_write below a missing folder");
  KIT_OK (kit, case_put (kit, &reply, sandbox, "a/b/f", text, 20, &opts),
          &reply, "file_write that makes its folders");
  came = case_sh (kit, sandbox, "cat a/b/f");
  KIT_CHECK (kit, strcmp (came, text) == 0,
             "a file in folders that were made for it holds \"%s\", not "
             "\"%s\"",
             came, text);
  kit_reply_reset (&reply);
}

/* ---- kinds and modes ----------------------------------------------------- */

static void
modes (struct kit *kit)
{
  /* That others may write is what a worker may refuse. */
  static const struct {
    uint32_t mode;
    const char *shown;
  } rows[] = { { 0, "-rw-r--r--" }, { 0600, "-rw-------" },
               { 0755, "-rwxr-xr-x" }, { 0640, "-rw-r-----" },
               { 0711, "-rwx--x--x" }, { 0444, "-r--r--r--" } };
  const char *const sandbox = kit_sandbox (kit);
  struct kit_reply reply = KIT_REPLY_INIT;

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct coffer_file_write_opts opts
      = { .size = sizeof opts, .mode = rows[i].mode };
    const char *const name = kit_text (kit, "f%zu", i);
    const char *text;

    KIT_OK (kit, case_put (kit, &reply, sandbox, name, "x", 1, &opts), &reply,
            "file_write with mode %o", rows[i].mode);
    text = case_sh (kit, sandbox, "ls -l %s | cut -c 1-10", name);
    KIT_CHECK (kit, strncmp (text, rows[i].shown, 10) == 0,
               "a file was written with mode %o: ls shows it as %s",
               rows[i].mode, text);
  }
  kit_reply_reset (&reply);
}

/* Whoever works inside can work with it. */
static void
owned (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *text;

  case_put_text (kit, sandbox, "f", "one\n");
  KIT_OK (kit, kit_file_mkdir (kit_first (kit), &reply, sandbox, "d", NULL),
          &reply, "file_mkdir");
  text = case_sh (kit, sandbox,
                  "echo two >> f && cat f && : > d/g && "
                  "{ chmod 600 f 2> err || test -O f; } && rm -f err && "
                  "mv f d/f && rm -r d && ls -A");
  KIT_CHECK (kit, strcmp (text, "one\ntwo\n") == 0,
             "a command was to add to a file that was written and to remove "
             "it: \"%s\"",
             case_shown (kit, text, strlen (text)));
  kit_reply_reset (&reply);
}

static void
kinds (struct kit *kit)
{
  static const struct {
    const char *path, *kind, *target;
    uint32_t mode;
    uint64_t size;
  } rows[] = { { "file", "file", NULL, 0640, 7 },
               { "folder", "directory", NULL, 0711 },
               { "link", "symlink", "a b/no\nwhere" },
               { "pipe", "fifo", NULL, 0600, 0 } };
  const char *const sandbox = kit_sandbox (kit);
  struct kit_reply reply = KIT_REPLY_INIT;

  case_sh (kit, sandbox,
           "umask 027; printf 1234567 > file; umask 066; mkdir folder; "
           "ln -s 'a b/no\nwhere' link; umask 077; mkfifo pipe; "
           "TZ=UTC touch -t 202001020304.05 file");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct coffer_file_stat *stat;

    KIT_OK (kit,
            kit_file_stat (kit_first (kit), &reply, sandbox, rows[i].path,
                           NULL),
            &reply, "file_stat of %s", rows[i].path);
    stat = kit_reply_file_stat (&reply, 0);
    KIT_CHECK (kit, stat != NULL && stat->kind != NULL
                      && strcmp (stat->kind, rows[i].kind) == 0,
               "file_stat was to call it a %s: %s", rows[i].kind,
               stat && stat->kind ? stat->kind : "nothing");
    KIT_CHECK (kit, rows[i].mode == 0 || stat->mode == rows[i].mode,
               "file_stat of a %s with mode %o said %o", rows[i].kind,
               rows[i].mode, stat->mode);
    KIT_CHECK (kit, rows[i].size == 0
                      || (stat->size_bytes == rows[i].size
                          && stat->modified_ns / 1000000000 == 1577934245),
               "file_stat of a file of %" PRIu64 " bytes of 1577934245 said %"
               PRIu64 " bytes of %" PRId64,
               rows[i].size, stat->size_bytes, stat->modified_ns / 1000000000);
    KIT_CHECK (kit, rows[i].target == NULL
                      ? stat->target == NULL
                      : stat->target != NULL
                          && strcmp (stat->target, rows[i].target) == 0,
               "file_stat of a %s named the target \"%s\"", rows[i].kind,
               stat->target ? stat->target : "");
  }
  kit_reply_reset (&reply);
}

const struct kit_case kit_file_cases[] = {
  { "files.empty", "exec files", "A file without bytes is a file.", empty },
  { "files.write", "exec files",
    "What is written is, byte by byte, what a command inside reads.",
    write_bytes },
  { "files.read", "exec files",
    "What is read is, byte by byte, what a command inside wrote.", read_bytes },
  { "files.large", "exec files", "64 MiB go in and come out.", large, 60000 },
  { "files.range", "files",
    "A part of a file is that part, and beyond its end there is nothing.",
    ranges },
  { "files.replace-whole", "exec files",
    "Who reads a file that is being replaced sees the old one or the new one.",
    replace_whole, 60000 },
  { "files.write-cancelled", "exec files",
    "A file_write that is cancelled leaves the old file, and nothing else.",
    write_cancelled },
  { "files.exclusive", "exec files",
    "An exclusive file_write takes no name that is there.", exclusive },
  { "files.parents", "exec files",
    "Missing folders are made when that is asked for, and else NOT_FOUND.",
    parents },
  { "files.mode", "exec files",
    "A new file has the mode that was asked for, 0644 where none was.", modes },
  { "files.owned", "exec files",
    "What was written belongs to those who work inside.", owned },
  { "files.kinds", "exec files",
    "file_stat tells files, folders, links and pipes apart, and follows no "
    "link.",
    kinds },
  { NULL }
};
