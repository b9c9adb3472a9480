/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a hostile module: how a call ends, and all that it may say until it
 * does. */

#define _GNU_SOURCE

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"

/* volatile: what it points to is nobody's. */
static int *volatile nowhere;

static int32_t
do_ok (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  return say (call, "ok", "done", arg);
}

static int32_t
do_sleep (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  wait_call (call, atoi (arg));
  return say (call, "sleep", "done", "");
}

/* Ends at its deadline, or when it is cancelled, as it should. */
static int32_t
do_wait (struct coffer_call *call, struct hostile *self, const char *arg)
{
  struct pollfd p = { .fd = call->cancel_fd, .events = POLLIN };

  (void) self;
  (void) arg;
  if (poll (&p, 1, 30000) > 0)
    return coffer_fail (call, COFFER_CANCELLED, "the caller gave up");
  return COFFER_TIMEOUT;
}

/* Neither deadline nor cancel ends it. */
static int32_t
do_hang (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) call;
  (void) self;
  (void) arg;
  for (;;)
    pause ();
  return COFFER_OK;
}

static int32_t
do_spin (struct coffer_call *call, struct hostile *self, const char *arg)
{
  volatile unsigned n = 0;

  (void) call;
  (void) self;
  (void) arg;
  for (;;)
    n++;
  return COFFER_OK;
}

static int32_t
do_crash (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  coffer_log (call, COFFER_LOG_WARNING, "about to fall over");
  coffer_log (call, COFFER_LOG_WARNING, arg);
  return *nowhere;
}

static int32_t
do_abort (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) call;
  (void) self;
  fprintf (stderr, "assertion of %s failed\n", arg);
  abort ();
}

static int32_t
do_exit (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) call;
  (void) self;
  exit (atoi (arg));
}

static int32_t
do_code (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) call;
  (void) self;
  return atoi (arg);
}

static int32_t
do_fail (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  return coffer_fail_with (call, atoi (arg), COFFER_RETRY_YES, "as asked",
                           "{\"seen\":[1,2]}");
}

static int32_t
do_unknown_record (struct coffer_call *call, struct hostile *self,
                   const char *arg)
{
  struct coffer_fact fact = { .size = sizeof fact };

  (void) self;
  (void) arg;
  call->host->emit (call, 4711, &fact);
  return COFFER_OK;
}

static int32_t
do_bad_text (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  (void) arg;
  say (call, "bad\xff\xfe", "done", "");
  return COFFER_OK;
}

/* A record that says it is shorter than its head. */
static int32_t
do_short_record (struct coffer_call *call, struct hostile *self,
                 const char *arg)
{
  struct coffer_fact fact = { .size = 4 };

  (void) self;
  (void) arg;
  coffer_emit_fact (call, &fact);
  return COFFER_OK;
}

static int32_t
do_emits (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int i, n = atoi (arg);
  int32_t code = COFFER_OK;

  (void) self;
  for (i = 0; i < n && code == COFFER_OK; i++)
    code = say (call, "one", "done", "of many");
  return code;
}

/* One record of about ARG bytes: more than a frame holds. */
static int32_t
do_large (struct coffer_call *call, struct hostile *self, const char *arg)
{
  size_t size = strtoul (arg, NULL, 10);
  char *text = malloc (size + 1);
  int32_t code;

  (void) self;
  if (!text)
    return COFFER_LIMIT;
  memset (text, 'x', size);
  text[size] = '\0';
  code = say (call, "large", "done", text);
  free (text);
  return code;
}

static int32_t
do_log (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  coffer_log (call, COFFER_LOG_WARNING, arg);
  return COFFER_OK;
}

static int32_t
do_flood (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int i, n = atoi (arg);

  (void) self;
  for (i = 0; i < n; i++)
    coffer_log (call, COFFER_LOG_INFO, "flood");
  return say (call, "flood", "done", "");
}

static int32_t
do_print (struct coffer_call *call, struct hostile *self, const char *arg)
{
  int i, n = atoi (arg);

  (void) self;
  for (i = 0; i < n; i++)
    fprintf (stdout, "line %d on stdout\n", i);
  fflush (stdout);
  return say (call, "print", "done", "");
}

static int32_t
do_progress (struct coffer_call *call, struct hostile *self, const char *arg)
{
  (void) self;
  coffer_progress (call, 1, 2, arg);
  return COFFER_OK;
}

static int32_t
do_secret (struct coffer_call *call, struct hostile *self, const char *arg)
{
  char text[1024];

  (void) arg;
  snprintf (text, sizeof text, "the key is %s indeed", self->secret);
  coffer_log (call, COFFER_LOG_WARNING, text);
  fprintf (stderr, "%s\n", text);
  say (call, "secret", "done", text);
  snprintf (text, sizeof text, "{\"key\":\"%s\"}", self->secret);
  return coffer_fail_with (call, COFFER_INTERNAL, COFFER_RETRY_NO,
                           self->secret, text);
}

const struct word ends_words[] = {
  { "ok", do_ok }, { "sleep", do_sleep }, { "wait", do_wait },
  { "hang", do_hang }, { "spin", do_spin }, { "crash", do_crash },
  { "abort", do_abort }, { "exit", do_exit }, { "code", do_code },
  { "fail", do_fail }, { "unknown_record", do_unknown_record },
  { "bad_text", do_bad_text }, { "short_record", do_short_record },
  { "emits", do_emits }, { "large", do_large }, { "log", do_log },
  { "flood", do_flood }, { "print", do_print }, { "progress", do_progress },
  { "secret", do_secret }, { NULL, NULL }
};
