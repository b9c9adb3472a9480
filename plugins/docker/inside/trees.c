/* SPDX-License-Identifier: Apache-2.0 */
/* Folders as tar, tars into folders, and changes of a folder.  Standard input
 * says nothing more after the request but what is unpacked: its end is the
 * caller's, who has given up or gone. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <coffer/fd.h>
#include <coffer/files.h>

#include "work.h"

#define CALLER 0                /* standard input, as long as somebody is there */
#define LATER_NS INT64_C (500000000)    /* than the library, which says why */

/* ---- out ---------------------------------------------------------------------- */

/* Between the library and standard output, to count what went there: the two
 * streams of a command come to the provider in no order. */
struct relay {
  int from;
  int64_t deadline_ns;
  uint64_t copied;
  int failed;                   /* errno */
};

static void *
relay_main (void *data)
{
  struct relay *relay = data;

  if (coffer_copy (relay->from, 1, 0, relay->deadline_ns, CALLER,
                   &relay->copied) < 0)
    relay->failed = errno;
  coffer_fd_close (&relay->from);
  return NULL;
}

int32_t
tree_export (struct coffer_call *call, int root, const char *path)
{
  struct relay relay = {
    .deadline_ns = call->deadline_ns < INT64_MAX - LATER_NS
                     ? call->deadline_ns + LATER_NS : INT64_MAX,
  };
  pthread_t thread;
  int32_t code;
  int ends[2];

  if (pipe2 (ends, O_CLOEXEC) < 0)
    return coffer_fail_errno (call, errno, path);
  relay.from = ends[0];
  if (pthread_create (&thread, NULL, relay_main, &relay) != 0)
    return coffer_fail_errno (call, EAGAIN, path);
  call->cancel_fd = CALLER;
  code = coffer_files_export (call, root, path, ends[1]);
  close (ends[1]);
  pthread_join (thread, NULL);
  if (code == COFFER_OK && relay.failed)
    code = coffer_fail_errno (call, relay.failed, "the archive's reader");
  if (code == COFFER_OK)
    say (WIRE_OUT_ENDED, &relay.copied, sizeof relay.copied);
  return code;
}

/* ---- in ----------------------------------------------------------------------- */

struct place {
  int root, links_out;
  const char *path;
};

static int32_t
unpack (struct coffer_call *call, int in, void *data)
{
  const struct place *place = data;

  return place->links_out
           ? coffer_files_restore (call, place->root, place->path, in)
           : coffer_files_import (call, place->root, place->path, in);
}

int32_t
tree_import (struct coffer_call *call, int root, const char *path,
             int links_out)
{
  struct place place = {root, links_out, path};

  return fed (call, path, unpack, &place);
}

/* ---- changes ------------------------------------------------------------------ */

int32_t
tree_watch (struct coffer_call *call, int root, const char *path)
{
  coffer_autoclose int watch = coffer_watch_open (root, path);

  if (watch < 0)
    return coffer_fail_errno (call, errno, path);
  call->cancel_fd = CALLER;
  return coffer_files_watch (call, watch, -1);
}
