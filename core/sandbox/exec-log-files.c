/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of commands as files: making, finding, mending and removing them. */

#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "sandbox/exec-log-private.h"

#define META_MAX (1 << 20)
/* Of each sandbox; older ones go, looked for once in a while. */
#define LOGS_KEPT 1024
#define TRIM_EVERY 64
/* What meta.json is going to be. */
#define META_NEW ".meta.json"
/* Each has a little beyond the cap of all, for its end. */
#define LOGS_SPARE (UINT64_C (16) << 20)

static const char *const file_names[] = { "stdout", "stderr", "events",
                                          "meta.json" };
#define N_FILES (sizeof file_names / sizeof file_names[0])

/* What a provider calls a command becomes a folder's name. */
static int
exec_id_valid (const char *id)
{
  size_t i;

  for (i = 0; id[i] && i < EXEC_ID_SIZE; i++)
    if (!((id[i] >= 'a' && id[i] <= 'z') || (id[i] >= 'A' && id[i] <= 'Z')
          || (id[i] >= '0' && id[i] <= '9') || id[i] == '-' || id[i] == '_'
          || (id[i] == '.' && i > 0)))
      return 0;
  return i > 0 && i < EXEC_ID_SIZE;
}

static int
root_open (const struct exec_logs *logs, struct error **err)
{
  auto_free char *path = text_printf ("%s/execs", logs->place->state);

  if (!path)
    return error_set (err, E_NO_MEMORY, 0, "the logs of commands");
  return place_open_dir (path, err);
}

