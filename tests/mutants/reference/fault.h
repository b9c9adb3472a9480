/* SPDX-License-Identifier: Apache-2.0 */
/* The one thing that a mutant has wrong.  In the reference provider fault () is
 * always 0 and what it guards is not compiled in. */

#ifndef REFERENCE_FAULT_H
#define REFERENCE_FAULT_H

#ifdef MUTANTS
/* Is this the fault that the configuration asks for? */
int fault (const char *name);
void fault_set (const char *name);
const char *fault_name (void);
#else
#define fault(name) 0
#define fault_set(name) ((void) (name))
#define fault_name() ""
#endif

#endif /* REFERENCE_FAULT_H */
