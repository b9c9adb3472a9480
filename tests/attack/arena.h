/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in the cage for the host: files, sockets, a process, keys, a
 * terminal.  They are canaries: an attack has won when one of them was
 * touched, or when a secret of theirs has come out of a sandbox. */

#ifndef ATTACK_ARENA_H
#define ATTACK_ARENA_H

#include "cage.h"
#include "linux-host.h"

#define OUTPUT_MAX 131072
#define SHM_KEY 66061
#define LEFT_OPEN 57            /* a descriptor that was forgotten */

struct arena {
  struct cage *cage;
  struct linux_host *host;
  char secret[33];              /* of this attempt */
  pid_t victim;                 /* a process of the sandbox's own user */
  char *victim_memory;          /* holds the secret there */
  char *environment;            /* its first strings do too; NULL: they do not */
  int tcp, udp, local, abstract;
  char port[8], udp_port[8];
  int left_open[2];
  int open_end;                 /* of a pipe: nobody writes, nobody leaves */
  int terminal, master;         /* of this process */
  int shm;
  char facts[HOST_TEXT];        /* that its creation gave */
  char output[OUTPUT_MAX];      /* of the payload */
  size_t output_size;
  pid_t init, payload;          /* as seen here; 0: not found */
  int spares;                   /* there is an init made ahead */
};

void secret_new (char secret[33]);
/* Once in the cage; -1: not everything could be set up. */
int arena_open (struct arena *arena);
/* Before each attempt: everything whole, with a new secret. */
int arena_reset (struct arena *arena);
/* A process for it to attack, of the user that the sandbox is outside: nothing
 * but the sandbox is between the two. */
int victim_start (struct arena *arena, unsigned uid);
/* After it: whatever lives is ended. */
void arena_clear (struct arena *arena);

int file_put (const char *path, const char *text, mode_t mode);
/* Of an open one, below 1 MiB. */
int file_copy (int from, const char *path, mode_t mode);
/* 0 when it cannot be read. */
size_t file_get (const char *path, char *out, size_t size);
/* Where a process has a file: PATH of its own root. */
void inside_path (pid_t pid, const char *path, char out[512]);
/* A child of it, and one that is not that other; 0: there is none. */
pid_t child_of (pid_t parent);
pid_t child_but (pid_t parent, pid_t but);
/* Processes of the cage besides this one and the victim. */
size_t processes_count (const struct arena *arena);
int accepted (int listener);

#endif /* ATTACK_ARENA_H */
