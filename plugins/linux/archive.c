/* SPDX-License-Identifier: Apache-2.0 */
/* Archives, by coffer-tar (tar/), which has the ids of the sandbox's user and
 * is given one folder of it. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clone.h"
#include "linux.h"
#include "tar-protocol.h"

#define REPORT_MAX (4 * TAR_LINE_MAX)

/* All that it says, until it is gone: nothing of this process's holds the other
 * end. */
static void
report_take (struct coffer_call *call, int report, struct coffer_buffer *text)
{
  const int64_t until = call->deadline_ns > INT64_MAX - TAR_GRACE_NS
    ? INT64_MAX : call->deadline_ns + TAR_GRACE_NS;
  char bytes[1024];
  ssize_t n;

  while (text->size < REPORT_MAX
         && coffer_wait_fd (report, POLLIN, until, -1) == 1) {
    n = read (report, bytes, sizeof bytes);
    if (n == 0 || (n < 0 && errno != EINTR))
      break;
    coffer_buffer_add (text, bytes, n > 0 ? (size_t) n : 0);
  }
}

/* What comes after "E", a code and the spaces beside it. */
static const char *
text_of (const char *line)
{
  line += strcspn (line + 2, " ") + 2;
  return *line == ' ' ? line + 1 : line;
}

/* Lines of warnings, and the last one, without which it was not whole. */
static int32_t
report_read (struct coffer_call *call, char *text)
{
  int32_t code = COFFER_INTERNAL;
  const char *why = "it ended without a word";
  char *line, *end;

  for (line = text; line != NULL && *line != '\0'; line = end) {
    end = strchr (line, '\n');
    if (end == NULL)
      break;
    *end++ = '\0';
    if (strncmp (line, "W ", 2) == 0)
      coffer_log (call, COFFER_LOG_WARNING, line + 2);
    else if (sscanf (line, "E %" SCNd32, &code) == 1 && code == COFFER_OK)
      return COFFER_OK;
    else if (code != COFFER_INTERNAL || strncmp (line, "E ", 2) == 0)
      return coffer_fail (call, code, text_of (line));
    else
      why = line;
  }
  return fail_with (call, COFFER_INTERNAL, "coffer-tar: %s", why);
}

static int32_t
tar_await (struct coffer_call *call, int report, int pidfd)
{
  coffer_autobuffer struct coffer_buffer text = { 0 };

  report_take (call, report, &text);
  proxy_end (&pidfd);
  if (text.failed || text.size >= REPORT_MAX)
    return coffer_fail (call, COFFER_INTERNAL, "coffer-tar said too much");
  return report_read (call, text.data);
}

static int32_t
tar_start (struct coffer_call *call, struct aide *aide, int folder, int file)
{
  coffer_autoclose int report = -1, theirs = -1;
  int ends[2], fds[5], pidfd = -1;

  if (pipe2 (ends, O_CLOEXEC) == -1)
    return coffer_fail_errno (call, errno, "pipe");
  report = ends[0];
  theirs = ends[1];
  fds[TAR_FOLDER] = folder;
  fds[TAR_REPORT] = fds[TAR_REPORT + 1] = theirs;
  fds[TAR_FILE] = file;
  fds[TAR_CANCEL] = call->cancel_fd;
  aide->fds = fds;
  aide->n_fds = call->cancel_fd < 0 ? 4 : 5;
  if (aide_start (aide, &pidfd) == -1)
    return fail_with (call, COFFER_UNAVAILABLE, "the archive: %s: %s",
                      aide->step, strerror (errno));
  coffer_fd_close (&theirs);
  return tar_await (call, report, pidfd);
}

static int32_t
tar_run (struct linux_provider *self, struct coffer_call *call,
         const char *sandbox, const char *path, const char *word, int file)
{
  char deadline[24];
  const char *argv[] = { "coffer-tar", word, deadline, NULL };
  struct aide aide = { .argv = argv };
  coffer_autoclose int folder = -1, program = -1;
  int32_t code = inside_folder (self, call, sandbox, path, &folder, &aide);

  if (code != COFFER_OK)
    return code;
  aide.program = program = coffer_file (call, "coffer-tar");
  if (program < 0)
    return coffer_fail (call, COFFER_UNAVAILABLE,
                        "coffer-tar is not there, or not what the manifest "
                        "was sealed for: `coffer provider verify linux`");
  snprintf (deadline, sizeof deadline, "%" PRId64, call->deadline_ns);
  return tar_start (call, &aide, folder, file);
}

int32_t
linux_archive_export (struct coffer_call *call, void *self,
                      const char *sandbox, const char *path, int32_t out,
                      const struct coffer_archive_export_opts *opts)
{
  (void) opts;
  return tar_run (self, call, sandbox, path, "export", out);
}

int32_t
linux_archive_import (struct coffer_call *call, void *self,
                      const char *sandbox, const char *path, int32_t in,
                      const struct coffer_archive_import_opts *opts)
{
  (void) opts;
  return tar_run (self, call, sandbox, path, "import", in);
}
