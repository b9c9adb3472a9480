/* SPDX-License-Identifier: Apache-2.0 */
/* A module of the growing contract.  The same source is built for minor 0 and
 * for minor 1, as an old and a new author would have written it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/provider.h>

/* Tells a test that code of this module ran, whatever the gate said. */
__attribute__ ((constructor)) static void
greeter_ran (void)
{
  setenv ("COFFER_TEST_GREETER_RAN", "1", 1);
}

static int32_t
greeter_open (struct coffer_call *call, void *self,
              const char *const *config, const struct coffer_open_opts *opts)
{
  (void) self;
  (void) config;
  (void) opts;
  return coffer_opened (call, call);
}

static int32_t
greeter_close (struct coffer_call *call, void *self,
               const struct coffer_close_opts *opts)
{
  (void) call;
  (void) self;
  (void) opts;
  return COFFER_OK;
}

static int32_t
greeter_greet (struct coffer_call *call, void *self, const char *name,
               const struct coffer_wish *wish,
               const struct coffer_greet_opts *opts)
{
  char words[128];
  struct coffer_greeting greeting = { .size = sizeof greeting };

  (void) self;
  snprintf (words, sizeof words, "%s, %s", name,
            COFFER_HAS (wish, what) && wish->what ? wish->what : "hello");
  greeting.words = words;
  greeting.times = COFFER_HAS (opts, times) ? opts->times : 1;
  greeting.loud = COFFER_HAS (opts, loud) ? opts->loud : 0;
#if COFFER_CONTRACT_MINOR >= 1
  {
    struct coffer_echo echo = { .size = sizeof echo, .words = words };

    greeting.language
      = COFFER_HAS (opts, language) ? opts->language : "default";
    greeting.mood = COFFER_HAS (wish, urgency) ? (int32_t) wish->urgency : -7;
    greeting.card = -1;
    coffer_emit_echo (call, &echo);     /* an older host does not know it */
  }
#endif
  return coffer_emit_greeting (call, &greeting);
}

#if COFFER_CONTRACT_MINOR >= 1
static int32_t
greeter_part (struct coffer_call *call, void *self, const char *name,
              const struct coffer_part_opts *opts)
{
  struct coffer_greeting greeting
    = { .size = sizeof greeting, .words = name, .card = -1 };

  (void) self;
  (void) opts;
  return coffer_emit_greeting (call, &greeting);
}
#endif

static const struct coffer_operations operations = {
  .size = sizeof operations,
  .open = greeter_open,
  .close = greeter_close,
  .greet = greeter_greet,
#if COFFER_CONTRACT_MINOR >= 1
  .part = greeter_part,
#endif
};

COFFER_PROVIDER (greeter, COFFER_THREADS_SERIAL, 0, operations)
