/* SPDX-License-Identifier: Apache-2.0 */
/* What a command is started with: the strings of its request, read out of the
 * packet or of the memory that came with it, and the environment, which is the
 * request's over the sandbox's over the base. */

#include "init.h"

static const char *sandbox_workdir = "/workspace";
static const char *sandbox_env;         /* a run of strings */
static uint32_t sandbox_env_count;

static const char path_env[] = "PATH=" DEFAULT_PATH;
static const char *const base_env[] = {
  path_env, "HOME=/workspace", "USER=user", "LANG=C.UTF-8",
  "TMPDIR=/tmp", "TERM=xterm-256color"
};
#define BASE_ENV 5              /* and TERM with a terminal */

static void *
memory_map (size_t size, int fd)
{
  long r = SYS (mmap, 0, size, fd < 0 ? 3 : 1, fd < 0 ? 0x22 : 2, fd, 0);

  return r < 0 && r > -4096 ? NULL : (void *) r;
}

void
request_free (struct request *request)
{
  if (request->mapped != NULL)
    SYS (munmap, request->mapped, request->mapped_size);
  if (request->vector != NULL)
    SYS (munmap, request->vector, request->vector_size);
}

static int
request_find (struct request *request, const struct packet *packet,
              const struct init_exec *body, const char *rest)
{
  const char *end = (const char *) packet->header + packet->size;

  request->size = body->strings_size;
  if (request->size > INIT_BLOCK_MAX)
    return -E2BIG_;
  if (body->flags & EXEC_BLOCK) {
    if (packet->n_fds == 0 || request->size == 0)
      return -EPROTO_;
    /* Beyond its end there would be no memory, but a signal. */
    if (SYS (lseek, packet->fds[0], 0, 2) < (long) request->size)
      return -EPROTO_;
    request->mapped_size = request->size;
    request->mapped = memory_map (request->size, packet->fds[0]);
    if (request->mapped == NULL)
      return -ENOMEM_;
    request->bytes = request->mapped;
  } else {
    if (request->size != (size_t) (end - rest))
      return -EPROTO_;
    request->bytes = rest;
  }
  if (request->size == 0 || request->bytes[request->size - 1] != '\0')
    return -EPROTO_;
  return 0;
}

static int
name_same (const char *a, const char *b)
{
  for (; *a == *b; a++, b++)
    if (*a == '=' || *a == '\0')
      return 1;
  return 0;
}

/* Adds a variable unless a later one of that name is there already. */
static size_t
env_add (const char **out, size_t n, const char *variable)
{
  size_t i;

  for (i = 0; i < n; i++)
    if (name_same (out[i], variable))
      return n;
  out[n] = variable;
  return n + 1;
}

/* The request's variables over the sandbox's over the base. */
static void
env_build (const char **out, const char **own, uint32_t n_own, int tty)
{
  const char *at = sandbox_env;
  size_t n = 0, i;

  for (i = n_own; i > 0; i--)
    n = env_add (out, n, own[i - 1]);
  /* The sandbox's own were made unique by the provider. */
  for (i = 0; i < sandbox_env_count; i++, at += strlen (at) + 1)
    n = env_add (out, n, at);
  for (i = 0; i < (size_t) (tty ? BASE_ENV + 1 : BASE_ENV); i++)
    n = env_add (out, n, base_env[i]);
  out[n] = NULL;
}

