/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of sandboxes, one or all of them, and their time. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "linux.h"

#define ANSWER_NS 2000000000    /* of one sandbox in a list */

static const char *const *
metadata_read (int folder, struct coffer_strings *strings, char **bytes)
{
  coffer_autoclose int fd = folder < 0
    ? -1 : openat (folder, "metadata", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  size_t size = 0, at;

  *bytes = NULL;
  if (fd >= 0 && coffer_read_whole (fd, 1 << 20, bytes, &size) == 0)
    for (at = 0; at < size; at += strlen (*bytes + at) + 1)
      coffer_strings_add (strings, *bytes + at);
  return coffer_strings_view (strings);
}

static int
state_ask (struct link *link, const struct coffer_call *call,
           struct init_state *state)
{
  struct request request = { .type = INIT_INFO };
  coffer_unfilled struct reply reply;

  if (link_ask (link, &request, &reply, call) == -1)
    return -1;
  return reply_body (&reply, state, sizeof *state);
}

static int32_t
state_emit (struct coffer_call *call, const struct link *link, const char *id,
            int folder, const struct init_state *state)
{
  struct coffer_sandbox_info info = { sizeof info };
  coffer_autostrings struct coffer_strings metadata = { 0 };
  char native[32] = "", *bytes;
  struct ucred peer;
  socklen_t size = sizeof peer;
  int32_t code;

  if (link->sb != NULL)
    snprintf (native, sizeof native, "pid:%d", (int) link->sb->pid);
  else if (getsockopt (link->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
    snprintf (native, sizeof native, "pid:%d", (int) peer.pid);
  info.sandbox = id;
  info.native_id = native[0] ? native : id;
  info.state = state->flags & STATE_PAUSED ? "paused" : "running";
  info.created_ns = state->created_ns;
  if (state->expires_ns != 0)
    info.expires_ns = coffer_realtime_ns () + state->expires_ns
                      - coffer_boottime_ns ();
  info.isolation = "namespaces";
  info.workspace = "/workspace";
  info.metadata = metadata_read (folder, &metadata, &bytes);
  code = coffer_emit_sandbox_info (call, &info);
  free (bytes);
  return code;
}

int32_t
sandbox_emit_info (struct coffer_call *call, struct link *link, const char *id,
                   int folder)
{
  struct init_state state;

  if (state_ask (link, call, &state) == -1)
    return sandbox_ask_failed (call, "asking the sandbox's init");
  return state_emit (call, link, id, folder, &state);
}

/* Its folder, unlocked; -1: it has none. */
static int
folder_look (struct linux_provider *self, const char *id)
{
  if (self->runtime < 0)
    return -1;
  return openat (self->runtime, id,
                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* One folder: a sandbox that answers is emitted, a leftover is removed, and
 * one that somebody is just making is left alone. */
static int32_t
folder_visit (struct linux_provider *self, struct coffer_call *call,
              const char *id, int emit)
{
  coffer_autoclose int folder = -1;
  struct coffer_call brief = *call;
  auto_link struct link link;
  struct init_state state;

  /* One that does not answer holds up nobody else. */
  if (brief.deadline_ns > coffer_now_ns () + ANSWER_NS)
    brief.deadline_ns = coffer_now_ns () + ANSWER_NS;
  if (sandbox_link (self, id, &brief, &link) == 0) {
    folder = folder_look (self, id);
    if (state_ask (&link, &brief, &state) == 0)
      return emit ? state_emit (call, &link, id, folder, &state) : COFFER_OK;
    if (errno != ECONNRESET)
      return COFFER_OK;         /* it lives, and has no time */
    coffer_fd_close (&folder);
  } else if (errno != ENOENT)
    return COFFER_OK;
  folder = sandbox_folder (self, id, 0, 0, 0, NULL);
  if (folder >= 0 && sandbox_end (self, id, folder, call) == 0) {
    sandbox_remove (self, id, folder);
    sandbox_forget (self, id);
  }
  return COFFER_OK;
}

int32_t
linux_sandbox_info (struct coffer_call *call, void *data, const char *sandbox,
                    const struct coffer_sandbox_info_opts *opts)
{
  struct linux_provider *self = data;
  coffer_autoclose int folder = -1;
  auto_link struct link link;
  int32_t code = sandbox_reach (self, call, sandbox, &link);

  (void) opts;
  /* One that has ended by itself: whoever hears of it first clears it away. */
  if (code == COFFER_NOT_FOUND && self->runtime >= 0
      && sandbox_id_valid (sandbox))
    folder_visit (self, call, sandbox, 0);
  if (code != COFFER_OK)
    return code;
  folder = folder_look (self, sandbox);
  return sandbox_emit_info (call, &link, sandbox, folder);
}

int32_t
sandbox_visit_all (struct linux_provider *self, struct coffer_call *call,
                   int emit)
{
  int32_t code = COFFER_OK;
  struct dirent *entry;
  DIR *dir;
  int fd;

  if (self->runtime < 0)
    return COFFER_OK;
  fd = openat (self->runtime, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  dir = fd < 0 ? NULL : fdopendir (fd);
  if (dir == NULL) {
    coffer_fd_close (&fd);
    return coffer_fail_errno (call, errno, "reading the runtime folder");
  }
  while (code == COFFER_OK && (entry = readdir (dir)) != NULL)
    if (sandbox_id_valid (entry->d_name))
      code = folder_visit (self, call, entry->d_name, emit);
  closedir (dir);
  return code;
}

/* The first of this instance that has no folder and comes after `last`, in
 * order of the ids: a list that survives their coming and going. */
static int
folderless_next (struct linux_provider *self, char last[SANDBOX_ID_MAX + 1])
{
  const char *best = NULL;
  struct sandbox *sb;

  pthread_mutex_lock (&self->lock);
  for (sb = self->sandboxes; sb != NULL; sb = sb->next)
    if (sb->folderless && strcmp (sb->id, last) > 0
        && (best == NULL || strcmp (sb->id, best) < 0))
      best = sb->id;
  if (best != NULL)
    memcpy (last, best, strlen (best) + 1);
  pthread_mutex_unlock (&self->lock);
  return best != NULL;
}

int32_t
linux_sandbox_list (struct coffer_call *call, void *data,
                    const struct coffer_sandbox_list_opts *opts)
{
  struct linux_provider *self = data;
  char id[SANDBOX_ID_MAX + 1] = "";
  int32_t code = sandbox_visit_all (self, call, 1);

  (void) opts;
  while (code == COFFER_OK && folderless_next (self, id)) {
    auto_link struct link link;
    struct init_state state;

    if (sandbox_link (self, id, call, &link) == 0
        && state_ask (&link, call, &state) == 0)
      code = state_emit (call, &link, id, -1, &state);
  }
  return code;
}

int32_t
linux_sandbox_extend (struct coffer_call *call, void *data,
                      const char *sandbox, uint64_t ttl_ms,
                      const struct coffer_sandbox_extend_opts *opts)
{
  struct init_extend body = { .size = sizeof body };
  struct request request
    = { .type = INIT_EXTEND, .body = &body, .size = sizeof body };
  struct linux_provider *self = data;
  coffer_autoclose int folder = -1;
  auto_link struct link link;
  coffer_unfilled struct reply reply;
  int32_t code = sandbox_reach (self, call, sandbox, &link);

  (void) opts;
  if (code != COFFER_OK)
    return code;
  if (ttl_ms == 0 || ttl_ms > UINT64_C (1000) * 86400 * 365 * 10)
    return coffer_fail (call, COFFER_INVALID,
                        "ttl_ms is 1 to ten years of milliseconds");
  body.expires_ns = coffer_boottime_ns () + (int64_t) ttl_ms * 1000000;
  if (link_ask (&link, &request, &reply, call) == -1)
    return sandbox_ask_failed (call, "setting the sandbox's end");
  folder = folder_look (self, sandbox);
  return sandbox_emit_info (call, &link, sandbox, folder);
}
