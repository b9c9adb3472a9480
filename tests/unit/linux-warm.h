/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of commands that are copies of an interpreter have in common:
 * the interpreter's programs, and commands that stand. */

#ifndef UNIT_LINUX_WARM_H
#define UNIT_LINUX_WARM_H

#include "harness.h"

#include "linux-host.h"


extern struct linux_host host;
extern struct outcome outcome;
extern const char *const python[];
extern const char program[];
extern const struct coffer_sandbox_spec strict;
int32_t open_with (const char *text, const char *const *modules);
const char *warm (void);
void create (const char *id, const struct coffer_sandbox_spec *spec);
/* In a sandbox of its own; what the last one was stays known. */
void run (const char *code, uint64_t timeout_ms);
/* A child of a process: one that lives, by its name as /proc has it, or without a
 * name (NULL) any, also one that nobody has waited for.  0: there is none. */
int child_of (int parent, const char *name);
void file_of (int pid, const char *name, char *out, size_t size);
void link_of (int pid, const char *name, char *out, size_t size);
extern const char waiting[];
void line_of (const char *text, const char *key, char *out, size_t size);
/* Whether coffer was built with it. */
int built (void);

#endif /* UNIT_LINUX_WARM_H */
