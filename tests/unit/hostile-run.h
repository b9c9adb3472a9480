/* SPDX-License-Identifier: Apache-2.0 */
/* One hostile module in a worker, beside another provider that is to be served
 * meanwhile: what it does, and what shows that it won. */

#ifndef UNIT_HOSTILE_RUN_H
#define UNIT_HOSTILE_RUN_H

#include <pthread.h>
#include <stdatomic.h>

#include <coffer/buffer.h>

#include "hostile-world.h"
#include "provider-fixture.h"

#define SECRET "sk-hostile/0123456789+abc def"
#define SECRET_URL "sk-hostile%2F0123456789%2Babc%20def"
#define SECRET_URL_ALL "%73%6B%2D%68%6F%73%74%69%6C%65"
#define SECRET_BASE64 "c2staG9zdGlsZS8wMTIzNDU2Nzg5K2FiYyB"
#define ANY (-1)
#define MOST_SAID (256 * 1024)
#define MOST_LOG (4 << 20)
#define EXEC "permissions: {exec: [/usr/bin/true]}\n"
#define SMALL "limits: {memory: 64MiB, files: 64, calls: 4}\n"

struct run;

struct attack {
  const char *name, *word;
  int number;                   /* what the call ends with; ANY */
  const char *yaml;             /* NULL: no permission at all */
  int ms;                       /* its deadline; 0: five seconds */
  /* What besides the world shows that it won: NULL when it did not. */
  const char *(*lost) (struct run *run);
  int limits;                   /* of memory, which sanitizers lift */
};

struct run {
  const struct attack *attack;
  struct fixture *fixture;
  struct coffer_buffer said;    /* its records, as JSON */
  struct error *error;
  char word[600];
  int number, pid;
  int64_t took_ns;
  const char *seen;             /* while it ran */
  pthread_t thread;
  atomic_int done;
};

extern struct world world;
extern struct fixture *bystander;
/* The victim and the other provider's worker are there, and nobody else. */
int others_are_gone (void);
/* Standard error is looked at, and not shown. */
void complain (const char *name, const char *what);
int set_up (void **state);
int tear_down (void **state);

#endif /* UNIT_HOSTILE_RUN_H */
