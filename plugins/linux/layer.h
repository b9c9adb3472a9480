/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that a build of the tests can leave out, and calls that it can make
 * fail: to show what each layer holds, and what comes of a step that fails.
 *
 * In what is installed this file is nothing.  Every layer is on by the time
 * the compiler has read it, nothing reads a switch, and a call is the call;
 * tests/attack/release.sh looks for what the switches would leave behind. */

#ifndef LINUX_LAYER_H
#define LINUX_LAYER_H

#ifdef COFFER_LAYER_SWITCHES
#include "switches.h"           /* tests/attack */
#else

#define LAYER_ON(name) 1
/* All of them: then what was applied is read back. */
#define LAYERS_WHOLE 1
/* The flags of a namespace or a mount, as far as their layer is on. */
#define LAYER_FLAG(name, flag) (flag)
#define LAYER_ATTRIBUTES(flags) (flags)
/* What the maker of a sandbox was told, given to its init. */
#define LAYERS_READ() ((void) 0)
#define LAYERS_GIVE(word) ((void) 0)
#define LAYERS_TAKE(word) ((void) 0)
#define LAYERS_IDS(plan) ((void) 0)
/* A system call of the init. */
#define LAYER_CALL sys6

#endif
#endif /* LINUX_LAYER_H */
