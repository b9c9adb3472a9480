/* SPDX-License-Identifier: Apache-2.0 */
/* See runs.h.  The state is the first member of the file's object, one digit,
 * so that it is rewritten in place. */

#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "sandbox/runs.h"

#define RUN_MAX (1 << 20)
#define STATE_HEAD "{\"state\":"
/* Somebody who looks whether a new file is a dead one's holds its lock for a
 * moment, finds nothing in it and removes it. */
#define LOCK_TRIES 200
/* From SIGTERM to SIGKILL. */
#define OWNER_PATIENCE_NS 5000000000LL

static int
folder_open (const struct place *place, int make, struct error **err)
{
  auto_free char *path = text_printf ("%s/runs", place->runtime);

  if (!path)
    return error_set (err, E_NO_MEMORY, 0, "the folder of runs");
  return make ? place_open_dir (path, err)
              : place_open_trusted_dir (path, err);
}

/* ---- the owner's side ---------------------------------------------------- */

/* The inode number of this pid namespace, in which owner_pid means something;
 * 0: not known. */
static int64_t
pid_namespace (void)
{
  struct stat st;

  return stat ("/proc/self/ns/pid", &st) == 0 ? (int64_t) st.st_ino : 0;
}

static char *
record_text (const struct sandbox_record *record)
{
  auto_json json_t *object = json_pack (
    "{s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "state",
    (int) record->state, "id", record->id, "provider", record->provider,
    "tenant", record->tenant, "spec", record->spec, "owner",
    (json_int_t) record->owner_pid, "pid_namespace",
    (json_int_t) record->owner_namespace, "created_ns",
    (json_int_t) record->created_ns, "deadline_ns",
    (json_int_t) record->deadline_ns);

  return object ? json_text (object) : NULL;
}

/* A new file under our lock: 1; 0: somebody removed it before we had that. */
static int
file_lock_new (int dir, const char *id, int *out)
{
  coffer_autoclose int fd
    = openat (dir, id, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
              0600);
  struct stat st;
  int i;

  if (fd < 0)
    return -1;
  for (i = 0; flock (fd, LOCK_EX | LOCK_NB) < 0; i++) {
    if (errno != EWOULDBLOCK || i == LOCK_TRIES)
      return -1;
    poll (NULL, 0, 1);
  }
  if (fstat (fd, &st) < 0)
    return -1;
  if (st.st_nlink == 0)
    return 0;
  *out = coffer_fd_steal (&fd);
  return 1;
}

int
run_note (const struct place *place, const struct sandbox_record *record,
          int *out, struct error **err)
{
  coffer_autoclose int dir = folder_open (place, 1, err), fd = -1;
  struct sandbox_record noted = *record;
  auto_free char *text = NULL;
  int done = 0;

  if (dir < 0)
    return -1;
  noted.owner_namespace = pid_namespace ();
  text = record_text (&noted);
  if (!text)
    return error_set (err, E_NO_MEMORY, 0, "a record");
  while (!done)
    if ((done = file_lock_new (dir, record->id, &fd)) < 0)
      return error_set (err, E_RECORDS, errno, "%s/runs/%s", place->runtime,
                        record->id);
  if (coffer_write_all (fd, text, strlen (text)) < 0) {
    error_set (err, E_RECORDS, errno, "%s/runs/%s", place->runtime,
               record->id);
    unlinkat (dir, record->id, 0);
    return -1;
  }
  *out = coffer_fd_steal (&fd);
  return 0;
}

static void
state_write (int fd, enum sandbox_state state)
{
  char digit = (char) ('0' + (int) state);
  /* A state that was not noted is the earlier one: no harm. */
  ssize_t n = pwrite (fd, &digit, 1, sizeof STATE_HEAD - 1);

  (void) n;
}

void
run_note_running (int fd)
{
  state_write (fd, SANDBOX_RUNNING);
}

void
run_drop (const struct place *place, const char *id)
{
  coffer_autoclose int dir = folder_open (place, 0, NULL);

  if (dir >= 0)
    unlinkat (dir, id, 0);
}

int
run_is (const struct sandbox_record *record)
{
  return record->owner_pid != 0 && !record->owner_where;
}

int
run_is_own (const struct sandbox_record *record)
{
  return run_is (record) && record->owner_pid == getpid ();
}

/* ---- everybody's side ---------------------------------------------------- */

