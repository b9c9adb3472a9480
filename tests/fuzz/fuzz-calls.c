/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker answers to one call, frame by frame, through the host's own
 * reading of a channel.  The first byte picks the operation; each line after it
 * is a frame, with a pipe beside it when it begins with "!".  Whatever comes,
 * the call ends, in a public error or well, nothing tells the secret, and no
 * descriptor is left. */

#include <config.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "provider/opening.h"
#include "provider/worker.h"

#define SECRET "sk-fuzz/0123456789"
#define FRAMES 64

int LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size);

static struct manifest manifest;
static struct opening opening;
static struct worker worker;
static struct provider provider;

static void
must (int holds)
{
  if (!holds)
    abort ();
}

static void
set_up (void)
{
  static char id[] = "fuzz", secret[] = SECRET;
  char *secrets[] = { secret, NULL };
  size_t skipped;

  if (provider.state)
    return;
  log_set_level ((enum log_level) -1);
  manifest.id = id;
  provider.manifest = &manifest;
  provider.contract = contract_builtin ();
  provider.opening = &opening;
  must (redactor_new (secrets, &provider.redactor, &skipped, NULL) == 0);
  must (journal_init (&provider.journal) == 0);
  pthread_mutex_init (&provider.said_lock, NULL);
  pthread_mutex_init (&worker.lock, NULL);
  pthread_mutex_init (&worker.output_lock, NULL);
  pthread_cond_init (&worker.ended, NULL);
  provider.state = &worker;
}

static int
hear (void *data, const struct contract_record *type, void *record)
{
  struct contract_fds fds = { .count = 0 };
  auto_json json_t *json = NULL;
  auto_free char *text = NULL;

  (void) data;
  must (contract_encode_record (type, record, &json, &fds, NULL) == 0);
  text = json_dumps (json, 0);
  must (!text || !strstr (text, SECRET));
  return 0;
}

static void
send_one (int to, const uint8_t *bytes, size_t size)
{
  char control[CMSG_SPACE (sizeof (int))] = "";
  struct iovec iov;
  struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
  int ends[2] = { -1, -1 };

  if (size > 0 && *bytes == '!') {
    bytes++, size--;
    must (pipe2 (ends, O_CLOEXEC) == 0);
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    CMSG_FIRSTHDR (&header)->cmsg_level = SOL_SOCKET;
    CMSG_FIRSTHDR (&header)->cmsg_type = SCM_RIGHTS;
    CMSG_FIRSTHDR (&header)->cmsg_len = CMSG_LEN (sizeof (int));
    memcpy (CMSG_DATA (CMSG_FIRSTHDR (&header)), &ends[0], sizeof (int));
  }
  iov.iov_base = (void *) bytes;
  iov.iov_len = size;
  if (size > 0)
    (void) !sendmsg (to, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  coffer_fd_close (&ends[0]);
  coffer_fd_close (&ends[1]);
}

static void
send_all (int to, const uint8_t *bytes, size_t size)
{
  const uint8_t *end;
  size_t length, i;

  for (i = 0; i < FRAMES && size > 0; i++) {
    end = memchr (bytes, '\n', size);
    length = end ? (size_t) (end - bytes) : size;
    send_one (to, bytes, length);
    length += end != NULL;
    bytes += length;
    size -= length;
  }
  shutdown (to, SHUT_WR);
}

static struct process *
process_of (int channel)
{
  struct process *process = calloc (1, sizeof *process);

  must (process != NULL);
  process->pidfd = process->output = -1;
  process->lifeline[0] = process->lifeline[1] = -1;
  process->channel = channel;
  process->output_ended = 1;
  process->refs = 2;            /* the worker's, and the call's */
  return process;
}

static void
check_outcome (struct invoke *invoke)
{
  auto_error struct error *error = NULL;
  auto_free char *details = NULL;

  if (outcome_error (&invoke->outcome, &manifest, invoke->op, &error) == 0) {
    must (!error);
    return;
  }
  must (error && error_lookup (error->number));
  must (!strstr (error_message (error), SECRET));
  details = error->details ? json_dumps (error->details, 0) : NULL;
  must (!details || !strstr (details, SECRET));
}

static int
open_descriptors (void)
{
  int i, n = 0;

  for (i = 0; i < 128; i++)
    n += fcntl (i, F_GETFD) >= 0;
  return n;
}

int
LLVMFuzzerTestOneInput (const uint8_t *bytes, size_t size)
{
  struct invoke invoke = { .provider = &provider, .cancel_fd = -1,
                           .request = 1, .sink = { .record = hear } };
  int before = open_descriptors (), pair[2];
  struct process *process;
  struct pending pending;

  if (size < 1)
    return 0;
  set_up ();
  invoke.op = &provider.contract->ops[*bytes % provider.contract->n_ops];
  invoke.deadline_ns = coffer_now_ns () + 5000000000;
  must (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
  send_all (pair[1], bytes + 1, size - 1);
  process = process_of (pair[0]);
  worker.process = process;
  pending_init (&pending, &invoke, process);
  worker.calls = &pending;
  pending_run (&provider, &pending);
  worker.calls = NULL;
  pending_fini (&pending);
  worker_unref (&worker, process);
  if (worker.process)           /* it answered, and goes on */
    worker_unref (&worker, process);
  worker.process = NULL;
  check_outcome (&invoke);
  outcome_fini (&invoke.outcome);
  close (pair[1]);
  must (open_descriptors () == before);
  return 0;
}
