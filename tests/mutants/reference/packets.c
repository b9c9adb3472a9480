/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of clients, which are processes of the same user: what they send is
 * checked all the same. */

#define _GNU_SOURCE

#include <string.h>
#include <sys/socket.h>

#include <coffer/fd.h>
#include <coffer/packet.h>

#include "keeper.h"

void
packet_fini (struct packet *packet)
{
  for (size_t i = 0; i < REQUEST_FDS_MAX; i++)
    coffer_fd_close (&packet->fds[i]);
}

int
packet_receive (int client, struct packet *packet)
{
  ssize_t n;

  memset (packet, 0, sizeof *packet);
  packet->n_fds = REQUEST_FDS_MAX;
  n = coffer_packet_receive (client, &packet->request, sizeof packet->request,
                             packet->fds, &packet->n_fds);
  return n == sizeof packet->request
         && packet->request.size == sizeof packet->request ? 0 : -1;
}

void
reply_send (int client, const struct reply *reply)
{
  struct reply full = *reply;

  full.size = sizeof full;
  send (client, &full, sizeof full, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void
reply_error (int client, int sys_errno)
{
  const struct reply reply = {.error = sys_errno};

  reply_send (client, &reply);
}
