/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy of a provider's service: a configuration key of type `proxy`, which
 * an operator gives or the usual variables do.  They are read here and once; a
 * worker has none of them. */

#ifndef PROVIDER_PROXY_H
#define PROVIDER_PROXY_H

/* The variable that has the proxy for `url` (http, https, ws, wss), or NULL:
 * there is none, it is on this machine, or no_proxy names it. */
const char *proxy_variable (const char *url);
/* http://, https://, socks5:// or socks5h://, perhaps with a name and a
 * password, and nothing behind the port. */
int proxy_is_url (const char *value);
/* Where HOST:PORT begins in one; *size: how long it is.  *port: what is meant
 * when it says none. */
const char *proxy_place (const char *value, size_t *size, unsigned *port);
/* SOCKS for some and HTTP for others: what goes which way is easily not what
 * was meant.  A sentence, or NULL. */
const char *proxy_mixture (void);

#endif /* PROVIDER_PROXY_H */
