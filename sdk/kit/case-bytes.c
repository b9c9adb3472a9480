/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and files, as cases compare them: see case.h. */

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "case.h"

/* ---- bytes --------------------------------------------------------------- */

/* The checksum of POSIX's cksum, which every system has: a polynomial over the
 * bytes and then over their number. */
static uint32_t
crc_add (const uint32_t *table, uint32_t crc, uint8_t byte)
{
  return crc << 8 ^ table[(crc >> 24 ^ byte) & 0xff];
}

static void
crc_table (uint32_t table[256])
{
  uint32_t crc;

  for (uint32_t i = 0; i < 256; i++) {
    crc = i << 24;
    for (int bit = 0; bit < 8; bit++)
      crc = crc & 0x80000000u ? crc << 1 ^ 0x04c11db7u : crc << 1;
    table[i] = crc;
  }
}

char *
case_cksum (struct kit *kit, const void *bytes, size_t size)
{
  const uint8_t *at = bytes;
  uint32_t table[256], crc = 0;

  crc_table (table);
  for (size_t i = 0; i < size; i++)
    crc = crc_add (table, crc, at[i]);
  for (size_t n = size; n > 0; n >>= 8)
    crc = crc_add (table, crc, (uint8_t) n);
  return kit_text (kit, "%" PRIu32 " %zu", ~crc, size);
}

char *
case_cksum_inside (struct kit *kit, const char *sandbox, const char *path)
{
  char *text = case_sh (kit, sandbox, "cksum < '%s'", path);

  text[strcspn (text, "\n")] = '\0';
  return text;
}

const char *
case_shown (struct kit *kit, const void *bytes, size_t size)
{
  coffer_autobuffer struct coffer_buffer text = { 0 };
  const size_t most = 300;

  coffer_buffer_add_escaped (&text, bytes, size < most ? size : most);
  return kit_text (kit, "%s%s", text.data ? text.data : "",
                   size > most ? "…" : "");
}

void
case_same_bytes (struct kit *kit, const void *came, size_t came_size,
                 const void *wanted, size_t wanted_size, const char *what)
{
  const uint8_t *a = came, *b = wanted;
  size_t at = 0;

  while (at < came_size && at < wanted_size && a[at] == b[at])
    at++;
  if (at == came_size && at == wanted_size)
    return;
  kit_fail (kit, "%s: %zu bytes were expected and %zu came; from byte %zu on "
            "\"%s\" was expected and \"%s\" came",
            what, wanted_size, came_size, at,
            case_shown (kit, b + at,
                        wanted_size - at < 40 ? wanted_size - at : 40),
            case_shown (kit, a + at, came_size - at < 40 ? came_size - at
                                                         : 40));
}

/* ---- transfers ----------------------------------------------------------- */

/* One thread makes the call and closes its end of the pipe, the other serves
 * that pipe. */
struct transfer {
  struct kit_instance *instance;
  struct kit_reply *reply;
  const char *sandbox, *path;
  const struct coffer_file_write_opts *write_opts;
  const struct coffer_file_read_opts *read_opts;
  const uint8_t *from;
  size_t size;
  int fds[2];
  int32_t code;
  uint8_t *to;
};

static void
put_work (struct kit *kit, void *data, size_t index)
{
  struct transfer *transfer = data;

  (void) kit;
  if (index == 0) {
    transfer->code = kit_file_write (transfer->instance, transfer->reply,
                                     transfer->sandbox, transfer->path,
                                     transfer->fds[0], transfer->write_opts);
    case_close (&transfer->fds[0]);
    return;
  }
  (void) !coffer_write_all (transfer->fds[1], transfer->from, transfer->size);
  case_close (&transfer->fds[1]);
}

int32_t
case_put (struct kit *kit, struct kit_reply *reply, const char *sandbox,
          const char *path, const void *bytes, size_t size,
          const struct coffer_file_write_opts *opts)
{
  struct transfer transfer = { .instance = kit_first (kit), .reply = reply,
                               .sandbox = sandbox, .path = path,
                               .write_opts = opts, .from = bytes,
                               .size = size };

  kit_pipe (kit, transfer.fds);
  kit_threads (kit, 2, put_work, &transfer);
  return transfer.code;
}

static void
get_work (struct kit *kit, void *data, size_t index)
{
  struct transfer *transfer = data;

  if (index == 0) {
    transfer->code = kit_file_read (transfer->instance, transfer->reply,
                                    transfer->sandbox, transfer->path,
                                    transfer->fds[1], transfer->read_opts);
    case_close (&transfer->fds[1]);
    return;
  }
  transfer->to = kit_read_all (kit, transfer->fds[0], 128 * CASE_MIB,
                               &transfer->size);
  case_close (&transfer->fds[0]);
}

int32_t
case_get (struct kit *kit, struct kit_reply *reply, const char *sandbox,
          const char *path, const struct coffer_file_read_opts *opts,
          uint8_t **bytes, size_t *size)
{
  struct transfer transfer = { .instance = kit_first (kit), .reply = reply,
                               .sandbox = sandbox, .path = path,
                               .read_opts = opts };

  kit_pipe (kit, transfer.fds);
  kit_threads (kit, 2, get_work, &transfer);
  *bytes = transfer.to;
  *size = transfer.size;
  return transfer.code;
}

