/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-otlp: reading, sending and waiting, in one loop.  See otlp.h. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <curl/curl.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/text.h"
#include "otlp.h"
#include "provider/fetch/fetch.h"
#include "queue.h"

#define MS INT64_C (1000000)
#define BACKOFF_FIRST_MS 500
#define BACKOFF_MOST_MS 30000
#define TRY_MS 300000           /* how long one batch is tried */
#define SETTINGS_MAX 65536

struct exporter {
  json_t *settings;
  struct otlp_origin origin;
  struct otlp_queue queue;
  CURLM *multi;
  CURL *curl;
  struct curl_slist *headers;
  /* The batch that is on its way, or waits until it is tried again. */
  struct coffer_buffer body;
  size_t n_spans;               /* of it; 0: there is none */
  int sending;
  int64_t began_ns, retry_at_ns, backoff_ms;
  int64_t end_ns;               /* 0: the daemon lives */
};

static int64_t
setting_ms (const struct exporter *exporter, const char *name, int64_t value)
{
  const json_t *found = json_object_get (exporter->settings, name);

  return json_is_integer (found) ? json_integer_value (found) : value;
}

static const char *
setting (const struct exporter *exporter, const char *name)
{
  return json_string_value (json_object_get (exporter->settings, name));
}

/* ---- curl ---------------------------------------------------------------- */

static size_t
answer_drop (char *bytes, size_t one, size_t count, void *data)
{
  (void) bytes, (void) data;
  return one * count;
}

static int
header_add (struct exporter *exporter, const char *name, const char *value)
{
  auto_free char *line = text_printf ("%s: %s", name, value);
  struct curl_slist *list = line ? curl_slist_append (exporter->headers, line)
                                 : NULL;

  if (list == NULL)
    return -1;
  exporter->headers = list;
  return 0;
}

static int
headers_set (struct exporter *exporter)
{
  const json_t *given = json_object_get (exporter->settings, "headers");
  const int json = strcmp (setting (exporter, "protocol"), "json") == 0;
  const char *name;
  json_t *value;

  if (header_add (exporter, "Content-Type",
                  json ? "application/json" : "application/x-protobuf") < 0
      || header_add (exporter, "Expect", "") < 0)
    return -1;
  json_object_foreach ((json_t *) given, name, value)
    if (header_add (exporter, name, json_string_value (value)) < 0)
      return -1;
  return 0;
}

