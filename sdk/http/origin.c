/* SPDX-License-Identifier: Apache-2.0 */
/* Urls of services and proxies, taken apart strictly: what libcurl connects for
 * and what the host is asked for must be the same place. */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <netinet/in.h>

#include <coffer/address.h>

#include "client.h"

static const char memory[] = "there is no memory for it";

/* ---- host and port ---- */

static int
is_host (const char *host, size_t size, int is_v6)
{
  struct in6_addr address;
  char text[256];

  if (size == 0 || size >= sizeof text - 2)
    return 0;
  memcpy (text, host, size);
  text[size] = '\0';
  if (is_v6)
    return inet_pton (AF_INET6, text, &address) == 1;
  for (size_t i = 0; i < size; i++)
    if (!isalnum ((unsigned char) host[i]) && !strchr (".-_", host[i]))
      return 0;
  return 1;
}

static int
port_get (const char *text, size_t size, unsigned *out)
{
  unsigned value = 0;

  if (size == 0 || size > 5)
    return -1;
  for (size_t i = 0; i < size; i++) {
    if (!isdigit ((unsigned char) text[i]))
      return -1;
    value = value * 10 + (unsigned) (text[i] - '0');
  }
  *out = value;
  return value >= 1 && value <= 65535 ? 0 : -1;
}

/* HOST, HOST:PORT, [V6] or [V6]:PORT. */
static const char *
host_port_get (const char *s, size_t size, char **host, unsigned *port)
{
  const int is_v6 = size > 0 && *s == '[';
  const char *end = s + size, *host_end, *colon;

  host_end = memchr (s, is_v6 ? ']' : ':', size);
  if (is_v6 && !host_end)
    return "its address has no end";
  colon = is_v6 ? host_end + 1 : host_end ? host_end : end;
  if (!host_end)
    host_end = end;
  s += is_v6;
  if (!is_host (s, (size_t) (host_end - s), is_v6))
    return "its host is neither a name nor an address";
  if (colon < end
      && (*colon != ':'
          || port_get (colon + 1, (size_t) (end - colon - 1), port) < 0))
    return "its port is no number from 1 to 65535";
  if (*port == 0)
    return "it has no port";
  *host = strndup (s, (size_t) (host_end - s));
  return *host ? NULL : memory;
}

/* port 0: the scheme's own goes without saying. */
static char *
printed (const char *before, const char *host, unsigned port)
{
  const int is_v6 = strchr (host, ':') != NULL;
  char *text = NULL, number[16] = "";

  if (port > 0)
    snprintf (number, sizeof number, ":%u", port);
  if (asprintf (&text, "%s%s%s%s%s", before, is_v6 ? "[" : "", host,
                is_v6 ? "]" : "", number) < 0)
    return NULL;
  return text;
}

/* ---- services ---- */

static const char *
unix_parse (const char *path, struct http_origin *out)
{
  if (*path != '/' || strlen (path) >= 4096)
    return "a socket's path is absolute";
  out->is_unix = 1;
  out->host = strdup ("localhost");
  out->url = strdup ("http://localhost");
  if (asprintf (&out->target, "unix:%s", path) < 0)
    out->target = NULL;
  return out->host && out->url && out->target ? NULL : memory;
}

static const char *
tcp_parse (const char *s, struct http_origin *out, const char **rest)
{
  const size_t size = strcspn (s, "/?#");
  const unsigned usual = out->is_tls ? 443 : 80;
  const char *wrong;

  if (memchr (s, '@', size))
    return "a name and a password do not belong into a url";
  *rest = s + size;
  out->port = usual;
  wrong = host_port_get (s, size, &out->host, &out->port);
  if (wrong)
    return wrong;
  out->url = printed (out->is_tls ? "https://" : "http://", out->host,
                      out->port == usual ? 0 : out->port);
  out->target = printed ("tcp:", out->host, out->port);
  return out->url && out->target ? NULL : memory;
}

