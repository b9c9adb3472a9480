/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox must not reach: the network, sockets and folders of this
 * machine, its root user; and what it is shown. */

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "case.h"

static const char *
networked (struct kit *kit, const char *network, const char *const *allow)
{
  struct coffer_sandbox_spec spec = kit_spec (kit);

  spec.network = network;
  spec.allow = allow;
  return kit_sandbox_with (kit, kit_first (kit), &spec);
}

/* ---- listeners of the kit ------------------------------------------------- */

static int
listen_on (struct kit *kit, const struct sockaddr *address, socklen_t size)
{
  const int fd = socket (address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

  KIT_CHECK (kit, fd >= 0 && bind (fd, address, size) == 0
                    && listen (fd, 16) == 0,
             "a listener of the kit's own: %s", strerror (errno));
  return fd;
}

static int
listen_inet (struct kit *kit, uint32_t address, unsigned *port)
{
  struct sockaddr_in at = { .sin_family = AF_INET,
                            .sin_addr.s_addr = htonl (address) };
  socklen_t size = sizeof at;
  const int fd = listen_on (kit, (struct sockaddr *) &at, sizeof at);

  KIT_CHECK (kit, getsockname (fd, (struct sockaddr *) &at, &size) == 0,
             "getsockname: %s", strerror (errno));
  *port = ntohs (at.sin_port);
  return fd;
}

static int
reached (int listener, int ms)
{
  struct pollfd poll_fd = { listener, POLLIN, 0 };

  return poll (&poll_fd, 1, ms) == 1;
}

/* "127.0.0.1" and the other addresses of this machine, by blanks. */
static char *
own_addresses (struct kit *kit)
{
  char *text = kit_text (kit, "127.0.0.1"), name[64];
  struct ifaddrs *list = NULL, *at;

  if (getifaddrs (&list) == -1)
    return text;
  for (at = list; at != NULL; at = at->ifa_next)
    if (at->ifa_addr != NULL && at->ifa_addr->sa_family == AF_INET
        && inet_ntop (AF_INET,
                      &((struct sockaddr_in *) (void *) at->ifa_addr)->sin_addr,
                      name, sizeof name)
             != NULL
        && strncmp (name, "127.", 4) != 0 && strlen (text) < 500)
      text = kit_text (kit, "%s %s", text, name);
  freeifaddrs (list);
  return text;
}

/* ---- network.none --------------------------------------------------------- */

static void
none_interfaces (struct kit *kit)
{
  const char *const sandbox = networked (kit, "none", NULL);
  const char *text = case_sh (kit, sandbox,
                              "sed -n 's/^ *\\([^: ]*\\):.*/\\1/p' "
                              "/proc/net/dev; echo end");

  KIT_CHECK (kit, strcmp (text, "lo\nend\n") == 0
                    || strcmp (text, "end\n") == 0,
             "a sandbox without a network was to have no interface but lo: "
             "\"%s\"",
             case_shown (kit, text, strlen (text)));
}

/* A client that does work, with itself. */
static void
none_connect (struct kit *kit)
{
  const char *const sandbox = networked (kit, "none", NULL);
  unsigned port;
  const int listener = listen_inet (kit, INADDR_ANY, &port);
  const uint32_t own = 20000 + (uint32_t) kit_random_below (kit, 20000);
  struct case_run run;
  const char *text;

  case_start (kit, sandbox,
              kit_text (kit, "%sserver %" PRIu32, case_server (kit), own), 0,
              NULL, &run);
  case_until (&run, "ready");
  text = case_sh (kit, sandbox, "%suntil client 127.0.0.1 %" PRIu32 " own; do "
                  "sleep 0.05; done",
                  case_client (kit), own);
  KIT_CHECK (kit, strcmp (text, "ownend") == 0,
             "a client inside was to reach a server inside: \"%s\"", text);
  text = case_sh (kit, sandbox,
                  "%sfor a in %s; do client $a %u outside 2>/dev/null && "
                  "echo $a; done; true",
                  case_client (kit), own_addresses (kit), port);
  KIT_CHECK (kit, !reached (listener, 0),
             "a sandbox without a network reached a listener of this machine, "
             "at %s", text);
  KIT_CHECK (kit, text[0] == '\0',
             "a sandbox without a network could connect to \"%s\"", text);
}

static int
listen_unix (struct kit *kit, const char *path, int abstract)
{
  struct sockaddr_un at = { .sun_family = AF_UNIX };
  const size_t size = strlen (path);
  int fd;

  memcpy (at.sun_path + abstract, path, size);
  fd = listen_on (kit, (struct sockaddr *) &at,
                  (socklen_t) (offsetof (struct sockaddr_un, sun_path)
                               + (size_t) abstract + size));
  if (!abstract)
    chmod (path, 0666);
  return fd;
}

static void
none_sockets (struct kit *kit)
{
  const char *const sandbox = networked (kit, "none", NULL);
  const char *const name = kit_random_word (kit, 20);
  struct case_outside outside;
  int by_path, abstract, path_hit, abstract_hit;
  const char *path;

  case_outside (kit, &outside);
  path = kit_text (kit, "%s/s", outside.path);
  by_path = listen_unix (kit, path, 0);
  abstract = listen_unix (kit, name, 1);
  case_sh (kit, sandbox,
           "command -v perl >/dev/null && perl -MSocket -e '"
           "for (\"%s\", \"\\0%s\") { socket(S, PF_UNIX, SOCK_STREAM, 0);"
           " connect(S, pack_sockaddr_un($_)) and print \"in\\n\" }'; true",
           path, name);
  path_hit = reached (by_path, 0);
  abstract_hit = reached (abstract, 0);
  KIT_CHECK (kit, !path_hit, "a sandbox without a network reached a unix "
             "socket of this machine by its path");
  KIT_CHECK (kit, !abstract_hit, "a sandbox without a network reached a unix "
             "socket of this machine by its abstract name");
}

/* ---- network.allow -------------------------------------------------------- */

#define FETCH                                                                 \
  "fetch () { if command -v curl >/dev/null; then curl -sS -m 20 \"$1\"; "     \
  "elif command -v wget >/dev/null; then wget -q -T 20 -O - \"$1\"; "         \
  "else busybox wget -q -T 20 -O - \"$1\"; fi; }\n"

/* Answers one request, if there is one within a moment. */
static int
answer (int listener, const char *word, int ms)
{
  char bytes[4096];
  int fd;

  if (!reached (listener, ms))
    return 0;
  fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0)
    return 0;
  (void) !read (fd, bytes, sizeof bytes);
  dprintf (fd, "HTTP/1.0 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
           strlen (word), word);
  shutdown (fd, SHUT_WR);
  (void) !read (fd, bytes, sizeof bytes);
  close (fd);
  return 1;
}

