/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of a sandbox: a server inside, and connections to it from here. */

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "case.h"

/* A sandbox with the server of case-lib.c on a port of chance. */
static const char *
serving (struct kit *kit, uint32_t *port)
{
  struct coffer_sandbox_spec spec = kit_spec (kit);
  const char *ports[2] = { NULL, NULL };
  const char *sandbox;
  struct case_run run;

  *port = 20000 + (uint32_t) kit_random_below (kit, 12000);
  ports[0] = kit_text (kit, "%" PRIu32, *port);
  spec.ports = ports;
  sandbox = kit_sandbox_with (kit, kit_first (kit), &spec);
  case_start (kit, sandbox,
              kit_text (kit, "%sserver %" PRIu32, case_server (kit), *port), 0,
              NULL, &run);
  case_until (&run, "ready");
  return sandbox;
}

/* The first connection may come before the server listens. */
static int
dial (struct kit *kit, const char *sandbox, uint32_t port)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_stream *stream;
  int32_t code;
  int fd;

  while ((code = kit_port_dial (kit_first (kit), &reply, sandbox, port, NULL))
           == COFFER_UNAVAILABLE
         && kit_left_us (kit) > CASE_SECOND_US)
    poll (NULL, 0, 20);
  KIT_OK (kit, code, &reply, "port_dial of %" PRIu32, port);
  stream = kit_reply_stream (&reply, 0);
  KIT_CHECK (kit, stream != NULL && stream->fd >= 0,
             "port_dial emitted no stream");
  fd = dup (stream->fd);
  KIT_CHECK (kit, fd >= 0, "dup: %s", strerror (errno));
  kit_reply_reset (&reply);
  return fd;
}

struct talk {
  int fd;
  const uint8_t *bytes;
  size_t size, came_size;
  uint8_t *came;
};

static void
talk_work (struct kit *kit, void *data, size_t index)
{
  struct talk *talk = data;

  if (index == 0) {
    talk->came = kit_read_all (kit, talk->fd, 16 * CASE_MIB, &talk->came_size);
    return;
  }
  (void) !coffer_write_all (talk->fd, talk->bytes, talk->size);
  shutdown (talk->fd, SHUT_WR);
}

/* Sends, ends its side, and expects the same and "end". */
static void
talk (struct kit *kit, int fd, const void *bytes, size_t size,
      const char *what)
{
  struct talk talk = { .fd = fd, .bytes = bytes, .size = size };
  char *wanted = kit_memory (kit, size + 3);

  memcpy (wanted, bytes, size);
  memcpy (wanted + size, "end", 3);
  kit_threads (kit, 2, talk_work, &talk);
  case_same_bytes (kit, talk.came, talk.came_size, wanted, size + 3, what);
  close (fd);
}

static void
ports_dial (struct kit *kit)
{
  uint32_t port;
  const char *const sandbox = serving (kit, &port);
  const char *const word = kit_random_word (kit, 50);
  const int fd = dial (kit, sandbox, port);
  char bytes[64] = "";

  KIT_CHECK (kit, coffer_write_all (fd, word, 50) == 50
                    && coffer_read_all (fd, bytes, 50) == 50
                    && memcmp (bytes, word, 50) == 0,
             "a server inside that sends back what it gets was sent \"%s\", "
             "and \"%s\" came back",
             word, bytes);
  close (fd);
}

static void
ports_half_close (struct kit *kit)
{
  uint32_t port;
  const char *const sandbox = serving (kit, &port);
  const char *const word = kit_random_word (kit, 50);

  talk (kit, dial (kit, sandbox, port), word, 50,
        "what a server inside sends before and after its client's end");
}

static void
ports_large (struct kit *kit)
{
  uint32_t port;
  const char *const sandbox = serving (kit, &port);
  const size_t size = CASE_MIB + kit_random_below (kit, 1000);

  talk (kit, dial (kit, sandbox, port), kit_random_bytes (kit, size), size,
        "1 MiB through a server inside and back");
}

static void
ports_many (struct kit *kit)
{
  enum { MANY = 20 };
  uint32_t port;
  const char *const sandbox = serving (kit, &port);
  char *words[MANY];
  int fds[MANY];

  for (int i = 0; i < MANY; i++) {
    fds[i] = dial (kit, sandbox, port);
    words[i] = kit_random_word (kit, 40);
  }
  for (int i = MANY - 1; i >= 0; i--)
    talk (kit, fds[i], words[i], 40, "one of twenty connections at once");
}

