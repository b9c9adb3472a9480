/* SPDX-License-Identifier: Apache-2.0 */
/* Which headers pass, and as what.
 *
 * Inside goes nothing of the caller's standing here: no Authorization, none of
 * our cookies.  What comes out is shown under this server's own address, next
 * to others' sandboxes, and so it may neither speak for that address nor set
 * what other sandboxes would be sent. */

#include <config.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <coffer/buffer.h>

#include "base/text.h"
#include "server/api/proxy.h"

/* Before what is the server's inside: /api/v1/sandboxes/ID/ports/PORT. */
#define SEGMENTS 6
/* Ours among the caller's cookies. */
#define OUR_COOKIE "coffer"

/* What is of one connection alone. */
static const char *const of_connection[] = {
  "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate",
  "Proxy-Authorization", "Proxy-Authentication-Info", "TE", "Trailer",
  "Transfer-Encoding", "Upgrade", "Content-Length", NULL
};

static const char *const not_inwards[] = {
  "Host", "Authorization", "Cookie", "Expect", "Forwarded", "X-Forwarded-For",
  "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Prefix",
  "X-Forwarded-Port", "X-Real-IP", "X-Request-Id", "Idempotency-Key", NULL
};

static const char *const not_outwards[] = {
  "Date", "Location", "Set-Cookie", "Content-Type", "Content-Security-Policy",
  "Strict-Transport-Security", "Public-Key-Pins", "Clear-Site-Data",
  "Alt-Svc", "Service-Worker-Allowed", "Access-Control-Allow-Origin",
  "Access-Control-Allow-Credentials", "Access-Control-Allow-Methods",
  "Access-Control-Allow-Headers", "Access-Control-Expose-Headers",
  "Access-Control-Max-Age", "Access-Control-Allow-Private-Network",
  "Origin-Agent-Cluster", "NEL", "Report-To", "Reporting-Endpoints",
  "X-Request-Id", "WWW-Authenticate", NULL
};

static int
is_among (const char *const *names, const char *name)
{
  for (; *names; names++)
    if (strcasecmp (*names, name) == 0)
      return 1;
  return 0;
}

/* ---- inwards ------------------------------------------------------------- */

struct inwards {
  struct proxy *proxy;
  struct coffer_buffer text;
  struct coffer_buffer connection;      /* names more that are of it */
};

/* The cookies but for ours, as one line. */
static void
add_cookies (struct coffer_buffer *text, const char *value)
{
  const char *before = "Cookie: ";
  size_t n;

  for (; *value; value += n + (value[n] == ';')) {
    value += strspn (value, " \t;");
    n = strcspn (value, ";");
    if (n == 0 || strncasecmp (value, OUR_COOKIE, strlen (OUR_COOKIE)) == 0)
      continue;
    coffer_buffer_printf (text, "%s%.*s", before, (int) n, value);
    before = "; ";
  }
  if (strcmp (before, "; ") == 0)
    coffer_buffer_add_string (text, "\r\n");
}

static int
is_plain (const char *value)
{
  for (; *value; value++)
    if (((unsigned char) *value < ' ' && *value != '\t') || *value == 0x7f)
      return 0;
  return 1;
}

static int
add_connection (void *data, const char *name, const char *value)
{
  struct inwards *in = data;

  if (strcasecmp (name, "Connection") == 0 && value)
    coffer_buffer_printf (&in->connection, "%s,", value);
  return 0;
}

static int
add_header (void *data, const char *name, const char *value)
{
  struct inwards *in = data;

  if (!coffer_http1_is_token (name) || !value || !is_plain (value))
    return 0;
  if (strcasecmp (name, "Cookie") == 0)
    add_cookies (&in->text, value);
  else if (!is_among (of_connection, name) && !is_among (not_inwards, name)
           && strncasecmp (name, "X-Coffer-", 9) != 0
           && !coffer_http1_list_has (in->connection.data, name))
    coffer_buffer_printf (&in->text, "%s: %s\r\n", name, value);
  return 0;
}

/* The path behind ours and the query, as they came; what no request line may
 * have is escaped. */
static void
add_target (struct inwards *in)
{
  const struct request *request = in->proxy->request;
  const char *p = request->path;
  int part;

  for (part = 0; p && part < SEGMENTS; part++)
    p = strchr (p + 1, '/');
  if (!p)
    coffer_buffer_add_string (&in->text, "/");
  for (part = 0; part < 2; part++) {
    for (; p && *p; p++) {
      if ((unsigned char) *p <= ' ' || (unsigned char) *p >= 0x7f
          || *p == '#')
        coffer_buffer_printf (&in->text, "%%%02X", (unsigned char) *p);
      else
        coffer_buffer_add (&in->text, p, 1);
    }
    p = request->query;
    if (part == 0 && p)
      coffer_buffer_add_string (&in->text, "?");
  }
}

/* How the end of what is sent is told. */
static void
add_framing (struct inwards *in)
{
  const struct proxy *proxy = in->proxy;
  const char *length = request_header (proxy->request, "Content-Length");

  if (proxy->chunked)
    coffer_buffer_add_string (&in->text, "Transfer-Encoding: chunked\r\n");
  else if (length)
    coffer_buffer_printf (&in->text, "Content-Length: %s\r\n", length);
  if (proxy->upgrade)
    coffer_buffer_printf (&in->text,
                          "Connection: Upgrade\r\nUpgrade: %s\r\n",
                          proxy->upgrade);
  else
    coffer_buffer_add_string (&in->text, "Connection: close\r\n");
}

