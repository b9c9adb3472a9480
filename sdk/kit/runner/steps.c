/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that many cases take: sandboxes, commands with their streams, files.
 * Each fails the case when it fails. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <coffer/buffer.h>
#include <coffer/fd.h>

#include "runner.h"

#define DEFAULT_CAP (16 * 1024 * 1024)
#define MAX_WORDS 64

/* ---- sandboxes ----------------------------------------------------------- */

struct coffer_sandbox_spec
kit_spec (struct kit *kit)
{
  struct coffer_sandbox_spec spec = { .size = sizeof spec, .lifeline = -1,
                                      .template_fd = -1 };

  if (!kit_claims (kit, "network.none"))
    spec.network = kit_claims (kit, "network.host")    ? "host"
                   : kit_claims (kit, "network.allow") ? "allow"
                                                       : NULL;
  return spec;
}

const char *
kit_new_id (struct kit *kit)
{
  return kit_text (kit, "sb-%s", kit_random_word (kit, 26));
}

const char *
kit_sandbox_with (struct kit *kit, struct kit_instance *instance,
                  const struct coffer_sandbox_spec *spec)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const char *id = kit_new_id (kit);

  KIT_OK (kit, kit_sandbox_create (instance, &reply, id, spec, NULL), &reply,
          "create the sandbox %s", id);
  kit_reply_reset (&reply);
  return id;
}

const char *
kit_sandbox (struct kit *kit)
{
  const struct coffer_sandbox_spec spec = kit_spec (kit);

  return kit_sandbox_with (kit, kit_first (kit), &spec);
}

const char *
kit_workspace (struct kit *kit, const char *sandbox)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_sandbox_info *info;
  const char *path;

  KIT_OK (kit, kit_sandbox_info (kit_first (kit), &reply, sandbox, NULL),
          &reply, "info of %s", sandbox);
  info = kit_reply_sandbox_info (&reply, 0);
  KIT_CHECK (kit, info && info->workspace && info->workspace[0] == '/',
             "info of %s: expected an absolute workspace, came %s", sandbox,
             info && info->workspace ? info->workspace : "none");
  path = kit_text (kit, "%s", info->workspace);
  kit_reply_reset (&reply);
  return path;
}

/* ---- streams ------------------------------------------------------------- */

void
kit_pipe (struct kit *kit, int ends[2])
{
  if (pipe2 (ends, O_CLOEXEC) < 0)
    kit_fail (kit, "the kit has no pipe: %s", strerror (errno));
}

