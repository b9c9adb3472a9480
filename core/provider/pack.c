/* SPDX-License-Identifier: Apache-2.0 */
/* Packing.  The copy is made, checked and signed in a stage as if it were to
 * be installed; what is then packed is that copy. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/text.h"
#include "provider/conformance.h"
#include "provider/pack.h"
#include "provider/package.h"
#include "provider/stage.h"
#include "provider/tool.h"

#define SIGN_SECONDS 600        /* somebody types a password */

void
pack_report_fini (struct pack_report *report)
{
  free (report->id);
  free (report->version);
  free (report->archive);
  free (report->sha256_file);
  free (report->signature);
  *report = (struct pack_report){ 0 };
}

/* All that is at work; `name` is that of the archive. */
struct packing {
  const struct pack_request *request;
  struct stage stage;
  struct package package;
  char *top, *name;             /* ID-VERSION, ID-VERSION-ARCH.tar.gz */
  int copy, output;
};

static void
packing_fini (struct packing *packing)
{
  coffer_fd_close (&packing->copy);
  coffer_fd_close (&packing->output);
  package_fini (&packing->package);
  stage_fini (&packing->stage);
  free (packing->top);
  free (packing->name);
}

/* -- the copy -------------------------------------------------------------- */

static int
folders_open (struct packing *packing, struct error **err)
{
  const char *output = packing->request->output;
  coffer_autoclose int folder
    = open (packing->request->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  if (folder < 0)
    return error_set (err, errno == ENOENT ? E_NOT_FOUND : E_IO, errno,
                      "open %s", packing->request->dir);
  packing->output = open (output ? output : ".",
                          O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (packing->output < 0)
    return error_set (err, errno == ENOENT ? E_NOT_FOUND : E_IO, errno,
                      "open %s", output ? output : ".");
  return package_open (folder, packing->request->dir, 1, &packing->package,
                       err);
}

static int
names_make (struct packing *packing, struct error **err)
{
  const struct manifest *m = packing->package.manifest;

  packing->top = text_printf ("%s-%s", m->id, m->version);
  packing->name = text_printf ("%s-%s-%s.tar.gz", m->id, m->version,
                               manifest_machine ());
  if (packing->top == NULL || packing->name == NULL)
    return error_set (err, E_NO_MEMORY, 0, "pack %s", m->id);
  if (!manifest_is_file_name (packing->name) || strlen (packing->name) > 90)
    return error_set (err, E_MANIFEST, 0, "%s: the version \"%s\" cannot be"
                      " part of a file's name", m->path, m->version);
  return 0;
}

/* The receipt is for the check alone: nothing was installed yet. */
static int
copy_make (struct packing *packing, struct error **err)
{
  const struct stage *stage = &packing->stage;
  const char *id = packing->package.manifest->id;
  auto_receipt struct receipt *receipt = calloc (1, sizeof *receipt);

  if (receipt == NULL || (receipt->trust = strdup ("local")) == NULL)
    return error_set (err, E_NO_MEMORY, 0, "pack %s", id);
  packing->copy = stage_folder (stage, id, err);
  if (packing->copy < 0
      || package_copy (&packing->package, packing->copy, receipt, err) < 0
      || receipt_write (packing->copy, receipt, err) < 0
      || package_check (stage->place, stage->path, id, err) < 0)
    return -1;
  if (unlinkat (packing->copy, RECEIPT_FILE, 0) < 0)
    return error_set (err, E_IO, errno, "pack %s", id);
  return 0;
}

/* -- signing --------------------------------------------------------------- */

static int
sign (const char *key, int dir, const char *name, const char *comment,
      struct error **err)
{
  auto_free char *signature = text_printf ("%s.minisig", name);
  auto_free char *what = text_printf ("sign %s", name);
  const char *const argv[] = { "minisign", "-S", "-s", key, "-m", name, "-x",
                               signature, "-t", comment, NULL };
  const struct tool tool = {
    .argv = argv, .dir = dir, .out = -1, .terminal = 1, .cancel_fd = -1,
    .deadline_ns = coffer_now_ns () + SIGN_SECONDS * INT64_C (1000000000)
  };

  if (signature == NULL || what == NULL)
    return error_set (err, E_NO_MEMORY, 0, "sign %s", name);
  if (tool_run (&tool, what, E_INVALID, NULL, err) < 0)
    return -1;
  if (faccessat (dir, signature, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
    return error_set (err, E_IO, errno, "%s", what);
  return 0;
}

/* What is inside: the manifest, which has every hash, and the kit's report. */
static int
sign_inside (struct packing *packing, const char *key, struct error **err)
{
  auto_free char *name = text_printf ("%s.yaml",
                                      packing->package.manifest->id);

  if (name == NULL)
    return error_set (err, E_NO_MEMORY, 0, "sign the manifest");
  if (sign (key, packing->copy, name, packing->top, err) < 0)
    return -1;
  if (faccessat (packing->copy, CONFORMANCE_FILE, F_OK,
                 AT_SYMLINK_NOFOLLOW) < 0)
    return 0;
  return sign (key, packing->copy, CONFORMANCE_FILE, packing->top, err);
}

/* -- the archive ----------------------------------------------------------- */

static int
archive_write (struct packing *packing, int folder, int out,
               struct error **err)
{
  const char *epoch = secure_getenv ("SOURCE_DATE_EPOCH");
  const char *const arguments[] = { "pack-package",
                                    epoch && *epoch ? epoch : "0", NULL };
  auto_helper struct helper helper = { .report = -1 };
  auto_json json_t *report = NULL;
  const struct helper_program program = {
    .name = "coffer-archive", .arguments = arguments, .in = -1, .out = out,
    .folder = folder, .number = E_ARCHIVE
  };
  uint64_t seconds;

  if (epoch && *epoch
      && text_parse_u64 (epoch, 0, UINT32_MAX, &seconds) < 0)
    return error_set (err, E_INVALID, 0,
                      "SOURCE_DATE_EPOCH is no number of seconds");
  return helper_start (packing->stage.place, &program, &helper, err) < 0
             || helper_finish (&helper, packing->request->watch, -1, 0,
                               &report, err) < 0
           ? -1 : 0;
}

static int
hash_written (int fd, struct pack_report *report, struct error **err)
{
  coffer_unfilled char buffer[65536];
  SHA2_CTX hash;
  ssize_t n;

  if (lseek (fd, 0, SEEK_SET) < 0)
    return error_set (err, E_IO, errno, "read the archive");
  sha256_begin (&hash);
  while ((n = coffer_read_all (fd, buffer, sizeof buffer)) > 0) {
    sha256_add (&hash, buffer, (size_t) n);
    report->bytes += (uint64_t) n;
  }
  if (n < 0)
    return error_set (err, E_IO, errno, "read the archive");
  sha256_end (&hash, report->sha256);
  return 0;
}

/* The form that `sha256sum -c` reads. */
static int
sum_write (const struct packing *packing, const struct pack_report *report,
           struct error **err)
{
  auto_free char *name = text_printf ("%s.sha256", packing->name);
  auto_free char *line = text_printf ("%s  %s\n", report->sha256,
                                      packing->name);
  struct coffer_new_file file = { 0 };

  if (name == NULL || line == NULL)
    return error_set (err, E_NO_MEMORY, 0, "write the hash");
  if (coffer_new_file_begin (&file, packing->output, name, 0644, 0) < 0
      || coffer_write_all (file.fd, line, strlen (line)) < 0
      || coffer_new_file_commit (&file, 1, 0) < 0) {
    error_set (err, E_IO, errno, "write %s", name);
    coffer_new_file_abort (&file);
    return -1;
  }
  return 0;
}

/* A hash and a signature of before are of other bytes. */
static void
remove_beside (const struct packing *packing)
{
  static const char *const ends[] = { ".sha256", ".minisig" };
  size_t i;

  for (i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    auto_free char *name = text_printf ("%s%s", packing->name, ends[i]);

    if (name)
      unlinkat (packing->output, name, 0);
  }
}

/* An archive of which the rest could not be written is none. */
static void
remove_written (const struct packing *packing)
{
  remove_beside (packing);
  unlinkat (packing->output, packing->name, 0);
}

static int
write_whole (struct packing *packing, struct coffer_new_file *file,
             int folder, struct pack_report *report, struct error **err)
{
  if (coffer_new_file_begin (file, packing->output, packing->name, 0644, 0)
      < 0)
    return error_set (err, E_IO, errno, "write %s", packing->name);
  if (archive_write (packing, folder, file->fd, err) < 0
      || hash_written (file->fd, report, err) < 0)
    return -1;
  remove_beside (packing);
  if (coffer_new_file_commit (file, 1, 0) == 0)
    return 0;
  error_set (err, E_IO, errno, "write %s", packing->name);
  remove_written (packing);
  return -1;
}

/* One folder in a folder of its own: that is the archive's top. */
static int
top_make (struct packing *packing, struct error **err)
{
  coffer_autoclose int folder = stage_folder (&packing->stage, "top", err);

  if (folder < 0)
    return -1;
  if (renameat (packing->stage.dir, packing->package.manifest->id, folder,
                packing->top) < 0)
    return error_set (err, E_IO, errno, "pack %s", packing->top);
  return coffer_fd_steal (&folder);
}

static int
sign_archive (struct packing *packing, struct error **err)
{
  const char *key = packing->request->key;

  return key ? sign (key, packing->output, packing->name, packing->top, err)
             : 0;
}

static int
report_fill (const struct packing *packing, struct pack_report *report,
             struct error **err)
{
  const char *output = packing->request->output;

  report->id = strdup (packing->package.manifest->id);
  report->version = strdup (packing->package.manifest->version);
  report->archive = text_printf ("%s%s%s", output ? output : "",
                                 output ? "/" : "", packing->name);
  report->sha256_file = text_printf ("%s.sha256",
                                     report->archive ? report->archive : "");
  if (packing->request->key)
    report->signature = text_printf ("%s.minisig", report->archive
                                                     ? report->archive : "");
  if (!report->id || !report->version || !report->archive
      || !report->sha256_file || (packing->request->key && !report->signature))
    return error_set (err, E_NO_MEMORY, 0, "pack %s", packing->top);
  return 0;
}

static int
pack (struct packing *packing, const struct place *place,
      struct pack_report *report, struct error **err)
{
  auto_free char *key = NULL;
  coffer_autoclose int folder = -1;
  struct coffer_new_file file = { 0 };
  struct pack_request request = *packing->request;

  /* minisign(1) runs in other folders than this one. */
  if (request.key) {
    key = realpath (request.key, NULL);
    if (key == NULL)
      return error_set (err, errno == ENOENT ? E_NOT_FOUND : E_IO, errno,
                        "open %s", request.key);
    request.key = key;
    packing->request = &request;
  }
  if (folders_open (packing, err) < 0 || names_make (packing, err) < 0
      || stage_begin (place, &packing->stage, err) < 0
      || copy_make (packing, err) < 0
      || (key && sign_inside (packing, key, err) < 0))
    return -1;
  folder = top_make (packing, err);
  if (folder < 0 || write_whole (packing, &file, folder, report, err) < 0) {
    coffer_new_file_abort (&file);
    return -1;
  }
  if (sum_write (packing, report, err) == 0 && sign_archive (packing, err) == 0
      && report_fill (packing, report, err) == 0)
    return 0;
  remove_written (packing);
  return -1;
}

int
pack_provider (const struct place *place, const struct pack_request *request,
               struct pack_report *out, struct error **err)
{
  __attribute__ ((cleanup (packing_fini))) struct packing packing = {
    .request = request, .stage = { .providers = -1, .dir = -1 },
    .package = { .folder = -1 }, .copy = -1, .output = -1
  };
  auto_pack_report struct pack_report report = { 0 };

  if (pack (&packing, place, &report, err) < 0)
    return -1;
  *out = report;
  report = (struct pack_report){ 0 };
  return 0;
}