/* No proxies, no redirects, and whom the system or the operator trusts. */
static int
curl_set (struct exporter *exporter)
{
  const char *certificate = setting (exporter, "certificate");
  CURLcode r = CURLE_OK;

#define SET(option, value)                                                    \
  if (r == CURLE_OK)                                                          \
    r = curl_easy_setopt (exporter->curl, option, value)
  SET (CURLOPT_URL, setting (exporter, "endpoint"));
#if LIBCURL_VERSION_NUM >= 0x075500
  SET (CURLOPT_PROTOCOLS_STR, "http,https");
#else
  SET (CURLOPT_PROTOCOLS, (long) (CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  SET (CURLOPT_FOLLOWLOCATION, 0L);
  SET (CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
  if (certificate) {
    SET (CURLOPT_CAINFO, certificate);
  }
  SET (CURLOPT_PROXY, "");
  SET (CURLOPT_NETRC, (long) CURL_NETRC_IGNORED);
  SET (CURLOPT_NOSIGNAL, 1L);
  SET (CURLOPT_USERAGENT, "coffer/" PACKAGE_VERSION);
  SET (CURLOPT_TIMEOUT_MS, (long) setting_ms (exporter, "timeout_ms", 10000));
  SET (CURLOPT_HTTPHEADER, exporter->headers);
  SET (CURLOPT_POST, 1L);
  SET (CURLOPT_WRITEFUNCTION, answer_drop);
#undef SET
  return r == CURLE_OK ? 0 : -1;
}

/* ---- one batch ----------------------------------------------------------- */

static void
batch_end (struct exporter *exporter, int good)
{
  *(good ? &exporter->queue.exported : &exporter->queue.failed)
    += exporter->n_spans;
  exporter->queue.changed = 1;
  exporter->n_spans = 0;
  coffer_buffer_free (&exporter->body);
}

static void
batch_send (struct exporter *exporter)
{
  exporter->retry_at_ns = 0;
  if (curl_easy_setopt (exporter->curl, CURLOPT_POSTFIELDS,
                        exporter->body.data) != CURLE_OK
      || curl_easy_setopt (exporter->curl, CURLOPT_POSTFIELDSIZE_LARGE,
                           (curl_off_t) exporter->body.size) != CURLE_OK
      || curl_multi_add_handle (exporter->multi, exporter->curl) != CURLM_OK) {
    batch_end (exporter, 0);
    return;
  }
  exporter->sending = 1;
}

static void
batch_begin (struct exporter *exporter)
{
  const int json = strcmp (setting (exporter, "protocol"), "json") == 0;
  auto_json json_t *spans = otlp_queue_take (&exporter->queue, OTLP_BATCH);
  int r;

  if (spans == NULL)
    return;
  exporter->n_spans = json_array_size (spans);
  exporter->began_ns = coffer_now_ns ();
  exporter->backoff_ms = BACKOFF_FIRST_MS;
  r = (json ? otlp_json : otlp_protobuf) (&exporter->origin, spans,
                                          &exporter->body);
  if (r < 0)
    batch_end (exporter, 0);
  else
    batch_send (exporter);
}

static int
is_passing (CURLcode result, long status)
{
  if (result != CURLE_OK)
    return 1;
  return status == 429 || status == 502 || status == 503 || status == 504;
}

/* Later and later, and not all at once with everybody else's. */
static void
batch_later (struct exporter *exporter)
{
  const int64_t now = coffer_now_ns ();
  curl_off_t asked = 0;
  int64_t ms = exporter->backoff_ms;

  /* At the end there is no later. */
  if (exporter->queue.ended || now - exporter->began_ns >= TRY_MS * MS) {
    batch_end (exporter, 0);
    return;
  }
  ms += ms * (now / 1000 % 256) / 1024;
  exporter->backoff_ms *= 2;
  if (exporter->backoff_ms > BACKOFF_MOST_MS)
    exporter->backoff_ms = BACKOFF_MOST_MS;
  curl_easy_getinfo (exporter->curl, CURLINFO_RETRY_AFTER, &asked);
  if (asked > 0 && asked < TRY_MS / 1000 && asked * 1000 > ms)
    ms = asked * 1000;
  exporter->retry_at_ns = now + ms * MS;
}

static void
batch_look (struct exporter *exporter)
{
  CURLMsg *message;
  long status = 0;
  CURLcode result;
  int left;

  while ((message = curl_multi_info_read (exporter->multi, &left))) {
    if (message->msg != CURLMSG_DONE)
      continue;
    result = message->data.result;
    curl_easy_getinfo (exporter->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle (exporter->multi, exporter->curl);
    exporter->sending = 0;
    if (result == CURLE_OK && status >= 200 && status < 300)
      batch_end (exporter, 1);
    else if (is_passing (result, status))
      batch_later (exporter);
    else
      batch_end (exporter, 0);
  }
}

/* ---- the loop ------------------------------------------------------------ */

/* When there is something to do, without a word from outside. */
static int64_t
next_ns (const struct exporter *exporter)
{
  const size_t waiting = json_array_size (exporter->queue.spans);
  int64_t next = INT64_MAX;

  if (exporter->n_spans && !exporter->sending)
    next = exporter->queue.ended ? 0 : exporter->retry_at_ns;
  else if (!exporter->n_spans && (waiting >= OTLP_BATCH
                                  || (waiting && exporter->queue.ended)))
    return 0;
  else if (!exporter->n_spans && waiting)
    next = exporter->queue.since_ns
           + setting_ms (exporter, "delay_ms", 1000) * MS;
  return exporter->end_ns && exporter->end_ns < next ? exporter->end_ns : next;
}

static void
report (struct otlp_queue *queue)
{
  char line[80];
  int n;

  if (!queue->changed)
    return;
  n = snprintf (line, sizeof line, "%llu %llu %llu\n",
                (unsigned long long) queue->exported,
                (unsigned long long) queue->failed,
                (unsigned long long) queue->dropped);
  /* Nobody may have read for long: the next one has the same sums. */
  if (write (OTLP_REPORT_FD, line, (size_t) n) == n)
    queue->changed = 0;
}

static void
work (struct exporter *exporter)
{
  const int64_t now = coffer_now_ns ();
  int running;

  if (exporter->queue.ended && !exporter->end_ns)
    exporter->end_ns = now + OTLP_LAST_MS * MS;
  if (!exporter->sending && now >= next_ns (exporter)) {
    if (exporter->n_spans)
      batch_send (exporter);
    else
      batch_begin (exporter);
  }
  curl_multi_perform (exporter->multi, &running);
  batch_look (exporter);
  report (&exporter->queue);
}

static int
is_done (const struct exporter *exporter)
{
  if (!exporter->queue.ended)
    return 0;
  return (exporter->n_spans == 0
          && json_array_size (exporter->queue.spans) == 0)
         || (exporter->end_ns && coffer_now_ns () >= exporter->end_ns);
}

static int
loop (struct exporter *exporter)
{
  while (!is_done (exporter)) {
    struct curl_waitfd in = { STDIN_FILENO, CURL_WAIT_POLLIN, 0 };
    int64_t next = next_ns (exporter);
    int ms = next == 0 ? 0 : coffer_poll_ms (next);

    if (curl_multi_poll (exporter->multi, &in,
                         exporter->queue.ended ? 0 : 1,
                         ms < 0 ? 3600000 : ms, NULL) != CURLM_OK)
      return -1;
    otlp_queue_read (&exporter->queue, STDIN_FILENO);
    work (exporter);
  }
  /* What there was no time for any more. */
  exporter->queue.failed += exporter->n_spans
                            + json_array_size (exporter->queue.spans);
  exporter->queue.changed = 1;
  report (&exporter->queue);
  return 0;
}

/* ---- start --------------------------------------------------------------- */

static int
fail (const char *what)
{
  auto_json json_t *json = json_pack ("{s:s}", "error", what);
  auto_free char *text = json_text (json);

  if (text)
    coffer_write_all (OTLP_REPORT_FD, text, strlen (text));
  return 1;
}

static int
settings_read (struct exporter *exporter)
{
  auto_free char *text = NULL;
  size_t size;

  if (coffer_read_whole (OTLP_SETTINGS_FD, SETTINGS_MAX, &text, &size) < 0
      || json_parse (text, size, &exporter->settings, NULL) < 0
      || !setting (exporter, "endpoint") || !setting (exporter, "protocol"))
    return -1;
  exporter->origin.resource = json_object_get (exporter->settings, "resource");
  exporter->origin.scope = "coffer";
  exporter->origin.version = PACKAGE_VERSION;
  return json_is_array (exporter->origin.resource) ? 0 : -1;
}

/* What a hostile peer could make it take. */
static void
limits_set (void)
{
  const struct rlimit none = { 0, 0 }, files = { 64, 64 };
#ifndef COFFER_SANITIZERS
  const struct rlimit memory = { 1 << 30, 1 << 30 };

  setrlimit (RLIMIT_AS, &memory);
#endif
  setrlimit (RLIMIT_CORE, &none);
  setrlimit (RLIMIT_FSIZE, &none);
  setrlimit (RLIMIT_NOFILE, &files);
}

int
main (int argc, char **argv)
{
  struct exporter exporter = { 0 };
  const char *certificate;

  (void) argv;
  if (argc != 1 || fcntl (OTLP_REPORT_FD, F_GETFD) < 0) {
    fprintf (stderr, "coffer-otlp is run by coffer\n");
    return 2;
  }
  limits_set ();
  if (settings_read (&exporter) < 0
      || otlp_queue_init (&exporter.queue) < 0
      || fcntl (STDIN_FILENO, F_SETFL, O_NONBLOCK) < 0
      || fcntl (OTLP_REPORT_FD, F_SETFL, O_NONBLOCK) < 0)
    return fail ("it was not told how to send spans");
  if (curl_global_init (CURL_GLOBAL_DEFAULT) != CURLE_OK
      || (exporter.multi = curl_multi_init ()) == NULL
      || (exporter.curl = curl_easy_init ()) == NULL
      || headers_set (&exporter) < 0 || curl_set (&exporter) < 0)
    return fail ("libcurl does not start");
  certificate = setting (&exporter, "certificate");
  if (fetch_confine (certificate, NULL) < 0)
    return fail ("its rights could not be given up");
  return loop (&exporter) < 0 ? fail ("it cannot wait") : 0;
}
