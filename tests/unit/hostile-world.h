/* SPDX-License-Identifier: Apache-2.0 */
/* What lies around a hostile module, and tells whether it was touched: a file
 * with a key, folders where nothing may appear, listeners that nobody may reach,
 * a process, this one's memory and signals, and all that was said. */

#ifndef UNIT_HOSTILE_WORLD_H
#define UNIT_HOSTILE_WORLD_H

#include <stddef.h>
#include <sys/types.h>

#define WORLD_LISTENERS 5

struct world {
  char *dir;
  char key[64];                 /* what is in the file, and in `memory` */
  char memory[64];              /* of this process, to be spied on */
  int listeners[WORLD_LISTENERS];
  int inet_port, inet6_port, udp_port;  /* 0: there is no such loopback */
  char abstract[72];            /* "@name" */
  pid_t victim;                 /* sleeps */
  int log;                      /* what was written to stderr */
  int real_stderr;
  int descriptors;              /* open ones, before */
};

/* In a folder of its own; standard error goes into a file from here on. */
void world_init (struct world *world);
void world_fini (struct world *world);
/* The word with {ssh} {new} {link} {inet} {inet6} {udp} {unix} {abstract}
 * {victim} {memory} replaced; valid until the next. */
const char *world_expand (const struct world *world, const char *word);
/* Forgets what was written to stderr. */
void world_begin (struct world *world);
/* What of it has been touched, for people; NULL: nothing. */
const char *world_touched (struct world *world);
/* Standard error so far, which the caller frees; *size of it. */
char *world_log (struct world *world, size_t *size);
/* The lines of providers in it, joined: what follows "coffer: LEVEL: provider:
 * ID: ".  The caller frees. */
char *world_joined_log (struct world *world);

/* Processes whose parent is this one, zombies too. */
int world_children (void);
/* A child that is neither the victim nor `other`; 0: there is none. */
int world_other_child (const struct world *world, pid_t other);
/* Reaps one that has ended, which is neither the victim nor `other`; whether
 * there was one. */
int world_reap (const struct world *world, pid_t other);
int world_open_descriptors (void);

#endif /* UNIT_HOSTILE_WORLD_H */
