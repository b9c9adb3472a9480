/* SPDX-License-Identifier: Apache-2.0 */
/* Filters made small: what filter-gen.c asks of filter-pack.c.
 *
 * The kernel compiles a filter anew for each sandbox, by the instruction, and
 * first tries it with every number there is, step by step.  libseccomp names
 * each call in an instruction of its own and loads an argument for each
 * comparison; here calls of the same answer become ranges, and the argument
 * comparisons of all calls one graph without a node twice. */

#ifndef LINUX_FILTER_PACK_H
#define LINUX_FILTER_PACK_H

#include <stddef.h>
#include <stdint.h>
#include <linux/filter.h>

/* The answer of a program to one call of one architecture: a node of the
 * graph.  Ends this process when the program is not one of libseccomp's. */
unsigned pack_answer (const struct sock_filter *program, size_t n,
                      uint32_t arch, uint32_t nr);
/* Whether that answer is ALLOW whatever the arguments are. */
int pack_allows (unsigned node);

/* From that number on, and until the next one that is named, calls have that
 * answer; numbers ascend. */
void pack_range (uint32_t first, unsigned node);

/* The program of all ranges so far, which are then forgotten; its size.  Other
 * architectures end the process. */
size_t pack_finish (uint32_t arch, struct sock_filter *out, size_t max);

#endif /* LINUX_FILTER_PACK_H */
