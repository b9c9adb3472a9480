/* SPDX-License-Identifier: Apache-2.0 */
/* What of the host's /etc is shown inside: these, and what begins so.  Looked
 * for by the provider while the init is at other work, which looks at each name
 * again. */

#ifndef LINUX_ETC_NAMES_H
#define LINUX_ETC_NAMES_H

#define ETC_NAMES_BYTES 4096    /* of all of them, each with its NUL */

static const char *const etc_names[]
  = { "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
      "ca-certificates", "ca-certificates.conf", "fonts" };
static const char *const etc_prefixes[] = { "java-", "python3" };

#endif /* LINUX_ETC_NAMES_H */
