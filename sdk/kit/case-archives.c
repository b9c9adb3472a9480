/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as tar files, out of a sandbox and into it; and tar files that no
 * sane program writes. */

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "case.h"

/* ---- transfers ----------------------------------------------------------- */

struct archive {
  struct kit_reply *reply;
  const char *sandbox, *path;
  const uint8_t *from;
  uint8_t *to;
  size_t size;
  int fds[2];
  int32_t code;
};

static void
export_work (struct kit *kit, void *data, size_t index)
{
  struct archive *archive = data;

  if (index == 0) {
    archive->code = kit_archive_export (kit_first (kit), archive->reply,
                                        archive->sandbox, archive->path,
                                        archive->fds[1], NULL);
    case_close (&archive->fds[1]);
  } else
    archive->to = kit_read_all (kit, archive->fds[0], 64 * CASE_MIB,
                                &archive->size);
}

static int32_t
export (struct kit *kit, struct kit_reply *reply, const char *sandbox,
        const char *path, uint8_t **bytes, size_t *size)
{
  struct archive archive = { .reply = reply, .sandbox = sandbox,
                             .path = path };

  kit_pipe (kit, archive.fds);
  kit_threads (kit, 2, export_work, &archive);
  *bytes = archive.to;
  *size = archive.size;
  return archive.code;
}

static void
import_work (struct kit *kit, void *data, size_t index)
{
  struct archive *archive = data;

  if (index == 0) {
    archive->code = kit_archive_import (kit_first (kit), archive->reply,
                                        archive->sandbox, archive->path,
                                        archive->fds[0], NULL);
    case_close (&archive->fds[0]);
  } else {
    (void) !coffer_write_all (archive->fds[1], archive->from, archive->size);
    case_close (&archive->fds[1]);
  }
}

static int32_t
import (struct kit *kit, struct kit_reply *reply, const char *sandbox,
        const char *path, const void *bytes, size_t size)
{
  struct archive archive = { .reply = reply, .sandbox = sandbox,
                             .path = path, .from = bytes, .size = size };

  kit_pipe (kit, archive.fds);
  kit_threads (kit, 2, import_work, &archive);
  return archive.code;
}

/* ---- tar files of the kit's own ------------------------------------------ */

#define BLOCK 512

struct entry {
  const char *name;
  char type;                    /* 0 file, 1 hard link, 2 link, 3 4 device … */
  unsigned mode;
  const char *link, *body;
};

static void
checksum_set (uint8_t header[BLOCK])
{
  unsigned sum = 0;

  memset (header + 148, ' ', 8);
  for (size_t i = 0; i < BLOCK; i++)
    sum += header[i];
  snprintf ((char *) header + 148, 8, "%06o", sum & 0777777);
}

static void
entry_add (struct coffer_buffer *tar, const struct entry *entry)
{
  static const uint8_t zeros[BLOCK];
  const size_t size = entry->body ? strlen (entry->body) : 0;
  uint8_t header[BLOCK] = { 0 };

  memcpy (header, entry->name, strnlen (entry->name, 100));
  snprintf ((char *) header + 100, 8, "%07o",
            entry->mode & 07777);
  snprintf ((char *) header + 108, 8, "%07o", 1000u);
  snprintf ((char *) header + 116, 8, "%07o", 1000u);
  snprintf ((char *) header + 124, 12, "%011o",
            (unsigned) size & 077777777);
  snprintf ((char *) header + 136, 12, "%011o", 1577934245u);
  header[156] = (uint8_t) entry->type;
  if (entry->link != NULL)
    memcpy (header + 157, entry->link, strnlen (entry->link, 100));
  memcpy (header + 257, "ustar\0" "00", 8);
  snprintf ((char *) header + 329, 8, "%07o", 1u);
  snprintf ((char *) header + 337, 8, "%07o", 3u);
  checksum_set (header);
  coffer_buffer_add (tar, header, BLOCK);
  coffer_buffer_add (tar, entry->body, size);
  coffer_buffer_add (tar, zeros, (BLOCK - size % BLOCK) % BLOCK);
}

/* Ends with an entry whose type is 0. */
static void
tar_make (struct coffer_buffer *tar, const struct entry *entries)
{
  static const uint8_t end[2 * BLOCK];

  for (; entries->type != '\0'; entries++)
    entry_add (tar, entries);
  coffer_buffer_add (tar, end, sizeof end);
}

/* ---- there and back ------------------------------------------------------ */

