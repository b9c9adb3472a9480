/* SPDX-License-Identifier: Apache-2.0 */
/* STATE/box/SANDBOX.json: which session a sandbox is.  Names of files are ids
 * of sandboxes, never what a caller has chosen. */

#include <config.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/log.h"
#include "base/text.h"
#include "sandbox/host.h"
#include "server/box/processes.h"
#include "server/box/sessions.h"
#include "server/server.h"

#define FILE_MAX (128 << 20)    /* processes have their own bounds */
#define NAME_SIZE (SANDBOX_ID_SIZE + 8)

int
box_store_open (struct box *box, struct error **err)
{
  auto_free char *path = text_printf ("%s/box", box->server->place->state);

  if (path == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  box->folder = place_open_dir (path, err);
  return box->folder < 0 ? -1 : 0;
}

static void
name_make (const char *sandbox, char out[NAME_SIZE])
{
  snprintf (out, NAME_SIZE, "%s.json", sandbox);
}

int
box_store_write (struct box *box, const struct box_session *session,
                 struct error **err)
{
  auto_json json_t *json = json_pack (
    "{s:i, s:s, s:s, s:s, s:O, s:I, s:o}", "version", 1, "tenant",
    session->tenant, "session_id", session->id, "backend", session->backend,
    "spec", session->spec, "created_ns", (json_int_t) session->created_ns,
    "processes", box_processes_save (session->processes));
  auto_free char *text = json ? json_text (json) : NULL;
  struct coffer_new_file file = { 0 };
  char name[NAME_SIZE];
  int fd;

  if (text == NULL)
    return error_set (err, E_NO_MEMORY, 0, "a session");
  name_make (session->sandbox, name);
  fd = coffer_new_file_begin (&file, box->folder, name, 0600, 0);
  if (fd < 0 || coffer_write_all (fd, text, strlen (text)) < 0
      || coffer_new_file_commit (&file, 0, 0) < 0) {
    error_set (err, E_IO, errno, "write box/%s", name);
    coffer_new_file_abort (&file);
    return -1;
  }
  return 0;
}

void
box_store_remove (struct box *box, const char *sandbox)
{
  char name[NAME_SIZE];

  name_make (sandbox, name);
  unlinkat (box->folder, name, 0);
}

/* ---- at the start -------------------------------------------------------- */

static const char *
text_of (const json_t *json, const char *key)
{
  return json_string_value (json_object_get (json, key));
}

static struct box_session *
session_of (const json_t *json, const char *sandbox)
{
  struct box_session *session = calloc (1, sizeof *session);
  const json_t *spec = json_object_get (json, "spec");

  if (session == NULL || !text_of (json, "tenant")
      || !text_of (json, "session_id") || !text_of (json, "backend")
      || !json_is_object (spec)) {
    free (session);
    return NULL;
  }
  session->tenant = strdup (text_of (json, "tenant"));
  session->id = strdup (text_of (json, "session_id"));
  session->backend = strdup (text_of (json, "backend"));
  session->spec = json_deep_copy (spec);
  snprintf (session->sandbox, sizeof session->sandbox, "%s", sandbox);
  session->state = SESSION_LIVE;
  session->created_ns
    = json_integer_value (json_object_get (json, "created_ns"));
  /* Not for long enough that it would be idle now; put off at once. */
  session->used_ns = coffer_realtime_ns ();
  session->used_at_ns = coffer_now_ns ();
  session->processes
    = box_processes_load (json_object_get (json, "processes"));
  return session;
}

/* 1: it lives, and is in the list. */
static int
adopt_one (struct box *box, const char *name)
{
  auto_sandbox_record struct sandbox_record *record = NULL;
  auto_free char *text = NULL;
  auto_json json_t *json = NULL;
  struct box_session *session;
  char sandbox[SANDBOX_ID_SIZE];
  size_t size;

  snprintf (sandbox, sizeof sandbox, "%.*s", (int) strcspn (name, "."), name);
  if (!sandbox_id_valid (sandbox)
      || place_read_trusted (box->folder, name, name, FILE_MAX, E_IO, &text,
                             &size, NULL) < 0
      || json_parse (text, size, &json, NULL) < 0
      || host_find (box->server->host, sandbox, &record, NULL) < 0
      || (record->state != SANDBOX_RUNNING && record->state != SANDBOX_PAUSED))
    return 0;
  session = session_of (json, sandbox);
  if (session == NULL)
    return 0;
  session->next = box->sessions;
  box->sessions = session;
  return 1;
}

void
box_store_adopt (struct box *box)
{
  int fd = openat (box->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *item;

  if (dir == NULL) {
    coffer_fd_close (&fd);
    return;
  }
  while ((item = readdir (dir)))
    if (item->d_name[0] != '.' && adopt_one (box, item->d_name) == 0)
      unlinkat (box->folder, item->d_name, 0);
  closedir (dir);
  place_sweep (box->folder);
}
