/* SPDX-License-Identifier: Apache-2.0 */
/* Frames.  The other side is never trusted: not the host's frames by the
 * worker (a bug there must not become a crash here), and still less the other
 * way round. */

#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "provider/channel.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define SMALL 2048              /* of what needs no memory from the heap */
#define PIECE 30000             /* bytes, which in a string may be twice that */
#define VALUE_BYTES 128         /* of one value in memory */
#define MAX_FDS (CONTRACT_MAX_FDS + 1)  /* and the payload's */

union control {
  struct cmsghdr header;
  /* One more than may come, so that one too many is seen and closed. */
  char bytes[CMSG_SPACE (sizeof (int) * (MAX_FDS + 1))];
};

static void
close_all (struct contract_fds *fds)
{
  while (fds->count > 0)
    close (fds->fd[--fds->count]);
}

void
channel_message_fini (struct channel_message *message)
{
  json_decref (message->json);
  message->json = NULL;
  close_all (&message->fds);
}

static int
protocol (struct error **err, const char *what)
{
  return error_set (err, E_PROVIDER_PROTOCOL, 0, "channel: %s", what);
}

/* ---- sending ------------------------------------------------------------- */

static int
send_frame (int channel, const char *bytes, size_t size, const int *fds,
            int count, int64_t deadline_ns, struct error **err)
{
  union control control;
  struct iovec iov = { .iov_base = (void *) bytes, .iov_len = size };
  struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
  struct cmsghdr *cmsg;
  int flags = MSG_NOSIGNAL | (deadline_ns ? MSG_DONTWAIT : 0);

  if (count > 0) {
    memset (&control, 0, sizeof control);
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE (sizeof (int) * count);
    cmsg = CMSG_FIRSTHDR (&header);
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN (sizeof (int) * count);
    memcpy (CMSG_DATA (cmsg), fds, sizeof (int) * count);
  }
  while (coffer_send_message (channel, &header, flags) < 0) {
    /* Of others on their way there are too many; these come before long. */
    if (errno == ETOOMANYREFS && coffer_now_ns () < deadline_ns) {
      poll (NULL, 0, 5);
      continue;
    }
    if (errno != EAGAIN
        || coffer_wait_fd (channel, POLLOUT, deadline_ns, -1) <= 0)
      return error_set (err, E_IO, errno, "send a frame");
  }
  return 0;
}

static int
send_payload (int channel, const char *text, size_t size,
              const struct contract_fds *fds, int64_t deadline_ns,
              struct error **err)
{
  coffer_autoclose int payload = -1;
  int all[MAX_FDS], count = fds ? fds->count : 0;
  auto_free char *frame = text_printf ("{\"payload\":%zu}", size);

  if (size > CHANNEL_MAX_PAYLOAD)
    return error_set (err, E_LIMIT, 0,
                      "%zu bytes are more than one call carries", size);
  payload = coffer_memfd_sealed ("coffer-payload", text, size);
  if (payload < 0 || !frame)
    return error_set (err, E_IO, errno, "make a memory file");
  if (count > 0)
    memcpy (all, fds->fd, sizeof (int) * count);
  all[count] = payload;
  return send_frame (channel, frame, strlen (frame), all, count + 1,
                     deadline_ns, err);
}

/* The text of an object: in `small`, or in *large, which the caller frees. */
static const char *
frame_text (const json_t *json, char small[SMALL], char **large, size_t *size,
            struct error **err)
{
  *size = json_dumpb (json, small, SMALL, JSON_COMPACT);
  if (*size > 0 && *size <= SMALL)
    return small;
  if (*size == 0)
    error_set (err, E_INTERNAL, 0, "a frame that is no JSON");
  else if (!(*large = json_dumps (json, JSON_COMPACT)))
    error_set (err, E_NO_MEMORY, 0, "out of memory");
  else
    *size = strlen (*large);
  return *large;
}

int
channel_send (int channel, const json_t *json,
              const struct contract_fds *fds, int64_t deadline_ns,
              struct error **err)
{
  char small[SMALL];
  auto_free char *large = NULL;
  size_t size;
  const char *text = frame_text (json, small, &large, &size, err);
  int r;

  if (!text)
    return -1;
  r = size > CHANNEL_MAX_FRAME
        ? send_payload (channel, text, size, fds, deadline_ns, err)
        : send_frame (channel, text, size, fds ? fds->fd : NULL,
                      fds ? fds->count : 0, deadline_ns, err);
  explicit_bzero (large ? large : small, size);         /* a start has secrets */
  return r;
}

