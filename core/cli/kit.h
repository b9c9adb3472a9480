/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance kit as a program. */

#ifndef CLI_KIT_H
#define CLI_KIT_H

#include "base/place.h"

/* coffer-kit, checked, to be executed from this descriptor. */
int kit_open_program (const struct place *place, struct error **err);

#endif /* CLI_KIT_H */