/* Every entry of a tree with its mode, kind, checksum and target. */
static char *
tree_shown (struct kit *kit, const char *sandbox, const char *path)
{
  return case_sh (kit, sandbox,
                  "cd %s && { find . ! -type l -exec stat -c '%%a %%F %%n' {} "
                  "+; find . -type f -exec cksum {} +; find . -type l -exec "
                  "readlink {} +; find . -type l; } | LC_ALL=C sort",
                  path);
}

static void
round_trip (struct kit *kit)
{
  const char *const from = kit_sandbox (kit), *const to = kit_sandbox (kit);
  const char *const word = kit_random_word (kit, 15);
  const char *const folder = kit_random_word (kit, 120);
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *before, *after;
  uint8_t *bytes;
  size_t size;

  case_sh (kit, from,
           "umask 022; mkdir -p t/a/b t/none t/%s/sub && cd t && "
           "yes %s | head -c 200001 > a/large && printf '\\000\\377' > a/b/x && "
           ": > a/empty && : > 'a/sp ace' && : > \"$(printf 'a/\\351\\n1')\" && "
           ": > %s/sub/deep && : > a/%s && chmod 600 a/large && "
           "chmod 755 a/empty && chmod 700 none && ln -s ../a/empty a/rel && "
           "ln -s none folder",
           folder, word, folder, kit_random_word (kit, 200));
  before = tree_shown (kit, from, "t");
  KIT_OK (kit, export (kit, &reply, from, "t", &bytes, &size), &reply,
          "archive_export");
  case_sh (kit, to, "mkdir u");
  KIT_OK (kit, import (kit, &reply, to, "u", bytes, size), &reply,
          "archive_import of what archive_export gave");
  after = tree_shown (kit, to, "u");
  case_same_bytes (kit, after, strlen (after), before, strlen (before),
                   "a tree that was exported and imported (modes, kinds, "
                   "names, checksums, targets)");
  kit_reply_reset (&reply);
}

/* The body of an entry whose name ends so, in a tar that is whole. */
static const uint8_t *
entry_find (struct kit *kit, const uint8_t *tar, size_t size, const char *name,
            size_t *body)
{
  const size_t n = strlen (name);
  const uint8_t *found = NULL;
  uint8_t copy[BLOCK];
  size_t at = 0, length;

  while (at + BLOCK <= size && tar[at] != '\0') {
    memcpy (copy, tar + at, BLOCK);
    checksum_set (copy);
    KIT_CHECK (kit, strtoul ((const char *) tar + at + 148, NULL, 8)
                      == strtoul ((char *) copy + 148, NULL, 8),
               "a header of what archive_export gave, at byte %zu, has a wrong "
               "checksum", at);
    length = strtoul ((const char *) tar + at + 124, NULL, 8);
    KIT_CHECK (kit, length <= size - at - BLOCK,
               "what archive_export gave ends in an entry");
    copy[100] = '\0';
    if (strlen ((char *) copy) >= n
        && strcmp ((char *) copy + strlen ((char *) copy) - n, name) == 0) {
      found = tar + at + BLOCK;
      *body = length;
    }
    at += BLOCK + (length + BLOCK - 1) / BLOCK * BLOCK;
  }
  KIT_CHECK (kit, at + BLOCK <= size, "what archive_export gave has no end");
  return found;
}

static void
exports (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const name = kit_random_word (kit, 20);
  const char *const body = kit_random_word (kit, 700);
  struct kit_reply reply = KIT_REPLY_INIT;
  const uint8_t *found;
  uint8_t *bytes;
  size_t size, length = 0;

  case_sh (kit, sandbox, "mkdir t; printf %s > t/%s", body, name);
  KIT_OK (kit, export (kit, &reply, sandbox, "t", &bytes, &size), &reply,
          "archive_export");
  found = entry_find (kit, bytes, size, name, &length);
  KIT_CHECK (kit, found != NULL,
             "archive_export of a folder with the file %s gave a tar of %zu "
             "bytes without it",
             name, size);
  case_same_bytes (kit, found, length, body, 700, "a file in the tar");
  kit_reply_reset (&reply);
}

