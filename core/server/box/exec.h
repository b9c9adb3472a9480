/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the box that are waited for. */

#ifndef SERVER_BOX_EXEC_H
#define SERVER_BOX_EXEC_H

#include <coffer/buffer.h>

#include "base/sha256.h"
#include "server/box/sessions.h"

/* The request's body to the reply's data. */
int box_exec (struct box *box, struct request *request, json_t **out,
              struct error **err);

/* {NAME: VALUE} to NAME=VALUE. */
int box_env_read (const json_t *env, struct coffer_strings *out,
                  struct error **err);

#endif /* SERVER_BOX_EXEC_H */
