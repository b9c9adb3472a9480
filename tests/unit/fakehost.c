/* SPDX-License-Identifier: Apache-2.0 */
/* The host table of the tests.  Copies of records are made field by field
 * from the contract's table, so that a field that is added is copied too. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "fakehost.h"

/* A test has no use for going on without memory. */
static void *
need (void *p)
{
  if (!p)
    abort ();
  return p;
}

static const char *
copy_string (const char *s)
{
  return s ? need (strdup (s)) : NULL;
}

static const char *const *
copy_vector (const char *const *v)
{
  size_t n = 0;
  const char **copy;

  if (!v)
    return NULL;
  while (v[n])
    n++;
  copy = need (calloc (n + 1, sizeof *copy));
  for (size_t i = 0; i < n; i++)
    copy[i] = copy_string (v[i]);
  return copy;
}

static void
free_vector (const char *const *v)
{
  for (size_t i = 0; v && v[i]; i++)
    free ((void *) v[i]);
  free ((void *) v);
}

static int32_t
copy_descriptor (int32_t fd)
{
  return fd < 0 ? -1 : fcntl (fd, F_DUPFD_CLOEXEC, 0);
}

#define KEEP(value) (value)
#define DROP(value) ((void) (value))
#define COPY_str copy_string
#define COPY_text copy_string
#define COPY_strv copy_vector
#define COPY_i32 KEEP
#define COPY_i64 KEEP
#define COPY_u32 KEEP
#define COPY_u64 KEEP
#define COPY_f64 KEEP
#define COPY_flag KEEP
#define COPY_fd copy_descriptor
#define FREE_str(s) free ((void *) (s))
#define FREE_text(s) free ((void *) (s))
#define FREE_strv(v) free_vector (v)
#define FREE_i32 DROP
#define FREE_i64 DROP
#define FREE_u32 DROP
#define FREE_u64 DROP
#define FREE_f64 DROP
#define FREE_flag DROP
#define FREE_fd(fd) ((fd) >= 0 ? (void) close (fd) : (void) 0)

/* Fields that are records themselves are not emitted by any operation. */
#define IGNORE_RFIELD(type, record, name, since, doc)

#define HAS(record, name)                                                     \
  ((record)->size >= __builtin_offsetof (__typeof__ (*(record)), name) +      \
                       sizeof (record)->name)
#define COPY_FIELD(type, name, since, doc)                                    \
  if (HAS (from, name))                                                       \
    to->name = COPY_##type (from->name);
#define FREE_FIELD(type, name, since, doc) FREE_##type (record->name);

#define DEFINE_RECORD(id, name, since, FIELDS, doc)                           \
  static void *copy_##name (const void *data)                                 \
  {                                                                           \
    const struct coffer_##name *from = data;                                  \
    struct coffer_##name *to = need (calloc (1, sizeof *to));                 \
    to->size = sizeof *to;                                                    \
    FIELDS (COPY_FIELD, IGNORE_RFIELD)                                        \
    return to;                                                                \
  }                                                                           \
  static void free_##name (void *data)                                        \
  {                                                                           \
    struct coffer_##name *record = data;                                      \
    FIELDS (FREE_FIELD, IGNORE_RFIELD)                                        \
    free (record);                                                            \
  }
COFFER_RECORDS (DEFINE_RECORD)

static void *
copy_record (uint32_t record, const void *data)
{
#define CASE(id, name, since, FIELDS, doc)                                    \
  case id: return copy_##name (data);
  switch (record) {
    COFFER_RECORDS (CASE)
  }
#undef CASE
  abort ();                     /* the provider emitted what is no record */
}

static void
free_record (uint32_t record, void *data)
{
#define CASE(id, name, since, FIELDS, doc)                                    \
  case id: free_##name (data); return;
  switch (record) {
    COFFER_RECORDS (CASE)
  }
#undef CASE
}

static struct fakehost *
host_of (struct coffer_call *call)
{
  return (struct fakehost *) call;
}

static int32_t
fake_emit (struct coffer_call *call, uint32_t record, const void *data)
{
  struct fakehost *host = host_of (call);
  struct fakehost_emit *emits;

  emits = reallocarray (host->emits, host->count + 1, sizeof *emits);
  host->emits = need (emits);
  host->emits[host->count++] =
    (struct fakehost_emit) {record, copy_record (record, data)};
  return host->emit_answer;
}