static int
fetched (struct kit *kit, const char *sandbox, int listener, unsigned port,
         const char *word)
{
  struct case_run run;
  char *text;
  int came;

  case_start (kit, sandbox,
              kit_text (kit, FETCH "unset no_proxy NO_PROXY; fetch http://127.0.0.1:%u/; echo \" $?\"",
                        port),
              0, NULL, &run);
  /* Whichever comes first: a connection, or the command's last word. */
  for (;;) {
    struct pollfd polls[2] = { { listener, POLLIN, 0 },
                               { run.out, POLLIN, 0 } };

    KIT_CHECK (kit, poll (polls, 2, (int) (kit_left_us (kit) / 1000)) > 0,
               "a client inside neither connected nor gave up");
    came = answer (listener, word, 0);
    if (came || polls[1].revents != 0)
      break;
  }
  text = case_rest (&run, NULL);
  return came + (strstr (text, word) != NULL);
}

static void
allow_listed (struct kit *kit)
{
  const char *const word = kit_random_word (kit, 20);
  unsigned port, other;
  const int listed = listen_inet (kit, INADDR_LOOPBACK, &port);
  const int unlisted = listen_inet (kit, INADDR_LOOPBACK, &other);
  const char *const allow[] = { kit_text (kit, "127.0.0.1:%u", port), NULL };
  const char *const sandbox = networked (kit, "allow", allow);

  /* What is far away has another loopback. */
  if (strcmp (kit_isolation (kit), "remote-vm") != 0)
    KIT_CHECK (kit, fetched (kit, sandbox, listed, port, word) == 2,
               "a sandbox that may reach 127.0.0.1:%u did not", port);
  KIT_CHECK (kit, fetched (kit, sandbox, unlisted, other, word) == 0,
             "a sandbox that may reach port %u alone reached port %u", port,
             other);
}

