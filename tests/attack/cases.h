/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of the attack corpus. */

#ifndef ATTACK_CASES_H
#define ATTACK_CASES_H

#include "arena.h"

enum {
  OF_ROOT = 1,                  /* only root's sandboxes have it to lose */
  NEEDS_GROUP = 2,              /* a control group of the cage's own */
  AFTERWARDS = 4,               /* judged when the sandbox was ended */
  ON_TERMINAL = 8,              /* standard input is a terminal */
  OWNER_DIES = 16,              /* its maker ends, and nobody kills it */
  NATIVE_ONLY = 32,
  LIMITED = 64,                 /* in a control group, where there is one */
  OF_STRICT = 128,              /* in profile general it is no attack */
  IN_SHARED = 256               /* begun in the folder that may be written */
};

struct attack {
  const char *name;
  const char *attempt;          /* of the payload */
  const char *corpus;           /* what it is in the corpus */
  unsigned flags;
  /* What else the machine must have, or NULL. */
  int (*possible) (void);
  const char *missing;
  /* Arguments of the payload. */
  void (*arguments) (const struct arena *arena, char args[4][128]);
  /* Whether a canary was touched. */
  int (*fell) (struct arena *arena);
};

extern const struct attack attacks[];
extern const size_t attacks_count;

#endif /* ATTACK_CASES_H */
