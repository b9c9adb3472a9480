/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and scripts, as cases use them: see case.h. */

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "case.h"

/* ---- started commands ---------------------------------------------------- */

void
case_close (int *fd)
{
  coffer_fd_close (fd);
}

void
case_start_argv (struct kit *kit, const char *sandbox,
                 const char *const *argv, int with_in,
                 const struct coffer_exec_start_opts *opts,
                 struct case_run *run)
{
  int in[2] = { -1, -1 }, out[2];

  kit_pipe (kit, out);
  if (with_in)
    kit_pipe (kit, in);
  *run = (struct case_run){ kit, sandbox, NULL, in[1], out[0] };
  run->exec = kit_start (kit, sandbox, argv, in[0], out[1], -1, opts);
  case_close (&in[0]);
  case_close (&out[1]);
}

static const char *const *
script_argv (struct kit *kit, const char *script)
{
  const char **argv = kit_memory (kit, 4 * sizeof *argv);

  argv[0] = "sh";
  argv[1] = "-c";
  argv[2] = kit_text (kit, "exec 2>&1\n%s", script);
  argv[3] = NULL;
  return argv;
}

void
case_start (struct kit *kit, const char *sandbox, const char *script,
            int with_in, const struct coffer_exec_start_opts *opts,
            struct case_run *run)
{
  case_start_argv (kit, sandbox, script_argv (kit, script), with_in, opts,
                   run);
}

int
case_quiet (struct case_run *run, uint32_t ms)
{
  struct pollfd poll_fd = { run->out, POLLIN, 0 };

  if (poll (&poll_fd, 1, (int) ms) <= 0)
    return 0;
  return poll_fd.revents & POLLIN ? 1 : -1;
}

int
case_speaks (struct case_run *run)
{
  return case_quiet (run, (uint32_t) (kit_left_us (run->kit) / 1000));
}

int
case_came (struct case_run *run, const char *mark, char **out)
{
  const size_t most = 65536;
  char *text = kit_memory (run->kit, most + 1);
  size_t size = 0;
  ssize_t n;

  *out = text;
  while (strstr (text, mark) == NULL) {
    if (size == most || case_speaks (run) == 0)
      kit_fail (run->kit, "a command was to write \"%s\" while it runs: \"%s\" "
                "came",
                mark, case_shown (run->kit, text, size));
    n = read (run->out, text + size, most - size);
    if (n <= 0)
      return 0;
    size += (size_t) n;
  }
  return 1;
}

char *
case_until (struct case_run *run, const char *mark)
{
  char *text;

  if (!case_came (run, mark, &text))
    kit_fail (run->kit, "a command was to write \"%s\" while it runs: its "
              "output ended after \"%s\"",
              mark, case_shown (run->kit, text, strlen (text)));
  return text;
}

char *
case_rest (struct case_run *run, size_t *size)
{
  size_t own;

  return (char *) kit_read_all (run->kit, run->out, 64 * CASE_MIB,
                                size ? size : &own);
}

void
case_send (struct case_run *run, const char *text)
{
  const size_t size = strlen (text);

  KIT_CHECK (run->kit,
             coffer_write_all (run->in, text, size) == (ssize_t) size,
             "writing to a command's input: %s", strerror (errno));
}

const struct coffer_exec_exit *
case_wait (struct case_run *run)
{
  struct kit_reply *reply = kit_memory (run->kit, sizeof *reply);
  const struct coffer_exec_exit *exit;

  *reply = (struct kit_reply) KIT_REPLY_INIT;
  KIT_OK (run->kit,
          kit_exec_wait (kit_first (run->kit), reply, run->sandbox, run->exec,
                         NULL),
          reply, "exec_wait for %s", run->exec);
  exit = kit_reply_exec_exit (reply, 0);
  KIT_CHECK (run->kit, exit != NULL,
             "exec_wait for %s emitted no exec_exit", run->exec);
  return exit;
}

/* ---- scripts ------------------------------------------------------------- */

char *
case_sh_exit (struct kit *kit, const char *sandbox, const char *script,
              const struct coffer_exec_exit **exit)
{
  struct case_run run;
  char *text;

  case_start (kit, sandbox, script, 0, NULL, &run);
  text = case_rest (&run, NULL);
  case_close (&run.out);
  *exit = case_wait (&run);
  return text;
}

char *
case_sh (struct kit *kit, const char *sandbox, const char *fmt, ...)
{
  const struct coffer_exec_exit *exit;
  char *script = NULL, *text;
  va_list ap;
  int n;

  va_start (ap, fmt);
  n = vasprintf (&script, fmt, ap);
  va_end (ap);
  KIT_CHECK (kit, n >= 0, "no memory");
  text = case_sh_exit (kit, sandbox, script, &exit);
  KIT_CHECK (kit, exit->code == 0,
             "a script was to end with 0: %s; it is \"%s\" and wrote \"%s\"",
             case_exit_text (kit, exit),
             case_shown (kit, script, strlen (script)),
             case_shown (kit, text, strlen (text)));
  free (script);
  return text;
}

