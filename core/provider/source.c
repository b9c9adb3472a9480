/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: folders, archives, addresses. */

#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/text.h"
#include "provider/manifest.h"
#include "provider/source.h"

void
source_fini (struct source *source)
{
  free (source->told.kind);
  free (source->told.location);
  free (source->told.ref);
  free (source->told.commit);
  free (source->told.subdir);
  free (source->address);
  *source = (struct source){ 0 };
}

/* -- words ----------------------------------------------------------------- */

static int
starts (const char *s, const char *with)
{
  return strncasecmp (s, with, strlen (with)) == 0;
}

static int
ends (const char *s, const char *with)
{
  const size_t a = strlen (s), b = strlen (with);

  return a > b && strcmp (s + a - b, with) == 0;
}

/* Below 0x21, and what would end a word or begin another somewhere. */
static int
is_plain (const char *s, const char *without)
{
  for (; *s; s++)
    if ((unsigned char) *s <= ' ' || *s == 0x7f || strchr (without, *s))
      return 0;
  return 1;
}

static int
is_commit (const char *ref)
{
  const size_t n = strspn (ref, "0123456789abcdef");

  return (n == 40 || n == 64) && ref[n] == '\0';
}

/* As git allows them, and none that git could take for an option. */
static int
check_ref (const char *ref, struct error **err)
{
  if (*ref && strlen (ref) < 256 && is_plain (ref, "~^:?*[\\")
      && ref[0] != '-' && ref[0] != '/' && ref[0] != '+'
      && !strstr (ref, "..") && !strstr (ref, "@{"))
    return 0;
  return error_set (err, E_INVALID, 0,
                    "--ref must be a branch, a tag or a full commit id");
}

/* A folder below another one. */
static int
check_subdir (const char *subdir, struct error **err)
{
  const char *at = subdir;
  size_t n;
  int good = *subdir && subdir[0] != '/' && strlen (subdir) < 1024;

  for (; good && *at; at += n + (at[n] == '/')) {
    n = strcspn (at, "/");
    good = n > 0 && at[0] != '.' && at[0] != '-' && at[0] != ':';
    for (size_t i = 0; good && i < n; i++)
      good = (unsigned char) at[i] >= ' ' && at[i] != 0x7f;
  }
  if (good)
    return 0;
  return error_set (err, E_INVALID, 0,
                    "--subdir must name a folder inside of the source");
}

/* Credentials would end in the receipt, in logs and in `ps`. */
static int
check_address (const char *address, struct error **err)
{
  auto_free char *clean = receipt_location (address);

  if (clean == NULL)
    return error_set (err, E_NO_MEMORY, 0, "the source");
  if (strcmp (clean, address) != 0) {
    error_set (err, E_INVALID, 0, "%s: an address with a user's name or a"
               " password in it is refused", clean);
    error_hint (err, "fetch it yourself and install the folder or archive");
    return -1;
  }
  if (!is_plain (address, "\"'`<>\\^{|}") || strlen (address) > 2048)
    return error_set (err, E_INVALID, 0, "this is not a usable address");
  return 0;
}

/* Of http://: only this machine, where nobody listens in between. */
static int
is_loopback (const char *host)
{
  static const char *const names[] = { "127.0.0.1", "[::1]", "localhost" };
  size_t i, n;

  for (i = 0; i < 3; i++) {
    n = strlen (names[i]);
    if (strncmp (host, names[i], n) == 0
        && (host[n] == ':' || host[n] == '/' || host[n] == '\0'))
      return 1;
  }
  return 0;
}

/* -- kinds ----------------------------------------------------------------- */

static int
fail_options (const char *kind, const char *option, struct error **err)
{
  return error_set (err, E_USAGE, 0, "%s does not go with %s", option, kind);
}

static int
take (struct source *out, const char *kind, const char *location,
      const char *address, struct error **err)
{
  out->told.kind = strdup (kind);
  out->told.location = receipt_location (location);
  out->address = strdup (address);
  if (!out->told.kind || !out->told.location || !out->address)
    return error_set (err, E_NO_MEMORY, 0, "the source");
  return 0;
}

static int
parse_git (const struct source_words *words, struct source *out,
           struct error **err)
{
  const char *address = words->source;
  const char *ref = words->ref ? words->ref : "HEAD";

  if (starts (address, "git+"))
    address += 4;
  if (words->sha256)
    return fail_options ("a git source", "--sha256", err);
  if (check_ref (ref, err) < 0)
    return -1;
  if (starts (address, "https://") || starts (address, "http://")) {
    if (check_address (address, err) < 0)
      return -1;
    if (starts (address, "http://") && !is_loopback (address + 7))
      return error_set (err, E_INVALID, 0, "%s: git is asked by https:, not"
                        " by http:", address);
  } else if (!starts (address, "file:///"))
    return error_set (err, E_INVALID, 0, "a git source is git+https:, or"
                      " git+file: with a path");
  if (take (out, "git", words->source, address, err) < 0)
    return -1;
  out->told.ref = strdup (ref);
  out->pinned = is_commit (ref);
  return out->told.ref ? 0 : error_set (err, E_NO_MEMORY, 0, "the source");
}

