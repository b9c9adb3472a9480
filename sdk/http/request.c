/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked for, checked before anything is connected: a line of a head
 * that a caller's text could add would be somebody else's request. */

#define _GNU_SOURCE

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <jansson.h>

#include "client.h"

/* Where a request ends is decided by what its body is, and by nobody else. */
static const char *const reserved[] = {
  "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Expect",
  "TE", "Trailer", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization"
};

static int
name_is (const char *header, const char *name)
{
  const size_t size = strlen (name);

  return strncasecmp (header, name, size) == 0 && header[size] == ':';
}

const char *
http_header_check (const char *header)
{
  const char *colon = strchr (header, ':');
  char name[128];

  if (!colon || (size_t) (colon - header) >= sizeof name)
    return "it is not NAME: VALUE";
  memcpy (name, header, (size_t) (colon - header));
  name[colon - header] = '\0';
  if (!coffer_http1_is_token (name))
    return "it is not NAME: VALUE";
  for (const char *p = colon + 1; *p; p++)
    if (((unsigned char) *p < 0x20 && *p != '\t') || *p == 0x7f)
      return "its value has a control character";
  for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
    if (name_is (header, reserved[i]))
      return "it is the library's to send";
  return NULL;
}

static const char *
headers_check (const char *const *headers)
{
  const char *wrong = NULL;

  for (; headers && *headers && !wrong; headers++)
    wrong = http_header_check (*headers);
  return wrong;
}

static int
is_path (const char *path)
{
  if (*path != '/')
    return 0;
  for (; *path; path++)
    if (*path <= 0x20 || *path >= 0x7f || *path == '#')
      return 0;
  return 1;
}

static int
is_method (const char *method)
{
  size_t n = 0;

  while (method[n] && (isupper ((unsigned char) method[n])
                       || method[n] == '-'))
    n++;
  return n > 0 && n <= 16 && !method[n];
}

static int
has_body (const struct coffer_http_request *request)
{
  return request->json || request->bytes || request->body_from_fd;
}

static int
method_may_be_repeated (const char *method)
{
  static const char *const methods[] = { "GET", "HEAD", "PUT", "DELETE",
                                         "OPTIONS" };

  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
    if (strcmp (method, methods[i]) == 0)
      return 1;
  return 0;
}

static int32_t
refuse (struct http_exchange *exchange, int32_t code, const char *about,
        const char *why)
{
  snprintf (exchange->why, sizeof exchange->why, "%s: %s", about, why);
  return code;
}

static int32_t
check (struct http_exchange *exchange)
{
  const struct coffer_http_request *request = exchange->request;
  const char *wrong = headers_check (request->headers);

  if (!request->path || !is_path (request->path))
    return refuse (exchange, COFFER_INVALID, "path",
                   "it does not begin with / or is not encoded");
  if (!is_method (exchange->method))
    return refuse (exchange, COFFER_INVALID, "method", "it is none");
  if (!!request->json + !!request->bytes + !!request->body_from_fd > 1)
    return refuse (exchange, COFFER_INVALID, "body", "there is more than one");
  if (strcmp (exchange->method, "HEAD") == 0 && has_body (request))
    return refuse (exchange, COFFER_INVALID, "body", "HEAD has none");
  return wrong ? refuse (exchange, COFFER_INVALID, "a header", wrong)
               : COFFER_OK;
}

static int32_t
take_body (struct http_exchange *exchange)
{
  const struct coffer_http_request *request = exchange->request;

  exchange->body = request->bytes;
  exchange->body_size = request->size;
  exchange->body_start = -1;
  if (request->body_from_fd) {
    exchange->body_start = lseek (request->body_fd, 0, SEEK_CUR);
    if (exchange->body_start < 0)
      exchange->is_repeatable = 0;
  }
  if (!request->json)
    return COFFER_OK;
  exchange->json = json_dumps (request->json,
                               JSON_COMPACT | JSON_ENCODE_ANY);
  if (!exchange->json)
    return refuse (exchange, COFFER_INVALID, "body", "it is no JSON");
  exchange->body = exchange->json;
  exchange->body_size = strlen (exchange->json);
  return COFFER_OK;
}

int32_t
http_exchange_init (struct http_exchange *exchange, struct coffer_http *http,
                    struct coffer_call *call,
                    const struct coffer_http_request *request,
                    struct coffer_http_reply *reply)
{
  int32_t code;

  memset (exchange, 0, sizeof *exchange);
  exchange->http = http;
  exchange->call = call;
  exchange->request = request;
  exchange->reply = reply;
  exchange->origin = &http->origin;
  exchange->method = request->method ? request->method
                     : has_body (request) ? "POST" : "GET";
  exchange->is_repeatable
    = !(request->flags & COFFER_HTTP_ONCE)
      && (method_may_be_repeated (exchange->method)
          || request->flags & COFFER_HTTP_REPEATABLE);
  code = check (exchange);
  if (code != COFFER_OK)
    return code;
  if (asprintf (&exchange->path, "%s%s", http->prefix, request->path) < 0) {
    exchange->path = NULL;
    return refuse (exchange, COFFER_INTERNAL, "path", "out of memory");
  }
  if (!is_path (exchange->path))
    return refuse (exchange, COFFER_INVALID, "base", "it is not encoded");
  return take_body (exchange);
}

void
http_exchange_fini (struct http_exchange *exchange)
{
  if (exchange->json)
    explicit_bzero (exchange->json, strlen (exchange->json));
  free (exchange->json);
  free (exchange->path);
  http_origin_fini (&exchange->elsewhere);
  coffer_buffer_free (&exchange->text);
}

static int
strings_have (const struct coffer_strings *headers, const char *name)
{
  for (size_t i = 0; i < headers->count; i++)
    if (name_is (headers->items[i], name))
      return 1;
  return 0;
}

/* What was said for one origin is not said to another: who is asked there is
 * not who was meant. */
void
http_exchange_headers (const struct http_exchange *exchange,
                       struct coffer_strings *out)
{
  const char *const *header = exchange->request->headers;
  const struct coffer_strings *own = &exchange->http->headers;

  for (; !exchange->is_foreign && header && *header; header++)
    coffer_strings_add (out, *header);
  for (size_t i = 0; !exchange->is_foreign && i < own->count; i++)
    coffer_strings_add (out, own->items[i]);
  if (exchange->json && !strings_have (out, "Content-Type"))
    coffer_strings_add (out, "Content-Type: application/json");
  else if (has_body (exchange->request) && !strings_have (out, "Content-Type"))
    coffer_strings_add (out, "Content-Type: application/octet-stream");
}
