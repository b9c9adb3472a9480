/* SPDX-License-Identifier: Apache-2.0 */
/* Variables for a command: `-e NAME[=VALUE]` and files of such lines.  Later
 * ones replace earlier ones of the same name. */

#ifndef CLI_ENV_H
#define CLI_ENV_H

#include <coffer/buffer.h>

#include "base/error.h"

#define ENV_FILE_MAX (1024 * 1024)

/* `what` names where it stands, for messages. */
int env_add (struct coffer_strings *env, const char *what, const char *word,
             struct error **err);
/* Lines NAME=VALUE (the value up to the end of the line, as it is) or NAME;
 * empty lines and lines that begin with # are skipped. */
int env_add_file (struct coffer_strings *env, const char *path,
                  struct error **err);

#endif /* CLI_ENV_H */
