/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a hostile module that are too much, or wrong: memory, descriptors,
 * output, records, answers. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hostile.h"

#define MIB (1 << 20)

/* ---- memory --------------------------------------------------------------- */

static int
fill (int fd)
{
  static char bytes[MIB];
  int mib = 0;

  while (mib < 512 && write (fd, bytes, sizeof bytes) == sizeof bytes)
    mib++;
  return mib;
}

static int
eat_files (void)
{
  int mib = 0, fd, i;

  for (i = 0; i < 4; i++) {
    fd = memfd_create ("eaten", MFD_CLOEXEC);
    if (fd < 0)
      fd = memfd_create ("eaten", MFD_CLOEXEC | 8);
    if (fd < 0)
      fd = open ("/dev/shm/coffer-hostile", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
      mib += fill (fd);
  }
  return mib;
}

/* KiB that the kernel keeps for it. */
static int
eat_pipes (void)
{
  static char bytes[MIB];
  int kib = 0, ends[2];
  ssize_t n;

  while (pipe2 (ends, O_NONBLOCK | O_CLOEXEC) == 0) {
    fcntl (ends[1], F_SETPIPE_SZ, MIB);
    n = write (ends[1], bytes, sizeof bytes);
    kib += n > 0 ? (int) (n / 1024) : 0;
  }
  return kib / 1024;
}

/* volatile: what nobody reads a compiler does not make. */
static void *volatile eaten;

static int
eat_heap (void)
{
  int mib = 0;
  char *p;

  while (mib < 2048 && (p = malloc (MIB))) {
    memset (p, 1, MIB);
    eaten = p;
    mib++;
  }
  return mib;
}

static int32_t
do_devour (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int mib = strcmp (arg, "files") == 0 ? eat_files ()
            : strcmp (arg, "pipes") == 0 ? eat_pipes () : eat_heap ();
  char text[32];

  (void) self;
  snprintf (text, sizeof text, "%d", mib);
  return say (call, "devour", "done", text);
}

/* ---- output --------------------------------------------------------------- */

/* Without end, until the call is cancelled. */
static int32_t
do_spew (struct coffer_call *call, struct hostile *self, const char *arg)
{
  static const char escapes[] = "\x1b[2J\x1b]0;owned\x07\x9b\x31m\r\b\x7f\n";
  static char bytes[4096];
  uint64_t count;
  size_t i;

  (void) self;
  fcntl (2, F_SETFL, 0);        /* so that it waits for room */
  for (i = 0; i < sizeof bytes; i++)
    bytes[i] = strcmp (arg, "line") == 0 ? 'x'
               : strcmp (arg, "lines") == 0 ? (i % 8 ? 'y' : '\n')
               : strcmp (arg, "escapes") == 0 ? escapes[i % (sizeof escapes - 1)]
               : (char) (i * 167 + i / 251);
  fcntl (call->cancel_fd, F_SETFL, O_NONBLOCK);
  while (read (call->cancel_fd, &count, sizeof count) < 0)
    if (strcmp (arg, "logs") == 0)
      coffer_log (call, COFFER_LOG_ERROR, "endless");
    else if (strcmp (arg, "progress") == 0)
      coffer_progress (call, 1, 2, escapes);
    else if (write (2, bytes, sizeof bytes) < 0 && errno != EAGAIN)
      break;
  return say (call, "spew", "done", "");
}

/* The secret, in pieces of ARG bytes: the log's, then of what is printed. */
static int32_t
do_split (struct coffer_call *call, struct hostile *self, const char *arg)
{
  size_t size = strtoul (arg, NULL, 10), at, length = strlen (self->secret);
  char piece[64];

  if (size == 0 || size >= sizeof piece)
    return COFFER_INVALID;
  for (at = 0; at < length; at += size) {
    snprintf (piece, size + 1, "%s", self->secret + at);
    coffer_log (call, at % 2 ? COFFER_LOG_INFO : COFFER_LOG_WARNING, piece);
  }
  for (at = 0; at < length; at += size)
    dprintf (2, "%.*s\n", (int) size, self->secret + at);
  /* In one line, and over the end of one that is too long. */
  for (at = 0; at < length; at += size)
    dprintf (2, "%.*s", (int) size, self->secret + at);
  dprintf (2, "\n%390s%s\n", "", self->secret);
  wait_call (call, 50);
  return say (call, "split", "done", "");
}

static void
encode (const char *secret, int how, char *out, size_t size)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrst"
                               "uvwxyz0123456789+/";
  const unsigned char *p = (const unsigned char *) secret;
  size_t n = 0, cut;

  for (; how == 1 && *p && n + 4 < size; p++)
    n += (size_t) snprintf (out + n, size - n, "%%%02X", *p);
  for (cut = 0; how == 2 && !cut && *p && n + 5 < size; p += 3) {
    unsigned char b[3] = { p[0], p[1], p[1] ? p[2] : 0 };
    cut = !b[1] ? 2 : !b[2] ? 1 : 0;
    out[n++] = digits[b[0] >> 2];
    out[n++] = digits[(b[0] & 3) << 4 | b[1] >> 4];
    out[n++] = digits[(b[1] & 15) << 2 | b[2] >> 6];
    out[n++] = digits[b[2] & 63];
    n -= cut;
  }
  out[n] = '\0';
  if (how == 0)
    snprintf (out, size, "%s", secret);
}

