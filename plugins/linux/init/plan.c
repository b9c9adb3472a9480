/* SPDX-License-Identifier: Apache-2.0 */
/* What the maker says before there is a sandbox: what to prepare, and the
 * plan, with the descriptors that come along. */

#include "init.h"

void
shape_read (struct packet *packet, struct plan *plan)
{
  const uint32_t *groups = &plan->shape.own_groups;
  size_t i;

  plan->skeleton = -1;
  if (packet->header->type != INIT_PREPARE
      || packet_body (packet, &plan->shape, sizeof plan->shape) == NULL
      || plan->shape.size != sizeof plan->shape
      || packet->n_fds
           != *groups + ((plan->shape.flags & PLAN_SKELETON) ? 1u : 0u))
    setup_fail ("preparations", -EPROTO_);
  LAYERS_TAKE (plan->shape.layers);
  for (i = 0; i < *groups; i++)
    group_join (packet->fds[i]);
  if (plan->shape.flags & PLAN_SKELETON)
    plan->skeleton = packet->fds[*groups];
}

void
plan_read (struct packet *packet, struct plan *plan)
{
  size_t next = 0;
  const char *rest = packet_body (packet, &plan->body, sizeof plan->body);

  plan->packet = packet;
  plan->lifeline = plan->listener = -1;
  if (packet->header->type != INIT_PLAN || rest == NULL
      || plan->body.size != sizeof plan->body
      || plan->body.mounts > INIT_FDS_MAX
      || rest + plan->body.mounts * sizeof (struct init_mount)
           > (const char *) packet->header + packet->size)
    setup_fail ("plan", -EPROTO_);
  if ((plan->body.flags & PLAN_LIFELINE) && next < packet->n_fds)
    plan->lifeline = packet->fds[next++];
  if ((plan->body.flags & PLAN_LISTENER) && next < packet->n_fds)
    plan->listener = packet->fds[next++];
  if ((plan->body.flags & PLAN_GROUP) && next < packet->n_fds)
    commands_group = packet->fds[next++];
  if (plan->body.joins > packet->n_fds - next)
    setup_fail ("plan", -EPROTO_);
  next += warm_groups (packet->fds + next, plan->body.joins);
  plan->first_mount_fd = next;
  plan->hostname = packet_string (packet, plan->body.hostname);
  if (plan->hostname == NULL)
    setup_fail ("plan", -EPROTO_);
}
