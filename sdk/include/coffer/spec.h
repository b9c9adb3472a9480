/* SPDX-License-Identifier: Apache-2.0 */
/* What `sandbox_create` is asked for, looked at before anything is made.
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

#ifdef __cplusplus
}
#endif

#endif /* COFFER_SPEC_H */