/* As much of a text as one frame takes; no character is cut. */
static size_t
piece_size (const char *text, size_t left)
{
  size_t size = left < PIECE ? left : PIECE;

  while (size < left && size > 1 && ((unsigned char) text[size] & 0xC0) == 0x80)
    size--;
  return size;
}

static int
send_pieces (int channel, json_int_t call, const char *text, size_t left,
             const struct contract_fds *fds, struct error **err)
{
  auto_json json_t *whole
    = json_pack ("{s:s, s:I}", "kind", "whole", "call", call);
  size_t size;

  if (left > CHANNEL_MAX_PAYLOAD)
    return error_set (err, E_LIMIT, 0,
                      "%zu bytes are more than one call carries", left);
  for (; left > 0; text += size, left -= size) {
    auto_json json_t *part = NULL;
    size = piece_size (text, left);
    part = json_pack ("{s:s, s:I, s:o}", "kind", "part", "call", call, "text",
                      json_bytes (text, size));
    if (!part || channel_send (channel, part, NULL, 0, err) < 0)
      return -1;
  }
  return channel_send (channel, whole, fds, 0, err);
}

int
channel_send_call (int channel, const json_t *json,
                   const struct contract_fds *fds, struct error **err)
{
  /* Pieces of two texts of one call must not mix. */
  static pthread_mutex_t pieces = PTHREAD_MUTEX_INITIALIZER;
  char small[SMALL];
  auto_free char *large = NULL;
  size_t size;
  const char *text = frame_text (json, small, &large, &size, err);
  int result;

  if (!text)
    return -1;
  if (size <= CHANNEL_MAX_FRAME)
    return send_frame (channel, text, size, fds ? fds->fd : NULL,
                       fds ? fds->count : 0, 0, err);
  pthread_mutex_lock (&pieces);
  result = send_pieces (channel, channel_integer (json, "call", -1), text,
                        size, fds, err);
  pthread_mutex_unlock (&pieces);
  return result;
}

/* ---- receiving ----------------------------------------------------------- */

/* All descriptors of a message, so that none is lost, counted beyond what may
 * be there. */
static int
take_fds (struct msghdr *header, int fds[MAX_FDS + 1])
{
  struct cmsghdr *cmsg;
  int count = 0;

  for (cmsg = CMSG_FIRSTHDR (header); cmsg;
       cmsg = CMSG_NXTHDR (header, cmsg)) {
    int n = (int) ((cmsg->cmsg_len - CMSG_LEN (0)) / sizeof (int));
    if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS
        || n > MAX_FDS + 1 - count)
      continue;
    memcpy (fds + count, CMSG_DATA (cmsg), sizeof (int) * n);
    count += n;
  }
  return count;
}

