/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests and an operator's files in a test's folder, and the registry of what
 * is there. */

#ifndef UNIT_REGISTRY_FIXTURE_H
#define UNIT_REGISTRY_FIXTURE_H

#include "provider/registry.h"

#define MANIFEST(id, more)                                                    \
  "manifest: 1\nid: " id "\nsummary: s\nversion: 1\nlicense: MIT\n"           \
  "module:\n  - {arch: x86_64, file: m.so}\n  - {arch: aarch64, file: m.so}\n" \
  "contract: {major: 0, minor: 1}\nthreads: serial\ncapabilities: [exec]\n"   \
  "isolation: {kind: container, host_kernel_shared: true}\n" more

#define RICH                                                                  \
  "config:\n"                                                                 \
  "  key: {type: secret, required: true, env: TEST_REGISTRY_KEY}\n"           \
  "  url: {type: url, default: \"https://example.org\", env: "                \
  "TEST_REGISTRY_URL}\n"                                                      \
  "  size: {type: size}\n"                                                    \
  "permissions:\n"                                                            \
  "  connect: [config, \"*.example.org:443\"]\n"                              \
  "  read: [/etc/ssl, /usr]\n"                                                \
  "  exec: [/usr/bin]\n"                                                      \
  "limits: {memory: 64MiB, calls: 4}\n"

/* `name` below the test's folder. */
const char *at (void **state, const char *name);
/* Makes a file, and the folders that it is in. */
void put (void **state, const char *name, const char *text);
/* Everything below the test's folder, what is shipped too. */
struct place *places (void **state);
/* trust NULL: without a receipt. */
void install (void **state, const char *id, const char *text,
              const char *trust);
struct registry *load (const struct place *place);

#endif /* UNIT_REGISTRY_FIXTURE_H */