static void
imports (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const char *const body = kit_random_word (kit, 600);
  const struct entry entries[] = {
    { "./", '5', 0755, NULL, NULL }, { "d/", '5', 0755, NULL, NULL },
    { "d/f", '0', 0640, NULL, body }, { "d/run", '0', 0755, NULL, "" },
    { "d/link", '2', 0777, "f", NULL }, { "empty/", '5', 0755, NULL, NULL },
    { "caf\xc3\xa9 \xff", '0', 0644, NULL, "x" }, { .type = '\0' }
  };
  coffer_autobuffer struct coffer_buffer tar = { 0 };
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *text, *wanted;

  tar_make (&tar, entries);
  case_sh (kit, sandbox, "mkdir u; : > u/there");
  KIT_OK (kit, import (kit, &reply, sandbox, "u", tar.data, tar.size), &reply,
          "archive_import");
  text = case_sh (kit, sandbox,
                  "cd u; cat d/f; echo; stat -c %%a d/f d/run; readlink d/link;"
                  " test -d empty && test -f there && cat caf*; echo; "
                  "ls -A | wc -l");
  wanted = kit_text (kit, "%s\n640\n755\nf\nx\n4\n", body);
  KIT_CHECK (kit, strcmp (text, wanted) == 0,
             "after archive_import \"%s\" was expected inside and \"%s\" came",
             case_shown (kit, wanted + 600, strlen (wanted + 600)),
             case_shown (kit, text + (strlen (text) > 600 ? 600 : 0), 60));
  kit_reply_reset (&reply);
}

/* ---- what is refused ----------------------------------------------------- */

static const struct entry good
  = { "good", '0', 0644, NULL, "a file that is as it should be" };

/* Each after one that is well, in a folder of its own. */
static void
refuse (struct kit *kit, const struct entry (*rows)[3], size_t n,
        const struct case_outside *outside)
{
  const char *const sandbox = kit_sandbox (kit);
  struct kit_reply reply = KIT_REPLY_INIT;

  for (size_t i = 0; i < n; i++) {
    coffer_autobuffer struct coffer_buffer tar = { 0 };
    const char *const folder = kit_text (kit, "u%zu", i);
    int32_t code;

    entry_add (&tar, &good);
    tar_make (&tar, rows[i]);
    case_sh (kit, sandbox, "mkdir %s", folder);
    code = import (kit, &reply, sandbox, folder, tar.data, tar.size);
    if (outside != NULL)
      case_outside_intact (kit, outside,
                           kit_text (kit, "archive_import of \"%s\"",
                                     rows[i][0].name));
    KIT_CHECK (kit, code != COFFER_OK,
               "archive_import of a tar with \"%s\" (type %c%s%s) was to be "
               "refused",
               case_shown (kit, rows[i][0].name, strlen (rows[i][0].name)),
               rows[i][0].type, rows[i][0].link ? " to " : "",
               rows[i][0].link ? rows[i][0].link : "");
  }
  kit_reply_reset (&reply);
}

static void
refuse_names (struct kit *kit)
{
  struct case_outside outside;
  const char *deep;

  case_outside (kit, &outside);
  deep = kit_text (kit, "../../../../../../../../..%s/new", outside.path);
  {
    const struct entry rows[][3] = {
      { { "../out", '0', 0644, NULL, "x" } },
      { { "a/../../out", '0', 0644, NULL, "x" } },
      { { deep, '0', 0644, NULL, "x" } },
      { { outside.file, '0', 0644, NULL, "x" } },
      { { "/out", '0', 0644, NULL, "x" } },
      { { "..", '5', 0755, NULL, NULL } },
      { { "", '0', 0644, NULL, "x" } },
    };

    refuse (kit, rows, sizeof rows / sizeof rows[0], &outside);
  }
}

static void
refuse_links (struct kit *kit)
{
  struct case_outside outside;

  case_outside (kit, &outside);
  {
    const struct entry rows[][3] = {
      { { "l", '2', 0777, outside.path, NULL },
        { "l/canary", '0', 0644, NULL, "x" } },
      { { "l", '2', 0777, "..", NULL }, { "l/out", '0', 0644, NULL, "x" } },
      { { "h", '1', 0644, outside.file, NULL } },
      { { "h", '1', 0644, "../../../../../../etc/passwd", NULL } },
      { { "h", '1', 0644, "absent", NULL } },
      { { "l", '2', 0777, outside.file, NULL },
        { "h", '1', 0644, "l/x", NULL } },
    };

    refuse (kit, rows, sizeof rows / sizeof rows[0], &outside);
  }
}

static void
refuse_kinds (struct kit *kit)
{
  static const struct entry rows[][3] = {
    { { "null", '3', 0666, NULL, NULL } },
    { { "disk", '4', 0666, NULL, NULL } },
  };

  refuse (kit, rows, sizeof rows / sizeof rows[0], NULL);
}

static void
refuse_twice (struct kit *kit)
{
  static const struct entry rows[][3] = {
    { { "good", '0', 0644, NULL, "again" } },
    { { "good", '5', 0755, NULL, NULL } },
    { { "./good", '0', 0644, NULL, "again" } },
  };

  refuse (kit, rows, sizeof rows / sizeof rows[0], NULL);
}

