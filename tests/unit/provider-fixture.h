/* SPDX-License-Identifier: Apache-2.0 */
/* A provider of a test module, through the real registry: a folder with a
 * sealed manifest and a copy of the module, as a machine would have it. */

#ifndef UNIT_PROVIDER_FIXTURE_H
#define UNIT_PROVIDER_FIXTURE_H

#include "provider/provider.h"

struct fixture {
  char *dir;                    /* of its own, removed at the end */
  struct place place;
  struct registry *registry;
  const struct registry_entry *entry;
  struct provider *provider;
};

struct fixture_spec {
  const char *module;           /* "hostile": tests/modules/hostile.so */
  const char *yaml;             /* more lines of the manifest, or NULL */
  const char *capabilities;     /* "exec, ports"; NULL: exec, ports, metrics */
  const char *threads;          /* NULL: parallel */
  const char *operator_yaml;    /* providers.d/ID.yaml, or NULL */
  int local;                    /* installed by the user, not shipped */
  int helpers;                  /* so many files with VECTOR_BODY */
  int late;                     /* and one more, late.txt, that is late */
  const char *libexec;          /* below the build; NULL: the real worker's */
};

/* Makes folder and registry; fails the test when it cannot. */
struct fixture *fixture_new (const struct fixture_spec *spec);
void fixture_free (struct fixture *fixture);
/* provider_open; 0, or the number of the error. */
int fixture_open (struct fixture *fixture, enum provider_mode mode,
                  struct error **err);

/* What a call said. */
struct heard {
  char name[64], state[64], value[4096];        /* the last fact */
  int facts, progress;
  int stop_after;               /* the sink ends the call then; 0: never */
  int fd;                       /* of a stream, taken */
};
/* sandbox_info with a word; 0, or the error's number.  *err, if given, keeps
 * the error. */
int fixture_say (struct fixture *fixture, const char *word, int64_t ms,
                 int cancel_fd, struct heard *heard, struct error **err);

/* fixture_new and fixture_open in a worker; "hostile" as it is. */
struct fixture *fixture_start (const struct fixture_spec *spec);
struct fixture *fixture_start_plain (void);
/* The next call is served, within a second unless the machine is slower. */
void fixture_assert_serves (struct fixture *fixture);
/* The word's fact says "refused" or "done", with this value unless NULL. */
void fixture_assert_refused (struct fixture *fixture, const char *word,
                             const char *value);
void fixture_assert_done (struct fixture *fixture, const char *word,
                          const char *value);
/* waitpid of anything, at most so long. */
int fixture_reap_within (int ms, int *status);
/* Processes named coffer-worker of this parent. */
int fixture_children (int parent);
/* Is there a process of this number that is not a zombie? */
int fixture_process_lives (int pid);

#endif /* UNIT_PROVIDER_FIXTURE_H */
