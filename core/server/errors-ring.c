/* SPDX-License-Identifier: Apache-2.0 */
/* A list in order of time, and a file that lines are added to until it is
 * twice as long as the list can be: then it is written anew. */

#include <config.h>

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>
#include <coffer/path.h>

#include "base/log.h"
#include "base/place.h"
#include "server/audit.h"
#include "base/text.h"
#include "server/errors-ring.h"

#define MESSAGE_MAX 1000        /* bytes of it that are kept */
#define FILE_MAX (8 << 20)

struct item {
  int64_t time_ns;
  char *tenant;
  json_t *json;                 /* as it is shown and written */
};

struct errors_ring {
  pthread_mutex_t lock;         /* all below */
  struct item items[ERRORS_RING_MAX];   /* the oldest first */
  size_t count;
  int folder, fd;               /* fd -1: in memory alone */
  size_t lines;                 /* of the file */
};

static void
item_fini (struct item *item)
{
  free (item->tenant);
  json_decref (item->json);
}

static void
item_drop_locked (struct errors_ring *ring, size_t i)
{
  item_fini (&ring->items[i]);
  ring->count--;
  memmove (&ring->items[i], &ring->items[i + 1],
           (ring->count - i) * sizeof ring->items[0]);
}

/* Takes the item, in the place of the oldest one that has to go. */
static void
item_add_locked (struct errors_ring *ring, struct item *take_item)
{
  size_t i, of_tenant = 0, oldest = 0;

  for (i = ring->count; i-- > 0;)
    if (strcmp (ring->items[i].tenant, take_item->tenant) == 0) {
      of_tenant++;
      oldest = i;
    }
  if (of_tenant >= ERRORS_RING_TENANT_MAX)
    item_drop_locked (ring, oldest);
  else if (ring->count == ERRORS_RING_MAX)
    item_drop_locked (ring, 0);
  ring->items[ring->count++] = *take_item;
  *take_item = (struct item){ 0 };
}

/* ---- the file ------------------------------------------------------------ */

/* A line as it was written; -1: anything else. */
static int
line_parse (const char *line, size_t size, struct item *out)
{
  auto_json json_t *json = NULL;
  json_t *time;
  const char *tenant;

  if (json_parse (line, size, &json, NULL) < 0)
    return -1;
  tenant = json_string_value (json_object_get (json, "tenant"));
  time = json_object_get (json, "time_ns");
  if (tenant == NULL || !json_is_integer (time)
      || !json_is_string (json_object_get (json, "message")))
    return -1;
  out->time_ns = json_integer_value (time);
  out->tenant = strdup (tenant);
  if (out->tenant == NULL)
    return -1;
  out->json = steal (json);
  return 0;
}

static void
lines_take (struct errors_ring *ring, const char *text, size_t size)
{
  const char *end = text + size, *newline;
  size_t bad = 0;

  for (; text < end; text = newline + 1) {
    struct item item = { 0 };

    newline = memchr (text, '\n', (size_t) (end - text));
    if (newline == NULL)
      newline = end;
    ring->lines++;
    if (line_parse (text, (size_t) (newline - text), &item) == 0)
      item_add_locked (ring, &item);
    else if (newline > text)
      bad++;
  }
  if (bad)
    log_event (LOG_LEVEL_WARNING, "errors", ERRORS_RING_FILE
               ": %zu lines are no errors and were left out", bad);
}

static int
text_all (const struct errors_ring *ring, struct coffer_buffer *out)
{
  size_t i;

  for (i = 0; i < ring->count; i++) {
    auto_free char *line = json_text (ring->items[i].json);

    if (line == NULL)
      return -1;
    coffer_buffer_add_string (out, line);
    coffer_buffer_add_string (out, "\n");
  }
  return out->failed ? -1 : 0;
}