/* Plain, percent and base64, wherever a module can put a text. */
static int32_t
do_tell (struct coffer_call *call, struct hostile *self, const char *arg)
{
  char text[256], json[900];
  const char *list[] = { text, NULL };
  struct coffer_sandbox_info info = { .size = sizeof info, .sandbox = text,
                                      .metadata = list, .workspace = text };
  struct coffer_fact fact = { .size = sizeof fact, .name = text,
                              .state = text, .value = text, .how = text,
                              .remedy = text, .narrows = list };
  int how = atoi (arg);

  encode (self->secret, how, text, sizeof text);
  coffer_emit_fact (call, &fact);
  coffer_emit_sandbox_info (call, &info);
  coffer_log (call, COFFER_LOG_WARNING, text);
  coffer_progress (call, 1, 2, text);
  dprintf (1, "%s\n", text);
  snprintf (json, sizeof json, "{\"%s\":[\"%s\",{\"x\":\"-%s-\"}]}", text, text,
            text);
  return coffer_fail_with (call, COFFER_INTERNAL, COFFER_RETRY_NO, text, json);
}

/* ---- records -------------------------------------------------------------- */

static struct coffer_call *stale;

static void *
emit_late (void *data)
{
  (void) data;
  usleep (30000);
  for (int i = 0; i < 50; i++) {
    say (stale, "late", "done", "");
    usleep (1000);
  }
  return NULL;
}

