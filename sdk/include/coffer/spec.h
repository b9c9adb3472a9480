/* SPDX-License-Identifier: Apache-2.0 */
/* What `sandbox_create` and `exec_start` are asked for, looked at before anything is
 * made.
 *
 * No locks and no globals: any thread.  Part of libcoffer-provider.a. */

#ifndef COFFER_SPEC_H
#define COFFER_SPEC_H

#include <coffer/provider.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 1: 1 to 64 letters, digits, dashes, dots and underlines, with no dot in
 * front.  So it is a file's name, none that is hidden, and no path. */
int coffer_id_is_valid (const char *id);

/* COFFER_OK, or what coffer_fail has returned: INVALID for what is no id, or a
 * workdir that is not absolute; UNSUPPORTED for the first field that is not at
 * its default and that `kept`, names of fields with a NULL at the end, does not
 * have.  A field that is set is a demand: so one that a later minor adds is
 * refused as well.  template_fd comes with template_name and is not looked at. */
int32_t coffer_spec_check (struct coffer_call *call, const char *id,
                           const struct coffer_sandbox_spec *spec,
                           const char *const *kept);

/* The same of exec_start: INVALID for an empty argv, a cwd that is not absolute, a
 * terminal that is not there or too large; UNSUPPORTED for the first option that is
 * set and that `kept` does not have. */
int32_t coffer_exec_check (struct coffer_call *call, const char *const *argv,
                           const char *cwd, int32_t in,
                           const struct coffer_exec_start_opts *opts,
                           const char *const *kept);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_SPEC_H */