uint8_t *
kit_read_all (struct kit *kit, int fd, size_t cap, size_t *size)
{
  coffer_autobuffer struct coffer_buffer bytes = { 0 };
  char chunk[65536];
  ssize_t n;

  for (;;) {
    if (coffer_wait_fd (fd, POLLIN, kit->deadline_ns, -1) <= 0)
      kit_fail (kit, "reading a stream: expected its end, it stayed open after "
                "%zu bytes", bytes.size);
    n = read (fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      break;
    coffer_buffer_add (&bytes, chunk, (size_t) n);
    if (bytes.size > cap)
      kit_fail (kit, "reading a stream: expected at most %zu bytes, came more",
                cap);
  }
  *size = bytes.size;
  coffer_buffer_add (&bytes, "", 1);
  if (bytes.failed)
    kit_fail (kit, "out of memory");
  return (uint8_t *) coffer_buffer_steal (&bytes);
}

struct pump {
  int in, out, err;             /* -1: at its end */
  size_t sent;
  struct coffer_buffer bytes[2];
};

static void
pump_write (struct pump *pump, const struct kit_exec *exec)
{
  ssize_t n = write (pump->in, (const char *) exec->in + pump->sent,
                     exec->in_size - pump->sent);

  if (n > 0)
    pump->sent += (size_t) n;
  if (pump->sent == exec->in_size
      || (n < 0 && errno != EAGAIN && errno != EINTR))
    coffer_fd_close (&pump->in);
}

static void
pump_read (struct kit *kit, int *fd, struct coffer_buffer *bytes, size_t cap)
{
  static __thread char chunk[65536];
  ssize_t n = read (*fd, chunk, sizeof chunk);

  if (n > 0)
    coffer_buffer_add (bytes, chunk, (size_t) n);
  else if (n == 0 || (errno != EAGAIN && errno != EINTR))
    coffer_fd_close (fd);
  if (bytes->size > cap || bytes->failed)
    kit_fail (kit, "reading a command's stream: expected at most %zu bytes, "
              "came more", cap);
}

static void
pump_round (struct kit *kit, struct pump *pump, const struct kit_exec *exec,
            size_t cap)
{
  struct pollfd p[3] = { { pump->in, POLLOUT, 0 }, { pump->out, POLLIN, 0 },
                         { pump->err, POLLIN, 0 } };
  int64_t left = (kit->deadline_ns - coffer_now_ns ()) / 1000000;
  int n = left > 0 ? poll (p, 3, (int) left) : 0;

  if (n == 0)
    kit_fail (kit, "%s: expected the end of its streams, they stayed open "
              "(%zu bytes of stdout, %zu of stderr came, %zu of stdin went)",
              exec->argv[0], pump->bytes[0].size, pump->bytes[1].size,
              pump->sent);
  if (n < 0)
    return;
  if (p[0].revents)
    pump_write (pump, exec);
  if (p[1].revents)
    pump_read (kit, &pump->out, &pump->bytes[0], cap);
  if (p[2].revents)
    pump_read (kit, &pump->err, &pump->bytes[1], cap);
}

static uint8_t *
pump_take (struct kit *kit, struct coffer_buffer *bytes, size_t *size)
{
  *size = bytes->size;
  coffer_buffer_add (bytes, "", 1);
  if (bytes->failed)
    kit_fail (kit, "out of memory");
  return (uint8_t *) coffer_buffer_steal (bytes);
}

/* ---- commands ------------------------------------------------------------ */

static struct kit_instance *
instance_of (struct kit *kit, const struct kit_exec *exec)
{
  return exec->instance ? exec->instance : kit_first (kit);
}

static const char *
start (struct kit *kit, struct kit_instance *instance, const char *sandbox,
       const struct kit_exec *exec, int in, int out, int err)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_exec_info *info;
  const char *id;

  KIT_OK (kit, kit_exec_start (instance, &reply, sandbox, exec->argv,
                               exec->env, exec->cwd, in, out, err,
                               exec->opts),
          &reply, "exec_start of %s in %s", exec->argv[0], sandbox);
  info = kit_reply_exec_info (&reply, 0);
  KIT_CHECK (kit, info && info->exec && *info->exec,
             "exec_start of %s: expected an exec_info with an id, came none",
             exec->argv[0]);
  id = kit_text (kit, "%s", info->exec);
  kit_reply_reset (&reply);
  return id;
}

static const struct coffer_exec_exit *
wait_end (struct kit *kit, struct kit_instance *instance, const char *sandbox,
          const struct kit_exec *exec)
{
  /* The record lives as long as the case. */
  struct kit_reply *reply = kit_memory (kit, sizeof *reply);
  const struct coffer_exec_exit *end;

  reply->cancel_fd = -1;
  KIT_OK (kit, kit_exec_wait (instance, reply, sandbox, exec->exec, NULL),
          reply, "exec_wait of %s in %s", exec->argv[0], sandbox);
  end = kit_reply_exec_exit (reply, 0);
  KIT_CHECK (kit, end != NULL, "exec_wait of %s: expected an exec_exit, came "
             "none", exec->argv[0]);
  return end;
}

void
kit_exec (struct kit *kit, const char *sandbox, struct kit_exec *exec)
{
  struct kit_instance *instance = instance_of (kit, exec);
  const int feeds = exec->in_size > 0 || exec->has_in;
  const size_t cap = exec->cap ? exec->cap : DEFAULT_CAP;
  int in[2] = { -1, -1 }, out[2], err[2];
  struct pump pump = { .in = -1 };

  if (feeds)
    kit_pipe (kit, in);
  kit_pipe (kit, out);
  kit_pipe (kit, err);
  exec->exec = start (kit, instance, sandbox, exec, in[0], out[1], err[1]);
  coffer_fd_close (&in[0]);
  coffer_fd_close (&out[1]);
  coffer_fd_close (&err[1]);
  pump.in = in[1];
  pump.out = out[0];
  pump.err = err[0];
  if (feeds)
    fcntl (pump.in, F_SETFL, O_NONBLOCK);
  if (feeds && exec->in_size == 0)
    coffer_fd_close (&pump.in);
  while (pump.out >= 0 || pump.err >= 0)
    pump_round (kit, &pump, exec, cap);
  coffer_fd_close (&pump.in);
  exec->out = pump_take (kit, &pump.bytes[0], &exec->out_size);
  exec->err = pump_take (kit, &pump.bytes[1], &exec->err_size);
  exec->exit = wait_end (kit, instance, sandbox, exec);
}

