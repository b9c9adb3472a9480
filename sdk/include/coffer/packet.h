/* SPDX-License-Identifier: Apache-2.0 */
/* Packets with descriptors, on unix sockets that lie in a folder: what a module
 * and a program of its own that holds a sandbox say to each other.  Each packet
 * is one message of a SOCK_SEQPACKET socket.  coffer/fd.h connects.
 *
 * -1 with errno unless said otherwise; descriptors are close-on-exec from
 * birth.  No state: any thread.  Not in a worker without sockets.  Part of
 * libcoffer-provider.a. */

#ifndef COFFER_PACKET_H
#define COFFER_PACKET_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COFFER_PACKET_FDS_MAX 16        /* of one packet */

/* A socket called `name` in `folder`, which takes connections: whoever connects
 * from now on waits for who accepts. */
int coffer_socket_listen (int folder, const char *name);

/* The next connection, when it comes from a process of this user or of root;
 * any other is closed, EACCES. */
int coffer_socket_accept (int listener);

/* Sends `size` bytes as one packet, with copies of `n_fds` descriptors.  Waits
 * for room as the socket does; a peer that has gone is EPIPE and no signal. */
int coffer_packet_send (int fd, const void *bytes, size_t size, const int *fds,
                        size_t n_fds);

/* Takes the packet that is there, and never waits (EAGAIN): the bytes that came,
 * of which no more than `size` are kept, or 0 when the peer has gone.  *n_fds is
 * the room of `fds` and becomes the number that came, which are the caller's;
 * what else there is room for becomes -1.  More of them than there is room for:
 * EMSGSIZE, and all are closed.  NULL for both: there is no room. */
ssize_t coffer_packet_receive (int fd, void *bytes, size_t size, int *fds,
                               size_t *n_fds);

#ifdef __cplusplus
}
#endif

#endif /* COFFER_PACKET_H */
