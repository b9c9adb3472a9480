/* SPDX-License-Identifier: Apache-2.0 */
/* The client: what it was made of, and the connections that wait for another
 * call.  Each lies in a handle of its own, which one call has at a time, so that
 * no call waits for another's. */

#define _GNU_SOURCE

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "pump.h"

#define HEAD_MOST 65536
#define BODY_MOST (16 << 20)
#define IDLE_MOST 8
#define TRIES 4

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode started = CURLE_FAILED_INIT;

static void
start (void)
{
  started = curl_global_init (CURL_GLOBAL_DEFAULT);
}

/* ---- the configuration --------------------------------------------------- */

/* "" and NULL are the same; -1: memory is out. */
static int
copy (char **to, const char *from)
{
  *to = from && *from ? strdup (from) : NULL;
  return from && *from && !*to ? -1 : 0;
}

static const char *
take_headers (struct coffer_http *http, const char *const *headers)
{
  const char *wrong;

  for (; headers && *headers; headers++) {
    wrong = http_header_check (*headers);
    if (wrong)
      return wrong;
    coffer_strings_add (&http->headers, *headers);
    http_secret_add_header (&http->secrets, *headers);
  }
  return NULL;
}

static void
take_secrets (struct coffer_http *http, const char *const *secrets)
{
  for (; secrets && *secrets; secrets++)
    http_secret_add (&http->secrets, *secrets);
  if (!http->proxy.user)
    return;
  http_secret_add (&http->secrets, http->proxy.user);
  if (strchr (http->proxy.user, ':'))
    http_secret_add (&http->secrets, strchr (http->proxy.user, ':') + 1);
}

/* What is not in a path is refused where paths are, with the request's. */
static const char *
take_prefix (struct coffer_http *http, const char *rest)
{
  size_t size = strlen (rest);

  if (strpbrk (rest, "?#"))
    return "a base has no query";
  while (size > 0 && rest[size - 1] == '/')
    size--;
  http->prefix = strndup (rest, size);
  return http->prefix ? NULL : "there is no memory for it";
}

/* NULL, or what is wrong and, in *about, with what. */
static const char *
take_config (struct coffer_http *http,
             const struct coffer_http_config *config, const char **about)
{
  const char *rest = "", *wrong;

  *about = "base";
  wrong = config->base ? http_origin_parse (config->base, &http->origin, &rest)
                       : "there is none";
  if (!wrong)
    wrong = take_prefix (http, rest);
  if (!wrong && config->insecure && !http_origin_is_local (&http->origin)) {
    *about = "insecure";
    wrong = "only a service of this machine is believed unseen";
  }
  if (!wrong && config->proxy && *config->proxy) {
    *about = "proxy";
    wrong = http_proxy_parse (config->proxy, &http->proxy);
  }
  if (!wrong) {
    *about = "a header";
    wrong = take_headers (http, config->headers);
  }
  return wrong;
}

static int
take_rest (struct coffer_http *http, const struct coffer_http_config *config)
{
  take_secrets (http, config->secrets);
  http->insecure = config->insecure;
  http->head_most = config->head_most ? config->head_most : HEAD_MOST;
  http->body_most = config->body_most ? config->body_most : BODY_MOST;
  http->idle_most = config->idle ? config->idle : IDLE_MOST;
  http->tries = config->tries ? config->tries : TRIES;
  if (http_origin_is_local (&http->origin))
    http_proxy_fini (&http->proxy);
  return copy (&http->user_agent, config->user_agent ? config->user_agent
                                                     : "coffer") < 0
         || copy (&http->ca, config->ca) < 0
         || copy (&http->certificate, config->certificate) < 0
         || copy (&http->key, config->key) < 0 || http->headers.failed
         || http->secrets.failed ? -1 : 0;
}

static int32_t
new_failed (struct coffer_call *call, struct coffer_http *http, int32_t code,
            const char *about, const char *wrong)
{
  char message[256];

  snprintf (message, sizeof message, "HTTP client: %s%s%s", about,
            *about ? ": " : "", wrong);
  coffer_http_free (http);
  return coffer_fail (call, code, message);
}

int32_t
coffer_http_new (struct coffer_call *call,
                 const struct coffer_http_config *config,
                 struct coffer_http **out)
{
  struct coffer_http *http = calloc (1, sizeof *http);
  const char *wrong, *about;

  *out = NULL;
  if (!http)
    return new_failed (call, NULL, COFFER_INTERNAL, "", "out of memory");
  pthread_mutex_init (&http->lock, NULL);
  pthread_once (&once, start);
  if (started != CURLE_OK)
    return new_failed (call, http, COFFER_INTERNAL, "",
                       "libcurl does not start");
  wrong = take_config (http, config, &about);
  if (wrong)
    return new_failed (call, http, COFFER_INVALID, about, wrong);
  if (take_rest (http, config) < 0)
    return new_failed (call, http, COFFER_INTERNAL, "", "out of memory");
  *out = http;
  return COFFER_OK;
}

static void
wipe (char *text)
{
  if (text)
    explicit_bzero (text, strlen (text));
  free (text);
}

static void
strings_wipe (struct coffer_strings *strings)
{
  for (size_t i = 0; i < strings->count; i++)
    explicit_bzero (strings->items[i], strlen (strings->items[i]));
  coffer_strings_free (strings);
}

void
coffer_http_free (struct coffer_http *http)
{
  struct http_handle *handle;

  if (!http)
    return;
  http_pumps_end (http);
  while ((handle = http->idle)) {
    http->idle = handle->next;
    http_handle_free (handle);
  }
  http_origin_fini (&http->origin);
  http_proxy_fini (&http->proxy);
  free (http->prefix);
  free (http->user_agent);
  free (http->ca);
  free (http->certificate);
  wipe (http->key);
  strings_wipe (&http->headers);
  strings_wipe (&http->secrets);
  pthread_mutex_destroy (&http->lock);
  free (http);
}

/* ---- connections --------------------------------------------------------- */

void
http_handle_free (struct http_handle *handle)
{
  if (!handle)
    return;
  if (handle->easy)
    curl_easy_cleanup (handle->easy);
  if (handle->multi)
    curl_multi_cleanup (handle->multi);
  free (handle);
}

static struct http_handle *
handle_new (void)
{
  struct http_handle *handle = calloc (1, sizeof *handle);

  if (!handle)
    return NULL;
  handle->easy = curl_easy_init ();
  handle->multi = curl_multi_init ();
  if (!handle->easy || !handle->multi
      || curl_multi_setopt (handle->multi, CURLMOPT_MAXCONNECTS, 1L)
           != CURLM_OK) {
    http_handle_free (handle);
    return NULL;
  }
  return handle;
}

/* The one that was used last: the others may grow old. */
struct http_handle *
http_handle_get (struct coffer_http *http)
{
  struct http_handle *handle;

  pthread_mutex_lock (&http->lock);
  handle = http->idle;
  if (handle) {
    http->idle = handle->next;
    http->n_idle--;
  }
  pthread_mutex_unlock (&http->lock);
  return handle ? handle : handle_new ();
}

void
http_handle_put (struct coffer_http *http, struct http_handle *handle,
                 int keep)
{
  pthread_mutex_lock (&http->lock);
  keep = keep && http->n_idle < http->idle_most;
  if (keep) {
    handle->next = http->idle;
    http->idle = handle;
    http->n_idle++;
  }
  pthread_mutex_unlock (&http->lock);
  if (!keep)
    http_handle_free (handle);
}