const char *
http_origin_parse (const char *url, struct http_origin *out,
                   const char **rest)
{
  const char *wrong = "it begins with none of http://, https://, unix://";

  memset (out, 0, sizeof *out);
  *rest = "";
  if (strncasecmp (url, "unix://", 7) == 0) {
    wrong = unix_parse (url + 7, out);
  } else if (strncasecmp (url, "https://", 8) == 0) {
    out->is_tls = 1;
    wrong = tcp_parse (url + 8, out, rest);
  } else if (strncasecmp (url, "http://", 7) == 0) {
    wrong = tcp_parse (url + 7, out, rest);
  }
  if (wrong)
    http_origin_fini (out);
  return wrong;
}

void
http_origin_fini (struct http_origin *origin)
{
  free (origin->url);
  free (origin->host);
  free (origin->target);
  memset (origin, 0, sizeof *origin);
}

int
http_origin_same (const struct http_origin *a, const struct http_origin *b)
{
  if (a->is_unix != b->is_unix || a->is_tls != b->is_tls)
    return 0;
  return a->is_unix ? strcmp (a->target, b->target) == 0
                    : a->port == b->port
                        && strcasecmp (a->host, b->host) == 0;
}

int
http_origin_is_local (const struct http_origin *origin)
{
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
  struct sockaddr_in v4 = { .sin_family = AF_INET };

  if (origin->is_unix || strcasecmp (origin->host, "localhost") == 0)
    return 1;
  if (inet_pton (AF_INET, origin->host, &v4.sin_addr) == 1)
    return coffer_address_kind ((const struct sockaddr *) (void *) &v4, NULL)
           == COFFER_ADDRESS_LOOPBACK;
  return inet_pton (AF_INET6, origin->host, &v6.sin6_addr) == 1
         && coffer_address_kind ((const struct sockaddr *) (void *) &v6, NULL)
              == COFFER_ADDRESS_LOOPBACK;
}

/* ---- proxies ---- */

static const struct {
  const char *scheme;
  long kind;
  unsigned port;
} proxies[] = {
  { "http://", CURLPROXY_HTTP, 80 },
  { "https://", CURLPROXY_HTTPS, 443 },
  /* Names are the proxy's to look up, whichever of the two is said: a worker
   * cannot. */
  { "socks5h://", CURLPROXY_SOCKS5_HOSTNAME, 1080 },
  { "socks5://", CURLPROXY_SOCKS5_HOSTNAME, 1080 },
};

static char *
decoded (const char *text, size_t size)
{
  char *part = curl_easy_unescape (NULL, text, (int) size, NULL);
  char *copy = part ? strdup (part) : NULL;

  curl_free (part);
  return copy;
}

static const char *
proxy_rest_parse (const char *s, struct http_proxy *out)
{
  const size_t size = strcspn (s, "/?#");
  const char *at = memrchr (s, '@', size), *wrong;

  if (s[size] && strcmp (s + size, "/") != 0)
    return "a proxy has no path";
  if (at && !(out->user = decoded (s, (size_t) (at - s))))
    return memory;
  at = at ? at + 1 : s;
  wrong = host_port_get (at, (size_t) (s + size - at), &out->host,
                         &out->port);
  if (wrong)
    return wrong;
  out->target = printed ("tcp:", out->host, out->port);
  out->url = printed ("", out->host, out->port);
  return out->target && out->url ? NULL : memory;
}

const char *
http_proxy_parse (const char *text, struct http_proxy *out)
{
  const char *wrong = "it begins with none of http://, https://, socks5h://";
  size_t size;

  memset (out, 0, sizeof *out);
  for (size_t i = 0; i < sizeof proxies / sizeof proxies[0]; i++) {
    size = strlen (proxies[i].scheme);
    if (strncasecmp (text, proxies[i].scheme, size) != 0)
      continue;
    out->kind = proxies[i].kind;
    out->port = proxies[i].port;
    wrong = proxy_rest_parse (text + size, out);
    break;
  }
  if (wrong)
    http_proxy_fini (out);
  return wrong;
}

void
http_proxy_fini (struct http_proxy *proxy)
{
  if (proxy->user)
    explicit_bzero (proxy->user, strlen (proxy->user));
  free (proxy->user);
  free (proxy->host);
  free (proxy->url);
  free (proxy->target);
  memset (proxy, 0, sizeof *proxy);
}
