/* SPDX-License-Identifier: Apache-2.0 */
/* How the program that begins a run (front.c) tells the one that goes on with
 * it in the same process what it has begun: in a variable, which that one takes
 * away at once. */

#ifndef CLI_BEGUN_H
#define CLI_BEGUN_H

#define BEGUN_VARIABLE "COFFER_BEGUN"
/* The process that it is for, the descriptor, and the helper that sends. */
#define BEGUN_FORMAT "%d %d %d"

#endif /* CLI_BEGUN_H */
