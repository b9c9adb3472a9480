/* SPDX-License-Identifier: Apache-2.0 */
/* Scoped cleanup.  Every helper keeps errno, so that an early return still
 * carries the reason.  `steal (p)` hands a value to the caller. */

#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <errno.h>
#include <stdlib.h>

/* DEFINE_CLEANUP (struct x *, x_free, auto_x): `auto_x struct x *p = NULL;`
 * frees p at the end of its scope. */
#define DEFINE_CLEANUP(type, function, name)                                  \
  static inline void name##_cleanup_ (type *p)                                \
  {                                                                           \
    int keep = errno;                                                         \
    if (*p)                                                                   \
      function (*p);                                                          \
    errno = keep;                                                             \
  }
#define CLEANUP(name) __attribute__ ((cleanup (name##_cleanup_)))

static inline void
auto_free_cleanup_ (void *p)
{
  int keep = errno;

  free (*(void **) p);
  errno = keep;
}

#define auto_free CLEANUP (auto_free)
#define auto_error CLEANUP (auto_error)

/* Returns the pointer and sets the variable to NULL. */
#define steal(p)                                                              \
  __extension__ ({                                                            \
    __typeof__ (p) steal_value_ = (p);                                        \
    (p) = NULL;                                                               \
    steal_value_;                                                             \
  })

#endif /* BASE_CLEANUP_H */