/* Two pages, of which the second is none. */
static char *
edge (size_t before)
{
  char *page = mmap (NULL, 8192, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (page == MAP_FAILED)
    abort ();
  munmap (page + 4096, 4096);
  memset (page, 'u', 4096);
  return page + 4096 - before;
}

static int32_t
do_record (struct coffer_call *call, struct hostile *self, const char *arg)
{
  struct coffer_fact fact = { .size = sizeof fact, .name = "record",
                              .state = "done", .value = "" };
  struct coffer_exec_exit other = { .size = sizeof other, .exec = "none",
                                    .code = -7, .timed_out = 5 };
  struct coffer_stream stream = { .size = sizeof stream };
  static const char *endless[4096];
  pthread_t thread;
  char *p;
  int i;

  (void) self;
  if (strcmp (arg, "empty") == 0)
    fact.size = 0;
  else if (strcmp (arg, "small") == 0)
    fact.size = 1;
  else if (strcmp (arg, "huge") == 0)
    fact.size = UINT32_MAX;
  else if (strcmp (arg, "unmapped") == 0)
    fact.value = (const char *) 0x10;
  else if (strcmp (arg, "unterminated") == 0)
    fact.value = edge (64);
  else if (strcmp (arg, "cut") == 0) {
    p = edge (8);
    memcpy (p, &fact, 8);
    return call->host->emit (call, COFFER_REC_fact, p);
  } else if (strcmp (arg, "none") == 0)
    return call->host->emit (call, COFFER_REC_fact, NULL);
  else if (strcmp (arg, "other") == 0)
    return call->host->emit (call, COFFER_REC_exec_exit, &other);
  else if (strcmp (arg, "swapped") == 0)
    return call->host->emit (call, COFFER_REC_stream, &fact);
  else if (strcmp (arg, "list") == 0) {
    for (i = 0; i < 4096; i++)
      endless[i] = "many";
    fact.narrows = endless;     /* and no NULL behind them */
  } else if (strcmp (arg, "million") == 0) {
    for (i = 0; i < 1000000 && say (call, "one", "done", "") == COFFER_OK; i++)
      ;
    return COFFER_OK;
  } else if (strcmp (arg, "late") == 0) {
    stale = call;
    pthread_create (&thread, NULL, emit_late, NULL);
    return say (call, "late", "done", "");
  } else {
    stream.fd = strcmp (arg, "channel") == 0 ? CHANNEL
                : strcmp (arg, "folder") == 0 ? self->runtime_dir
                : strcmp (arg, "path") == 0 ? openat (self->runtime_dir, ".",
                                                      O_PATH)
                : strcmp (arg, "file") == 0
                ? openat (self->runtime_dir, "file", O_RDWR | O_CREAT, 0600)
                : strcmp (arg, "event") == 0 ? eventfd (0, 0)
                : strcmp (arg, "epoll") == 0 ? epoll_create1 (0)
                : strcmp (arg, "null") == 0 ? 0
                : strcmp (arg, "closed") == 0 ? 9999 : -5;
    return coffer_emit_stream (call, &stream);
  }
  return coffer_emit_fact (call, &fact);
}

/* Descriptors beside records, for as long as they are taken. */
static int32_t
do_streams (struct coffer_call *call, struct hostile *self, const char *arg)
{
  struct coffer_stream stream = { .size = sizeof stream };
  int i, n = atoi (arg), ends[2];

  (void) self;
  if (pipe (ends) < 0)
    return COFFER_LIMIT;
  stream.fd = ends[0];
  for (i = 0; i < n && coffer_emit_stream (call, &stream) == COFFER_OK; i++)
    ;
  close (ends[0]);
  close (ends[1]);
  return COFFER_OK;
}

/* ---- the channel ---------------------------------------------------------- */

static void
answer (const char *text)
{
  if (send (CHANNEL, text, strlen (text), MSG_NOSIGNAL) < 0)
    return;
}

static int32_t
do_channel (struct coffer_call *call, struct hostile *self, const char *arg)
{
  static char bytes[70000];
  char text[300];
  int pair[2];

  (void) self;
  if (strcmp (arg, "null") == 0) {
    dup2 (0, CHANNEL);
  } else if (strcmp (arg, "close") == 0) {
    close (CHANNEL);
  } else if (strcmp (arg, "loop") == 0) {
    if (socketpair (AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0)
      dup2 (pair[0], CHANNEL);
  } else if (strcmp (arg, "twice") == 0) {
    snprintf (text, sizeof text,
              "{\"kind\":\"done\",\"call\":%llu,\"code\":0}",
              (unsigned long long) call->request);
    answer (text);
    answer (text);
  } else if (strcmp (arg, "next") == 0) {
    for (uint64_t i = call->request; i < call->request + 10; i++) {
      snprintf (text, sizeof text,
                "{\"kind\":\"done\",\"call\":%llu,\"code\":0}",
                (unsigned long long) i);
      answer (text);
    }
  } else if (strcmp (arg, "order") == 0) {
    snprintf (text, sizeof text, "{\"kind\":\"whole\",\"call\":%llu}",
              (unsigned long long) call->request);
    answer (text);
  } else if (strcmp (arg, "nested") == 0) {
    snprintf (text, sizeof text,
              "{\"kind\":\"part\",\"call\":%llu,\"text\":\"{\\\"kind\\\":"
              "\\\"whole\\\",\\\"call\\\":%llu}\"}",
              (unsigned long long) call->request,
              (unsigned long long) call->request);
    answer (text);
    snprintf (text, sizeof text, "{\"kind\":\"whole\",\"call\":%llu}",
              (unsigned long long) call->request);
    answer (text);
  } else if (strcmp (arg, "parts") == 0) {
    snprintf (bytes, sizeof bytes,
              "{\"kind\":\"part\",\"call\":%llu,\"text\":\"%060000d\"}",
              (unsigned long long) call->request, 0);
    for (int i = 0; i < 1000; i++)
      answer (bytes);
  } else if (strcmp (arg, "values") == 0) {
    size_t n = (size_t) snprintf (bytes, sizeof bytes,
                                  "{\"kind\":\"log\",\"call\":%llu,\"x\":[[]",
                                  (unsigned long long) call->request);
    while (n < 65000)
      n += (size_t) snprintf (bytes + n, sizeof bytes - n, ",[]");
    strcpy (bytes + n, "]}");
    for (int i = 0; i < 300; i++)
      answer (bytes);
  }
  wait_call (call, 3000);
  return say (call, "channel", "done", "");
}

/* Into a stream of a command that is over. */
static int32_t
do_later (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) arg;
  return report (call, "later", write (self->kept, "later\n", 6));
}

const struct word noise_words[] = {
  { "devour", do_devour }, { "spew", do_spew }, { "split", do_split },
  { "tell", do_tell }, { "record", do_record }, { "streams", do_streams },
  { "channel", do_channel }, { "later", do_later }, { NULL, NULL }
};
