/* SPDX-License-Identifier: Apache-2.0 */
/* What programs use that have this provider in themselves. */

#ifndef LINUX_BEGIN_H
#define LINUX_BEGIN_H

#include <sys/types.h>

#include <coffer/provider.h>

/* The descriptor that its module gives. */
const struct coffer_provider *coffer_linux_entry (void);

/* ---- front.c ------------------------------------------------------------ */

/* In a helper process of the program that was started: begins the first process
 * of a sandbox as most are, with that init and runtime folder, as a child of
 * the helper's parent.  It makes what a sandbox has before its plan, and then
 * waits.  What the parent needs to go on with it is sent on the channel. */
int coffer_linux_front (int init, int runtime_dir, int channel);

/* ---- begin.c ------------------------------------------------------------ */

/* In that parent, whatever program it executes by now: the other end of the
 * channel, who sends, and which build this is.  Whoever opens the provider gets
 * what was begun; without that it is to be given up. */
void coffer_linux_begun (int take_channel, pid_t helper, const void *build,
                         size_t build_size);
void coffer_linux_end (void);

/* bytes.c: the file coffer-init, and the note that the linker gave linux.so. */
extern const char coffer_linux_init[], coffer_linux_init_end[];
extern const char coffer_linux_build[], coffer_linux_build_end[];

#endif /* LINUX_BEGIN_H */
