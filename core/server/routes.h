/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all that is served. */

#ifndef SERVER_ROUTES_H
#define SERVER_ROUTES_H

#include "base/error.h"

int routes_print (int json, struct error **err);

#endif /* SERVER_ROUTES_H */