static int
parse_url (const struct source_words *words, struct source *out,
           struct error **err)
{
  if (words->ref)
    return fail_options ("an https: source", "--ref", err);
  if (!starts (words->source, "https://"))
    return error_set (err, E_INVALID, 0, "%.*s: is not taken: a source is a"
                      " folder, an archive, https: or git+https:",
                      (int) strcspn (words->source, ":"), words->source);
  if (check_address (words->source, err) < 0)
    return -1;
  out->pinned = words->sha256 != NULL;
  return take (out, "url", words->source, words->source, err);
}

/* The path that a receipt keeps, so that `upgrade` finds it from anywhere. */
static int
parse_path (const struct source_words *words, struct source *out,
            struct error **err)
{
  auto_free char *path = realpath (words->source, NULL);
  struct stat st;
  int folder;

  if (path == NULL || stat (path, &st) < 0) {
    error_set (err, errno == ENOENT ? E_NOT_FOUND : E_IO, errno, "open %s",
               words->source);
    error_hint (err, "a source is a folder, an archive, https: or git+https:");
    return -1;
  }
  folder = S_ISDIR (st.st_mode);
  if (!folder && !S_ISREG (st.st_mode))
    return error_set (err, E_INVALID, 0, "%s is neither a folder nor an"
                      " archive", words->source);
  if (!folder && ends (path, ".yaml")) {
    error_set (err, E_INVALID, 0, "%s is a manifest, not an archive",
               words->source);
    error_hint (err, "name its folder: coffer provider install %.*s",
                (int) (strrchr (path, '/') - path), path);
    return -1;
  }
  if (words->ref)
    return fail_options (folder ? "a folder" : "an archive", "--ref", err);
  if (folder && words->sha256)
    return fail_options ("a folder", "--sha256", err);
  out->pinned = words->sha256 != NULL;
  return take (out, folder ? "folder" : "archive", path, path, err);
}

