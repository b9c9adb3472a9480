/* SPDX-License-Identifier: Apache-2.0 */
/* Raw streams behind TLS or a proxy: a thread moves the bytes between libcurl
 * and a socket pair, whose other end is the caller's, so that every stream is a
 * descriptor. */

#ifndef HTTP_PUMP_H
#define HTTP_PUMP_H

#include "client.h"

/* The caller's end.  Takes the handle in either case; the n bytes of `early`
 * came first.  -1 with errno. */
int http_pump_start (struct coffer_http *http, struct http_handle *handle,
                     const char *early, size_t n);
/* Ends them all, and returns when their threads have gone. */
void http_pumps_end (struct coffer_http *http);

#endif /* HTTP_PUMP_H */