void
case_put_text (struct kit *kit, const char *sandbox, const char *path,
               const char *text)
{
  struct kit_reply reply = KIT_REPLY_INIT;

  KIT_OK (kit,
          case_put (kit, &reply, sandbox, path, text, strlen (text), NULL),
          &reply, "file_write of %s", path);
  kit_reply_reset (&reply);
}

/* ---- lists --------------------------------------------------------------- */

static int
compare_lines (const void *a, const void *b)
{
  return strcmp (*(const char *const *) a, *(const char *const *) b);
}

char *
case_names (struct kit *kit, const char *sandbox, const char *path,
            uint32_t depth)
{
  struct coffer_file_list_opts opts = { .size = sizeof opts, .depth = depth };
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_file_stat *stat;
  coffer_autobuffer struct coffer_buffer text = { 0 };
  const char **lines;
  size_t n;

  KIT_OK (kit,
          kit_file_list (kit_first (kit), &reply, sandbox, path,
                         depth ? &opts : NULL),
          &reply, "file_list of %s", path);
  lines = kit_memory (kit, (reply.n_records + 1) * sizeof *lines);
  for (n = 0; (stat = kit_reply_file_stat (&reply, n)) != NULL; n++)
    lines[n] = kit_text (kit, "%s %s\n", stat->kind ? stat->kind : "?",
                         stat->path ? stat->path : "?");
  qsort (lines, n, sizeof *lines, compare_lines);
  for (size_t i = 0; i < n; i++)
    coffer_buffer_add_string (&text, lines[i]);
  kit_reply_reset (&reply);
  return kit_text (kit, "%s", text.data ? text.data : "");
}

/* ---- a folder outside ---------------------------------------------------- */

void
case_outside (struct kit *kit, struct case_outside *outside)
{
  int fd;

  outside->path = kit_folder (kit);
  outside->file = kit_text (kit, "%s/canary", outside->path);
  outside->secret = kit_random_word (kit, 40);
  fd = open (outside->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  KIT_CHECK (kit, fd >= 0 && coffer_write_all (fd, outside->secret, 40) == 40,
             "%s: %s", outside->file, strerror (errno));
  close (fd);
  /* Whoever could reach it may read and write it. */
  KIT_CHECK (kit, chmod (outside->file, 0666) == 0
                    && chmod (outside->path, 0777) == 0,
             "%s: %s", outside->path, strerror (errno));
}

static int
outside_count (const char *path)
{
  DIR *dir = opendir (path);
  int n = 0;

  while (dir != NULL && readdir (dir) != NULL)
    n++;
  if (dir != NULL)
    closedir (dir);
  return n;
}

void
case_outside_intact (struct kit *kit, const struct case_outside *outside,
                     const char *after)
{
  coffer_autoclose int fd = open (outside->file, O_RDONLY | O_CLOEXEC);
  char bytes[64] = "";
  const char *fault = NULL;

  if (fd < 0)
    fault = "is gone";
  else if (coffer_read_all (fd, bytes, sizeof bytes - 1) != 40
           || strcmp (bytes, outside->secret) != 0)
    fault = "was written to";
  else if (outside_count (outside->path) != 3)
    fault = "has company";
  if (fault == NULL)
    return;
  kit_fail (kit, "after %s a file of this machine, outside of every sandbox, "
            "%s",
            after, fault);
}

/* ---- all texts of a reply ------------------------------------------------ */

static int
has (const char *text, const char *word)
{
  return text != NULL && strstr (text, word) != NULL;
}

static int
any_has (const char *const *texts, const char *word)
{
  for (; texts != NULL && *texts != NULL; texts++)
    if (has (*texts, word))
      return 1;
  return 0;
}

#define HAS_str(field) || has (record->field, word)
#define HAS_text(field) || has (record->field, word)
#define HAS_strv(field) || any_has (record->field, word)
#define HAS_i32(field)
#define HAS_i64(field)
#define HAS_u32(field)
#define HAS_u64(field)
#define HAS_f64(field)
#define HAS_flag(field)
#define HAS_fd(field)
#define FIELD_HAS(type, name, since, doc) HAS_##type (name)
#define RFIELD_HAS(type, record, name, since, doc)

static int
record_has (uint32_t id, const void *data, const char *word)
{
  switch (id) {
#define RECORD_HAS(number, name, since, FIELDS, doc)                          \
  case COFFER_REC_##name: {                                                   \
    const struct coffer_##name *record = data;                                \
    return record == NULL FIELDS (FIELD_HAS, RFIELD_HAS);                     \
  }
    COFFER_RECORDS (RECORD_HAS)
#undef RECORD_HAS
  default:
    return 0;
  }
}

int
case_reply_has (const struct kit_reply *reply, const char *word)
{
  for (size_t i = 0; i < reply->n_records; i++)
    if (record_has (reply->records[i].id, reply->records[i].data, word))
      return 1;
  return has (reply->message, word) || has (reply->details, word)
         || has (reply->log, word);
}