/* argv and envp of the request, in one mapping. */
static int
request_split (struct request *request, const struct init_exec *body)
{
  const char *at = request->bytes, *end = at + request->size;
  size_t total = (size_t) body->argc + body->envc + 1, i, own;
  const char **vector;

  if (body->argc == 0 || total > request->size)
    return -EINVAL_;
  own = total + 1;              /* the request's, then the built environment */
  request->vector_size
    = (own + body->envc + sandbox_env_count + BASE_ENV + 2) * sizeof *vector;
  vector = memory_map (request->vector_size, -1);
  if (vector == NULL)
    return -ENOMEM_;
  request->vector = vector;
  for (i = 0; i < total; i++) {
    if (at >= end)
      return -EPROTO_;
    /* argv, its NULL, the variables; the working folder is the last. */
    vector[i < body->argc ? i : i + 1] = at;
    at += strlen (at) + 1;
  }
  if (at != end)
    return -EPROTO_;
  request->cwd = vector[total];
  request->argc = body->argc;
  request->envc = body->envc;
  env_build (vector + own, vector + body->argc + 1, body->envc,
             (body->flags & EXEC_TTY) != 0);
  return 0;
}

static int
start_fill (struct start *start, const struct request *request,
            const struct init_exec *body, const struct packet *packet)
{
  size_t next = body->flags & EXEC_BLOCK ? 1 : 0;
  int *const streams[3] = { &start->in, &start->out, &start->err };
  const uint32_t flags[3] = { EXEC_IN, EXEC_OUT, EXEC_ERR };
  int i;

  memset (start, 0, sizeof *start);
  for (i = 0; i < 3; i++) {
    *streams[i] = -1;
    if (!(body->flags & flags[i]))
      continue;
    if (next >= packet->n_fds)
      return -EPROTO_;
    *streams[i] = packet->fds[next++];
  }
  start->gate = -1;
  if (packet->header->type == INIT_WARM) {
    start->come = 1;
    if (body->flags & (EXEC_TTY | EXEC_BACKGROUND)
        || (next >= packet->n_fds && !(body->flags & EXEC_AHEAD)))
      return -EPROTO_;
    if (!(body->flags & EXEC_AHEAD))
      start->gate = packet->fds[next];
  }
  start->argv = request->vector;
  start->envp = request->vector + request->argc + request->envc + 2;
  start->cwd = request->cwd[0] != '\0' ? request->cwd : sandbox_workdir;
  start->tty = (body->flags & EXEC_TTY) != 0;
  start->rows = body->rows;
  start->columns = body->columns;
  if (start->tty) {
    if (start->in < 0)
      return -EINVAL_;
    if (start->err < 0)
      start->err = start->out >= 0 ? start->out : start->in;
    if (start->out < 0)
      start->out = start->in;
  }
  return 0;
}

int
request_read (struct request *request, struct start *start,
              const struct packet *packet, const struct init_exec *body,
              const char *rest)
{
  int r;

  memset (request, 0, sizeof *request);
  r = request_find (request, packet, body, rest);
  if (r == 0)
    r = request_split (request, body);
  if (r == 0)
    r = start_fill (start, request, body, packet);
  return r;
}

void
request_prepare (const struct plan *plan)
{
  const char *workdir = packet_string (plan->packet, plan->body.workdir);
  const char *env = packet_string (plan->packet, plan->body.env), *at;
  static char few[1024];
  uint32_t i;
  char *copy;
  size_t size;

  if (workdir == NULL || (plan->body.n_env > 0 && env == NULL))
    setup_fail ("environment", -EPROTO_);
  at = env;
  for (i = 0; i < plan->body.n_env; i++) {
    if (packet_string (plan->packet,
                       (uint32_t) (at - (const char *) plan->packet->header))
        == NULL)
      setup_fail ("environment", -EPROTO_);
    at += strlen (at) + 1;
  }
  size = (plan->body.n_env ? (size_t) (at - env) : 0) + strlen (workdir) + 1;
  /* Most are short, and a mapping of its own has page tables of its own. */
  copy = size <= sizeof few ? few : memory_map (size, -1);
  if (copy == NULL)
    setup_fail ("environment", -ENOMEM_);
  memcpy (copy, workdir, strlen (workdir) + 1);
  sandbox_workdir = copy;
  sandbox_env = copy + strlen (workdir) + 1;
  if (plan->body.n_env)
    memcpy (copy + strlen (workdir) + 1, env, (size_t) (at - env));
  sandbox_env_count = plan->body.n_env;
}