static char *
text_of (const json_t *object, const char *key)
{
  const char *value = json_string_value (json_object_get (object, key));

  return value ? strdup (value) : NULL;
}

static int64_t
number_of (const json_t *object, const char *key)
{
  return (int64_t) json_integer_value (json_object_get (object, key));
}

/* NULL for what is no record of that id. */
static struct sandbox_record *
record_parse (const char *id, const char *bytes, size_t size)
{
  auto_json json_t *object = NULL;
  auto_sandbox_record struct sandbox_record *record = NULL;
  const char *named;

  if (json_parse (bytes, size, &object, NULL) < 0 || !json_is_object (object)
      || !(named = json_string_value (json_object_get (object, "id")))
      || strcmp (named, id) != 0
      || !(record = calloc (1, sizeof *record)))
    return NULL;
  memcpy (record->id, id, strlen (id) + 1);
  record->provider = text_of (object, "provider");
  record->tenant = text_of (object, "tenant");
  record->spec = text_of (object, "spec");
  record->owner_pid = number_of (object, "owner");
  record->owner_namespace = number_of (object, "pid_namespace");
  record->created_ns = number_of (object, "created_ns");
  record->deadline_ns = number_of (object, "deadline_ns");
  record->state = (enum sandbox_state) number_of (object, "state");
  if (!record->provider || !record->tenant || !record->spec
      || record->owner_pid <= 0 || (int) record->state < SANDBOX_CREATING
      || record->state > SANDBOX_LOST)
    return NULL;
  return steal (record);
}

/* One file as it is now; *record NULL when it holds nothing sensible. */
struct seen {
  int fd;                       /* the lock is ours unless `alive` */
  int alive;
  struct sandbox_record *record;
};

static void
seen_fini (struct seen *seen)
{
  sandbox_record_free (seen->record);
  coffer_fd_close (&seen->fd);
}
#define auto_seen __attribute__ ((cleanup (seen_fini)))

/* 1: seen; 0: no such file (any more); -1 with errno. */
static int
file_see (int dir, const char *id, struct seen *seen)
{
  auto_free char *bytes = NULL;
  size_t size = 0;
  struct stat st;

  *seen = (struct seen){
    openat (dir, id, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), 0, NULL
  };
  if (seen->fd < 0)
    return errno == ENOENT ? 0 : -1;
  if (fstat (seen->fd, &st) < 0)
    return -1;
  if (!S_ISREG (st.st_mode) || st.st_uid != geteuid ()) {
    errno = EPERM;
    return -1;
  }
  if (coffer_read_whole (seen->fd, RUN_MAX, &bytes, &size) < 0)
    return -1;
  seen->record = record_parse (id, bytes, size);
  /* After the reading: who holds it now is who wrote what was read. */
  if (flock (seen->fd, LOCK_EX | LOCK_NB) < 0) {
    if (errno != EWOULDBLOCK)
      return -1;
    seen->alive = 1;
  }
  return fstat (seen->fd, &st) == 0 && st.st_nlink > 0;
}

int
runs_find (const struct place *place, const char *id,
           struct sandbox_record **out, struct error **err)
{
  coffer_autoclose int dir = folder_open (place, 0, NULL);
  auto_seen struct seen seen = { -1, 0, NULL };
  int there;

  *out = NULL;
  if (dir < 0)
    return 0;
  there = file_see (dir, id, &seen);
  if (there < 0)
    return error_set (err, E_RECORDS, errno, "%s/runs/%s", place->runtime,
                      id);
  if (there && seen.alive)
    *out = steal (seen.record);
  return 0;
}

/* The ids there are.  Names that are none are nobody's of ours. */
static int
names_read (const struct place *place, int dir, struct coffer_strings *out,
            struct error **err)
{
  coffer_autoclose int fd
    = openat (dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *stream = fd < 0 ? NULL : fdopendir (fd);
  struct dirent *entry;

  if (!stream)
    return error_set (err, E_RECORDS, errno, "%s/runs", place->runtime);
  fd = -1;
  while ((entry = readdir (stream)))
    if (sandbox_id_valid (entry->d_name))
      coffer_strings_add (out, entry->d_name);
  closedir (stream);
  if (out->failed)
    return error_set (err, E_NO_MEMORY, 0, "the list of runs");
  return 0;
}

static int
record_order (const void *a, const void *b)
{
  const struct sandbox_record *const *x = a, *const *y = b;

  return strcmp ((*x)->id, (*y)->id);
}

static int
list_add (struct record_list *list, struct sandbox_record *take_record)
{
  struct sandbox_record **items
    = reallocarray (list->items, list->count + 1, sizeof *items);

  if (!items) {
    sandbox_record_free (take_record);
    return -1;
  }
  list->items = items;
  items[list->count++] = take_record;
  return 0;
}

int
runs_list (const struct place *place, struct record_list *out,
           struct error **err)
{
  coffer_autoclose int dir = folder_open (place, 0, NULL);
  coffer_autostrings struct coffer_strings names = { 0 };
  const char *const *name;