/* SCHEME: of at least two letters, as no path that is meant begins. */
static int
has_scheme (const char *source)
{
  size_t n = strspn (source, "abcdefghijklmnopqrstuvwxyz"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");

  return n > 1 && source[n] == ':' && isalpha ((unsigned char) source[0]);
}

static int
parse_kind (const struct source_words *words, struct source *out,
            struct error **err)
{
  const char *source = words->source;

  if (starts (source, "git+") || (has_scheme (source) && ends (source, ".git")))
    return parse_git (words, out, err);
  if (has_scheme (source))
    return parse_url (words, out, err);
  return parse_path (words, out, err);
}

int
source_parse (const struct source_words *words, struct source *out,
              struct error **err)
{
  auto_source struct source source = { 0 };

  if (words->sha256 && !sha256_is_hex (words->sha256))
    return error_set (err, E_USAGE, 0,
                      "--sha256 takes 64 hexadecimal digits in lower case");
  if (words->subdir && check_subdir (words->subdir, err) < 0)
    return -1;
  if (parse_kind (words, &source, err) < 0)
    return -1;
  if (words->sha256)
    memcpy (source.told.sha256, words->sha256, SHA256_HEX_SIZE);
  if (words->subdir) {
    source.told.subdir = strdup (words->subdir);
    if (source.told.subdir == NULL)
      return error_set (err, E_NO_MEMORY, 0, "the source");
  }
  *out = source;
  source = (struct source){ 0 };
  return 0;
}

/* -- getting it ------------------------------------------------------------ */

int
source_unpack (const struct stage *stage, int fd,
               const struct helper_watch *watch, int *folder,
               struct error **err)
{
  static const char *const arguments[] = {
    "unpack-package", "entries=4096", "bytes=1073741824",
    "file_bytes=268435456", NULL
  };
  auto_helper struct helper helper = { .report = -1 };
  coffer_autoclose int tree = stage_folder (stage, "tree", err);
  auto_json json_t *report = NULL;
  const struct helper_program program = {
    .name = "coffer-archive", .arguments = arguments, .in = fd, .out = -1,
    .folder = tree, .number = E_ARCHIVE
  };

  if (tree < 0 || helper_start (stage->place, &program, &helper, err) < 0
      || helper_finish (&helper, watch, -1, 0, &report, err) < 0)
    return -1;
  *folder = coffer_fd_steal (&tree);
  return 0;
}

static int
hash_file (int fd, char sha256[SHA256_HEX_SIZE], struct error **err)
{
  coffer_unfilled char buffer[65536];
  SHA2_CTX hash;
  int64_t size = 0;
  ssize_t n;

  sha256_begin (&hash);
  while ((n = coffer_read_all (fd, buffer, sizeof buffer)) > 0
         && (size += n) <= SOURCE_MAX_BYTES)
    sha256_add (&hash, buffer, (size_t) n);
  if (n < 0 || lseek (fd, 0, SEEK_SET) < 0)
    return error_set (err, E_IO, errno, "read the archive");
  if (n > 0)
    return error_set (err, E_ARCHIVE, 0, "it is larger than %lld MiB",
                      (long long) SOURCE_MAX_BYTES >> 20);
  sha256_end (&hash, sha256);
  return 0;
}

/* What was fetched, or lies there, against what was given. */
static int
check_hash (struct source *source, const char *found, struct error **err)
{
  if (source->told.sha256[0] && strcmp (source->told.sha256, found) != 0) {
    error_set (err, E_INTEGRITY, 0, "%s is not what --sha256 says",
               source->told.location);
    error_detail (err, "given_sha256", json_string (source->told.sha256));
    error_detail (err, "found_sha256", json_string (found));
    error_hint (err, "it has %s: ask whoever gave you the other", found);
    return -1;
  }
  memcpy (source->told.sha256, found, SHA256_HEX_SIZE);
  return 0;
}

/* Into the stage, where nobody changes it between hashing and unpacking. */
static int
copy_archive (const struct stage *stage, const char *path, struct error **err)
{
  coffer_autoclose int from = -1, to = -1;
  uint64_t copied;

  from = open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  to = openat (stage->dir, "archive", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
               0600);
  if (from < 0 || to < 0
      || coffer_copy (from, to, SOURCE_MAX_BYTES + 1,
                      coffer_now_ns () + SOURCE_SECONDS * INT64_C (1000000000),
                      -1, &copied) < 0
      || lseek (to, 0, SEEK_SET) < 0)
    return error_set (err, E_IO, errno, "read %s", path);
  return coffer_fd_steal (&to);
}

/* What is in the stage's file is what is hashed and unpacked. */
static int
take_archive (struct source *source, const struct stage *stage, int fd,
              const struct helper_watch *watch, int *folder,
              struct error **err)
{
  char found[SHA256_HEX_SIZE];

  if (hash_file (fd, found, err) < 0 || check_hash (source, found, err) < 0)
    return -1;
  return source_unpack (stage, fd, watch, folder, err);
}

static int
acquire_archive (struct source *source, const struct stage *stage,
                 const struct helper_watch *watch, int *folder,
                 struct error **err)
{
  coffer_autoclose int fd = copy_archive (stage, source->address, err);

  return fd < 0 ? -1 : take_archive (source, stage, fd, watch, folder, err);
}

static int
acquire_url (struct source *source, const struct stage *stage,
             const struct helper_watch *watch, int *folder, struct error **err)
{
  coffer_autoclose int fd
    = source_fetch (stage, source->address, watch, err);

  return fd < 0 ? -1 : take_archive (source, stage, fd, watch, folder, err);
}

static int
acquire_folder (const struct source *source, int *folder, struct error **err)
{
  *folder = open (source->address, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return *folder < 0 ? error_set (err, E_IO, errno, "open %s", source->address)
                     : 0;
}

static int
acquire (struct source *source, const struct stage *stage,
         const struct helper_watch *watch, int *folder, struct error **err)
{
  const char *kind = source->told.kind;

  if (strcmp (kind, "folder") == 0)
    return acquire_folder (source, folder, err);
  if (strcmp (kind, "archive") == 0)
    return acquire_archive (source, stage, watch, folder, err);
  if (strcmp (kind, "url") == 0)
    return acquire_url (source, stage, watch, folder, err);
  return source_git (source, stage, watch, folder, err);
}

/* An archive with one folder in it: --subdir is meant below that. */
static int
enter_subdir (const char *subdir, int *folder, struct error **err)
{
  int below = coffer_open_beneath (*folder, subdir, O_RDONLY | O_DIRECTORY, 0);

  if (below < 0)
    return error_set (err, E_NOT_FOUND, errno, "--subdir %s", subdir);
  coffer_fd_close (folder);
  *folder = below;
  return 0;
}

int
source_acquire (struct source *source, struct stage *stage,
                const struct helper_watch *watch, int *folder, char **shown,
                struct error **err)
{
  const char *subdir = source->told.subdir;
  coffer_autoclose int found = -1;

  if (acquire (source, stage, watch, &found, err) < 0)
    return error_wrap (err, "%s", source->told.location);
  if (subdir && strcmp (source->told.kind, "git") != 0
      && enter_subdir (subdir, &found, err) < 0)
    return error_wrap (err, "%s", source->told.location);
  *shown = text_printf ("%s%s%s", source->told.location, subdir ? "/" : "",
                        subdir ? subdir : "");
  if (*shown == NULL)
    return error_set (err, E_NO_MEMORY, 0, "the source");
  *folder = coffer_fd_steal (&found);
  return 0;
}
