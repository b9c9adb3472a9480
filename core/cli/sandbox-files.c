/* SPDX-License-Identifier: Apache-2.0 */
/* `coffer sandbox upload`, `download` and `ls`.
 *
 * A download appears under its name when it is whole and has been compared;
 * before that it is a temporary file beside it. */

#include <config.h>

#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/work.h"

#define COPY_TIMEOUT_MS (60 * 60 * 1000)

struct copy {
  struct work_copy work;
  struct output_progress progress;
};

static int
copy_begin (struct cli *cli, struct copy *copy, const char *label,
            struct error **err)
{
  uint64_t timeout_ms = COPY_TIMEOUT_MS;

  if (cli_duration (cli, "timeout", PROFILE_TIMEOUT, &timeout_ms, err) < 0)
    return -1;
  copy->work.id = cli->args[0];
  output_progress_begin (&copy->progress, cli, label);
  return cli_call (timeout_ms, &copy->progress, &copy->work.call, err);
}

/* "PATH: 12.0 KiB, sha256 …" */
static int
copy_report (struct cli *cli, json_t *take_result, FILE *stream,
             struct error **err)
{
  auto_json json_t *result = take_result;
  uint64_t size = 0;
  auto_free char *path = output_shown (json_object_get (result, "path"));
  auto_free char *hash = output_shown (json_object_get (result, "sha256"));
  auto_free char *bytes = NULL;

  if (json_get_u64 (json_object_get (result, "size_bytes"), &size) == 0)
    bytes = text_format_size (size);
  if (cli->json)
    return output_json (steal (result), err);
  fprintf (stream, "%s: %s, sha256 %s\n", path ? path : "",
           bytes ? bytes : "", hash ? hash : "");
  return output_finish (err);
}

/* The part after the last slash, or NULL when there is none. */
static const char *
last_component (const char *path)
{
  const char *slash = strrchr (path, '/');
  const char *name = slash ? slash + 1 : path;

  return *name && strcmp (name, ".") && strcmp (name, "..") ? name : NULL;
}

/* ---- upload ------------------------------------------------------------- */

