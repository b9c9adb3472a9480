/* SPDX-License-Identifier: Apache-2.0 */
/* A machine to lose: a root in memory, processes, networks, ids and a control
 * group of its own, in which sandboxes are attacked from within.  What wins
 * there has won a few folders and a sleeping process. */

#ifndef ATTACK_CAGE_H
#define ATTACK_CAGE_H

#include <sys/types.h>

#define CAGE_GROUP 4242         /* a group that root has besides its own */

struct cage {
  int root;                     /* its first process is root in it */
  char secret[33];              /* in its host name and control group's */
  char cgroup[128];             /* below each controller; "": none */
};

/* Runs inside () as the first process of a new cage and waits for it, for so
 * long at most.  What it returned, -1: there was no cage, -2: it took too
 * long. */
int cage_run (struct cage *cage, int (*inside) (struct cage *),
              int seconds);

#endif /* ATTACK_CAGE_H */