static int
folder_open (int dir, const char *name)
{
  return openat (dir, name,
                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The folder of a sandbox's logs, or -1 with errno. */
static int
sandbox_folder (const struct exec_logs *logs, const char *sandbox)
{
  coffer_autoclose int root = root_open (logs, NULL);

  if (root < 0 || !sandbox_id_valid (sandbox)) {
    errno = ENOENT;
    return -1;
  }
  return folder_open (root, sandbox);
}

/* Calls back with each name in a folder that does not begin with a dot. */
static int
names_each (int dir, int (*visit) (void *data, int dir, const char *name),
            void *data)
{
  int fd = folder_open (dir, "."), r = 0;
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *entry;

  if (!stream) {
    coffer_fd_close (&fd);
    return -1;
  }
  while (r == 0 && (entry = readdir (stream)))
    if (entry->d_name[0] != '.')
      r = visit (data, dir, entry->d_name);
  closedir (stream);
  return r;
}

static int
list_one (void *data, int dir, const char *name)
{
  struct coffer_strings *names = data;

  (void) dir;
  if (exec_id_valid (name))
    coffer_strings_add (names, name);
  return names->failed ? -1 : 0;
}

/* e2 before e10: a shorter name before a longer one. */
static int
name_order (const void *a, const void *b)
{
  const char *x = *(const char *const *) a, *y = *(const char *const *) b;
  size_t m = strlen (x), n = strlen (y);

  return m != n ? (m < n ? -1 : 1) : strcmp (x, y);
}

static int
size_one (void *data, int dir, const char *name)
{
  coffer_autoclose int folder = folder_open (dir, name);
  uint64_t *bytes = data;
  struct stat st;
  size_t i;

  for (i = 0; folder >= 0 && i < N_FILES; i++)
    if (fstatat (folder, file_names[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
      *bytes += (uint64_t) st.st_size;
  return 0;
}

/* ---- one log -------------------------------------------------------------- */

static void
log_free (struct exec_log *log)
{
  coffer_fd_close (&log->data[0]);
  coffer_fd_close (&log->data[1]);
  coffer_fd_close (&log->index);
  coffer_fd_close (&log->meta_fd);
  pthread_mutex_destroy (&log->writing);
  pthread_mutex_destroy (&log->lock);
  json_decref (log->meta);
  free (log->tenant);
  free (log);
}

struct exec_log *
exec_log_ref (struct exec_log *log)
{
  pthread_mutex_lock (&log->logs->lock);
  log->refs++;
  pthread_mutex_unlock (&log->logs->lock);
  return log;
}

void
exec_log_unref (struct exec_log *log)
{
  struct exec_logs *logs;
  struct exec_log **p;
  unsigned refs;

  if (!log)
    return;
  logs = log->logs;
  pthread_mutex_lock (&logs->lock);
  refs = --log->refs;
  for (p = &logs->open; refs == 0 && *p; p = &(*p)->next)
    if (*p == log) {
      *p = log->next;
      break;
    }
  pthread_mutex_unlock (&logs->lock);
  if (refs == 0)
    log_free (log);
}

/* Takes the tenant, which may be NULL. */
static struct exec_log *
log_alloc (struct exec_logs *logs, char *take_tenant, const char *sandbox,
           const char *exec)
{
  struct exec_log *log = calloc (1, sizeof *log);

  if (!log) {
    free (take_tenant);
    return NULL;
  }
  log->tenant = take_tenant;
  log->logs = logs;
  log->refs = 1;
  log->data[0] = log->data[1] = log->index = log->meta_fd = -1;
  snprintf (log->sandbox, sizeof log->sandbox, "%s", sandbox);
  snprintf (log->exec, sizeof log->exec, "%s", exec);
  pthread_mutex_init (&log->writing, NULL);
  pthread_mutex_init (&log->lock, NULL);
  return log;
}

static int
files_open (struct exec_log *log, int dir, int flags)
{
  int *const files[] = { &log->data[0], &log->data[1], &log->index,
                         &log->meta_fd };
  size_t i;

  for (i = 0; i < N_FILES; i++) {
    *files[i] = openat (dir, file_names[i],
                        flags | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*files[i] < 0)
      return -1;
  }
  return 0;
}

static int
head_write (struct exec_log *log)
{
  char page[LOG_PAGE] = { 0 };
  const struct log_head head = { .magic = LOG_MAGIC };

  memcpy (page, &head, sizeof head);
  if (pwrite (log->index, page, sizeof page, 0) != (ssize_t) sizeof page)
    return -1;
  log->room = LOG_PAGE;
  return exec_log_meta_write (log);
}

int
exec_log_meta_replace (struct exec_log *log, const char *bytes, size_t size)
{
  coffer_autoclose int dir = sandbox_folder (log->logs, log->sandbox);
  coffer_autoclose int folder = dir < 0 ? -1 : folder_open (dir, log->exec);
  coffer_autoclose int fd = -1;

  if (folder < 0 || log->removed)
    return -1;
  unlinkat (folder, META_NEW, 0);
  fd = openat (folder, META_NEW,
               O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0 || coffer_write_all (fd, bytes, size) != (ssize_t) size
      || renameat (folder, META_NEW, folder, "meta.json") < 0) {
    unlinkat (folder, META_NEW, 0);
    return -1;
  }
  coffer_fd_close (&log->meta_fd);
  log->meta_fd = coffer_fd_steal (&fd);
  return 0;
}

static void
log_add (struct exec_log *log)
{
  pthread_mutex_lock (&log->logs->lock);
  log->next = log->logs->open;
  log->logs->open = log;
  pthread_mutex_unlock (&log->logs->lock);
}

/* How many bytes that were.  Somebody else may be at the same: only who removes
 * a file counts it. */
static uint64_t
files_remove (int dir, const char *name)
{
  coffer_autoclose int folder = folder_open (dir, name);
  uint64_t bytes = 0;
  struct stat st;
  size_t i;

  for (i = 0; folder >= 0 && i < N_FILES; i++)
    if (fstatat (folder, file_names[i], &st, AT_SYMLINK_NOFOLLOW) == 0
        && unlinkat (folder, file_names[i], 0) == 0)
      bytes += (uint64_t) st.st_size;
  if (folder >= 0)
    unlinkat (folder, META_NEW, 0);
  unlinkat (dir, name, AT_REMOVEDIR);
  return bytes;
}

static int
log_make (struct exec_logs *logs, const char *sandbox, const char *exec,
          json_t *take_meta, struct exec_log **out, struct error **err)
{
  coffer_autoclose int root = root_open (logs, err), dir = -1, folder = -1;
  auto_exec_log struct exec_log *log = NULL;
  auto_json json_t *meta = take_meta;

  if (root < 0)
    return -1;
  if (!exec_id_valid (exec) || !sandbox_id_valid (sandbox))
    return error_set (err, E_PROVIDER_FAILED, 0,
                      "the provider's id of a command cannot be a file's name");
  log = log_alloc (logs, exec_logs_tenant (logs, sandbox), sandbox, exec);
  if (!log)
    return error_set (err, E_NO_MEMORY, 0, "a log");
  log->meta = steal (meta);
  if ((mkdirat (root, sandbox, 0700) < 0 && errno != EEXIST)
      || (dir = folder_open (root, sandbox)) < 0
      || mkdirat (dir, exec, 0700) < 0
      || (folder = folder_open (dir, exec)) < 0
      || files_open (log, folder, O_CREAT | O_EXCL) < 0
      || head_write (log) < 0) {
    error_set (err, E_IO, errno, "the log of %s in %s/execs", exec,
               logs->place->state);
    if (dir >= 0 && errno != EEXIST)
      files_remove (dir, exec);
    return -1;
  }
  /* The other file counted itself. */
  exec_logs_used (logs, log->tenant, log->room);
  log_add (log);
  *out = steal (log);
  return 0;
}

/* ---- one of an earlier process -------------------------------------------- */

static int
meta_read (struct exec_log *log)
{
  auto_free char *text = NULL;
  size_t size;

  if (coffer_read_whole (log->meta_fd, META_MAX, &text, &size) < 0)
    return -1;
  log->meta_room = size;
  while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\n'))
    size--;
  if (json_parse (text, size, &log->meta, NULL) == 0
      && json_is_object (log->meta))
    return 0;
  errno = EPROTO;
  return -1;
}

static int
event_read (const struct exec_log *log, uint64_t place,
            struct exec_event *event)
{
  return pread (log->index, event, sizeof *event,
                (off_t) (LOG_HEAD_SIZE + place * LOG_EVENT_SIZE))
                 == (ssize_t) sizeof *event
             && event->kind != 0
           ? 1 : 0;
}

/* How many there are: zeros follow the last. */
static uint64_t
events_count (const struct exec_log *log)
{
  uint64_t low = 0, high = (log->room - LOG_HEAD_SIZE) / LOG_EVENT_SIZE, middle;
  struct exec_event event;

  while (low < high) {
    middle = low + (high - low) / 2;
    if (event_read (log, middle, &event))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int
index_read (struct exec_log *log)
{
  struct exec_event last = { 0 };
  struct log_head head;
  struct stat st;
  int i;

  if (pread (log->index, &head, sizeof head, 0) != (ssize_t) sizeof head
      || head.magic != LOG_MAGIC || fstat (log->index, &st) < 0) {
    errno = EPROTO;
    return -1;
  }
  log->room = (uint64_t) st.st_size / LOG_PAGE * LOG_PAGE;
  if (log->room < LOG_PAGE) {
    errno = EPROTO;
    return -1;
  }
  log->count = events_count (log);
  if (log->count > 0)
    event_read (log, log->count - 1, &last);
  log->ended = last.kind == EXEC_EVENT_EXITED;
  for (i = 0; i < 2; i++) {
    if (fstat (log->data[i], &st) < 0)
      return -1;
    log->size[i] = (uint64_t) st.st_size;
    log->dropped[i] = head.dropped[i];
    if (lseek (log->data[i], 0, SEEK_END) < 0)
      return -1;
  }
  return 0;
}

static struct exec_log *
open_find_locked (struct exec_logs *logs, const char *sandbox,
                  const char *exec)
{
  struct exec_log *log;

  for (log = logs->open; log; log = log->next)
    if (!log->removed && strcmp (log->sandbox, sandbox) == 0
        && strcmp (log->exec, exec) == 0) {
      log->refs++;
      return log;
    }
  return NULL;
}

static int
find_locked (struct exec_logs *logs, const char *sandbox, const char *exec,
             struct exec_log **out, struct error **err)
{
  coffer_autoclose int dir = -1, folder = -1;
  struct exec_log *log = open_find_locked (logs, sandbox, exec);
  const char *tenant;

  *out = log;
  if (log)
    return 0;
  if (!exec_id_valid (exec) || (dir = sandbox_folder (logs, sandbox)) < 0
      || (folder = folder_open (dir, exec)) < 0)
    return error_set (err, E_EXEC_UNKNOWN, 0,
                      "there is no log of a command %.64s in %.32s", exec,
                      sandbox);
  tenant = exec_log_owner_locked (logs, sandbox);
  log = log_alloc (logs, tenant ? strdup (tenant) : NULL, sandbox, exec);
  if (!log)
    return error_set (err, E_NO_MEMORY, 0, "a log");
  if (files_open (log, folder, 0) < 0 || meta_read (log) < 0
      || index_read (log) < 0) {
    error_set (err, E_IO, errno, "the log of %s in %s/execs/%s", exec,
               logs->place->state, sandbox);
    log_free (log);
    return -1;
  }
  log->next = logs->open;
  logs->open = log;
  *out = log;
  return 0;
}

int
exec_log_find (struct exec_logs *logs, const char *sandbox, const char *exec,
               struct exec_log **out, struct error **err)
{
  int r;

  pthread_mutex_lock (&logs->lock);
  r = find_locked (logs, sandbox, exec, out, err);
  pthread_mutex_unlock (&logs->lock);
  return r;
}

void
exec_log_recover (struct exec_log *log)
{
  struct exec_event event;
  uint64_t i;

  pthread_mutex_lock (&log->writing);
  log->indexed[0] = log->indexed[1] = log->told[0] = log->told[1] = 0;
  for (i = 0; i < log->count && event_read (log, i, &event); i++) {
    if (event.stream < 1 || event.stream > 2)
      continue;
    if (event.kind == EXEC_EVENT_OUTPUT)
      log->indexed[event.stream - 1] = event.offset + event.size;
    else
      log->told[event.stream - 1] += event.offset;
  }
  pthread_mutex_unlock (&log->writing);
  exec_log_flush (log);
}

int
exec_log_data_fd (const struct exec_log *log, int stream)
{
  return log->data[stream];
}

int
exec_log_index_fd (const struct exec_log *log)
{
  return log->index;
}

/* ---- those that are too many ----------------------------------------------- */

static void
trim_one (struct exec_logs *logs, int dir, const char *sandbox,
          const char *exec)
{
  auto_exec_log struct exec_log *log = NULL;

  if (exec_log_find (logs, sandbox, exec, &log, NULL) < 0
      || !exec_log_over (log))
    return;
  pthread_mutex_lock (&logs->lock);
  exec_log_cut (log);
  pthread_mutex_unlock (&logs->lock);
  exec_logs_freed (logs, log->tenant, files_remove (dir, exec));
}

/* The oldest of a sandbox that have ended. */
static void
logs_trim (struct exec_logs *logs, int dir, const char *sandbox)
{
  coffer_autostrings struct coffer_strings names = { 0 };
  size_t i;

  if (names_each (dir, list_one, &names) < 0 || names.count <= LOGS_KEPT)
    return;
  qsort (names.items, names.count, sizeof *names.items, name_order);
  for (i = 0; i < names.count - LOGS_KEPT; i++)
    trim_one (logs, dir, sandbox, names.items[i]);
}

/* When all of the room is used, commands begin as long as there is some for their
 * ends, and what they write is dropped.  Nobody who is alone is refused sooner. */
static int
has_room (struct exec_logs *logs, const char *sandbox, struct error **err)
{
  auto_free char *tenant = exec_logs_tenant (logs, sandbox);
  struct shares *shares = logs->owners.shares;
  const uint64_t used = atomic_load (&logs->used);

  if (used >= logs->cap_all && used < logs->cap_all + LOGS_SPARE)
    return 0;
  if (used < logs->cap_all
      && shares_take (shares, SHARE_LOGS, tenant, LOG_PAGE, err) == 0) {
    shares_give (shares, SHARE_LOGS, tenant, LOG_PAGE);
    return 0;
  }
  if (used >= logs->cap_all)
    error_set (err, E_LIMIT, 0, "what commands have written takes all the room"
               " there is for it");
  error_hint (err, "end sandboxes that are not needed, whose logs go with "
              "them, or raise serve.limits.exec_logs");
  return -1;
}

int
exec_log_new (struct exec_logs *logs, const char *sandbox, const char *exec,
              json_t *take_meta, struct exec_log **out, struct error **err)
{
  auto_json json_t *meta = take_meta;
  coffer_autoclose int dir = -1;

  if (atomic_fetch_add (&logs->made, 1) % TRIM_EVERY == 0
      && (dir = sandbox_folder (logs, sandbox)) >= 0)
    logs_trim (logs, dir, sandbox);
  if (has_room (logs, sandbox, err) < 0)
    return -1;
  return log_make (logs, sandbox, exec, steal (meta), out, err);
}

/* ---- all of them ---------------------------------------------------------- */

int
exec_logs_list (struct exec_logs *logs, const char *sandbox, json_t **out,
                struct error **err)
{
  coffer_autoclose int dir = sandbox_folder (logs, sandbox);
  coffer_autostrings struct coffer_strings names = { 0 };
  json_t *list = json_array ();
  size_t i;

  if (dir >= 0)
    names_each (dir, list_one, &names);
  if (names.count > 0)
    qsort (names.items, names.count, sizeof *names.items, name_order);
  for (i = 0; i < names.count; i++) {
    auto_exec_log struct exec_log *log = NULL;

    /* One that is damaged is none. */
    if (exec_log_find (logs, sandbox, names.items[i], &log, NULL) == 0)
      json_array_append_new (list, exec_log_info (log));
  }
  if (names.failed) {
    json_decref (list);
    return error_set (err, E_NO_MEMORY, 0, "the list of commands");
  }
  *out = list;
  return 0;
}

static int
size_sandbox (void *data, int dir, const char *name)
{
  coffer_autoclose int folder = folder_open (dir, name);
  auto_free char *tenant = exec_logs_tenant (data, name);
  uint64_t bytes = 0;

  if (folder >= 0)
    names_each (folder, size_one, &bytes);
  exec_logs_used (data, tenant, bytes);
  return 0;
}

static int
drop_one (void *data, int dir, const char *name)
{
  uint64_t *bytes = data;

  *bytes += files_remove (dir, name);
  return 0;
}

/* Those that are open: nothing more is written to them, and who reads sees
 * their end. */
static void
open_end (struct exec_logs *logs, const char *sandbox)
{
  struct exec_log *log;

  pthread_mutex_lock (&logs->lock);
  for (log = logs->open; log; log = log->next)
    if (strcmp (log->sandbox, sandbox) == 0)
      exec_log_cut (log);
  pthread_mutex_unlock (&logs->lock);
}

void
exec_logs_drop (struct exec_logs *logs, const char *sandbox)
{
  coffer_autoclose int root = root_open (logs, NULL), dir = -1;
  auto_free char *tenant = exec_logs_tenant (logs, sandbox);
  uint64_t bytes = 0;

  if (root < 0 || !sandbox_id_valid (sandbox))
    return;
  open_end (logs, sandbox);
  dir = folder_open (root, sandbox);
  if (dir >= 0) {
    names_each (dir, drop_one, &bytes);
    unlinkat (root, sandbox, AT_REMOVEDIR);
    exec_logs_freed (logs, tenant, bytes);
  }
  exec_log_owner_forget (logs, sandbox);
}

void
exec_logs_sweep (struct exec_logs *logs,
                 int (*is_gone) (void *data, const char *sandbox), void *data)
{
  coffer_autoclose int root = root_open (logs, NULL);
  coffer_autostrings struct coffer_strings names = { 0 };
  size_t i;

  if (root >= 0)
    names_each (root, list_one, &names);
  for (i = 0; i < names.count; i++)
    if (sandbox_id_valid (names.items[i]) && is_gone (data, names.items[i]))
      exec_logs_drop (logs, names.items[i]);
}

int
exec_logs_open (const struct place *place, uint64_t cap, uint64_t cap_all,
                const struct exec_log_owners *owners, struct exec_logs **out, struct error **err)
{
  auto_exec_logs struct exec_logs *logs = calloc (1, sizeof *logs);
  coffer_autoclose int root = -1;

  if (!logs)
    return error_set (err, E_NO_MEMORY, 0, "the logs of commands");
  pthread_mutex_init (&logs->lock, NULL);
  logs->place = place;
  logs->cap = cap;
  logs->cap_all = cap_all;
  if (owners)
    logs->owners = *owners;
  root = root_open (logs, err);
  if (root < 0)
    return -1;
  names_each (root, size_sandbox, logs);
  *out = steal (logs);
  return 0;
}

void
exec_logs_close (struct exec_logs *logs)
{
  if (!logs)
    return;
  if (logs->open)
    log_event (LOG_LEVEL_ERROR, "exec", "a log is still open");
  exec_log_owners_free (logs);
  pthread_mutex_destroy (&logs->lock);
  free (logs);
}