static void
allow_nothing (struct kit *kit)
{
  const char *const none[] = { NULL };
  const char *const word = kit_random_word (kit, 20);
  unsigned port;
  const int listener = listen_inet (kit, INADDR_LOOPBACK, &port);

  KIT_CHECK (kit,
             fetched (kit, networked (kit, "allow", none), listener, port, word)
               == 0,
             "a sandbox that may reach nothing reached 127.0.0.1:%u", port);
}

/* ---- the root and the user ------------------------------------------------ */

/* A claim may be a lie, and then this is the machine's own root: so new names
 * are tried and taken away again, and of what is there nothing is changed. */
static void
root_readonly (struct kit *kit)
{
  const char *const name = kit_text (kit, "kit-%s", kit_random_word (kit, 12));
  const char *const sandbox = kit_sandbox (kit);
  const char *text
    = case_sh (kit, sandbox,
               "n=%s; for d in / /usr /usr/bin /usr/lib /bin /sbin /lib /etc "
               "/var /opt /root /home /boot; do [ -d $d ] || continue; "
               "( : > $d/$n ) 2>/dev/null && echo $d && rm -f $d/$n; "
               "mkdir $d/$n 2>/dev/null && echo $d && rmdir $d/$n; done; "
               "for f in /bin/sh /etc/passwd /usr/bin/env; do "
               "[ -e $f ] && ( : >> $f ) 2>/dev/null && echo $f; done; true",
               name);

  KIT_CHECK (kit, text[0] == '\0',
             "a command changed the root of its sandbox at \"%s\"",
             case_shown (kit, text, strlen (text)));
}

/* The number of a process whose arguments have the mark; 0: none. */
static int
marked_pid (struct kit *kit, const char *mark)
{
  DIR *dir = opendir ("/proc");
  struct dirent *entry;
  char path[300], *text;
  size_t size;
  int fd, pid = 0;

  KIT_CHECK (kit, dir != NULL, "/proc: %s", strerror (errno));
  while (pid == 0 && (entry = readdir (dir)) != NULL) {
    if (!isdigit ((unsigned char) entry->d_name[0]))
      continue;
    snprintf (path, sizeof path, "/proc/%s/cmdline", entry->d_name);
    fd = open (path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && coffer_read_whole (fd, CASE_MIB, &text, &size) == 0) {
      if (memmem (text, size, mark, strlen (mark)) != NULL)
        pid = atoi (entry->d_name);
      free (text);
    }
    coffer_fd_close (&fd);
  }
  closedir (dir);
  return pid;
}

static void
user_unprivileged (struct kit *kit)
{
  char *const mark = kit_random_word (kit, 16);
  unsigned ids[4] = { 0, 0, 0, 0 };
  struct case_run run;
  char *text, *at;
  size_t size;
  int fd, pid;

  case_start (kit, kit_sandbox (kit),
              kit_text (kit, "echo began; while :; do sleep 1; done # %s",
                        mark),
              0, NULL, &run);
  case_until (&run, "began");
  if (!kit_sees_processes (kit))
    return;                     /* its root is another's */
  pid = marked_pid (kit, mark);
  KIT_CHECK (kit, pid > 0, "a command that runs is not in /proc of this "
             "machine");
  fd = open (kit_text (kit, "/proc/%d/status", pid), O_RDONLY | O_CLOEXEC);
  KIT_CHECK (kit, fd >= 0 && coffer_read_whole (fd, 65536, &text, &size) == 0,
             "/proc/%d/status: %s", pid, strerror (errno));
  at = strstr (text, "\nUid:");
  KIT_CHECK (kit, at != NULL
                    && sscanf (at, " Uid: %u %u %u %u", &ids[0], &ids[1],
                               &ids[2], &ids[3])
                         == 4,
             "/proc/%d/status has no Uid", pid);
  KIT_CHECK (kit, ids[0] != 0 && ids[1] != 0 && ids[2] != 0 && ids[3] != 0,
             "a command runs as the root of this machine: its user ids are %u "
             "%u %u %u",
             ids[0], ids[1], ids[2], ids[3]);
  free (text);
  close (fd);
}

/* ---- mounts --------------------------------------------------------------- */

static const char *
mounted (struct kit *kit, const char *source, const char *target,
         uint32_t writable)
{
  struct coffer_mount mount = { .size = sizeof mount, .source = source,
                                .target = target, .writable = writable };
  const struct coffer_mount *const mounts[] = { &mount, NULL };
  struct coffer_sandbox_spec spec = kit_spec (kit);

  mount.source_fd = open (source, O_PATH | O_CLOEXEC);
  KIT_CHECK (kit, mount.source_fd >= 0, "%s: %s", source, strerror (errno));
  spec.mounts = mounts;
  return kit_sandbox_with (kit, kit_first (kit), &spec);
}

