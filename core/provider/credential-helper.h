/* SPDX-License-Identifier: Apache-2.0 */
/* Credential helpers of the docker command: programs docker-credential-NAME that
 * are given a server on standard input and answer with a user and a secret.
 *
 * The program is looked for in PATH, in folders that are root's or the user's and
 * that others cannot write, as are those above them.  It is run without a shell, in
 * a folder that is nobody's, with the few variables that stores of secrets need,
 * within a deadline and with a cap on what it says.  Nothing that it says is shown. */

#ifndef PROVIDER_CREDENTIAL_HELPER_H
#define PROVIDER_CREDENTIAL_HELPER_H

#include <stdint.h>

#include "base/error.h"

#define CREDENTIAL_MOST (16 << 10)      /* bytes of an answer */
#define CREDENTIAL_NS INT64_C (30000000000)

struct credential {
  char *user;                   /* "<token>": the secret is an identity token */
  char *secret;
};

/* Both are wiped. */
void credential_fini (struct credential *credential);
#define auto_credential __attribute__ ((cleanup (credential_fini)))

/* "registry.example:5000", "https://index.docker.io/v1/"; nothing that means
 * anything to a line, a shell or a terminal. */
int credential_is_server (const char *server);

/* 1: *out; 0: it keeps none for this server; -1: E_CREDENTIALS_HELPER, or
 * E_EXEC_CANCELLED.  home: of its user, NULL: none is known.  It has at most
 * CREDENTIAL_NS, and until the deadline. */
int credential_helper_get (const char *name, const char *server,
                           const char *home, int64_t deadline_ns,
                           int cancel_fd, struct credential *out,
                           struct error **err);

#endif /* PROVIDER_CREDENTIAL_HELPER_H */
