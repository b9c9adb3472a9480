/* SPDX-License-Identifier: Apache-2.0 */
/* A call of the module that fails. */

#ifndef ATTACK_FAULTS_H
#define ATTACK_FAULTS_H

#include <stdint.h>

struct fault {
  unsigned long at;             /* which call fails; 0: none, nor is counted */
  unsigned long calls;          /* made */
  int error;
  const char *name;             /* of the one that failed, NULL: none yet */
};

/* In the module: where COFFER_TEST_FAULT_AT says. */
void faults_read (void);

#endif /* ATTACK_FAULTS_H */