static int
open_local (const char *path, int *out, uint32_t *mode, struct error **err)
{
  struct stat st;
  coffer_autoclose int fd = -1;

  if (!strcmp (path, "-")) {
    *mode = 0644;
    *out = fcntl (STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    return *out < 0 ? error_set (err, E_IO, errno, "standard input") : 0;
  }
  /* A fifo that nobody writes to yet is waited for with the rest. */
  fd = open (path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0)
    return error_set (err, errno == ENOENT ? E_NOT_FOUND : E_IO, errno, "%s",
                      path);
  if (fstat (fd, &st) < 0)
    return error_set (err, E_IO, errno, "%s", path);
  if (S_ISDIR (st.st_mode)) {
    error_set (err, E_FILE_KIND, 0, "%s is a folder", path);
    error_hint (err, "send it as an archive: tar c %s | coffer sandbox exec "
                "-i ID -- tar x", path);
    return -1;
  }
  *mode = st.st_mode & 0777;
  *out = coffer_fd_steal (&fd);
  return 0;
}

static int
read_mode (const struct cli *cli, uint32_t *mode, struct error **err)
{
  const char *value = cli_value (cli, "mode");
  char *end;
  unsigned long parsed;

  if (!value)
    return 0;
  parsed = strtoul (value, &end, 8);
  if (*end || *value < '0' || *value > '7' || parsed == 0 || parsed > 0777)
    return error_set (err, E_INVALID, 0,
                      "--mode %s is not an octal mode from 1 to 777", value);
  *mode = (uint32_t) parsed;
  return 0;
}

/* Why a file could not be put there.  Who names a folder means a name in it, as
 * with cp, and is told so: what is there is not asked for before each file. */
static void
hint_place (struct cli *cli, struct copy *copy, const char *name,
            struct error **err)
{
  const char *path = copy->work.path;
  const size_t length = strlen (path);
  const char *slash = length && path[length - 1] == '/' ? "" : "/";
  auto_error struct error *ignored = NULL;
  auto_json json_t *list = NULL;

  if (!*err)
    return;
  if ((*err)->number == E_FILE_NOT_FOUND && !cli_flag (cli, "parents"))
    error_hint (err, "-p makes the folders above it");
  else if (((*err)->number == E_FILE_DENIED || (*err)->number == E_FILE_KIND)
           && name
           && work_ls (cli, &copy->work, 1, &list, &ignored) == 0)
    error_hint (err, "if %s is a folder inside, write %s%s%s", path, path,
                slash, name);
}

static int
upload_run (struct cli *cli, struct error **err)
{
  const char *local = cli->args[1], *path = cli->args[2];
  coffer_autoclose int fd = -1;
  struct copy copy = { 0 };
  json_t *result = NULL;
  uint32_t mode = 0;
  int r;

  if (!path && !(path = last_component (local)))
    path = "";
  if (!*path || !strcmp (path, "-"))
    return error_set (err, E_USAGE, 0,
                      "say under which PATH %s shall be inside", local);
  if (open_local (local, &fd, &mode, err) < 0
      || read_mode (cli, &mode, err) < 0
      || copy_begin (cli, &copy, local, err) < 0)
    return -1;
  copy.work.local = fd;
  copy.work.path = path;
  copy.work.mode = mode;
  copy.work.parents = cli_flag (cli, "parents");
  r = work_upload (cli, &copy.work, &result, err);
  output_progress_end (&copy.progress);
  if (r < 0)
    hint_place (cli, &copy, last_component (local), err);
  return r < 0 ? -1 : copy_report (cli, result, stdout, err);
}

/* ---- download ----------------------------------------------------------- */

/* DIR/NAME when `local` is a folder. */
static char *
local_name (const char *local, const char *path)
{
  struct stat st;
  const char *name = last_component (path);

  if (local && (stat (local, &st) < 0 || !S_ISDIR (st.st_mode)))
    return strdup (local);
  if (!name)
    return NULL;
  return text_printf ("%s%s%s", local ? local : "", local ? "/" : "", name);
}

static int
download_to (struct cli *cli, struct copy *copy, int fd, FILE *report,
             struct error **err)
{
  json_t *result = NULL;
  int r;

  copy->work.local = fd;
  copy->work.path = cli->args[1];
  r = work_download (cli, &copy->work, &result, err);
  output_progress_end (&copy->progress);
  return r < 0 ? -1 : copy_report (cli, result, report, err);
}

static int
download_to_file (struct cli *cli, struct copy *copy, const char *local,
                  struct error **err)
{
  auto_free char *folder = strdup (local);
  coffer_autoclose int dir = -1;
  struct coffer_new_file file = { .dir = -1, .fd = -1 };
  const char *name = last_component (local);
  int r = -1;

  if (!folder || !name)
    return error_set (err, E_INVALID, 0, "%s is not the name of a file",
                      local);
  dir = open (dirname (folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0 || coffer_new_file_begin (&file, dir, name, 0644, 0) < 0)
    return error_set (err, E_IO, errno, "%s", local);
  if (download_to (cli, copy, file.fd, stdout, err) == 0) {
    r = coffer_new_file_commit (&file, 0, 0);
    if (r < 0)
      error_set (err, E_IO, errno, "%s", local);
  }
  coffer_new_file_abort (&file);
  return r;
}

static int
download_run (struct cli *cli, struct error **err)
{
  auto_free char *local = NULL;
  coffer_autoclose int fd = -1;
  struct copy copy = { 0 };
  struct stat st;

  if (copy_begin (cli, &copy, cli->args[1], err) < 0)
    return -1;
  if (cli->n_args > 2 && !strcmp (cli->args[2], "-")) {
    if (cli->json)
      return error_set (err, E_USAGE, 0,
                        "the file and --json cannot both be on stdout");
    return download_to (cli, &copy, STDOUT_FILENO, stderr, err);
  }
  local = local_name (cli->args[2], cli->args[1]);
  if (!local)
    return error_set (err, E_USAGE, 0, "say as which file %s shall be kept",
                      cli->args[1]);
  if (stat (local, &st) == 0 && !S_ISREG (st.st_mode)) {
    fd = open (local, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
      return error_set (err, E_IO, errno, "%s", local);
    return download_to (cli, &copy, fd, stdout, err);
  }
  return download_to_file (cli, &copy, local, err);
}

/* ---- ls ----------------------------------------------------------------- */

static void
format_mode (uint32_t mode, const char *kind, char out[11])
{
  static const struct { const char *kind; char letter; } kinds[] = {
    { "file", '-' }, { "directory", 'd' }, { "symlink", 'l' },
    { "fifo", 'p' }, { "socket", 's' }, { "device", 'b' }
  };
  size_t i;

  out[0] = '?';
  for (i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp (kinds[i].kind, kind))
      out[0] = kinds[i].letter;
  for (i = 0; i < 9; i++)
    out[1 + i] = mode & (1u << (8 - i)) ? "rwx"[i % 3] : '-';
  if (mode & 04000)
    out[3] = mode & 0100 ? 's' : 'S';
  if (mode & 02000)
    out[6] = mode & 0010 ? 's' : 'S';
  if (mode & 01000)
    out[9] = mode & 0001 ? 't' : 'T';
  out[10] = 0;
}

static void
add_file_row (struct output_table *table, const json_t *item)
{
  const json_t *target = json_object_get (item, "target");
  auto_free char *path = output_shown (json_object_get (item, "path"));
  auto_free char *link = target ? output_shown (target) : NULL;
  auto_free char *name = text_printf ("%s%s%s", path ? path : "",
                                      link ? " -> " : "", link ? link : "");
  auto_free char *size = output_shown (json_object_get (item, "size_bytes"));
  auto_free char *time = text_format_time (
    json_integer_value (json_object_get (item, "modified_ns")));
  char mode[11];
  const char *cells[] = { mode, size, time, name };

  format_mode (
    (uint32_t) json_integer_value (json_object_get (item, "mode")),
    json_string_value (json_object_get (item, "kind")), mode);
  output_table_row (table, cells);
}

static int
compare_paths (const void *a, const void *b)
{
  json_t *const *x = a, *const *y = b;
  const char *left = json_string_value (json_object_get (*x, "path"));
  const char *right = json_string_value (json_object_get (*y, "path"));

  /* A path that is not UTF-8 is an object: those come first. */
  if (!left || !right)
    return !right - !left;
  return strcmp (left, right);
}

/* A folder's own order is nobody's. */
static json_t *
sort_by_path (json_t *take_list)
{
  auto_json json_t *list = take_list;
  size_t i, n = json_array_size (list);
  auto_free json_t **items = calloc (n ? n : 1, sizeof *items);
  json_t *sorted = json_array ();

  for (i = 0; items && i < n; i++)
    items[i] = json_array_get (list, i);
  if (items)
    qsort (items, n, sizeof *items, compare_paths);
  for (i = 0; items && i < n; i++)
    if (json_array_append (sorted, items[i]) < 0)
      break;
  if (i == n && items)
    return sorted;
  json_decref (sorted);
  return NULL;
}

static int
ls_run (struct cli *cli, struct error **err)
{
  static const char *const heads[] = { "MODE", "SIZE", "MODIFIED", "NAME" };
  auto_output_table struct output_table *table = NULL;
  auto_json json_t *list = NULL;
  struct copy copy = { 0 };
  uint64_t depth = 1;
  json_t *item;
  size_t i;

  copy.work.path = cli->n_args > 1 ? cli->args[1] : ".";
  if (cli_number (cli, "depth", 1, 64, &depth, err) < 0
      || copy_begin (cli, &copy, "listing", err) < 0
      || work_ls (cli, &copy.work, (uint32_t) depth, &list, err) < 0)
    return -1;
  output_progress_end (&copy.progress);
  list = sort_by_path (steal (list));
  if (!list)
    return error_set (err, E_NO_MEMORY, 0, "listing");
  if (cli->json)
    return output_json (steal (list), err);
  table = output_table_new (4, heads);
  json_array_foreach (list, i, item)
    add_file_row (table, item);
  return output_table_print (table, cli, err);
}

/* ---- the rows ----------------------------------------------------------- */

#define COPY_OPTIONS                                                          \
  { "timeout", 0, "TIME", 0, "give up after TIME; 1h unless said" }

static const struct cli_option upload_options[] = {
  { "mode", 0, "OCTAL", 0,
    "permission bits inside; LOCAL's unless said" },
  { "parents", 'p', NULL, 0, "make missing folders" },
  COPY_OPTIONS,
  { NULL }
};
static const struct cli_option download_options[] = { COPY_OPTIONS, { NULL } };
static const struct cli_option ls_options[] = {
  { "depth", 0, "NUMBER", 0, "levels of folders to go down; 1 unless said" },
  COPY_OPTIONS,
  { NULL }
};

const struct cli_command sandbox_file_commands[] = {
  { "sandbox upload", "ID LOCAL|- [PATH]", "copy a file into a sandbox",
    upload_options, 2, 3, -1, COMMAND_DAEMON, upload_run },
  { "sandbox download", "ID PATH [LOCAL|-]", "copy a file out of a sandbox",
    download_options, 2, 3, -1, COMMAND_DAEMON, download_run },
  { "sandbox ls", "ID [PATH]", "list a folder of a sandbox", ls_options, 1, 2,
    -1, COMMAND_DAEMON, ls_run },
  { NULL }
};
