/* SPDX-License-Identifier: Apache-2.0 */
/* An https address, fetched by coffer-fetch into a file of the stage.  What it
 * has is hashed here afterwards: who speaks with a stranger is not believed
 * when it is about a pin. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "base/text.h"
#include "provider/source.h"

/* The address may be right, and who answers not be trusted. */
static int
fail_fetch (struct error *take_error, struct error **err)
{
  const int refused = take_error->number == E_CONNECT_FAILED;

  error_move (err, take_error);
  if (refused)
    error_hint (err, "check the address; who is trusted is in the system's"
                " certificates, or in the file that SSL_CERT_FILE names");
  return -1;
}

int
source_fetch (const struct stage *stage, const char *url,
              const struct helper_watch *watch, struct error **err)
{
  auto_helper struct helper helper = { .report = -1 };
  coffer_autostrings struct coffer_strings env = { 0 };
  auto_free char *most = text_printf ("%lld", (long long) SOURCE_MAX_BYTES);
  auto_free char *seconds = text_printf ("%d", SOURCE_SECONDS);
  auto_error struct error *error = NULL;
  auto_json json_t *report = NULL;
  coffer_autoclose int fd = -1;
  const char *const arguments[] = { url, most, seconds, NULL };
  struct helper_program program = {
    .name = "coffer-fetch", .arguments = arguments, .in = -1, .folder = -1,
    .number = E_CONNECT_FAILED
  };

  source_env (&env, "SSL_CERT_FILE", "SSL_CERT_DIR");
  if (env.failed || most == NULL || seconds == NULL)
    return error_set (err, E_NO_MEMORY, 0, "fetch it");
  program.environment = coffer_strings_view (&env);
  fd = openat (stage->dir, "archive", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
               0600);
  if (fd < 0)
    return error_set (err, E_IO, errno, "write %s/archive", stage->path);
  program.out = fd;
  if (helper_start (stage->place, &program, &helper, &error) < 0
      || helper_finish (&helper, watch, fd, 0, &report, &error) < 0)
    return fail_fetch (steal (error), err);
  if (!json_is_true (json_object_get (report, "confined")))
    log_event (LOG_LEVEL_WARNING, "install", "this kernel has no Landlock:"
               " coffer-fetch could read what you can");
  if (lseek (fd, 0, SEEK_SET) < 0)
    return error_set (err, E_IO, errno, "read %s/archive", stage->path);
  return coffer_fd_steal (&fd);
}
