/* SPDX-License-Identifier: Apache-2.0 */
/* See proxy.h. */

#include <config.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <coffer/address.h>

#include "provider/proxy.h"

static const struct {
  const char *scheme;
  unsigned port;
} schemes[] = {
  { "http://", 80 }, { "https://", 443 }, { "socks5://", 1080 },
  { "socks5h://", 1080 }
};

/* Nothing under AT_SECURE. */
static const char *
value_of (const char *variable)
{
  const char *value = secure_getenv (variable);

  return value && *value ? value : NULL;
}

static const char *
first_set (const char *const *names)
{
  for (; *names; names++)
    if (value_of (*names))
      return *names;
  return NULL;
}

/* ---- values -------------------------------------------------------------- */

const char *
proxy_place (const char *value, size_t *size, unsigned *port)
{
  const char *at;
  size_t i;

  for (i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
    if (strncasecmp (value, schemes[i].scheme, strlen (schemes[i].scheme))
        == 0)
      break;
  if (i == sizeof schemes / sizeof schemes[0])
    return NULL;
  value += strlen (schemes[i].scheme);
  *size = strcspn (value, "/?#");
  if (value[*size] && strcmp (value + *size, "/") != 0)
    return NULL;
  at = memrchr (value, '@', *size);
  if (at) {
    *size -= (size_t) (at + 1 - value);
    value = at + 1;
  }
  *port = schemes[i].port;
  return *size > 0 ? value : NULL;
}

int
proxy_is_url (const char *value)
{
  const char *place;
  unsigned port;
  size_t size;

  place = proxy_place (value, &size, &port);
  return place && strspn (place, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ"
                                 "RSTUVWXYZ0123456789.-_:[]") >= size;
}

/* ---- what a url's host is ------------------------------------------------ */

struct host {
  const char *text;             /* without brackets */
  size_t size;
};

static int
host_get (const char *url, struct host *out)
{
  const char *s = strstr (url, "://");

  if (!s)
    return -1;
  out->text = s + 3;
  if (*out->text == '[') {
    out->text++;
    out->size = strcspn (out->text, "]");
  } else {
    out->size = strcspn (out->text, ":/?#");
  }
  return out->size > 0 && out->size < 256 ? 0 : -1;
}

static int
is_loopback (const struct host *host)
{
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
  struct sockaddr_in v4 = { .sin_family = AF_INET };
  const struct sockaddr *address = NULL;
  char text[256];

  memcpy (text, host->text, host->size);
  text[host->size] = '\0';
  if (strcasecmp (text, "localhost") == 0)
    return 1;
  if (inet_pton (AF_INET, text, &v4.sin_addr) == 1)
    address = (const struct sockaddr *) (const void *) &v4;
  else if (inet_pton (AF_INET6, text, &v6.sin6_addr) == 1)
    address = (const struct sockaddr *) (const void *) &v6;
  return address
         && coffer_address_kind (address, NULL) == COFFER_ADDRESS_LOOPBACK;
}

/* NAME is that name and what is below it, with a dot before it or without. */
static int
entry_names (const char *entry, size_t size, const struct host *host)
{
  if (size > 0 && *entry == '.') {
    entry++;
    size--;
  }
  if (size == 1 && *entry == '*')
    return 1;
  return size > 0 && size <= host->size
         && strncasecmp (host->text + host->size - size, entry, size) == 0
         && (size == host->size || host->text[host->size - size - 1] == '.');
}

static int
is_excepted (const struct host *host)
{
  static const char *const names[] = { "no_proxy", "NO_PROXY", NULL };
  const char *name = first_set (names);
  const char *list = name ? value_of (name) : "";
  size_t size;

  for (list += strspn (list, ", \t"); *list;
       list += size, list += strspn (list, ", \t")) {
    size = strcspn (list, ", \t");
    if (entry_names (list, size, host))
      return 1;
  }
  return 0;
}

/* ---- variables ----------------------------------------------------------- */

/* HTTP_PROXY in capitals is what a web server makes of a client's header
 * `Proxy`, and is nobody's wish. */
static const char *const for_http[] = { "http_proxy", "all_proxy",
                                        "ALL_PROXY", NULL };
static const char *const for_https[] = { "https_proxy", "HTTPS_PROXY",
                                         "all_proxy", "ALL_PROXY", NULL };

const char *
proxy_variable (const char *url)
{
  struct host host;

  if (host_get (url, &host) < 0 || is_loopback (&host)
      || is_excepted (&host))
    return NULL;
  return first_set (strncasecmp (url, "https:", 6) == 0
                      || strncasecmp (url, "wss:", 4) == 0
                    ? for_https : for_http);
}

const char *
proxy_mixture (void)
{
  static const char *const all[] = { "all_proxy", "ALL_PROXY", NULL };
  static const char *const http[] = { "http_proxy", "https_proxy",
                                      "HTTPS_PROXY", NULL };
  const char *name = first_set (all);

  if (!name || strncasecmp (value_of (name), "socks", 5) != 0
      || !first_set (http))
    return NULL;
  return "all_proxy names a SOCKS proxy beside http_proxy or https_proxy, "
         "which go before it";
}
