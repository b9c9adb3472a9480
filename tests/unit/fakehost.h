/* SPDX-License-Identifier: Apache-2.0 */
/* A host for tests that call a provider's operations directly: it records
 * what a call emits, says and fails with.  One fakehost serves one call at a
 * time; a test with concurrent calls makes one each.  Records are copied, with
 * all they point at, and live until fakehost_reset. */

#ifndef TESTS_FAKEHOST_H
#define TESTS_FAKEHOST_H

#include <coffer/buffer.h>
#include <coffer/provider.h>

struct fakehost_emit {
  uint32_t record;              /* COFFER_REC_... */
  void *data;
};

struct fakehost {
  struct coffer_call call;      /* first: pass &host.call */
  int cancel[2];
  struct fakehost_emit *emits;
  size_t count;
  unsigned failures;            /* times the call failed: at most 1 is right */
  int32_t code;                 /* of the last failure; COFFER_OK: none */
  int32_t retryable;
  char *message;
  char *details;
  struct coffer_strings logs;   /* "LEVEL TEXT", LEVEL a digit */
  unsigned progress;
  void *self;                   /* what `open` handed over */
  int32_t emit_answer;          /* returned by every emit; COFFER_OK */
  /* What coffer_connect answers; NULL: minus UNSUPPORTED. */
  int32_t (*connect) (struct fakehost *host, const char *target);
};

/* The deadline is timeout_ms from now. */
void fakehost_init (struct fakehost *host, int64_t timeout_ms);
/* Forgets all but `self`, and sets a new deadline. */
void fakehost_reset (struct fakehost *host, int64_t timeout_ms);
void fakehost_fini (struct fakehost *host);

/* Makes cancel_fd readable. */
void fakehost_cancel (struct fakehost *host);

size_t fakehost_count (const struct fakehost *host, uint32_t record);
/* The index-th record of this kind, or NULL. */
const void *fakehost_record (const struct fakehost *host, uint32_t record,
                             size_t index);
#define FAKEHOST_GET(host, name, index)                                       \
  ((const struct coffer_##name *) fakehost_record (host, COFFER_REC_##name,   \
                                                   index))

/* The fact of this name, or NULL. */
const struct coffer_fact *fakehost_fact (const struct fakehost *host,
                                         const char *name);
/* 1 when a log line contains `text`. */
int fakehost_logged (const struct fakehost *host, const char *text);

#endif /* TESTS_FAKEHOST_H */
