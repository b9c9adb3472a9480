/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that a profile requires.  Where one does not hold the sandbox is not
 * made: what is required is never taken down to what there is. */

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"
#include "spawn.h"

int
required (const struct coffer_sandbox_spec *spec, const char *word)
{
  const char *const *at;

  for (at = spec->require; at != NULL && *at != NULL; at++)
    if (strcmp (*at, word) == 0)
      return 1;
  return 0;
}

int32_t
require_refuse (struct coffer_call *call,
                const struct coffer_sandbox_spec *spec)
{
  const char *const *at;

  for (at = spec->require; at != NULL && *at != NULL; at++)
    if (strcmp (*at, "landlock") != 0 && strcmp (*at, "cgroup") != 0
        && strcmp (*at, "quota.hard") != 0)
      return fail_with (call, COFFER_UNSUPPORTED,
                        "require: %.32s is not to be had of this provider",
                        *at);
  if (required (spec, "landlock")
      && landlock_abi () <= 0)
    return coffer_fail (call, COFFER_UNAVAILABLE,
                        "require: landlock: this kernel has none; boot with "
                        "landlock in the lsm= list, Linux 5.13 or newer");
  return COFFER_OK;
}

/* Nothing can be written that no cap holds. */
int32_t
require_quota (struct making *making)
{
  char text[400];

  if (making->uncapped == NULL || !required (making->spec, "quota.hard"))
    return COFFER_OK;
  snprintf (text, sizeof text, "require: quota.hard: nothing caps what is "
            "written to %.100s, a folder of the host; " QUOTA_REMEDY,
            making->uncapped);
  return coffer_fail_with (making->call, COFFER_UNAVAILABLE, COFFER_RETRY_NO,
                           text, "{\"requirement\":\"quota.hard\"}");
}

/* There is a group, and each limit that was asked for is its own. */
int32_t
require_hold (struct making *making)
{
  char text[400];

  if (!required (making->spec, "cgroup")
      || cgroup_whole (making))
    return COFFER_OK;
  snprintf (text, sizeof text, "require: cgroup: %s",
            making->cgroup.why ? making->cgroup.why : "there is none here");
  return coffer_fail_with (making->call, COFFER_UNAVAILABLE, COFFER_RETRY_NO,
                           text, "{\"requirement\":\"cgroup\"}");
}
