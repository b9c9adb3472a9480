/* SPDX-License-Identifier: Apache-2.0 */
/* Rights and their names. */

#include <config.h>

#include "policy/rights.h"

#include <stddef.h>
#include <string.h>

const char *const right_names[] = { "view", "run", "manage", "operate", NULL };

static const enum caller_right values[] = { RIGHT_VIEW, RIGHT_RUN,
                                            RIGHT_MANAGE, RIGHT_OPERATE };

const char *
right_name (unsigned right)
{
  size_t i;

  for (i = 0; right_names[i]; i++)
    if (values[i] == right)
      return right_names[i];
  return "none";
}

enum caller_right
right_find (const char *name)
{
  size_t i;

  for (i = 0; right_names[i]; i++)
    if (strcmp (right_names[i], name) == 0)
      return values[i];
  return RIGHT_NONE;
}

unsigned
right_all (enum caller_right right)
{
  return right == RIGHT_NONE ? 0 : ((unsigned) right << 1) - 1;
}