static void
ports_refused (struct kit *kit)
{
  uint32_t port;
  const char *const sandbox = serving (kit, &port);
  struct kit_reply reply = KIT_REPLY_INIT;
  const uint32_t other = port == 30001 ? 30002 : 30001;

  case_close (&(int){ dial (kit, sandbox, port) });
  KIT_CODE (kit, kit_port_dial (kit_first (kit), &reply, sandbox, other, NULL),
            &reply, COFFER_UNAVAILABLE,
            "port_dial of a port on which nothing listens");
  kit_reply_reset (&reply);
}

/* HOST:PORT or a url with them, from here. */
static int
reach (struct kit *kit, const char *address)
{
  const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
  const char *at = strstr (address, "://");
  char *host = kit_text (kit, "%s", at ? at + 3 : address), *port;
  struct addrinfo *found = NULL;
  int fd = -1;

  host[strcspn (host, "/?#")] = '\0';
  port = strrchr (host, ':');
  if (port == NULL)
    port = kit_text (kit, "%s", at && address[4] == 's' ? "443" : "80");
  else
    *port++ = '\0';
  if (host[0] == '[' && host[strlen (host) - 1] == ']') {
    host[strlen (host) - 1] = '\0';
    host++;
  }
  if (getaddrinfo (host, port, &hints, &found) == 0) {
    fd = socket (found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect (fd, found->ai_addr, found->ai_addrlen) == -1)
      case_close (&fd);
    freeaddrinfo (found);
  }
  return fd;
}

static void
ports_resolve (struct kit *kit)
{
  uint32_t port;
  const char *const sandbox = serving (kit, &port);
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_port *record;
  int fd;

  KIT_OK (kit,
          kit_port_resolve (kit_first (kit), &reply, sandbox, port, NULL),
          &reply, "port_resolve of %" PRIu32, port);
  record = kit_reply_port (&reply, 0);
  KIT_CHECK (kit, record != NULL && record->port == port,
             "port_resolve of %" PRIu32 " emitted port %" PRIu32, port,
             record ? record->port : 0);
  if (record->address != NULL) {
    case_close (&(int){ dial (kit, sandbox, port) });
    fd = reach (kit, record->address);
    KIT_CHECK (kit, fd >= 0,
               "port_resolve said that %" PRIu32 " is at %s, which nobody "
               "reaches",
               port, record->address);
    close (fd);
  }
  kit_reply_reset (&reply);
}

static void
ports_invalid (struct kit *kit)
{
  static const uint32_t odd[] = { 0, 65536, UINT32_MAX };
  struct kit_instance *const first = kit_first (kit);
  const char *const sandbox = kit_sandbox (kit), *const gone = kit_new_id (kit);
  struct kit_reply reply = KIT_REPLY_INIT;

  for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
    KIT_CODE (kit, kit_port_dial (first, &reply, sandbox, odd[i], NULL),
              &reply, COFFER_INVALID, "port_dial of %" PRIu32, odd[i]);
    KIT_CODE (kit, kit_port_resolve (first, &reply, sandbox, odd[i], NULL),
              &reply, COFFER_INVALID, "port_resolve of %" PRIu32, odd[i]);
  }
  KIT_CODE (kit, kit_port_dial (first, &reply, gone, 80, NULL), &reply,
            COFFER_NOT_FOUND, "port_dial in no sandbox");
  KIT_CODE (kit, kit_port_resolve (first, &reply, gone, 80, NULL), &reply,
            COFFER_NOT_FOUND, "port_resolve in no sandbox");
  kit_reply_reset (&reply);
}

const struct kit_case kit_port_cases[] = {
  { "ports.dial", "exec ports", "A server inside is reached from here.",
    ports_dial },
  { "ports.half-close", "exec ports",
    "A connection whose client has ended its side still brings the answer.",
    ports_half_close },
  { "ports.large", "exec ports", "1 MiB goes each way.", ports_large },
  { "ports.many", "exec ports",
    "Twenty connections at once are each with themselves.", ports_many },
  { "ports.refused", "exec ports",
    "A port on which nothing listens is UNAVAILABLE.", ports_refused },
  { "ports.resolve", "exec ports",
    "port_resolve names the port, and an address only where one is reached.",
    ports_resolve },
  { "ports.invalid", "ports",
    "Ports that there are not are INVALID; of no sandbox it is NOT_FOUND.",
    ports_invalid },
  { NULL }
};
