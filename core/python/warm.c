/* SPDX-License-Identifier: Apache-2.0 */
/* What stands ready, remembered: see warm.h. */

#include <config.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "python/warm.h"
#include "sandbox/host.h"

#define KNOWN_MOST 32
#define OPEN_MS 20000
/* A page of numbers is made for so long; but who has begun to answer has the time
 * of other calls, since a worker that does not answer in it is stopped. */
#define METRICS_MS 2000
#define METRICS_CALL_MS 10000
#define AGAIN_NS INT64_C (60000000000)  /* after one that could not be had */

/* Of one provider, profile, runner and list of modules. */
struct known {
  struct known *next;
  const struct host *host;
  struct provider *of;          /* one that was upgraded since has others */
  char *provider, *profile, *modules;
  uint64_t runner;              /* a sum of its bytes: it is our own file */
  char *handle;                 /* NULL: there is none */
  int opening;                  /* somebody asks for it, without the lock */
  int64_t again_ns;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known *all;

static void
known_free (struct known *known)
{
  free (known->provider);
  free (known->profile);
  free (known->modules);
  free (known->handle);
  free (known);
}

/* FNV-1a: only to tell a runner from the one of an earlier installation. */
static uint64_t
sum_of (const char *bytes, size_t size)
{
  uint64_t sum = UINT64_C (0xcbf29ce484222325);
  size_t i;

  for (i = 0; i < size; i++)
    sum = (sum ^ (unsigned char) bytes[i]) * UINT64_C (0x100000001b3);
  return sum;
}

static char *
joined (char *const *words)
{
  char *text = strdup (""), *next;

  for (; text && words && *words; words++) {
    next = text_printf ("%s%s ", text, *words);
    free (text);
    text = next;
  }
  return text;
}

static struct known *
known_find_locked (const struct known *like)
{
  struct known *known;

  for (known = all; known; known = known->next)
    if (known->host == like->host && known->of == like->of
        && known->runner == like->runner
        && strcmp (known->provider, like->provider) == 0
        && strcmp (known->profile, like->profile) == 0
        && strcmp (known->modules, like->modules) == 0)
      return known;
  return NULL;
}

/* The longest known one makes room; not one that is being asked for. */
static void
known_add_locked (struct known *take_known)
{
  struct known **at = &all, *last;
  size_t n = 0;

  take_known->next = all;
  all = take_known;
  for (; *at; at = &(*at)->next)
    if (++n > KNOWN_MOST && !(*at)->opening) {
      last = *at;
      *at = last->next;
      known_free (last);
      return;
    }
}

/* ---- asking the provider ------------------------------------------------ */

static int
sink_handle (void *data, const struct contract_record *type, void *record)
{
  const struct coffer_exec_info *info = record;
  char **handle = data;

  if (type->id == COFFER_REC_exec_info && !*handle && info->exec)
    *handle = strdup (info->exec);
  return 0;
}

static char *
handle_open (struct provider *provider, const struct profile *profile,
             const char *runner, size_t size)
{
  const struct coffer_warm_open_opts opts
    = { .size = sizeof opts,
        .modules = (const char *const *) profile->words[PROFILE_PRELOAD] };
  struct provider_call call = call_in (OPEN_MS, -1);
  auto_error struct error *error = NULL;
  coffer_autoclose int program = coffer_memfd_sealed ("runner", runner, size);
  char *handle = NULL;

  call.sink.record = sink_handle;
  call.sink.data = &handle;
  if (program < 0
      || INVOKE (provider, &call, &error, warm_open, .profile = profile->name,
                 .in = program, .opts = &opts) < 0)
    log_event (LOG_LEVEL_WARNING, "warm", "profile %s: each run starts an "
               "interpreter: %s", profile->name,
               error ? error_message (error) : "no memory");
  else
    log_event (LOG_LEVEL_INFO, "warm", "profile %s: an interpreter stands "
               "ready", profile->name);
  return handle;
}

/* Who comes while another one asks does without: an import may take longer than
 * a client waits, and is none of other profiles' affair. */
static char *
handle_locked (struct provider *provider, struct known *like,
               const struct profile *profile, const char *runner, size_t size)
{
  struct known *known = known_find_locked (like);
  char *handle;

  if (!known) {
    known = malloc (sizeof *known);
    if (!known)
      return NULL;
    *known = *like;
    memset (like, 0, sizeof *like);
    known_add_locked (known);
  }
  if (!known->handle && !known->opening
      && coffer_now_ns () >= known->again_ns) {
    known->opening = 1;
    pthread_mutex_unlock (&lock);
    handle = handle_open (provider, profile, runner, size);
    pthread_mutex_lock (&lock);
    known->opening = 0;
    known->handle = handle;
    known->again_ns = coffer_now_ns () + AGAIN_NS;
  }
  return known->handle ? strdup (known->handle) : NULL;
}

char *
warm_handle (struct host *host, const char *provider_name,
             const struct profile *profile, const char *runner, size_t size)
{
  struct known like = { .host = host };
  struct provider *provider;
  auto_error struct error *error = NULL;
  char *handle = NULL;

  if (host_provider (host, provider_name, &provider, &error) < 0
      || !provider_claims (provider, "exec.warm"))
    return NULL;
  like.of = provider;
  like.provider = strdup (provider_name);
  like.profile = strdup (profile->name);
  like.modules = joined (profile->words[PROFILE_PRELOAD]);
  like.runner = sum_of (runner, size);
  if (like.provider && like.profile && like.modules) {
    pthread_mutex_lock (&lock);
    handle = handle_locked (provider, &like, profile, runner, size);
    pthread_mutex_unlock (&lock);
  }
  free (like.provider);
  free (like.profile);
  free (like.modules);
  return handle;
}

void
warm_forget (struct host *host, const char *provider, const char *handle)
{
  struct known *known;

  pthread_mutex_lock (&lock);
  for (known = all; known; known = known->next)
    if (known->host == host && known->handle
        && strcmp (known->provider, provider) == 0
        && strcmp (known->handle, handle) == 0) {
      free (known->handle);
      known->handle = NULL;
      known->again_ns = 0;
    }
  pthread_mutex_unlock (&lock);
}

/* ---- what they take ----------------------------------------------------- */

struct shown {
  struct provider *of;
  char *profile, *handle;
};

static void
shown_free (struct shown *shown, size_t n)
{
  for (; n-- > 0; shown++) {
    free (shown->profile);
    free (shown->handle);
  }
}

static size_t
shown_take (struct host *host, struct shown shown[KNOWN_MOST])
{
  const struct known *known;
  size_t n = 0;

  pthread_mutex_lock (&lock);
  for (known = all; known && n < KNOWN_MOST; known = known->next)
    /* Of a provider that was replaced no worker is started for this. */
    if (known->handle && known->host == host
        && host_is_todays (host, known->of))
      shown[n++] = (struct shown){ known->of, strdup (known->profile),
                                   strdup (known->handle) };
  pthread_mutex_unlock (&lock);
  return n;
}

void
warm_each (struct host *host,
           void (*visit) (void *data, const char *provider,
                          const char *profile, const json_t *uses),
           void *data)
{
  struct shown shown[KNOWN_MOST];
  const size_t n = shown_take (host, shown);
  const int64_t until = deadline_in (METRICS_MS);
  size_t i;

  for (i = 0; i < n && coffer_now_ns () < until; i++) {
    auto_json json_t *uses = NULL;

    if (shown[i].profile && shown[i].handle
        && provider_metrics (shown[i].of, shown[i].handle, METRICS_CALL_MS,
                             &uses) == 0)
      visit (data, provider_id (shown[i].of), shown[i].profile, uses);
  }
  shown_free (shown, n);
}
