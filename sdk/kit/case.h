/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that many cases share: scripts inside, files by pipes, checksums.
 *
 * A script writes both of its streams to one pipe and leaves its error stream
 * unasked for, so that a fault of that stream is seen by the cases that are
 * about it and by no others. */

#ifndef CASE_H
#define CASE_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"

#define CASE_SECOND_US INT64_C (1000000)
#define CASE_MIB ((size_t) 1 << 20)

/* ---- commands ------------------------------------------------------------ */

/* One that was started and not yet waited for. */
struct case_run {
  struct kit *kit;
  const char *sandbox, *exec;
  int in, out;                  /* the kit's ends; -1: none, or closed */
};

/* sh -c SCRIPT: its output is at run->out, and with_in its input at run->in. */
void case_start (struct kit *kit, const char *sandbox, const char *script,
                 int with_in, const struct coffer_exec_start_opts *opts,
                 struct case_run *run);
/* The same for any command. */
void case_start_argv (struct kit *kit, const char *sandbox,
                      const char *const *argv, int with_in,
                      const struct coffer_exec_start_opts *opts,
                      struct case_run *run);
/* Reads what it writes until `mark` has come, and fails the case at its
 * deadline.  All that came, NUL-terminated. */
char *case_until (struct case_run *run, const char *mark);
/* The same, and 0 where its output has ended before. */
int case_came (struct case_run *run, const char *mark, char **text);
/* The rest of its output, to the end. */
char *case_rest (struct case_run *run, size_t *size);
/* 1: bytes, 0: nothing within `ms`, -1: the end. */
int case_quiet (struct case_run *run, uint32_t ms);
/* The same until the case's deadline. */
int case_speaks (struct case_run *run);
void case_send (struct case_run *run, const char *text);
void case_close (int *fd);
const struct coffer_exec_exit *case_wait (struct case_run *run);

/* The output of a script (as printf makes it) that must end with 0; with
 * _code it may end as it likes, and that is said. */
char *case_sh (struct kit *kit, const char *sandbox, const char *fmt, ...)
  __attribute__ ((format (printf, 3, 4)));
char *case_sh_exit (struct kit *kit, const char *sandbox, const char *script,
                    const struct coffer_exec_exit **exit);
/* "code 3", "signal 9", "never ran (…)", for messages. */
const char *case_exit_text (struct kit *kit,
                            const struct coffer_exec_exit *exit);
void case_expect_code (struct kit *kit, const struct coffer_exec_exit *exit,
                       int32_t code, const char *what);
int case_has_word (const char *const *words, const char *word);
/* How many processes here have the mark; waits until it is none, or for the
 * case's deadline. */
int case_marked_left (struct kit *kit, const char *mark);
/* What sandbox_info says: "running", "paused" or "gone", or "none" when that is
 * NOT_FOUND. */
const char *case_state (struct kit *kit, const char *sandbox,
                        int64_t *expires_ns);
/* The beginning of a script that defines `client` and `server`, which are perl
 * or busybox, whichever is there: see case-lib.c. */
const char *case_client (struct kit *kit);
const char *case_server (struct kit *kit);

/* ---- bytes --------------------------------------------------------------- */

/* What cksum(1) prints of them: "CRC SIZE". */
char *case_cksum (struct kit *kit, const void *bytes, size_t size);
/* What it prints inside of a file. */
char *case_cksum_inside (struct kit *kit, const char *sandbox,
                         const char *path);
/* Fails with the first place where they differ. */
void case_same_bytes (struct kit *kit, const void *came, size_t came_size,
                      const void *wanted, size_t wanted_size,
                      const char *what);
/* Some bytes for a message, escaped and cut. */
const char *case_shown (struct kit *kit, const void *bytes, size_t size);

/* ---- files --------------------------------------------------------------- */

/* file_write and file_read through a pipe that another thread serves.  The
 * bytes of a read are NUL-terminated beyond their size. */
int32_t case_put (struct kit *kit, struct kit_reply *reply,
                  const char *sandbox, const char *path, const void *bytes,
                  size_t size, const struct coffer_file_write_opts *opts);
int32_t case_get (struct kit *kit, struct kit_reply *reply,
                  const char *sandbox, const char *path,
                  const struct coffer_file_read_opts *opts, uint8_t **bytes,
                  size_t *size);
/* Writes a text, which must work. */
void case_put_text (struct kit *kit, const char *sandbox, const char *path,
                    const char *text);
/* The names that file_list gives for a folder, sorted, by newlines; each with
 * its kind before it: "file a\n". */
char *case_names (struct kit *kit, const char *sandbox, const char *path,
                  uint32_t depth);
/* A folder on this machine, outside of every sandbox, with one file "canary"
 * of secret bytes. */
struct case_outside {
  const char *path;
  char *file;                   /* path/canary */
  char *secret;
};
void case_outside (struct kit *kit, struct case_outside *outside);
/* Fails when the canary is not as it was or something lies beside it. */
void case_outside_intact (struct kit *kit, const struct case_outside *outside,
                          const char *after);

/* A configuration with a wrong value of chance for each secret, which begins
 * with that word. */
const char **case_wrong_secrets (struct kit *kit, const char *word);

/* 1: some text of the reply (message, details, log, any field of any record)
 * has the word in it. */
int case_reply_has (const struct kit_reply *reply, const char *word);

#endif /* CASE_H */
