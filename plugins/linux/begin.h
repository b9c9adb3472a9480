/* SPDX-License-Identifier: Apache-2.0 */
/* What a program uses that has this provider in itself. */

#ifndef LINUX_BEGIN_H
#define LINUX_BEGIN_H

#include <coffer/provider.h>

/* The descriptor that its module gives. */
const struct coffer_provider *coffer_linux_entry (void);

/* Begins the first process of a sandbox as most are, of an instance with that
 * init and runtime folder (copied), while it is not known yet whether there
 * will be one.  It makes what a sandbox has before its plan, and then waits.
 * Whoever opens the provider then gets that instance; without that it is to
 * be given up. */
void coffer_linux_begin (int init, int runtime_dir);
void coffer_linux_end (void);

/* bytes.c: the file coffer-init, and the note that the linker gave linux.so. */
extern const char coffer_linux_init[], coffer_linux_init_end[];
extern const char coffer_linux_build[], coffer_linux_build_end[];

#endif /* LINUX_BEGIN_H */
