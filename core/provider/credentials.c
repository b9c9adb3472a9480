/* SPDX-License-Identifier: Apache-2.0 */
/* A registry's credentials for a worker that asks for them: from the helper that
 * the docker command's own configuration names, as a pipe with one document in it.
 * What is in it is known to the redactor before the worker has it. */

#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "provider/credentials.h"
#include "provider/docker-client.h"
#include "provider/opening.h"

/* Less than a pipe holds: nobody has to read yet. */
#define DOCUMENT_MOST (48 << 10)

static json_t *
document_of (const struct credential *credential)
{
  return strcmp (credential->user, "<token>") == 0
           ? json_pack ("{s:s}", "identitytoken", credential->secret)
           : json_pack ("{s:s, s:s}", "username", credential->user, "password",
                        credential->secret);
}

/* Its end to read, or -1.  Of a user with many pipes a new one holds less than
 * that, and is not waited for. */
static int
hand_over (const json_t *document)
{
  const size_t size = json_dumpb (document, NULL, 0, JSON_COMPACT);
  char *text = size && size <= DOCUMENT_MOST ? malloc (size) : NULL;
  int ends[2] = { -1, -1 };

  if (!text)
    return -1;
  if (json_dumpb (document, text, size, JSON_COMPACT) != size
      || pipe2 (ends, O_CLOEXEC) < 0
      || fcntl (ends[1], F_SETFL, O_NONBLOCK) < 0
      || coffer_write_all (ends[1], text, size) < 0)
    coffer_fd_close (&ends[0]);
  coffer_fd_close (&ends[1]);
  explicit_bzero (text, size);
  free (text);
  return ends[0];
}

static int
give (struct provider *provider, const struct credential *credential,
      struct error **err)
{
  auto_json_wiped json_t *document = document_of (credential);
  int fd;

  if (!document)
    return error_set (err, E_CREDENTIALS_HELPER, 0, "what a credential helper "
                      "gave is no text");
  if (strlen (credential->secret) < REDACT_MIN_BYTES)
    log_event (LOG_LEVEL_WARNING, "provider", "%s: what a credential helper "
               "gave has fewer than %d bytes and is not hidden in what it says",
               provider->manifest->id, REDACT_MIN_BYTES);
  if (redactor_add (provider->redactor, credential->secret, err) < 0)
    return -1;
  fd = hand_over (document);
  return fd < 0 ? error_set (err, E_CREDENTIALS_HELPER, 0, "what a credential "
                             "helper gave is too long to be handed on")
                : fd;
}

/* The key's length; 0: no such target. */
static size_t
key_size (const char *target)
{
  size_t size = strcspn (target, ":");

  return target[size] == ':' && target[size + 1] ? size : 0;
}

int
credentials_connect (struct provider *provider, const char *target,
                     int64_t deadline_ns, int cancel_fd, struct error **err)
{
  const char *rest = target + strlen (CREDENTIALS_TARGET);
  const size_t size = key_size (rest);
  auto_free char *key = strndup (rest, size);
  const char *path = key ? registry_auths_path (provider->entry, key) : NULL;
  auto_credential struct credential credential = { NULL, NULL };
  int r;

  if (!path)
    return error_set (err, E_CONNECT_DENIED, 0, "no value of its configuration "
                      "is a file of the docker command's with credentials");
  r = docker_client_credential (path, rest + size + 1, deadline_ns, cancel_fd,
                                &credential, err);
  if (r < 0)
    return -1;
  log_event (LOG_LEVEL_INFO, "broker", "%s: %s for %s from a credential helper",
             provider->manifest->id, r ? "credentials" : "no credentials",
             rest + size + 1);
  return r == 0 ? error_set (err, E_NOT_FOUND, 0, "none is kept for %s",
                             rest + size + 1)
                : give (provider, &credential, err);
}
