/* SPDX-License-Identifier: Apache-2.0 */
/* Everything of the contract that has a shape, each as the argument of a
 * function, for abidw to read: tests/build/abi.sh compares it with what was
 * released.  (A variable would not do: its own size changes with an append.) */

#include <coffer/provider.h>

#define SHAPE(name)                                                           \
  __attribute__ ((visibility ("default"))) void shape_##name (                \
    const struct coffer_##name *shape);                                       \
  void shape_##name (const struct coffer_##name *shape) { (void) shape; }
#define NUMBERS(name)                                                         \
  __attribute__ ((visibility ("default"))) void numbers_##name (              \
    enum coffer_##name number);                                               \
  void numbers_##name (enum coffer_##name number) { (void) number; }

SHAPE (call)
SHAPE (host)
SHAPE (note)
SHAPE (operations)
SHAPE (provider)
NUMBERS (code)
NUMBERS (level)
NUMBERS (operation_id)
NUMBERS (record_id)
NUMBERS (retryable)
NUMBERS (threads)

#define NONE(...)
#define SHAPE_OF_RECORD(id, name, since, FIELDS, doc) SHAPE (name)
#define SHAPE_OF_OPTS(id, name, since, capability, args, OPTS, doc)           \
  SHAPE (name##_opts)
COFFER_RECORDS (SHAPE_OF_RECORD)
COFFER_OPERATIONS (SHAPE_OF_OPTS, NONE, NONE)
