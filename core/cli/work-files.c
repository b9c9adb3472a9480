/* SPDX-License-Identifier: Apache-2.0 */
/* Files into a sandbox and back, by a daemon or here.  A daemon compares what it
 * has written with what came; here that is compared with what was sent. */

#include <config.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/sha256.h"
#include "cli/work.h"

#define FILES "/api/v1/sandboxes/%s/files/%p"
#define BLOCK 65536

/* What has gone by. */
struct passed {
  const struct work_copy *copy;
  SHA2_CTX hash;
  uint64_t size, total;         /* total 0: not known */
};

static void
pass (struct passed *passed, const char *bytes, size_t size)
{
  const struct provider_sink *sink = &passed->copy->call.sink;

  sha256_add (&passed->hash, bytes, size);
  passed->size += size;
  if (sink->progress)
    sink->progress (sink->data, passed->size, passed->total, NULL);
}

static struct client_request
copy_request (const struct work_copy *copy, const char *method,
              const char *target)
{
  return (struct client_request){ .method = method, .target = target,
                                  .deadline_ns = copy->call.deadline_ns,
                                  .cancel_fd = copy->call.cancel_fd };
}

/* ---- upload ------------------------------------------------------------- */

static char *
upload_target (const struct work_copy *copy)
{
  char mode[24] = "";

  if (copy->mode)
    snprintf (mode, sizeof mode, "%o", copy->mode);
  return client_target (copy->parents ? FILES "?parents=1&mode=%s"
                                      : FILES "?mode=%s",
                        copy->id, copy->path, *mode ? mode : "644");
}

/* A daemon that answers before the end wants no more. */
static int
has_answered (const struct client_reply *reply)
{
  struct pollfd fd = { reply->fd, POLLIN, 0 };

  return poll (&fd, 1, 0) > 0;
}

/* The next of what is local, once there is something. */
static ssize_t
read_local (const struct work_copy *copy, char *bytes, size_t size,
            struct error **err)
{
  ssize_t n;

  for (;;) {
    n = read (copy->local, bytes, size);
    if (n >= 0)
      return n;
    if (errno != EAGAIN && errno != EINTR)
      return error_set (err, E_IO, errno, "reading the file");
    if (coffer_wait_fd (copy->local, POLLIN,
                        copy->call.deadline_ns ? copy->call.deadline_ns
                                               : INT64_MAX,
                        copy->call.cancel_fd) == 1)
      continue;
    return error_set (err, errno == ECANCELED ? E_EXEC_CANCELLED : E_IO,
                      errno == ECANCELED ? 0 : errno, "reading the file");
  }
}

static int
send_local (struct passed *passed, struct client_reply *reply,
            struct error **err)
{
  coffer_unfilled char bytes[BLOCK];
  ssize_t n;

  while (!has_answered (reply)) {
    n = read_local (passed->copy, bytes, sizeof bytes, err);
    if (n < 0 || client_send (reply, bytes, (size_t) n, err) < 0
        || client_push (reply, 1, err) < 0)
      return -1;
    if (n == 0)
      return 0;
    pass (passed, bytes, (size_t) n);
  }
  return 0;
}

static int
check_report (const struct passed *passed, const json_t *report,
              const char *sha256, struct error **err)
{
  const char *theirs
    = json_string_value (json_object_get (report, "sha256"));

  if (theirs && strcmp (theirs, sha256) == 0)
    return 0;
  return error_set (err, E_FILE_MISMATCH, 0,
                    "%s: what is there (sha256 %.16s…) is not what was sent "
                    "(%.16s…)", passed->copy->path, theirs ? theirs : "none",
                    sha256);
}