  if (dir < 0)
    return 0;
  if (names_read (place, dir, &names, err) < 0)
    return -1;
  for (name = coffer_strings_view (&names); name && *name; name++) {
    auto_seen struct seen seen = { -1, 0, NULL };

    if (file_see (dir, *name, &seen) == 1 && seen.alive && seen.record
        && list_add (out, steal (seen.record)) < 0)
      return error_set (err, E_NO_MEMORY, 0, "the list of runs");
  }
  if (out->count)
    qsort (out->items, out->count, sizeof *out->items, record_order);
  return 0;
}

/* The state and the deadline anew, under the lock that is ours. */
static void
file_rewrite (int fd, const struct sandbox_record *record)
{
  auto_free char *text = record_text (record);

  if (!text || ftruncate (fd, 0) < 0 || lseek (fd, 0, SEEK_SET) < 0
      || coffer_write_all (fd, text, strlen (text)) < 0)
    state_write (fd, record->state);
}

int
runs_visit_dead (const struct place *place, run_visit *visit, void *data,
                 struct error **err)
{
  coffer_autoclose int dir = folder_open (place, 0, NULL);
  coffer_autostrings struct coffer_strings names = { 0 };
  const char *const *name;

  if (dir < 0)
    return 0;
  if (names_read (place, dir, &names, err) < 0)
    return -1;
  for (name = coffer_strings_view (&names); name && *name; name++) {
    auto_seen struct seen seen = { -1, 0, NULL };
    enum sandbox_state before = SANDBOX_LOST;

    if (file_see (dir, *name, &seen) != 1 || seen.alive)
      continue;
    /* Nothing was begun before all of it was written. */
    if (seen.record)
      before = seen.record->state;
    if (!seen.record || visit (data, seen.record) == RUN_DROP)
      unlinkat (dir, *name, 0);
    else if (seen.record->state != before)
      file_rewrite (seen.fd, seen.record);
  }
  return 0;
}

/* ---- ending one from outside --------------------------------------------- */

/* The process that owns it: it held the lock before this was opened and holds
 * it after, so the number was not another's in between. */
static int
owner_open (int dir, const char *id, struct error **err)
{
  auto_seen struct seen first = { -1, 0, NULL };
  auto_seen struct seen again = { -1, 0, NULL };
  coffer_autoclose int pidfd = -1;

  if (file_see (dir, id, &first) != 1 || !first.alive || !first.record)
    return -1;
  if (first.record->owner_namespace != pid_namespace ())
    return error_set (err, E_BUSY, 0, "%s belongs to a process in another pid"
                      " namespace", id);
  pidfd = (int) syscall (SYS_pidfd_open, (pid_t) first.record->owner_pid, 0);
  if (pidfd < 0 || file_see (dir, id, &again) != 1 || !again.alive)
    return -1;
  return coffer_fd_steal (&pidfd);
}

int
run_end_owner (const struct place *place, const char *id, int64_t deadline_ns,
               struct error **err)
{
  coffer_autoclose int dir = folder_open (place, 0, NULL), pidfd = -1;
  struct error *error = NULL;
  int64_t patience = coffer_now_ns () + OWNER_PATIENCE_NS;

  if (dir < 0)
    return 0;
  pidfd = owner_open (dir, id, &error);
  if (pidfd < 0)
    return error ? error_move (err, error) : 0;
  syscall (SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0);
  if (patience > deadline_ns)
    patience = deadline_ns;
  if (coffer_wait_fd (pidfd, POLLIN, patience, -1) == 1)
    return 1;
  syscall (SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
  if (coffer_wait_fd (pidfd, POLLIN, coffer_now_ns () + OWNER_PATIENCE_NS, -1)
        != 1)
    return error_set (err, E_BUSY, 0, "the owner of %s does not end", id);
  unlinkat (dir, id, 0);
  return 1;
}