/* All that is kept, in a new file that takes the old one's place. */
static int
file_renew_locked (struct errors_ring *ring)
{
  coffer_autobuffer struct coffer_buffer text = { 0 };
  struct coffer_new_file file = { 0 };
  int fd;

  if (text_all (ring, &text) < 0)
    return -1;
  fd = coffer_new_file_begin (&file, ring->folder, ERRORS_RING_FILE, 0600, 0);
  if (fd < 0)
    return -1;
  if (coffer_write_all (fd, text.data ? text.data : "", text.size) < 0
      || coffer_new_file_commit (&file, 1, 0) < 0) {
    coffer_new_file_abort (&file);
    return -1;
  }
  coffer_fd_close (&ring->fd);
  ring->fd = openat (ring->folder, ERRORS_RING_FILE,
                     O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
  ring->lines = ring->count;
  return ring->fd < 0 ? -1 : 0;
}

static void
file_failed_locked (struct errors_ring *ring)
{
  log_event (LOG_LEVEL_WARNING, "errors", ERRORS_RING_FILE
             " cannot be written: %s; what comes is kept until the end of the "
             "daemon", strerror (errno));
  coffer_fd_close (&ring->fd);
}

static void
file_add_locked (struct errors_ring *ring, const json_t *json)
{
  coffer_autobuffer struct coffer_buffer out = { 0 };
  auto_free char *text = json_text (json);

  if (ring->fd < 0 || text == NULL)
    return;
  coffer_buffer_printf (&out, "%s\n", text);
  /* A full disk loses a line and no more: the next may fit again.  What is torn
   * is left out when it is read. */
  if (!out.failed && write (ring->fd, out.data, out.size) > 0)
    ring->lines++;
  if (ring->lines >= 2 * ERRORS_RING_MAX && file_renew_locked (ring) < 0)
    file_failed_locked (ring);
}

int
errors_ring_open (int folder, struct errors_ring **out, struct error **err)
{
  struct errors_ring *ring = calloc (1, sizeof *ring);
  auto_error struct error *error = NULL;
  auto_free char *text = NULL;
  size_t size = 0;

  if (ring == NULL)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  pthread_mutex_init (&ring->lock, NULL);
  ring->fd = -1;
  ring->folder = fcntl (folder, F_DUPFD_CLOEXEC, 3);
  if (place_read_trusted (folder, ERRORS_RING_FILE, ERRORS_RING_FILE, FILE_MAX,
                          E_IO, &text, &size, &error) == 0)
    lines_take (ring, text, size);
  else if (error->sys_errno != ENOENT)
    log_event (LOG_LEVEL_WARNING, "errors", "%s", error_message (error));
  if (ring->folder < 0 || file_renew_locked (ring) < 0)
    file_failed_locked (ring);
  *out = ring;
  return 0;
}

void
errors_ring_free (struct errors_ring *ring)
{
  size_t i;

  if (ring == NULL)
    return;
  for (i = 0; i < ring->count; i++)
    item_fini (&ring->items[i]);
  coffer_fd_close (&ring->fd);
  coffer_fd_close (&ring->folder);
  pthread_mutex_destroy (&ring->lock);
  free (ring);
}

/* ---- what is in it ------------------------------------------------------- */

static json_t *
item_json (const struct error *error, int64_t time_ns, const char *tenant,
           const char *request)
{
  const struct error_info *info = error_lookup (error->number);
  const char *message = error_message (error);
  size_t size = strnlen (message, MESSAGE_MAX);
  auto_free char *code = NULL, *shown = NULL;
  char time[AUDIT_TIME_SIZE];

  /* Not in the middle of a character. */
  while (size > 0 && message[size] && ((unsigned char) message[size] & 0xc0)
                                        == 0x80)
    size--;
  audit_time (time_ns, time);
  code = text_printf ("E%04d", error->number);
  shown = text_escape (message, size);
  return json_pack ("{s:s, s:I, s:s, s:s, s:s, s:s, s:s}", "time", time,
                    "time_ns", (json_int_t) time_ns, "type",
                    info ? info->name : "UNKNOWN", "code", code ? code : "",
                    "message", shown ? shown : "", "tenant", tenant,
                    "request_id", request);
}

void
errors_ring_add (struct errors_ring *ring, const struct error *error,
                 const char *tenant, const char *request)
{
  struct item item = { .time_ns = coffer_realtime_ns () };

  tenant = tenant ? tenant : "";
  item.tenant = strdup (tenant);
  item.json = item_json (error, item.time_ns, tenant, request ? request : "");
  if (item.tenant == NULL || item.json == NULL) {
    item_fini (&item);
    return;
  }
  pthread_mutex_lock (&ring->lock);
  item_add_locked (ring, &item);
  file_add_locked (ring, ring->items[ring->count - 1].json);
  pthread_mutex_unlock (&ring->lock);
}

json_t *
errors_ring_list (struct errors_ring *ring, const char *tenant, size_t limit)
{
  auto_json json_t *list = json_array ();
  int bad = list == NULL;
  size_t i;

  pthread_mutex_lock (&ring->lock);
  for (i = ring->count; !bad && i-- > 0 && json_array_size (list) < limit;) {
    json_t *copy;

    if (strcmp (ring->items[i].tenant, tenant) != 0)
      continue;
    copy = json_deep_copy (ring->items[i].json);
    json_object_del (copy, "time_ns");
    bad = json_array_append_new (list, copy) < 0;
  }
  pthread_mutex_unlock (&ring->lock);
  return bad ? NULL : steal (list);
}

size_t
errors_ring_count (struct errors_ring *ring, const char *tenant,
                   int64_t since_ns)
{
  size_t i, n = 0;

  pthread_mutex_lock (&ring->lock);
  for (i = 0; i < ring->count; i++)
    n += ring->items[i].time_ns >= since_ns
         && strcmp (ring->items[i].tenant, tenant) == 0;
  pthread_mutex_unlock (&ring->lock);
  return n;
}