void
kit_shell (struct kit *kit, const char *sandbox, struct kit_exec *exec,
           const char *script, ...)
{
  const char **argv = kit_memory (kit, (MAX_WORDS + 5) * sizeof *argv);
  const char *word;
  size_t n = 0;
  va_list ap;

  argv[n++] = "/bin/sh";
  argv[n++] = "-c";
  argv[n++] = script;
  argv[n++] = "kit";
  va_start (ap, script);
  while ((word = va_arg (ap, const char *)) && n < MAX_WORDS)
    argv[n++] = word;
  va_end (ap);
  exec->argv = argv;
  kit_exec (kit, sandbox, exec);
}

const char *
kit_start (struct kit *kit, const char *sandbox, const char *const *argv,
           int in, int out, int err, const struct coffer_exec_start_opts *opts)
{
  const struct kit_exec exec = { .argv = argv, .opts = opts };

  return start (kit, kit_first (kit), sandbox, &exec, in, out, err);
}

/* ---- files --------------------------------------------------------------- */

struct transfer {
  int fd;
  const void *from;
  size_t size;
};

static void *
transfer_write (void *data)
{
  struct transfer *transfer = data;

  coffer_write_all (transfer->fd, transfer->from, transfer->size);
  coffer_fd_close (&transfer->fd);
  return NULL;
}

void
kit_write_file (struct kit *kit, const char *sandbox, const char *path,
                const void *bytes, size_t size)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  struct transfer transfer = { .from = bytes, .size = size };
  pthread_t thread;
  int ends[2];
  int32_t code;

  kit_pipe (kit, ends);
  transfer.fd = ends[1];
  if (pthread_create (&thread, NULL, transfer_write, &transfer) != 0)
    kit_fail (kit, "the kit has no thread");
  code = kit_file_write (kit_first (kit), &reply, sandbox, path, ends[0],
                         NULL);
  coffer_fd_close (&ends[0]);
  pthread_join (thread, NULL);
  KIT_OK (kit, code, &reply, "file_write of %zu bytes to %s", size, path);
  kit_reply_reset (&reply);
}

struct reading {
  struct kit *kit;
  int fd;
  uint8_t *bytes;
  size_t size;
};

static void *
transfer_read (void *data)
{
  struct reading *reading = data;

  reading->bytes = kit_read_all (reading->kit, reading->fd, SIZE_MAX / 2,
                                 &reading->size);
  return NULL;
}

uint8_t *
kit_read_file (struct kit *kit, const char *sandbox, const char *path,
               size_t *size)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  struct reading reading = { .kit = kit };
  pthread_t thread;
  int ends[2];
  int32_t code;

  kit_pipe (kit, ends);
  reading.fd = ends[0];
  if (pthread_create (&thread, NULL, transfer_read, &reading) != 0)
    kit_fail (kit, "the kit has no thread");
  code = kit_file_read (kit_first (kit), &reply, sandbox, path, ends[1],
                        NULL);
  coffer_fd_close (&ends[1]);
  pthread_join (thread, NULL);
  coffer_fd_close (&ends[0]);
  KIT_OK (kit, code, &reply, "file_read of %s", path);
  kit_reply_reset (&reply);
  *size = reading.size;
  return reading.bytes;
}

/* ---- threads and cancelling ---------------------------------------------- */

struct worker_thread {
  struct kit *kit;
  void (*work) (struct kit *kit, void *data, size_t index);
  void *data;
  size_t index;
  pthread_t thread;
};

static void *
thread_main (void *data)
{
  struct worker_thread *self = data;

  self->work (self->kit, self->data, self->index);
  return NULL;
}

void
kit_threads (struct kit *kit, size_t n,
             void (*work) (struct kit *kit, void *data, size_t index),
             void *data)
{
  struct worker_thread *threads = kit_memory (kit, n * sizeof *threads);
  size_t i;

  kit_first (kit);
  for (i = 0; i < n; i++) {
    threads[i] = (struct worker_thread){ kit, work, data, i, 0 };
    if (pthread_create (&threads[i].thread, NULL, thread_main, &threads[i])
        != 0)
      kit_fail (kit, "the kit has no thread");
  }
  for (i = 0; i < n; i++)
    pthread_join (threads[i].thread, NULL);
}

int
kit_cancel_new (struct kit *kit)
{
  int fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);

  if (fd < 0)
    kit_fail (kit, "the kit has no eventfd: %s", strerror (errno));
  return fd;
}

void
kit_cancel (int fd)
{
  const uint64_t one = 1;

  coffer_write_all (fd, &one, sizeof one);
}
