/* SPDX-License-Identifier: Apache-2.0 */
/* A request to its end: transfers, redirects that are followed, and what is
 * tried again.  Nothing is sent twice that a service could do twice, and nothing
 * of one origin's goes to another. */

#define _GNU_SOURCE

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "client.h"

#define REDIRECTS_MOST 5
#define WAIT_FIRST_NS INT64_C (100000000)
#define WAIT_MOST_NS INT64_C (5000000000)

static int32_t
give_up (struct http_exchange *exchange, int32_t code, const char *why)
{
  snprintf (exchange->why, sizeof exchange->why, "%s", why);
  return code;
}

/* ---- redirects ----------------------------------------------------------- */

static int
is_redirect (const struct http_exchange *exchange)
{
  const int status = exchange->reply->status;

  return (status == 301 || status == 302 || status == 303 || status == 307
          || status == 308)
         && !(exchange->request->flags & COFFER_HTTP_NO_REDIRECT)
         && (strcmp (exchange->method, "GET") == 0
             || strcmp (exchange->method, "HEAD") == 0);
}

/* A url out of one and what `Location` says, without its fragment.  The caller
 * frees it with curl_free. */
static char *
resolve (const struct http_exchange *exchange, const char *location)
{
  CURLU *url = curl_url ();
  char *from = NULL, *to = NULL;
  int r = url ? asprintf (&from, "%s%s", exchange->origin->url,
                          exchange->path) : -1;

  if (r >= 0 && curl_url_set (url, CURLUPART_URL, from, 0) == CURLUE_OK
      && curl_url_set (url, CURLUPART_URL, location, CURLU_URLENCODE)
           == CURLUE_OK
      && curl_url_set (url, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK)
    curl_url_get (url, CURLUPART_URL, &to, 0);
  curl_url_cleanup (url);
  if (r >= 0)
    free (from);
  return to;
}

/* Within a unix socket's service everything is said of `localhost`. */
static int
is_same_place (const struct http_exchange *exchange,
               const struct http_origin *there)
{
  const struct http_origin *here = exchange->origin;

  if (here->is_unix)
    return !there->is_tls && strcasecmp (there->host, "localhost") == 0;
  return http_origin_same (here, there);
}

static int32_t
go_to (struct http_exchange *exchange, const char *url)
{
  struct http_origin there;
  const char *rest, *wrong = http_origin_parse (url, &there, &rest);
  char *path;

  if (wrong || there.is_unix) {
    http_origin_fini (&there);
    return give_up (exchange, COFFER_IO, "it redirects to what is no url of "
                    "http");
  }
  if (exchange->origin->is_tls && !there.is_tls) {
    http_origin_fini (&there);
    return give_up (exchange, COFFER_DENIED, "it redirects to where nothing "
                    "is encrypted");
  }
  if (asprintf (&path, "%s%s", *rest == '/' ? "" : "/", rest) < 0) {
    http_origin_fini (&there);
    return give_up (exchange, COFFER_INTERNAL, "out of memory");
  }
  free (exchange->path);
  exchange->path = path;
  if (is_same_place (exchange, &there)) {
    http_origin_fini (&there);
    return COFFER_OK;
  }
  http_origin_fini (&exchange->elsewhere);
  exchange->elsewhere = there;
  exchange->origin = &exchange->elsewhere;
  exchange->is_foreign = 1;     /* and stays it: a way back is led by others */
  return COFFER_OK;
}

static int32_t
follow (struct http_exchange *exchange)
{
  const char *location = coffer_http_header (exchange->reply, "Location");
  char *url = location ? resolve (exchange, location) : NULL;
  int32_t code = url ? go_to (exchange, url)
                     : give_up (exchange, COFFER_IO,
                                "it redirects, and does not say where to");

  curl_free (url);
  return code;
}

static int32_t
transfer_and_follow (struct http_exchange *exchange)
{
  int32_t code = http_transfer (exchange);

  for (int n = 0; code == COFFER_OK && is_redirect (exchange); n++) {
    if (n == REDIRECTS_MOST)
      return give_up (exchange, COFFER_IO, "it redirects in circles");
    code = follow (exchange);
    if (code == COFFER_OK)
      code = http_transfer (exchange);
  }
  return code;
}

/* ---- again --------------------------------------------------------------- */

static int
may_help (const struct http_exchange *exchange, int32_t code)
{
  const int status = exchange->reply->status;

  if (!exchange->is_repeatable || exchange->is_delivered)
    return 0;
  if (code != COFFER_OK)
    return exchange->is_lost;
  return status == 429 || status == 502 || status == 503 || status == 504;
}

/* From half of what was meant to one and a half, so that those whom a server
 * has refused together do not come back together. */
static int64_t
jitter (int64_t ns)
{
  uint32_t random = 0x80000000;

  if (getrandom (&random, sizeof random, GRND_NONBLOCK) < 0)
    random = 0x80000000;
  return ns / 2 + (int64_t) ((double) ns * random / 4294967296.0);
}

static int64_t
wait_time (const struct http_exchange *exchange, unsigned tried)
{
  int64_t ns = WAIT_FIRST_NS << (tried < 8 ? tried - 1 : 7);

  if (exchange->retry_after_ns > 0)
    return exchange->retry_after_ns;
  return jitter (ns < WAIT_MOST_NS ? ns : WAIT_MOST_NS);
}

/* 1: it is to be tried again, now; 0: it is in vain; -1: the caller gave up. */
static int
wait_again (struct http_exchange *exchange, unsigned tried)
{
  const int64_t until = coffer_now_ns () + wait_time (exchange, tried);

  if (until >= exchange->call->deadline_ns)
    return 0;
  if (coffer_wait_fd (-1, 0, until, exchange->call->cancel_fd) == 0
      && errno == ECANCELED)
    return -1;
  return 1;
}

/* As it was before the first transfer. */
static int
rewind_all (struct http_exchange *exchange)
{
  const struct coffer_http_request *request = exchange->request;
  char *path;

  if (request->body_from_fd
      && lseek (request->body_fd, exchange->body_start, SEEK_SET) < 0)
    return -1;
  if (!exchange->is_foreign && strcmp (exchange->method, "GET") != 0)
    return 0;
  if (asprintf (&path, "%s%s", exchange->http->prefix, request->path) < 0)
    return -1;
  free (exchange->path);
  exchange->path = path;
  exchange->origin = &exchange->http->origin;
  exchange->is_foreign = 0;
  return 0;
}

/* 1: again; 0: *code is how it ended. */
static int
is_again (struct http_exchange *exchange, unsigned tried, int32_t *code)
{
  int r;

  if (tried >= exchange->http->tries || !may_help (exchange, *code))
    return 0;
  r = wait_again (exchange, tried);
  if (r < 0)
    *code = give_up (exchange, COFFER_CANCELLED, "the caller gave up");
  return r > 0 && rewind_all (exchange) == 0;
}

int32_t
coffer_http_do (struct coffer_http *http, struct coffer_call *call,
                const struct coffer_http_request *request,
                struct coffer_http_reply *reply)
{
  struct http_exchange exchange;
  int32_t code;

  coffer_http_reply_fini (reply);
  code = http_exchange_init (&exchange, http, call, request, reply);
  if (code == COFFER_OK) {
    unsigned tried = 0;

    do
      code = transfer_and_follow (&exchange);
    while (is_again (&exchange, ++tried, &code));
  }
  code = http_reply_finish (&exchange, code);
  http_exchange_fini (&exchange);
  return code;
}
