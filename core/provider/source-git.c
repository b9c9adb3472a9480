/* SPDX-License-Identifier: Apache-2.0 */
/* One commit of a git repository, and of it the files of one folder.  git(1)
 * fetches into an empty repository of ours: no configuration but what stands
 * here, no hooks, no prompts, no submodules, no work tree; so no filter and no
 * attribute of the tree has a say in the bytes, which are taken blob by blob. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/text.h"
#include "provider/integrity.h"
#include "provider/manifest.h"
#include "provider/source.h"
#include "provider/tool.h"

#define MAX_BLOBS 512
/* A pack of a few bytes may unpack to any size, and be made of what it unpacks
 * to again. */
#define MAX_MEMORY (INT64_C (2) << 30)
#define MAX_TREE_BYTES (INT64_C (1) << 30)

struct git {
  const struct stage *stage;
  const struct helper_watch *watch;
  int64_t deadline_ns;
  struct coffer_strings env;
};

static void
git_fini (struct git *git)
{
  coffer_strings_free (&git->env);
}

static int
git_init_env (struct git *git, const char *address, struct error **err)
{
  static const char *const fixed[] = {
    "GIT_DIR=git", "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
    "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
    "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/false",
    "SSH_ASKPASS=/bin/false", "GIT_SSH_COMMAND=/bin/false",
    "GIT_NO_REPLACE_OBJECTS=1", "GIT_ATTR_NOSYSTEM=1",
    "GIT_PROTOCOL_FROM_USER=0"
  };
  size_t i;

  for (i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
    coffer_strings_add (&git->env, fixed[i]);
  /* That one protocol and no other, also after a redirect. */
  coffer_strings_printf (&git->env, "GIT_ALLOW_PROTOCOL=%.*s",
                         (int) strcspn (address, ":"), address);
  source_env (&git->env, "GIT_SSL_CAINFO", "GIT_SSL_CAPATH");
  return git->env.failed ? error_set (err, E_NO_MEMORY, 0, "git") : 0;
}

#define MAX_WORDS 32

/* One git command; `words` end with NULL. */
static int
git_run (const struct git *git, const char *const *words, int out,
         const char *what, int number, struct coffer_buffer *said,
         struct error **err)
{
  static const char *const first[] = {
    "git", "-c", "core.hooksPath=/dev/null", "-c", "credential.helper=",
    "-c", "transfer.fsckObjects=true", "-c", "fetch.fsckObjects=true",
    "-c", "submodule.recurse=false", "-c", "gc.auto=0",
    "-c", "maintenance.auto=false", "-c", "core.fsmonitor=false",
    "-c", "http.lowSpeedLimit=100", "-c", "http.lowSpeedTime=60"
  };
  const char *argv[MAX_WORDS + sizeof first / sizeof first[0] + 1];
  const struct tool tool = {
    .argv = argv, .env = coffer_strings_view (&git->env),
    .dir = git->stage->dir, .out = out, .file_bytes = SOURCE_MAX_BYTES,
    .data_bytes = MAX_MEMORY,
    .deadline_ns = git->deadline_ns,
    .cancel_fd = git->watch ? git->watch->cancel_fd : -1
  };
  size_t i, n = sizeof first / sizeof first[0];

  memcpy (argv, first, sizeof first);
  for (i = 0; words[i] && i < MAX_WORDS; i++)
    argv[n++] = words[i];
  argv[n] = NULL;
  return tool_run (&tool, what, number, said, err);
}

/* What git says of it stays the message; which word to look at is ours. */
static int
git_fail (struct error *take_error, int number, const char *hint,
          struct error **err)
{
  const int known = take_error->number == number;

  error_move (err, take_error);
  if (known)
    error_hint (err, "%s", hint);
  return -1;
}

/* -- the commit ------------------------------------------------------------ */

static int
fetch (const struct git *git, const struct source *source, struct error **err)
{
  const char *ref = source->told.ref;
  const char *const init[] = {
    "init", "-q", "--bare", "--template=",
    source->pinned && strlen (ref) == 64 ? "--object-format=sha256"
                                         : "--object-format=sha1", NULL
  };
  const char *const get[] = {
    "fetch", "-q", "--depth=1", "--no-tags", "--no-recurse-submodules",
    "--no-auto-maintenance", source->address, ref, NULL
  };
  auto_free char *what = text_printf ("fetch %s", ref);
  auto_error struct error *error = NULL;

  if (git_run (git, init, -1, "make a repository", E_IO, NULL, err) < 0)
    return -1;
  if (git_run (git, get, -1, what ? what : "fetch", E_CONNECT_FAILED, NULL,
               &error) < 0)
    return git_fail (steal (error), E_CONNECT_FAILED, "check the address, and"
                     " that the repository has what --ref names", err);
  return 0;
}

static int
resolve (const struct git *git, struct source *source, struct error **err)
{
  static const char *const words[]
    = { "rev-parse", "--verify", "-q", "FETCH_HEAD^{commit}", NULL };
  coffer_autobuffer struct coffer_buffer said = { 0 };
  size_t n;

  if (git_run (git, words, -1, "find the commit", E_INVALID, &said, err) < 0)
    return -1;
  n = said.data ? strspn (said.data, "0123456789abcdef") : 0;
  if (n != 40 && n != 64)
    return error_set (err, E_INVALID, 0, "git names no commit");
  free (source->told.commit);
  source->told.commit = strndup (said.data, n);
  if (source->told.commit == NULL)
    return error_set (err, E_NO_MEMORY, 0, "the commit");
  if (source->pinned && strcmp (source->told.commit, source->told.ref) != 0)
    return error_set (err, E_INTEGRITY, 0, "the commit that came is %s, not"
                      " %s", source->told.commit, source->told.ref);
  return 0;
}

/* -- its files ------------------------------------------------------------- */

struct blob {
  const char *name;
  char oid[65];
  int executable;
  int64_t size;
};

/* "MODE TYPE OID SIZE\tNAME".  1: a file; 0: something else. */
static int
blob_parse (const char *line, struct blob *out)
{
  char mode[8], type[8];
  long long size;
  const char *tab = strchr (line, '\t');

  if (tab == NULL
      || sscanf (line, "%7s %7s %64s %lld", mode, type, out->oid, &size) != 4
      || strcmp (type, "blob") != 0 || size < 0
      || (strcmp (mode, "100644") != 0 && strcmp (mode, "100755") != 0))
    return 0;
  out->name = tab + 1;
  out->executable = mode[3] == '7';
  out->size = size;
  return manifest_is_file_name (out->name);
}

static int
blob_write (const struct git *git, const struct blob *blob, int tree,
            struct error **err)
{
  const char *const words[] = { "cat-file", "blob", blob->oid, NULL };
  coffer_autoclose int fd
    = openat (tree, blob->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

  if (fd < 0 || fchmod (fd, blob->executable ? 0755 : 0644) < 0)
    return error_set (err, E_IO, errno, "write %s", blob->name);
  return git_run (git, words, fd, blob->name, E_IO, NULL, err);
}

static int
blobs_write (const struct git *git, const struct coffer_buffer *list, int tree,
             struct error **err)
{
  const char *line = list->data, *end = list->data + list->size;
  int64_t total = 0;
  size_t count = 0;
  struct blob blob;

  for (; line && line < end; line += strlen (line) + 1) {
    if (!blob_parse (line, &blob))
      continue;
    if (blob.size > INTEGRITY_MAX_BYTES || (total += blob.size) > MAX_TREE_BYTES
        || ++count > MAX_BLOBS)
      return error_set (err, E_LIMIT, 0, "%s: the folder has too much in it",
                        blob.name);
    if (blob_write (git, &blob, tree, err) < 0)
      return -1;
  }
  return 0;
}

static int
checkout (const struct git *git, const struct source *source, int tree,
          struct error **err)
{
  const char *subdir = source->told.subdir ? source->told.subdir : "";
  auto_free char *of = text_printf ("%s:%s", source->told.commit, subdir);
  const char *const words[] = { "ls-tree", "-z", "-l", "--full-tree", of,
                                NULL };
  coffer_autobuffer struct coffer_buffer list = { 0 };
  auto_free char *what = text_printf ("the folder \"%s\"", subdir);
  auto_error struct error *error = NULL;

  if (of == NULL || what == NULL)
    return error_set (err, E_NO_MEMORY, 0, "the folder");
  if (git_run (git, words, -1, what, E_NOT_FOUND, &list, &error) < 0)
    return git_fail (steal (error), E_NOT_FOUND, "--subdir names a folder that"
                     " the commit has", err);
  return blobs_write (git, &list, tree, err);
}

int
source_git (struct source *source, const struct stage *stage,
            const struct helper_watch *watch, int *folder, struct error **err)
{
  __attribute__ ((cleanup (git_fini))) struct git git = {
    .stage = stage, .watch = watch,
    .deadline_ns = coffer_now_ns () + SOURCE_SECONDS * INT64_C (1000000000)
  };
  coffer_autoclose int tree = -1;

  if (git_init_env (&git, source->address, err) < 0
      || fetch (&git, source, err) < 0 || resolve (&git, source, err) < 0)
    return -1;
  tree = stage_folder (stage, "tree", err);
  if (tree < 0 || checkout (&git, source, tree, err) < 0)
    return -1;
  *folder = coffer_fd_steal (&tree);
  return 0;
}
