/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of this provider share. */

#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <coffer/provider.h>
#include <coffer/sandboxes.h>

#define EXAMPLE_MARK "EXAMPLE_RUN"      /* see coffer/process.h */

/* Each operation is declared by the type of its slot in the table. */
#define OPERATION(name)                                                       \
  extern __typeof__ (*((struct coffer_operations *) 0)->name) name

OPERATION (exec_start);
OPERATION (exec_wait);
OPERATION (exec_list);
OPERATION (exec_signal);
OPERATION (exec_stdin_close);
OPERATION (file_read);
OPERATION (file_write);
OPERATION (file_stat);
OPERATION (file_list);
OPERATION (file_mkdir);
OPERATION (file_remove);
OPERATION (file_rename);

#endif /* EXAMPLE_H */