static int32_t
fake_fail (struct coffer_call *call, int32_t code, int32_t retryable,
           const char *message, const char *details)
{
  struct fakehost *host = host_of (call);

  host->failures++;
  host->code = code;
  host->retryable = retryable;
  free (host->message);
  free (host->details);
  host->message = (char *) copy_string (message);
  host->details = (char *) copy_string (details);
  return code;
}

static void
fake_log (struct coffer_call *call, int32_t level, const char *text)
{
  coffer_strings_printf (&host_of (call)->logs, "%d %s", level, text);
}

static void
fake_progress (struct coffer_call *call, uint64_t done, uint64_t total,
               const char *what)
{
  (void) done, (void) total, (void) what;
  host_of (call)->progress++;
}

static int32_t
fake_connect (struct coffer_call *call, const char *target)
{
  struct fakehost *host = host_of (call);

  return host->connect ? host->connect (host, target) : -COFFER_UNSUPPORTED;
}

static int32_t
fake_file (struct coffer_call *call, const char *name)
{
  (void) call;
  (void) name;
  return -COFFER_NOT_FOUND;
}

static int32_t
fake_opened (struct coffer_call *call, void *self)
{
  host_of (call)->self = self;
  return COFFER_OK;
}

static const struct coffer_host host_table = {
  .size = sizeof host_table,
  .emit = fake_emit,
  .fail = fake_fail,
  .log = fake_log,
  .progress = fake_progress,
  .connect = fake_connect,
  .opened = fake_opened,
  .file = fake_file,
};

static void
start_call (struct fakehost *host, int64_t timeout_ms)
{
  static uint64_t request;

  if (pipe2 (host->cancel, O_CLOEXEC) < 0)
    abort ();
  host->call = (struct coffer_call) {
    .size = sizeof host->call,
    .host = &host_table,
    .request = __atomic_add_fetch (&request, 1, __ATOMIC_RELAXED),
    .deadline_ns = coffer_now_ns () + timeout_ms * 1000000,
    .cancel_fd = host->cancel[0],
  };
}

static void
end_call (struct fakehost *host)
{
  for (size_t i = 0; i < host->count; i++)
    free_record (host->emits[i].record, host->emits[i].data);
  free (host->emits);
  free (host->message);
  free (host->details);
  coffer_strings_free (&host->logs);
  coffer_fd_close (&host->cancel[0]);
  coffer_fd_close (&host->cancel[1]);
}

void
fakehost_init (struct fakehost *host, int64_t timeout_ms)
{
  memset (host, 0, sizeof *host);
  start_call (host, timeout_ms);
}

void
fakehost_reset (struct fakehost *host, int64_t timeout_ms)
{
  void *self = host->self;

  end_call (host);
  fakehost_init (host, timeout_ms);
  host->self = self;
}

void
fakehost_fini (struct fakehost *host)
{
  end_call (host);
}

void
fakehost_cancel (struct fakehost *host)
{
  if (write (host->cancel[1], "", 1) != 1)
    abort ();
}

size_t
fakehost_count (const struct fakehost *host, uint32_t record)
{
  size_t n = 0;

  for (size_t i = 0; i < host->count; i++)
    n += host->emits[i].record == record;
  return n;
}

const void *
fakehost_record (const struct fakehost *host, uint32_t record, size_t index)
{
  for (size_t i = 0; i < host->count; i++)
    if (host->emits[i].record == record && index-- == 0)
      return host->emits[i].data;
  return NULL;
}

const struct coffer_fact *
fakehost_fact (const struct fakehost *host, const char *name)
{
  const struct coffer_fact *fact;

  for (size_t i = 0; (fact = FAKEHOST_GET (host, fact, i)); i++)
    if (fact->name && strcmp (fact->name, name) == 0)
      return fact;
  return NULL;
}

int
fakehost_logged (const struct fakehost *host, const char *text)
{
  for (size_t i = 0; i < host->logs.count; i++)
    if (strstr (host->logs.items[i], text))
      return 1;
  return 0;
}
