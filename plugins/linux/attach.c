/* SPDX-License-Identifier: Apache-2.0 */
/* Output that the init keeps of a command in the background, given on.
 *
 * The file is the init's and is written to while it is read.  What goes round
 * may be written over between being read and being given on: so it is asked
 * afterwards how much has come meanwhile, and what may have been lost is not
 * given. */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "linux.h"

struct attach {
  struct coffer_call *call;
  struct link *link;
  const char *exec;
  struct init_command body;     /* the offsets: what has been given on */
  struct init_spooled spooled;
  int file[2], to[2];           /* -1 */
  uint64_t missed;
};

static int32_t
bytes_give (struct coffer_call *call, int out, const char *at, size_t size)
{
  ssize_t n;

  while (size > 0 && out >= 0) {
    if (coffer_wait_fd (out, POLLOUT, call->deadline_ns, call->cancel_fd) <= 0)
      return coffer_fail_errno (call, errno, "giving kept output on");
    /* At most what poll promises: the descriptor may block. */
    n = write (out, at, size < PIPE_BUF ? size : PIPE_BUF);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
      return coffer_fail_errno (call, errno, "giving kept output on");
    if (n > 0) {
      at += n;
      size -= (size_t) n;
    }
  }
  return COFFER_OK;
}

/* What an init says is checked: only what can be kept is ever read. */
static int32_t
spooled_check (struct attach *attach)
{
  struct init_spooled *spooled = &attach->spooled;
  int i;

  /* An older init keeps the beginning, and nothing after it. */
  if (spooled->head == 0) {
    spooled->head = INIT_SPOOL_MAX;
    attach->missed = spooled->dropped[0] + spooled->dropped[1];
    for (i = 0; i < 2; i++)
      spooled->total[i] = spooled->bytes[i];
  }
  if (spooled->bytes[0] > INIT_SPOOL_MAX || spooled->bytes[1] > INIT_SPOOL_MAX
      || spooled->head > INIT_SPOOL_MAX || spooled->tail > INIT_SPOOL_MAX
      || spooled->total[0] > INT64_MAX || spooled->total[1] > INT64_MAX)
    return coffer_fail (attach->call, COFFER_INTERNAL,
                        "the init's kept output is none");
  return COFFER_OK;
}

/* stream 0: waits for more than the offsets; 1, 2: its descriptor. */
static int32_t
spool_ask (struct attach *attach, uint32_t stream)
{
  struct request request = { .type = INIT_SPOOL, .body = &attach->body,
                             .size = sizeof attach->body,
                             .takes_fd = stream != 0
                                         && attach->file[stream - 1] < 0 };
  coffer_unfilled struct reply reply;
  struct stat st;

  attach->body.stream = stream;
  if (link_ask (attach->link, &request, &reply, attach->call) == -1)
    return errno == EINVAL
      ? coffer_fail (attach->call, COFFER_CONFLICT,
                     "the command does not run in the background")
      : exec_ask_failed (attach->call, attach->exec);
  if (request.takes_fd) {
    /* Only what cannot block is read. */
    if (reply.fd < 0 || fstat (reply.fd, &st) == -1 || !S_ISREG (st.st_mode)) {
      coffer_fd_close (&reply.fd);
      return coffer_fail (attach->call, COFFER_INTERNAL,
                          "the init's kept output is none");
    }
    attach->file[stream - 1] = reply.fd;
  }
  if (reply_body (&reply, &attach->spooled, sizeof attach->spooled) == -1)
    return exec_ask_failed (attach->call, attach->exec);
  return spooled_check (attach);
}

/* The first byte at or after `at` that is still kept. */
static uint64_t
kept_from (const struct init_spooled *spooled, int stream, uint64_t at)
{
  const uint64_t total = spooled->total[stream], tail = spooled->tail;

  if (at < spooled->head || total <= spooled->head + tail
      || at >= total - tail)
    return at;
  return total - tail;
}

/* Reads what lies together from there on: 0 is nothing. */
static ssize_t
kept_read (struct attach *attach, int stream, uint64_t at, char *bytes,
           size_t size)
{
  const struct init_spooled *spooled = &attach->spooled;
  uint64_t place = at, room = spooled->head - at;

  if (at >= spooled->head) {
    place = spooled->tail > 0 ? (at - spooled->head) % spooled->tail : 0;
    room = spooled->tail > 0 ? spooled->tail - place : 0;
    place += spooled->head;
  }
  if (room > spooled->total[stream] - at)
    room = spooled->total[stream] - at;
  return pread (attach->file[stream], bytes, room < size ? room : size,
                (off_t) place);
}

static int32_t
stream_give (struct attach *attach, int stream)
{
  uint64_t *at = &attach->body.offsets[stream], from;
  char bytes[16384];
  int32_t code = COFFER_OK;
  ssize_t n;

  while (code == COFFER_OK && *at < attach->spooled.total[stream]) {
    from = kept_from (&attach->spooled, stream, *at);
    attach->missed += from - *at;
    *at = from;
    n = kept_read (attach, stream, *at, bytes, sizeof bytes);
    if (n <= 0)
      return coffer_fail_errno (attach->call, n < 0 ? errno : EIO,
                                "kept output");
    if (*at >= attach->spooled.head && !attach->spooled.ended) {
      code = spool_ask (attach, 1);
      from = kept_from (&attach->spooled, stream, *at);
    }
    /* Written over meanwhile: read again from what is still there. */
    if (code != COFFER_OK || from != *at)
      continue;
    code = bytes_give (attach->call, attach->to[stream], bytes, (size_t) n);
    *at += (uint64_t) n;
  }
  return code;
}

static int32_t
attach_run (struct attach *attach)
{
  int32_t code = spool_ask (attach, 1);

  if (code == COFFER_OK)
    code = spool_ask (attach, 2);
  while (code == COFFER_OK) {
    code = stream_give (attach, 0);
    if (code == COFFER_OK)
      code = stream_give (attach, 1);
    if (code != COFFER_OK
        || (attach->spooled.ended
            && attach->body.offsets[0] >= attach->spooled.total[0]
            && attach->body.offsets[1] >= attach->spooled.total[1]))
      break;
    code = spool_ask (attach, 0);
  }
  return code;
}

int32_t
linux_exec_attach (struct coffer_call *call, void *self, const char *sandbox,
                   const char *exec, int32_t out, int32_t err,
                   const struct coffer_exec_attach_opts *opts)
{
  auto_link struct link link = { .fd = -1 };
  struct attach attach = { .call = call, .link = &link, .exec = exec,
                           .body = { .size = sizeof attach.body },
                           .file = { -1, -1 }, .to = { out, err } };
  char text[96];
  int32_t code = exec_number (call, exec, &attach.body.exec);

  (void) opts;
  if (code == COFFER_OK)
    code = sandbox_reach (self, call, sandbox, &link);
  if (code == COFFER_OK)
    code = attach_run (&attach);
  coffer_fd_close (&attach.file[0]);
  coffer_fd_close (&attach.file[1]);
  if (attach.missed > 0) {
    snprintf (text, sizeof text,
              "%" PRIu64 " bytes of the output's middle were not kept",
              attach.missed);
    coffer_log (call, COFFER_LOG_WARNING, text);
  }
  return code;
}
