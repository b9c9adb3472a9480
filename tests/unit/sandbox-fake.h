/* SPDX-License-Identifier: Apache-2.0 */
/* A provider and a registry for the tests of core/sandbox, in place of
 * core/provider's: sandboxes are folders below place->runtime, commands are
 * children, and each promise can be broken on demand. */

#ifndef UNIT_SANDBOX_FAKE_H
#define UNIT_SANDBOX_FAKE_H

#include "provider/provider.h"

struct fake {
  /* What to break. */
  const char *const *unclaimed; /* capability words, NULL-terminated */
  const char *isolation;        /* NULL: namespaces */
  int create_fails;             /* with E_PROVIDER_FAILED … */
  int create_leaves;            /* … and what was made stays */
  int create_misnames;          /* reports another sandbox than was asked for */
  int kill_fails;
  int open_fails;
  int list_is_empty;            /* a list that lags */
  int exit_before_create;       /* _exit in the middle, as by SIGKILL */
  int exit_after_create;
  int exit_in_kill;
  uint64_t write_drops;         /* bytes at the end of an upload */
  int write_flips;              /* one bit of it */
  uint64_t read_drops;          /* bytes at the end of a download */
  int write_early;              /* success without reading */
  uint64_t ignores_timeout;
  int64_t life_ns;              /* of a sandbox, said and no more; 0: not said */
  char *const *accept;          /* the operator's file */
  const char *default_profile;
  /* What was seen. */
  int opens, creates, kills, lists, infos, renames;
  struct coffer_sandbox_spec spec;      /* scalars of the last create */
  int mount_fd_ok;              /* its first source_fd was open, O_PATH */
};
extern struct fake fake;

#endif /* UNIT_SANDBOX_FAKE_H */