static void
mount_readonly (struct kit *kit)
{
  struct case_outside outside;
  const char *sandbox, *text;

  case_outside (kit, &outside);
  sandbox = mounted (kit, outside.path, "/mnt/shown", 0);
  text = case_sh (kit, sandbox, "cat /mnt/shown/canary; cd /mnt/shown; "
                  "for t in 'echo x > canary' 'echo x > new' 'rm -f canary' "
                  "'mkdir d' 'chmod 777 canary' 'mv canary x'; do "
                  "( eval \"$t\" ) 2>/dev/null && echo \"$t\"; done; true");
  case_outside_intact (kit, &outside, "attempts to change a folder that is "
                       "shown read-only");
  KIT_CHECK (kit, strcmp (text, outside.secret) == 0,
             "a folder that is shown read-only was to be read and not "
             "changed: \"%s\"",
             case_shown (kit, text, strlen (text)));
}

static void
mount_writable (struct kit *kit)
{
  const char *const word = kit_random_word (kit, 30);
  struct case_outside outside;
  const char *sandbox, *text;
  char bytes[64] = "";
  int fd;

  case_outside (kit, &outside);
  sandbox = mounted (kit, outside.path, "/mnt/shown", 1);
  text = case_sh (kit, sandbox, "cd /mnt/shown && cat canary && rm canary && "
                  "printf %s > made", word);
  fd = open (kit_text (kit, "%s/made", outside.path),
             O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0)
    coffer_read_all (fd, bytes, sizeof bytes - 1);
  close (fd);
  fd = access (outside.file, F_OK);
  KIT_CHECK (kit, strcmp (text, outside.secret) == 0
                    && strcmp (bytes, word) == 0 && fd == -1,
             "in a folder that is shown writable a file was read, removed and "
             "another made with \"%s\": here the first is %s and the other "
             "holds \"%s\"",
             word, fd == -1 ? "gone" : "there", bytes);
}

static void
mount_file (struct kit *kit)
{
  struct case_outside outside;
  const char *sandbox, *text;

  case_outside (kit, &outside);
  sandbox = mounted (kit, outside.file, "/mnt/one file", 0);
  text = case_sh (kit, sandbox, "cat '/mnt/one file'; "
                  "( echo x > '/mnt/one file' ) 2>/dev/null && echo written; "
                  "ls -A /mnt");
  case_outside_intact (kit, &outside, "an attempt to write a file that is "
                       "shown read-only");
  text = strncmp (text, outside.secret, 40) == 0 ? text + 40 : "(another)";
  KIT_CHECK (kit, strcmp (text, "one file\n") == 0,
             "one file was to be shown, alone and read-only: after its bytes "
             "came \"%s\"",
             text);
}

const struct kit_case kit_isolation_cases[] = {
  { "isolation.none-interfaces", "exec network.none",
    "Without a network there is no interface but the loopback.",
    none_interfaces },
  { "isolation.none-connect", "exec network.none",
    "Without a network nothing of this machine is reached by an address, and a "
    "server inside is.",
    none_connect, 60000 },
  { "isolation.none-sockets", "exec network.none",
    "Without a network no unix socket of this machine is reached.",
    none_sockets },
  { "isolation.allow-listed", "exec network.allow",
    "What is listed is reached, and what is not is not.", allow_listed, 60000 },
  { "isolation.allow-nothing", "exec network.allow",
    "An empty list is nothing.", allow_nothing, 60000 },
  { "isolation.root-readonly", "exec root.readonly",
    "Nothing inside can change the root.", root_readonly },
  { "isolation.user", "exec user.unprivileged",
    "Commands do not run as the root of this machine.", user_unprivileged },
  { "isolation.mount-readonly", "exec mounts.bind",
    "A folder that is shown read-only is read, and nothing of it is changed.",
    mount_readonly },
  { "isolation.mount-writable", "exec mounts.bind",
    "What is written to a folder that is shown writable is in that folder.",
    mount_writable },
  { "isolation.mount-file", "exec mounts.bind", "A single file can be shown.",
    mount_file },
  { NULL }
};