/* ---- ends ---------------------------------------------------------------- */

const char *
case_exit_text (struct kit *kit, const struct coffer_exec_exit *exit)
{
  const char *late = exit->timed_out ? ", timed_out" : "";

  if (exit->failure != NULL || exit->failure_errno != 0)
    return kit_text (kit, "never ran (%s, errno %d)",
                     exit->failure ? exit->failure : "no reason",
                     exit->failure_errno);
  if (exit->signal != 0)
    return kit_text (kit, "signal %d, code %d%s", exit->signal, exit->code,
                     late);
  return kit_text (kit, "code %d%s", exit->code, late);
}

void
case_expect_code (struct kit *kit, const struct coffer_exec_exit *exit,
                  int32_t code, const char *what)
{
  KIT_CHECK (kit, exit->code == code && exit->signal == 0,
             "%s: it was to end with code %d, and ended with %s", what, code,
             case_exit_text (kit, exit));
}

int
case_has_word (const char *const *words, const char *word)
{
  for (; words != NULL && *words != NULL; words++)
    if (strcmp (*words, word) == 0)
      return 1;
  return 0;
}

int
case_marked_left (struct kit *kit, const char *mark)
{
  int count = kit_marked_processes (kit, mark);

  while (count > 0 && kit_left_us (kit) > 0) {
    poll (NULL, 0, 5);
    count = kit_marked_processes (kit, mark);
  }
  return count;
}

/* ---- sandboxes ----------------------------------------------------------- */

const char *
case_state (struct kit *kit, const char *sandbox, int64_t *expires_ns)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_sandbox_info *info;
  const char *state;
  int32_t code;

  code = kit_sandbox_info (kit_first (kit), &reply, sandbox, NULL);
  if (code == COFFER_NOT_FOUND)
    return "none";
  KIT_OK (kit, code, &reply, "sandbox_info");
  info = kit_reply_sandbox_info (&reply, 0);
  KIT_CHECK (kit, info != NULL && info->state != NULL,
             "sandbox_info emitted no state");
  state = kit_text (kit, "%s", info->state);
  if (expires_ns != NULL)
    *expires_ns = info->expires_ns;
  kit_reply_reset (&reply);
  return state;
}

/* ---- programs that talk to the network ------------------------------------ */

/* client HOST PORT TEXT: sends it, ends its side, writes what comes.  7: it
 * could not connect. */
const char *
case_client (struct kit *kit)
{
  (void) kit;
  return "client () {\n"
         "  if command -v perl >/dev/null; then\n"
         "    perl -MIO::Socket::INET -e '"
         "$s = IO::Socket::INET->new(PeerAddr => $ARGV[0],"
         " PeerPort => $ARGV[1], Timeout => 3) or exit 7;"
         " print $s $ARGV[2]; $s->flush; shutdown($s, 1);"
         " print while <$s>' \"$@\"\n"
         "  else\n"
         "    printf %s \"$3\" | busybox nc -w 3 \"$1\" \"$2\" || return 7\n"
         "  fi\n"
         "}\n";
}

/* server PORT: writes "ready" once it listens; sends back what each of its
 * clients sends, and at the end of that "end". */
const char *
case_server (struct kit *kit)
{
  (void) kit;
  return "server () {\n"
         "  if command -v perl >/dev/null; then\n"
         "    exec perl -MSocket -e '"
         "$| = 1; socket(L, PF_INET, SOCK_STREAM, 6);"
         " setsockopt(L, SOL_SOCKET, SO_REUSEADDR, 1);"
         " bind(L, sockaddr_in($ARGV[0], INADDR_ANY)) or die \"bind: $!\";"
         " listen(L, 64) or die; print \"ready\\n\"; $SIG{CHLD} = \"IGNORE\";"
         " while (1) { accept(C, L) or next; if (fork) { close(C); next }"
         " while (($r = sysread(C, $b, 65536)) > 0) { for ($o = 0; $o < $r;) {"
         " $w = syswrite(C, $b, $r - $o, $o) or exit 1; $o += $w } }"
         " syswrite(C, \"end\"); exit 0 }' \"$1\"\n"
         "  else\n"
         "    echo ready\n"
         "    exec busybox nc -ll -p \"$1\" -e sh -c 'cat; printf end'\n"
         "  fi\n"
         "}\n";
}

const char **
case_wrong_secrets (struct kit *kit, const char *word)
{
  const char **config = kit_memory (kit, 65 * sizeof *config);
  const struct kit_config_key *key;
  size_t n = 0;

  for (size_t i = 0; n < 64 && (key = kit_config_key (kit, i)) != NULL; i++)
    if (strcmp (key->type, "secret") == 0 && key->value == NULL)
      config[n++] = kit_text (kit, "%s=%s%s", key->key, word,
                              kit_random_word (kit, 29));
  return config;
}
