/* SPDX-License-Identifier: Apache-2.0 */
/* The provider that this program has in itself. */

#ifndef CLI_BUILT_IN_H
#define CLI_BUILT_IN_H

/* Nothing, where it was built without. */
void cli_built_in (void);

#endif /* CLI_BUILT_IN_H */