static int
read_payload (int fd, size_t size, char **out, struct error **err)
{
  auto_free char *bytes = NULL;
  struct stat st;
  size_t done = 0;
  int seals = fcntl (fd, F_GET_SEALS);
  ssize_t n;

  if (seals < 0 || (seals & SEALS) != SEALS || fstat (fd, &st) < 0
      || st.st_size < 0 || (uint64_t) st.st_size != size)
    return protocol (err, "a payload that is not sealed, or of another size");
  bytes = malloc (size + 1);
  if (!bytes)
    return error_set (err, E_NO_MEMORY, 0, "out of memory");
  while (done < size) {
    n = pread (fd, bytes + done, size - done, done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return protocol (err, "a payload that cannot be read");
    done += n;
  }
  bytes[size] = '\0';
  *out = steal (bytes);
  return 0;
}

/* {"payload":SIZE} becomes the object in its file. */
static int
open_payload (json_t **json, int fd, size_t *count, struct error **err)
{
  auto_free char *bytes = NULL;
  int64_t size = channel_integer (*json, "payload", -1);
  json_t *inner;

  if (size <= CHANNEL_MAX_FRAME || size > CHANNEL_MAX_PAYLOAD
      || json_object_size (*json) != 1)
    return protocol (err, "a payload of no proper size");
  if (read_payload (fd, (size_t) size, &bytes, err) < 0)
    return -1;
  if (json_parse_counted (bytes, (size_t) size, &inner, count, NULL) < 0)
    return protocol (err, "a payload that is no JSON");
  *count += (size_t) size / VALUE_BYTES;
  json_decref (*json);
  *json = inner;
  return 0;
}

static int
decode_object (const char *bytes, size_t size, int *fds, int *count,
               json_t **json, size_t *values, struct error **err)
{
  int result;

  if (json_parse_counted (bytes, size, json, values, NULL) < 0)
    return protocol (err, "a frame that is no JSON");
  if (!json_object_get (*json, "payload"))
    return 0;
  if (*count == 0)
    return protocol (err, "a payload without its file");
  result = open_payload (json, fds[*count - 1], values, err);
  close (fds[--*count]);
  return result;
}

int
channel_decode (const char *bytes, size_t size, int *take_fds, int count,
                struct channel_message *out, struct error **err)
{
  struct channel_message message = { .json = NULL };
  size_t values = 0;
  int result = decode_object (bytes, size, take_fds, &count, &message.json,
                              &values, err);

  if (result == 0 && count > CONTRACT_MAX_FDS)
    result = protocol (err, "a frame with too many descriptors");
  if (result == 0 && !channel_kind (&message))
    result = protocol (err, "a frame without a kind");
  if (result < 0) {
    while (count > 0)
      close (take_fds[--count]);
    json_decref (message.json);
    return -1;
  }
  memcpy (message.fds.fd, take_fds, sizeof (int) * count);
  message.fds.count = count;
  message.weight = size + values * VALUE_BYTES;
  *out = message;
  return 0;
}

int
channel_receive (int channel, int wait, struct channel_message *out,
                 struct error **err)
{
  /* Nor in thread-local storage, which each start of the program and of a
   * thread would pay for. */
  coffer_unfilled char buffer[CHANNEL_MAX_FRAME];
  struct iovec iov = { .iov_base = buffer, .iov_len = sizeof buffer };
  union control control;
  struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes };
  int fds[MAX_FDS + 1], count, i;
  ssize_t n;

  do
    n = recvmsg (channel, &header,
                 MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN && !wait)
    return -1;
  if (n < 0 && errno == ECONNRESET)
    return 0;
  if (n < 0)
    return error_set (err, E_IO, errno, "receive a frame");
  count = take_fds (&header, fds);
  if (n == 0 && count == 0)
    return 0;
  if (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
    for (i = 0; i < count; i++)
      close (fds[i]);
    return protocol (err, "a frame that is too long");
  }
  return channel_decode (buffer, n, fds, count, out, err) < 0 ? -1 : 1;
}

/* ---- fields --------------------------------------------------------------- */

const char *
channel_kind (const struct channel_message *message)
{
  return json_string_value (json_object_get (message->json, "kind"));
}

int64_t
channel_integer (const json_t *json, const char *key, int64_t otherwise)
{
  const json_t *value = json_object_get (json, key);

  return json_is_integer (value) ? json_integer_value (value) : otherwise;
}

/* NULL as well when the bytes hold a NUL. */
static char *
value_bytes (const json_t *value)
{
  const json_t *coded = json_object_get (value, "b64");
  char *bytes = NULL;
  size_t size = 0;

  if (json_is_string (value)) {
    if (strlen (json_string_value (value)) != json_string_length (value))
      return NULL;
    return strdup (json_string_value (value));
  }
  if (!json_is_string (coded)
      || text_base64_decode (json_string_value (coded), &bytes, &size) < 0)
    return NULL;
  if (size == 0 || memchr (bytes, '\0', size)) {
    free (bytes);
    return NULL;
  }
  return bytes;
}

char *
channel_bytes (const json_t *json, const char *key)
{
  return value_bytes (json_object_get (json, key));
}

char **
channel_byte_list (const json_t *json, const char *key)
{
  const json_t *array = json_object_get (json, key), *item;
  size_t i, n = json_array_size (array);
  char **list = calloc (n + 1, sizeof *list);

  for (i = 0; list && i < n; i++) {
    item = json_array_get (array, i);
    list[i] = value_bytes (item);
    if (!list[i]) {
      channel_free_list (list);
      return NULL;
    }
  }
  return list;
}

void
channel_free_list (char **list)
{
  size_t i;

  for (i = 0; list && list[i]; i++)
    free (list[i]);
  free (list);
}

json_t *
channel_from_list (char *const *list)
{
  json_t *array = json_array ();

  for (; list && *list; list++)
    json_array_append_new (array, json_bytes (*list, strlen (*list)));
  return array;
}
