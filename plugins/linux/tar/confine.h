/* SPDX-License-Identifier: Apache-2.0 */
/* What coffer-tar keeps of its rights. */

#ifndef LINUX_TAR_CONFINE_H
#define LINUX_TAR_CONFINE_H

#include "allow.h"

/* Limits, no capability, no_new_privs, a Landlock domain of `folder` and a
 * filter of system calls.  NULL, or the step that failed, with errno; nothing may
 * be read then. */
const char *tar_confine (int folder);
/* The list behind the filter. */
extern const struct allow_list tar_calls;

#endif /* LINUX_TAR_CONFINE_H */
