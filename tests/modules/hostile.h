/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the module that does what no provider should. */

#ifndef MODULES_HOSTILE_H
#define MODULES_HOSTILE_H

#include <coffer/provider.h>

#define CHANNEL 3

struct hostile {
  char *secret;
  int runtime_dir, state_dir;
  int n_files;
  const char *first_file;
  char first_bytes[64];
  char *url;
  char *hangs_in;               /* open, close or probe; NULL: none */
  int kept;                     /* a stream of a command that has ended */
};

struct word {
  const char *word;
  int32_t (*run) (struct coffer_call *call, struct hostile *self,
                  const char *arg);
};

extern const struct word ends_words[], rights_words[], channel_words[],
                         reach_words[], noise_words[];

/* Emits a fact. */
int32_t say (struct coffer_call *call, const char *name, const char *state,
             const char *value);
/* The same, of what a system call came to: done, or refused with its errno. */
int32_t report (struct coffer_call *call, const char *name, long result);
/* Until the call is cancelled, or so long. */
void wait_call (struct coffer_call *call, int ms);

#endif /* MODULES_HOSTILE_H */
