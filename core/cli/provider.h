/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of `coffer provider`. */

#ifndef CLI_PROVIDER_H
#define CLI_PROVIDER_H

#include "cli/cli.h"
#include "provider/registry.h"

int provider_info_run (struct cli *cli, struct error **err);

/* The provider named by the first argument, by --provider or by the
 * configuration, in whatever state it is. */
int provider_named (struct cli *cli, struct registry **out,
                    const struct registry_entry **entry, struct error **err);

/* What became of the provider that the first argument names. */
int provider_print_state (const struct cli *cli, const struct place *place,
                          int changed, struct error **err);
int provider_enable_run (struct cli *cli, struct error **err);
int provider_disable_run (struct cli *cli, struct error **err);
int provider_default_run (struct cli *cli, struct error **err);

/* A secret that a provider is given without a word of the operator's, and where it
 * is from: the caller's to free.  NULL: it is none of these. */
char *provider_known (const struct manifest_config *key);

int provider_doctor_run (struct cli *cli, struct error **err);
/* Checks as lines of text. */
void provider_print_checks (const struct cli *cli, const json_t *checks);

#endif /* CLI_PROVIDER_H */
