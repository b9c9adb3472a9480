/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of archives, ports, metrics and snapshots. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/files.h>
#include <coffer/path.h>
#include <coffer/spec.h>

#include "mutant.h"

/* ---- archives ------------------------------------------------------------ */

/* The archive in memory; 0 when it is not to be had. */
static size_t
read_archive (int in, char **bytes)
{
  size_t size;

  return coffer_read_whole (in, 256 << 20, bytes, &size) < 0 ? 0 : size;
}

static uint64_t
octal (const char *field, size_t n)
{
  char text[16] = "";

  memcpy (text, field, n < sizeof text ? n : sizeof text - 1);
  return strtoull (text, NULL, 8);
}

static size_t
entry_size (const char *header)
{
  const char type = header[156];
  const uint64_t size = octal (header + 124, 12);

  return 512 + (type == '0' || type == '\0' || type == 'x' || type == 'g' ?
                (size_t) (size + 511) / 512 * 512 : 0);
}

static void
set_checksum (char *header)
{
  unsigned sum = 0;

  memset (header + 148, ' ', 8);
  for (int i = 0; i < 512; i++)
    sum += (unsigned char) header[i];
  snprintf (header + 148, 8, "%06o", sum);
}

/* Leading "../" are taken off, as if that made it right. */
static void
strip_dots (char *name)
{
  while (strncmp (name, "../", 3) == 0)
    memmove (name, name + 3, 97);
}

/* Changes headers one by one; returns the bytes that are left. */
static size_t
edit_archive (char *bytes, size_t size, size_t (*edit) (char *header,
                                                        size_t size))
{
  size_t at = 0, kept = 0, n, keep;

  while (at + 512 <= size && bytes[at]) {
    n = entry_size (bytes + at);
    if (n > size - at)
      n = size - at;
    keep = edit (bytes + at, n) ? n : 0;
    memmove (bytes + kept, bytes + at, keep);
    kept += keep;
    at += n;
  }
  memmove (bytes + kept, bytes + at, size - at);
  return kept + (size - at);
}

static char earlier[100];

/* 0: it is left out. */
static size_t
edit_import (char *header, size_t size)
{
  const char type = header[156];
  int again = strncmp (earlier, header, sizeof earlier) == 0;
  char asked[512];

  (void) size;
  memcpy (asked, header, sizeof asked);
  memcpy (earlier, header, sizeof earlier);
  if (fault ("import-strips-dots"))
    strip_dots (header);
  if (fault ("import-mode-narrow") && strncmp (header + 100, "0000640", 7) == 0)
    memcpy (header + 100, "0000600", 7);
  /* Whatever the sum was. */
  if (memcmp (header + 257, "ustar", 5) == 0
      && (fault ("import-unsummed")
          || memcmp (asked, header, sizeof asked) != 0))
    set_checksum (header);
  return !(fault ("import-skips-links") && type == '1')
         && !(fault ("import-skips-devices") && (type == '3' || type == '4'))
         && !(fault ("import-first-wins") && again);
}

static size_t
edit_export (char *header, size_t size)
{
  const char type = header[156];

  if (fault ("export-block-lost") && type == '0' && size == 3 * 512)
    memset (header + 2 * 512, 0, 512);
  if (fault ("export-no-modes")) {
    memcpy (header + 100, "0000644", 8);
    set_checksum (header);
  }
  return !(fault ("export-no-folders") && type == '5')
         && !(fault ("export-no-links") && type == '2');
}

/* A stream from a file in memory. */
static int
memory_file (const char *bytes, size_t size)
{
  return coffer_memfd_sealed ("archive", bytes, size);
}

/* What came before the fault of an archive that was refused. */
static void
import_half (struct coffer_call *call, void *self, const char *sandbox,
             const char *path, char *bytes, size_t size)
{
  static const char end[1024];
  struct wrapped wrapped;
  size_t at = 0, n;

  wrap (&wrapped, call, NULL);
  for (; at + 512 <= size && bytes[at]; at += n) {
    coffer_autobuffer struct coffer_buffer one = {0};
    coffer_autoclose int fd = -1;

    n = entry_size (bytes + at);
    if (n > size - at)
      return;
    coffer_buffer_add (&one, bytes + at, n);
    coffer_buffer_add (&one, end, sizeof end);
    fd = memory_file (one.data, one.size);
    if (reference_archive_import (&wrapped.call, self, sandbox, path, fd, NULL)
        != COFFER_OK)
      return;
  }
}

