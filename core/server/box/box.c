/* SPDX-License-Identifier: Apache-2.0 */
/* The box's beginning and end, and the thread that looks after sessions. */

#include <config.h>

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include <coffer/fd.h>

#include "server/box/sessions.h"
#include "server/box/processes.h"
#include "server/server.h"

#define LOOK_MOST_MS 30000
#define LOOK_LEAST_MS 250

/* Often enough that a session goes not long after its time. */
static int64_t
look_ms (const struct box *box)
{
  int64_t ms = (int64_t) box->config.idle_ms / 4;

  if (ms == 0 || ms > LOOK_MOST_MS)
    return LOOK_MOST_MS;
  return ms < LOOK_LEAST_MS ? LOOK_LEAST_MS : ms;
}

static void *
reap (void *data)
{
  struct box *box = data;

  do {
    box_backend_say (box);
    box_sessions_reap (box);
  } while (coffer_wait_fd (box->stop_fd, POLLIN,
                           coffer_now_ns () + look_ms (box) * 1000000, -1)
           == 0);
  return NULL;
}

static void
sessions_count (void *data, struct metrics_page *page)
{
  struct box *box = data;
  struct box_session *session;
  size_t sessions = 0, processes = 0;

  pthread_mutex_lock (&box->lock);
  for (session = box->sessions; session; session = session->next) {
    sessions++;
    processes += (size_t) box_processes_running (box, session);
  }
  pthread_mutex_unlock (&box->lock);
  metrics_page_family (page, "coffer_box_sessions", "gauge",
                       "Sessions of the box.");
  metrics_page_value (page, NULL, NULL, (double) sessions);
  metrics_page_family (page, "coffer_box_processes", "gauge",
                       "Processes of sessions that run.");
  metrics_page_value (page, NULL, NULL, (double) processes);
}

int
box_open (struct server *server, const struct box_config *config,
          struct error **err)
{
  struct box *box = calloc (1, sizeof *box);
  pthread_condattr_t attributes;

  if (box == NULL)
    return error_set (err, E_NO_MEMORY, 0, "the box");
  server->box = box;
  box->server = server;
  box->config = *config;
  pthread_mutex_init (&box->lock, NULL);
  pthread_condattr_init (&attributes);
  pthread_condattr_setclock (&attributes, CLOCK_MONOTONIC);
  pthread_cond_init (&box->changed, &attributes);
  pthread_condattr_destroy (&attributes);
  box->folder = -1;
  box->stop_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (box->stop_fd < 0)
    return error_set (err, E_IO, errno, "the box");
  if (box_store_open (box, err) < 0
      || metrics_add_source (observe_metrics (server), sessions_count, box,
                             err) < 0)
    return -1;
  box_store_adopt (box);
  if (pthread_create (&box->reaper, NULL, reap, box) != 0)
    return error_set (err, E_IO, EAGAIN, "a thread of the box");
  box->reaping = 1;
  return 0;
}

/* Sessions live on: the next daemon goes on with them. */
void
box_close (struct server *server)
{
  struct box *box = server->box;
  struct box_session *session, *next;
  const uint64_t one = 1;

  if (box == NULL)
    return;
  if (box->reaping) {
    coffer_write_all (box->stop_fd, &one, sizeof one);
    pthread_join (box->reaper, NULL);
  }
  for (session = box->sessions; session; session = next) {
    next = session->next;
    box_session_free (session);
  }
  coffer_fd_close (&box->stop_fd);
  coffer_fd_close (&box->folder);
  pthread_cond_destroy (&box->changed);
  pthread_mutex_destroy (&box->lock);
  free (box->said);
  free (box);
  server->box = NULL;
}
