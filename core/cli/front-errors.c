/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of front.c, which are told by nobody: what it cannot do is tried once
 * more by the program that can say so. */

#include <config.h>

#include "base/error.h"

int
error_set (struct error **err, int number, int sys_errno, const char *fmt, ...)
{
  (void) err;
  (void) number;
  (void) sys_errno;
  (void) fmt;
  return -1;
}

int
error_wrap (struct error **err, const char *fmt, ...)
{
  (void) err;
  (void) fmt;
  return -1;
}

void
error_hint (struct error **err, const char *fmt, ...)
{
  (void) err;
  (void) fmt;
}