static void
add_forwarded (struct inwards *in)
{
  const struct proxy *proxy = in->proxy;
  const char *host = request_header (proxy->request, "Host");

  coffer_buffer_printf (&in->text,
                        "X-Forwarded-For: unknown\r\n"
                        "X-Forwarded-Proto: http\r\n"
                        "X-Forwarded-Prefix: %s\r\nX-Request-Id: %s\r\n",
                        proxy->prefix, proxy->request->id);
  if (host && is_plain (host))
    coffer_buffer_printf (&in->text, "X-Forwarded-Host: %s\r\n", host);
}

char *
proxy_request_head (struct proxy *proxy, size_t *size, struct error **err)
{
  struct request *request = proxy->request;
  struct inwards in = { .proxy = proxy };
  char *text;

  request_each_header (request, add_connection, &in);
  coffer_buffer_printf (&in.text, "%s ",
                        request->head ? "HEAD" : request->method);
  add_target (&in);
  coffer_buffer_printf (&in.text, " HTTP/1.1\r\nHost: localhost:%u\r\n",
                        proxy->port);
  request_each_header (request, add_header, &in);
  add_forwarded (&in);
  add_framing (&in);
  coffer_buffer_add_string (&in.text, "\r\n");
  *size = in.text.size;
  if (in.connection.failed)
    coffer_buffer_free (&in.text);
  coffer_buffer_free (&in.connection);
  text = coffer_buffer_steal (&in.text);
  if (!text)
    error_set (err, E_NO_MEMORY, 0, "a request");
  return text;
}

/* ---- outwards ------------------------------------------------------------ */

/* A cookie is for the paths of this port alone, whatever it asks for. */
static int
reply_cookie (struct proxy *proxy, const char *value, struct error **err)
{
  coffer_autobuffer struct coffer_buffer text = { 0 };
  size_t n = strcspn (value, ";");

  /* Of what is said by such a name a browser demands the whole address. */
  if (strncasecmp (value, "__Host-", 7) == 0
      || strncasecmp (value, OUR_COOKIE, strlen (OUR_COOKIE)) == 0)
    return 0;
  coffer_buffer_add (&text, value, n);
  for (value += n; *value; value += n) {
    value += strspn (value, "; \t");
    n = strcspn (value, ";");
    if (n > 0 && strncasecmp (value, "Domain", 6) != 0
        && strncasecmp (value, "Path", 4) != 0)
      coffer_buffer_printf (&text, "; %.*s", (int) n, value);
  }
  coffer_buffer_printf (&text, "; Path=%s/", proxy->prefix);
  if (text.failed)
    return error_set (err, E_NO_MEMORY, 0, "a reply");
  return reply_header (proxy->request, "Set-Cookie", text.data, err);
}

/* A place on the server inside is one below our path. */
static int
reply_location (struct proxy *proxy, const char *value, struct error **err)
{
  const size_t n = strlen (proxy->prefix);
  auto_free char *own = text_printf ("http://localhost:%u/", proxy->port);
  auto_free char *moved = NULL;

  if (own && strncasecmp (value, own, strlen (own)) == 0)
    value += strlen (own) - 1;
  else if (value[0] != '/' || value[1] == '/'
           || (strncmp (value, proxy->prefix, n) == 0 && value[n] == '/'))
    return reply_header (proxy->request, "Location", value, err);
  moved = text_printf ("%s%s", proxy->prefix, value);
  if (!own || !moved)
    return error_set (err, E_NO_MEMORY, 0, "a reply");
  return reply_header (proxy->request, "Location", moved, err);
}

static int
reply_one (struct proxy *proxy, const struct coffer_http1_header *header,
           const char *connection, struct error **err)
{
  if (strcasecmp (header->name, "Set-Cookie") == 0)
    return reply_cookie (proxy, header->value, err);
  if (strcasecmp (header->name, "Location") == 0)
    return reply_location (proxy, header->value, err);
  if (is_among (of_connection, header->name)
      || is_among (not_outwards, header->name)
      || strncasecmp (header->name, "X-Coffer-", 9) == 0
      || strchr (header->value, '\t')
      || coffer_http1_list_has (connection, header->name))
    return 0;
  return reply_header (proxy->request, header->name, header->value, err);
}

int
proxy_reply_headers (struct proxy *proxy, struct error **err)
{
  const struct coffer_http1_head *head = &proxy->head;
  coffer_autobuffer struct coffer_buffer connection = { 0 };
  size_t i;

  for (i = 0; i < head->count; i++)
    if (strcasecmp (head->headers[i].name, "Connection") == 0)
      coffer_buffer_printf (&connection, "%s,", head->headers[i].value);
  if (connection.failed)
    return error_set (err, E_NO_MEMORY, 0, "a reply");
  for (i = 0; i < head->count; i++)
    if (reply_one (proxy, &head->headers[i], connection.data, err) < 0)
      return -1;
  /* A page from inside is nobody here: it has an origin of its own. */
  return reply_header (proxy->request, "Content-Security-Policy",
                       "sandbox allow-scripts allow-forms allow-popups "
                       "allow-downloads allow-modals", err);
}