static int32_t
import_edited (struct coffer_call *call, void *self, const char *sandbox,
               const char *path, int32_t in)
{
  coffer_autoclose int fd = -1, whole = memfd_create ("import", MFD_CLOEXEC);
  char *bytes = NULL;
  uint64_t copied;
  int32_t code;
  size_t size;

  if (coffer_copy (in, whole, 0, call->deadline_ns, call->cancel_fd, &copied)
      < 0)
    return coffer_fail_errno (call, errno, "the archive");
  lseek (whole, 0, SEEK_SET);
  size = read_archive (whole, &bytes);
  earlier[0] = '\0';
  if (!fault ("import-half"))
    size = edit_archive (bytes, size, edit_import);
  fd = memory_file (bytes, size);
  code = reference_archive_import (call, self, sandbox, path, fd, NULL);
  if (code == COFFER_INVALID && fault ("import-half"))
    import_half (call, self, sandbox, path, bytes, size);
  free (bytes);
  return code;
}

int32_t
broken_archive_import (struct coffer_call *call, void *self,
                       const char *sandbox, const char *path, int32_t in,
                       const struct coffer_archive_import_opts *opts)
{
  static const char *const edits[] = {
    "import-half", "import-strips-dots", "import-skips-links",
    "import-skips-devices", "import-first-wins", "import-unsummed",
    "import-mode-narrow",
  };
  struct wrapped wrapped;

  for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++)
    if (fault (edits[i]))
      return import_edited (call, self, sandbox, path, in);
  wrap (&wrapped, call, NULL);
  if (fault ("import-deaf"))
    wrapped.call.cancel_fd = -1;
  if (fault ("import-endless"))
    wrap_endless (&wrapped);
  return reference_archive_import (&wrapped.call, self, sandbox, path, in,
                                   opts);
}

/* An archive of nothing, where there is a sandbox. */
static int32_t
export_nothing (struct coffer_call *call, const struct reference *self,
                const char *sandbox, int32_t out, int32_t code)
{
  static const char end[1024];
  coffer_autoclose int folder = sandbox_open (self, sandbox);

  (void) call;
  if (code != COFFER_NOT_FOUND || folder < 0)
    return code;
  coffer_write_all (out, end, sizeof end);
  return COFFER_OK;
}

static int32_t
export_edited (struct coffer_call *call, void *self, const char *sandbox,
               const char *path, int32_t out)
{
  coffer_autoclose int file = memfd_create ("export", MFD_CLOEXEC), again = -1;
  char *bytes = NULL;
  uint64_t copied;
  size_t size;
  int32_t code = reference_archive_export (call, self, sandbox, path, file,
                                           NULL);

  if (code != COFFER_OK)
    return code;
  lseek (file, 0, SEEK_SET);
  size = read_archive (file, &bytes);
  size = edit_archive (bytes, size, edit_export);
  again = memory_file (bytes, size);
  coffer_copy (again, out, 0, call->deadline_ns, call->cancel_fd, &copied);
  free (bytes);
  return COFFER_OK;
}

int32_t
broken_archive_export (struct coffer_call *call, void *self,
                       const char *sandbox, const char *path, int32_t out,
                       const struct coffer_archive_export_opts *opts)
{
  int32_t code;

  if (fault ("export-no-folders") || fault ("export-no-links")
      || fault ("export-no-modes") || fault ("export-block-lost"))
    return export_edited (call, self, sandbox, path, out);
  code = reference_archive_export (call, self, sandbox, path, out, opts);
  return fault ("export-of-nothing") ?
    export_nothing (call, self, sandbox, out, code) : code;
}

/* ---- ports --------------------------------------------------------------- */

static int32_t
resolve_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  struct coffer_port port = *(const struct coffer_port *) data;

  if (fault ("resolve-elsewhere"))
    port.address = "127.0.0.1:1";
  return pass_on (wrapped, record, &port);
}

int32_t
broken_port_resolve (struct coffer_call *call, void *self,
                     const char *sandbox, uint32_t port,
                     const struct coffer_port_resolve_opts *opts)
{
  struct wrapped wrapped;

  if (fault ("port-wraps") && port > 65535)
    port &= 0xffff;
  return reference_port_resolve (wrap (&wrapped, call, resolve_emit), self,
                                 sandbox, port, opts);
}

static _Atomic unsigned dials;

static int32_t
relayed (struct wrapped *wrapped, struct coffer_stream *stream,
         enum relay_fault fault)
{
  coffer_autoclose int fd = relay (fault, stream->fd);

  stream->fd = fd;
  return pass_on (wrapped, COFFER_REC_stream, stream);
}

static int32_t
dial_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  struct coffer_stream stream = *(const struct coffer_stream *) data;
  const unsigned number = ++dials;

  if (fault ("dial-no-half-close"))
    return relayed (wrapped, &stream, RELAY_NO_HALF_CLOSE);
  if (fault ("dial-cut"))
    return relayed (wrapped, &stream, RELAY_CUT);
  if (fault ("dial-garbled-late") && number > 10)
    return relayed (wrapped, &stream, RELAY_GARBLED);
  return pass_on (wrapped, record, &stream);
}

