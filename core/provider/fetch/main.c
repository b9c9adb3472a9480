/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-fetch: see fetch.h. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <curl/curl.h>

#include <coffer/fd.h>

#include "base/helper.h"
#include "base/json.h"
#include "base/text.h"
#include "fetch.h"

#define REDIRECTS 5L
#define CONNECT_SECONDS 30L

struct fetching {
  uint64_t most, seconds;
  uint64_t bytes;
  uint64_t total;               /* 0: not said yet */
  int too_large;
  char error[CURL_ERROR_SIZE + 256];
};

static int
fail (struct fetching *fetching, const char *what, const char *why)
{
  if (!fetching->error[0])
    snprintf (fetching->error, sizeof fetching->error, "%s%s%s", what,
              why ? ": " : "", why ? why : "");
  return -1;
}

static size_t
body_write (char *bytes, size_t one, size_t count, void *data)
{
  struct fetching *fetching = data;
  const size_t size = one * count;

  if (size > fetching->most - fetching->bytes) {
    fetching->too_large = 1;
    return 0;
  }
  if (coffer_write_all (STDOUT_FILENO, bytes, size) < 0) {
    fail (fetching, "writing", strerror (errno));
    return 0;
  }
  fetching->bytes += size;
  return size;
}

/* What the peer says that it is going to be, once; who waits may show it. */
static void
total_write (struct fetching *fetching)
{
  char line[64];
  int n = snprintf (line, sizeof line, HELPER_TOTAL "%llu\n",
                    (unsigned long long) fetching->total);

  if (coffer_write_all (FETCH_REPORT_FD, line, (size_t) n) < 0)
    fail (fetching, "nobody waits for it", NULL);
}

/* Ends when nobody waits for the report any more. */
static int
look_around (void *data, curl_off_t total, curl_off_t done, curl_off_t c,
             curl_off_t d)
{
  struct fetching *fetching = data;
  struct pollfd p = { FETCH_REPORT_FD, 0, 0 };

  (void) c, (void) d;
  /* Once the file itself comes, and not the pages that lead to it. */
  if (fetching->total == 0 && fetching->bytes > 0 && total >= done
      && (uint64_t) total >= fetching->bytes) {
    fetching->total = (uint64_t) total;
    total_write (fetching);
  }
  return poll (&p, 1, 0) > 0;
}

/* Only https:, also after a redirect; whom the system trusts, or whom the
 * operator named instead; never anybody. */
static CURLcode
options_set (CURL *curl, const char *url, struct fetching *fetching)
{
  const char *file = getenv ("SSL_CERT_FILE");
  const char *folder = getenv ("SSL_CERT_DIR");
  CURLcode r = CURLE_OK;

#define SET(option, value)                                                    \
  if (r == CURLE_OK)                                                          \
    r = curl_easy_setopt (curl, option, value)
  SET (CURLOPT_URL, url);
#if LIBCURL_VERSION_NUM >= 0x075500
  SET (CURLOPT_PROTOCOLS_STR, "https");
  SET (CURLOPT_REDIR_PROTOCOLS_STR, "https");
#else
  SET (CURLOPT_PROTOCOLS, (long) CURLPROTO_HTTPS);
  SET (CURLOPT_REDIR_PROTOCOLS, (long) CURLPROTO_HTTPS);
#endif
  SET (CURLOPT_SSL_VERIFYPEER, 1L);
  SET (CURLOPT_SSL_VERIFYHOST, 2L);
  SET (CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
  if (file) {
    SET (CURLOPT_CAINFO, file);
  }
  if (folder) {
    SET (CURLOPT_CAPATH, folder);
  }
  SET (CURLOPT_FOLLOWLOCATION, 1L);
  SET (CURLOPT_MAXREDIRS, REDIRECTS);
  SET (CURLOPT_NETRC, (long) CURL_NETRC_IGNORED);
  SET (CURLOPT_FAILONERROR, 1L);
  SET (CURLOPT_NOSIGNAL, 1L);
  SET (CURLOPT_USERAGENT, "coffer/" PACKAGE_VERSION);
  SET (CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
  SET (CURLOPT_TIMEOUT, (long) fetching->seconds);
  SET (CURLOPT_LOW_SPEED_LIMIT, 100L);
  SET (CURLOPT_LOW_SPEED_TIME, 60L);
  SET (CURLOPT_ERRORBUFFER, fetching->error);
  SET (CURLOPT_WRITEFUNCTION, body_write);
  SET (CURLOPT_WRITEDATA, fetching);
  SET (CURLOPT_NOPROGRESS, 0L);
  SET (CURLOPT_XFERINFOFUNCTION, look_around);
  SET (CURLOPT_XFERINFODATA, fetching);
#undef SET
  return r;
}

static int
fetch (const char *url, struct fetching *fetching)
{
  CURL *curl = curl_easy_init ();
  CURLcode r;

  if (curl == NULL)
    return fail (fetching, "out of memory", NULL);
  r = options_set (curl, url, fetching);
  if (r == CURLE_OK)
    r = curl_easy_perform (curl);
  curl_easy_cleanup (curl);
  if (fetching->too_large) {
    snprintf (fetching->error, sizeof fetching->error,
              "it is larger than %llu MiB",
              (unsigned long long) fetching->most >> 20);
    return -1;
  }
  return r == CURLE_OK ? 0 : fail (fetching, curl_easy_strerror (r), NULL);
}

static int
report_write (const struct fetching *fetching, int abi)
{
  auto_json json_t *json = NULL;
  auto_free char *text = NULL, *shown = NULL;

  if (fetching->error[0]) {
    shown = text_escape (fetching->error, strlen (fetching->error));
    json = json_pack ("{s:s}", "error", shown ? shown : "it failed");
  } else
    json = json_pack ("{s:o, s:b}", "bytes", json_u64 (fetching->bytes),
                      "confined", abi > 0);
  text = json_text (json);
  return text && coffer_write_all (FETCH_REPORT_FD, text, strlen (text)) > 0
           ? 0 : -1;
}

/* What a hostile peer could make it take. */
static void
limits_set (uint64_t most)
{
  const struct rlimit core = { 0, 0 }, files = { 64, 64 };
  const struct rlimit size = { most + 1, most + 1 };
#ifndef COFFER_SANITIZERS
  const struct rlimit memory = { 1 << 30, 1 << 30 };

  setrlimit (RLIMIT_AS, &memory);
#endif
  setrlimit (RLIMIT_CORE, &core);
  setrlimit (RLIMIT_NOFILE, &files);
  setrlimit (RLIMIT_FSIZE, &size);
}

int
main (int argc, char **argv)
{
  struct fetching fetching = { 0 };
  int abi, r = -1;

  if (argc != 4 || fcntl (FETCH_REPORT_FD, F_GETFD) < 0
      || text_parse_u64 (argv[2], 1, INT64_MAX - 1, &fetching.most) < 0
      || text_parse_u64 (argv[3], 1, 86400, &fetching.seconds) < 0) {
    fprintf (stderr, "coffer-fetch is run by coffer\n");
    return 2;
  }
  limits_set (fetching.most);
  if (curl_global_init (CURL_GLOBAL_DEFAULT) != CURLE_OK)
    fail (&fetching, "libcurl does not start", NULL);
  abi = fetch_confine (getenv ("SSL_CERT_FILE"), getenv ("SSL_CERT_DIR"));
  if (abi < 0)
    fail (&fetching, "giving up rights", strerror (errno));
  if (!fetching.error[0])
    r = fetch (argv[1], &fetching);
  return report_write (&fetching, abi) < 0 || r < 0;
}
