/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of attaching to a process: the lines of its output, read from its log
 * (processes-attach.c), go out as one of two protocols has them: NDJSON there,
 * WebSocket in processes-socket.c. */

#ifndef SERVER_BOX_ATTACH_H
#define SERVER_BOX_ATTACH_H

#include <coffer/buffer.h>

#include "server/box/processes.h"

#define ATTACH_PART (1 << 20)   /* a longer line comes in pieces */

struct attach;

enum attach_part {
  ATTACH_LINE,                  /* what there is to the end of a line */
  ATTACH_PIECE,                 /* and it goes on */
  ATTACH_REST                   /* the last, and no line's end */
};

/* What each appends to attach->out. */
struct attach_framing {
  void (*line) (struct attach *attach, const char *bytes, size_t size,
                enum attach_part part);
  void (*dropped) (struct attach *attach, uint64_t bytes);
  void (*exited) (struct attach *attach, const json_t *code);
};

struct attach {
  struct box *box;
  struct box_session *session;
  const struct attach_framing *framing;
  void *data;                   /* the framing's */
  char *process;                /* its id, and the command's */
  char *exec;
  struct exec_log *log;
  int cancel_fd;
  uint64_t seq;                 /* of the next event */
  size_t skip;                  /* of its bytes, which somebody has seen */
  /* Behind the last line: of those made, and of those that were sent. */
  struct box_mark made, seen;
  struct coffer_buffer line;    /* what there is of one */
  struct coffer_buffer out;     /* frames */
  size_t sent;                  /* of them */
  int ended, failed;
};

/* Takes the session, also when it fails, and leaves it when it is freed. */
struct attach *attach_new (struct box *box, struct request *request,
                           struct box_session *session, const char *id,
                           const struct attach_framing *framing,
                           struct error **err);
void attach_free (void *data);
/* What was in attach->out was sent: waits for more there.  1: it is there; 0:
 * that was all; -1: cancelled, or it cannot be read. */
int attach_next (struct attach *attach);

/* A message, with the end of a line if it has none, to its input. */
int box_line_write (struct box *box, const struct box_session *session,
                    const char *exec, const char *bytes, size_t size,
                    int cancel_fd, struct error **err);

int socket_is_wanted (const struct request *request);
/* As box_process_attach, by WebSocket. */
int box_process_socket (struct box *box, struct request *request,
                        struct box_session *session, const char *id,
                        struct error **err);

#endif /* SERVER_BOX_ATTACH_H */