static int
upload_asked (struct client *daemon, const struct work_copy *copy,
              json_t **out, struct error **err)
{
  auto_client_reply struct client_reply reply = { .fd = -1 };
  auto_free char *target = upload_target (copy);
  struct client_request request = copy_request (copy, "PUT", target);
  struct passed passed = { .copy = copy };
  auto_json json_t *report = NULL;
  char sha256[SHA256_HEX_SIZE];
  struct stat st;

  if (fstat (copy->local, &st) == 0 && S_ISREG (st.st_mode))
    passed.total = (uint64_t) st.st_size;
  request.streamed = 1;
  sha256_begin (&passed.hash);
  if (client_begin (daemon, &request, &reply, err) < 0
      || send_local (&passed, &reply, err) < 0
      || client_answered (&reply, err) < 0
      || client_json (&reply, &report, err) < 0)
    return -1;
  sha256_end (&passed.hash, sha256);
  if (check_report (&passed, report, sha256, err) < 0)
    return -1;
  *out = steal (report);
  return 0;
}

int
work_upload (struct cli *cli, const struct work_copy *copy, json_t **out,
             struct error **err)
{
  struct client *daemon;
  struct host *host;

  if (work_daemon (cli, &daemon, err) < 0)
    return -1;
  if (daemon)
    return upload_asked (daemon, copy, out, err);
  return cli_host (cli, 0, &host, err) < 0
           ? -1 : sandbox_upload (host, copy->id, copy->local, copy->path,
                                  copy->mode, copy->parents, &copy->call, out,
                                  err);
}

/* ---- download ----------------------------------------------------------- */

static int
download_asked (struct client *daemon, const struct work_copy *copy,
                json_t **out, struct error **err)
{
  auto_client_reply struct client_reply reply = { .fd = -1 };
  auto_free char *target = client_target (FILES, copy->id, copy->path);
  const struct client_request request = copy_request (copy, "GET", target);
  struct passed passed = { .copy = copy };
  coffer_unfilled char bytes[BLOCK];
  char sha256[SHA256_HEX_SIZE];
  ssize_t n;

  sha256_begin (&passed.hash);
  if (client_begin (daemon, &request, &reply, err) < 0)
    return -1;
  while ((n = client_read (&reply, bytes, sizeof bytes, err)) > 0) {
    if (coffer_write_all (copy->local, bytes, (size_t) n) < 0)
      return error_set (err, E_IO, errno, "writing the file");
    pass (&passed, bytes, (size_t) n);
  }
  if (n < 0)
    return -1;
  sha256_end (&passed.hash, sha256);
  *out = json_pack ("{s:o, s:o, s:s}", "path",
                    json_bytes (copy->path, strlen (copy->path)),
                    "size_bytes", json_u64 (passed.size), "sha256", sha256);
  return *out ? 0 : error_set (err, E_NO_MEMORY, 0, "a report");
}

int
work_download (struct cli *cli, const struct work_copy *copy, json_t **out,
               struct error **err)
{
  struct client *daemon;
  struct host *host;

  if (work_daemon (cli, &daemon, err) < 0)
    return -1;
  if (daemon)
    return download_asked (daemon, copy, out, err);
  return cli_host (cli, 0, &host, err) < 0
           ? -1 : sandbox_download (host, copy->id, copy->path, copy->local,
                                    &copy->call, out, err);
}

/* ---- list --------------------------------------------------------------- */

int
work_ls (struct cli *cli, const struct work_copy *copy, uint32_t depth,
         json_t **out, struct error **err)
{
  auto_json json_t *reply = NULL;
  struct client *daemon;
  struct host *host;
  char levels[16];

  if (work_daemon (cli, &daemon, err) < 0)
    return -1;
  if (!daemon)
    return cli_host (cli, 0, &host, err) < 0
             ? -1 : sandbox_ls (host, copy->id, copy->path, depth, 0,
                                &copy->call, out, err);
  snprintf (levels, sizeof levels, "%u", depth);
  if (work_ask (cli, "GET", client_target (FILES "?op=list&depth=%s",
                                           copy->id, copy->path, levels),
                NULL, &reply, err) < 0)
    return -1;
  *out = json_incref (json_object_get (reply, "entries"));
  return *out ? 0
              : error_set (err, E_CONNECT_FAILED, 0,
                           "the daemon's reply is not what was asked for");
}