static void
refuse_damage (struct kit *kit)
{
  static const char *const what[]
    = { "that ends in a body", "that ends in a header", "with a wrong checksum",
        "that is none", "with a size that is none" };
  const char *const sandbox = kit_sandbox (kit);
  const struct entry entries[]
    = { good, { "second", '0', 0644, NULL, kit_random_word (kit, 2000) },
        { .type = '\0' } };
  struct kit_reply reply = KIT_REPLY_INIT;

  for (size_t i = 0; i < sizeof what / sizeof what[0]; i++) {
    coffer_autobuffer struct coffer_buffer tar = { 0 };
    uint8_t *second;

    tar_make (&tar, entries);
    second = (uint8_t *) tar.data + 2 * BLOCK;
    tar.size = i == 0 ? 4 * BLOCK + 100 : i == 1 ? 2 * BLOCK + 100 : tar.size;
    if (i == 2)
      second[20] ^= 1;
    if (i == 3)
      memcpy (tar.data, kit_random_bytes (kit, 4 * BLOCK), 4 * BLOCK);
    if (i == 4) {
      memcpy (second + 124, "9z!77777777", 12);
      checksum_set (second);
    }
    KIT_CHECK (kit, import (kit, &reply, sandbox, ".", tar.data, tar.size)
                      != COFFER_OK,
               "archive_import of a tar %s was to be refused", what[i]);
  }
  kit_reply_reset (&reply);
}

/* Everything before the fault was well, and the folder was not empty. */
static void
whole_or_none (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  const struct entry entries[]
    = { good, { "d/", '5', 0755, NULL, NULL },
        { "d/there", '0', 0644, NULL, "new" },
        { "there", '0', 0644, NULL, "new" },
        { "last", '0', 0644, NULL, kit_random_word (kit, 3000) },
        { .type = '\0' } };
  coffer_autobuffer struct coffer_buffer tar = { 0 };
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *text;

  tar_make (&tar, entries);
  case_sh (kit, sandbox, "printf old > there; mkdir d");
  KIT_CHECK (kit, import (kit, &reply, sandbox, ".", tar.data,
                          tar.size - 6 * BLOCK)
                    != COFFER_OK,
             "archive_import of a tar that ends in a body was to be refused");
  text = case_sh (kit, sandbox, "find . | LC_ALL=C sort; cat there");
  KIT_CHECK (kit, strcmp (text, ".\n./d\n./there\nold") == 0,
             "a tar was refused at its end: the folder was to be as before, "
             "and holds \"%s\"",
             case_shown (kit, text, strlen (text)));
  kit_reply_reset (&reply);
}

static void
missing (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit), *const gone = kit_new_id (kit);
  coffer_autobuffer struct coffer_buffer tar = { 0 };
  const struct entry entries[] = { good, { .type = '\0' } };
  struct kit_reply reply = KIT_REPLY_INIT;
  uint8_t *bytes;
  size_t size;

  tar_make (&tar, entries);
  KIT_CODE (kit, export (kit, &reply, sandbox, "no", &bytes, &size), &reply,
            COFFER_NOT_FOUND, "archive_export of no folder");
  KIT_CODE (kit, export (kit, &reply, gone, ".", &bytes, &size), &reply,
            COFFER_NOT_FOUND, "archive_export in no sandbox");
  KIT_CODE (kit, import (kit, &reply, gone, ".", tar.data, tar.size), &reply,
            COFFER_NOT_FOUND, "archive_import in no sandbox");
  kit_reply_reset (&reply);
}

const struct kit_case kit_archive_cases[] = {
  { "archives.round-trip", "exec archives",
    "A tree that is exported and imported is the same: names of any bytes, "
    "modes, links, empty folders.",
    round_trip },
  { "archives.export", "exec archives",
    "What is exported is a tar file with the bytes of the files.", exports },
  { "archives.import", "exec archives",
    "What a tar file has is there after it was imported, beside what was.",
    imports },
  { "archives.refuse-names", "exec archives",
    "A tar with absolute names, or with \"..\", is refused and reaches nothing "
    "outside.",
    refuse_names },
  { "archives.refuse-links", "exec archives",
    "A tar that goes through its own links, or whose hard links lead out of "
    "it, is refused and reaches nothing outside.",
    refuse_links },
  { "archives.refuse-devices", "exec archives", "A tar with devices is refused.",
    refuse_kinds },
  { "archives.refuse-twice", "exec archives",
    "A tar that names one thing twice is refused.", refuse_twice },
  { "archives.refuse-damage", "archives",
    "A tar that is cut off or damaged is refused.", refuse_damage },
  { "archives.whole-or-none", "exec archives",
    "A tar that is refused at its end has changed nothing.", whole_or_none },
  { "archives.missing", "archives",
    "A folder or a sandbox that is not there is NOT_FOUND.", missing },
  { NULL }
};
