/* SPDX-License-Identifier: Apache-2.0 */
/* Running one of coffer's own programs from libexec: it is executed from a
 * descriptor that was checked, with an environment from empty and the few
 * descriptors that it is given, and answers with one JSON object. */

#ifndef BASE_HELPER_H
#define BASE_HELPER_H

#include <sys/types.h>

#include "base/json.h"
#include "base/place.h"

#define HELPER_FOLDER_FD 3
#define HELPER_REPORT_FD 4
/* Before its report a helper may say how many bytes it is going to be, with a
 * newline behind the number. */
#define HELPER_TOTAL "total "

struct helper_program {
  const char *name;             /* coffer-archive */
  /* After its name, at most HELPER_MAX_ARGUMENTS, NULL-terminated. */
  const char *const *arguments;
  const char *const *environment;       /* NULL-terminated; NULL: empty */
  int in, out, folder;          /* as 0, 1 and 3; -1: /dev/null */
  int number;                   /* of the error for what it reports as one */
};

#define HELPER_MAX_ARGUMENTS 15

struct helper {
  pid_t pid;                    /* 0: none */
  int report;                   /* its JSON is read here */
  const char *name;             /* the program's */
  int number;
};

/* The program of that name in libexec, checked: a descriptor to execute. */
int helper_program_open (const struct place *place, const char *name,
                         struct error **err);

/* What `program` names stays the caller's; the texts of it live on while the
 * helper does. */
int helper_start (const struct place *place,
                  const struct helper_program *program, struct helper *helper,
                  struct error **err);

/* Somebody who waits: may give up, and may want to see how far it is. */
struct helper_watch {
  int cancel_fd;                /* -1: none */
  void (*progress) (void *data, uint64_t done, uint64_t total,
                    const char *what);  /* NULL: nobody looks */
  void *data;
};

/* Reads the report and waits for the end; the watch's cancel_fd ends it.  How
 * far it is says the place in `source` (-1: nothing does), of `size` bytes (0: not
 * known, or the helper says it).
 * The program's error has its number, and `entry` in its details. */
int helper_finish (struct helper *helper, const struct helper_watch *watch,
                   int source, uint64_t size, json_t **report,
                   struct error **err);

/* Kills what still runs. */
void helper_fini (struct helper *helper);
#define auto_helper __attribute__ ((cleanup (helper_fini)))

#endif /* BASE_HELPER_H */