/* A connection with nobody. */
static int32_t
dial_nobody (struct coffer_call *call)
{
  struct coffer_stream stream = {.size = sizeof stream};
  int pair[2];
  int32_t code;

  if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
    return coffer_fail_errno (call, errno, "the port");
  stream.fd = pair[0];
  code = coffer_emit_stream (call, &stream);
  close (pair[0]);
  close (pair[1]);
  return code;
}

int32_t
broken_port_dial (struct coffer_call *call, void *self, const char *sandbox,
                  uint32_t port, const struct coffer_port_dial_opts *opts)
{
  struct wrapped wrapped;
  int32_t code;

  code = reference_port_dial (wrap (&wrapped, call, dial_emit), self, sandbox,
                              port, opts);
  /* Where somebody was reached before. */
  return code == COFFER_UNAVAILABLE && dials > 0 && fault ("dial-nobody") ?
    dial_nobody (call) : code;
}

/* ---- metrics ------------------------------------------------------------- */

static int32_t
metric_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  struct coffer_metric metric = *(const struct coffer_metric *) data;

  if (fault ("metrics-memory-constant")
      && strcmp (metric.name, "memory_bytes") == 0)
    metric.value = 1e7;
  if (fault ("metrics-cpu-constant")
      && strcmp (metric.name, "cpu_seconds_total") == 0)
    metric.value = 1;
  if (fault ("metrics-of-machine")
      && strcmp (metric.name, "cpu_seconds_total") == 0)
    metric.value = (double) coffer_now_ns () / 1e9;
  if (fault ("metrics-negative") && strcmp (metric.name, "processes") == 0)
    metric.value = -1;
  return pass_on (wrapped, record, &metric);
}

int32_t
broken_metrics (struct coffer_call *call, void *self, const char *sandbox,
                const struct coffer_metrics_opts *opts)
{
  const struct coffer_metric none = {.size = sizeof none,
                                     .name = "memory_bytes"};
  const int known = memory_known (sandbox) != NULL;
  struct wrapped wrapped;

  memory_done ();
  if (fault ("metrics-of-nobody") && !known)
    return coffer_emit_metric (call, &none);
  return reference_metrics (wrap (&wrapped, call, metric_emit), self, sandbox,
                            opts);
}

/* ---- snapshots ----------------------------------------------------------- */

static int32_t
snapshot_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  struct coffer_snapshot snapshot = *(const struct coffer_snapshot *) data;

  if (fault ("snapshot-nameless"))
    snapshot.name = NULL;
  if (wrapped->data)
    snprintf (wrapped->data, 64, "%s", snapshot.snapshot);
  return pass_on (wrapped, record, &snapshot);
}

/* All that it has, so that a new sandbox begins with nothing. */
static void
empty_snapshot (const struct reference *self, const char *id)
{
  char path[128];

  snprintf (path, sizeof path, "snapshots/%s/tree", id);
  coffer_remove_beneath (self->state, path, 1, NULL);
  coffer_mkdir_beneath (self->state, path, 0700, 0);
}

int32_t
broken_snapshot_create (struct coffer_call *call, void *self,
                        const char *sandbox, const char *name,
                        const struct coffer_snapshot_create_opts *opts)
{
  struct wrapped wrapped;
  char id[64] = "";
  int32_t code;

  wrap (&wrapped, call, snapshot_emit);
  wrapped.data = id;
  code = reference_snapshot_create (&wrapped.call, self, sandbox, name, opts);
  if (code == COFFER_OK && fault ("snapshot-empty"))
    empty_snapshot (self, id);
  return code;
}

int32_t
broken_snapshot_list (struct coffer_call *call, void *self,
                      const struct coffer_snapshot_list_opts *opts)
{
  return reference_snapshot_list (call, self, opts);
}

static int32_t
delete_emit (struct wrapped *wrapped, uint32_t record, const void *data)
{
  const struct coffer_snapshot *snapshot = data;

  (void) record;
  if (snapshot->name || strcmp (snapshot->snapshot, wrapped->exec) == 0)
    reference_snapshot_delete (wrapped->real, wrapped->data,
                               snapshot->snapshot, NULL);
  return COFFER_OK;
}

int32_t
broken_snapshot_delete (struct coffer_call *call, void *self,
                        const char *snapshot,
                        const struct coffer_snapshot_delete_opts *opts)
{
  coffer_autoclose int tree = snapshot_open (self, snapshot);
  struct wrapped wrapped;

  if (tree >= 0 && fault ("snapshot-deletes-all")) {
    wrap (&wrapped, call, delete_emit);
    wrapped.data = self;
    wrapped.exec = snapshot;
    return reference_snapshot_list (&wrapped.call, self, NULL);
  }
  if (tree < 0 && fault ("snapshot-delete-unknown")
      && coffer_id_is_valid (snapshot))
    return COFFER_OK;
  return reference_snapshot_delete (call, self, snapshot, opts);
}
