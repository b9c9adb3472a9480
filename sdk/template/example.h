/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of this provider share.
 *
 * A sandbox is a folder and a set of commands.  Both live as long as the
 * instance that made them: this provider does not claim `durable`. */

#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdint.h>

#include <coffer/buffer.h>
#include <coffer/commands.h>
#include <coffer/provider.h>

#define EXAMPLE_MARK "EXAMPLE_RUN"      /* see coffer/process.h */

struct sandbox {
  struct sandbox *next;         /* lock */
  unsigned references;          /* lock: the list's, and one each call */
  int linked;                   /* lock */
  char *id, *path, *workdir;
  int folder;
  int lifeline;                 /* its end is the sandbox's; -1: none */
  int64_t created_ns;
  struct coffer_strings env, metadata;
  struct coffer_commands *commands;
};

struct example {
  int runtime;                  /* the provider's private folder */
  char name[32];                /* of this instance's own below it, */
  int folder;                   /* which is locked as long as it lives */
  struct sandbox *sandboxes;    /* lock */
};

/* sandbox.c.  Find takes a reference, put gives it back; NULL: the call has
 * failed, with *code. */
struct sandbox *sandbox_find (struct coffer_call *call,
                              struct example *example, const char *id,
                              int32_t *code);
void sandbox_put (struct sandbox *sandbox);
void sandbox_end_all (struct example *example);

/* An operation, declared by the type of its slot in the table. */
#define OPERATION(name)                                                       \
  extern __typeof__ (*((struct coffer_operations *) 0)->name) name

OPERATION (sandbox_create);
OPERATION (sandbox_info);
OPERATION (sandbox_list);
OPERATION (sandbox_kill);
OPERATION (exec_start);
OPERATION (exec_wait);
OPERATION (exec_list);
OPERATION (exec_signal);
OPERATION (exec_stdin_close);
OPERATION (file_read);
OPERATION (file_write);
OPERATION (file_stat);
OPERATION (file_list);
OPERATION (file_mkdir);
OPERATION (file_remove);
OPERATION (file_rename);

#endif /* EXAMPLE_H */
