/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-fetch: one https address into a file, in a process of its own that
 * may read certificates and the resolver's files, speak to the network, and do
 * nothing else.
 *
 *   coffer-fetch URL BYTES SECONDS       the file is descriptor 1
 *
 * One JSON object goes to descriptor 4: {"bytes", "confined"}, or {"error"}
 * with status 1.  It is told by its environment which proxies to ask and, by
 * SSL_CERT_FILE and SSL_CERT_DIR, whom to trust besides. */

#ifndef FETCH_FETCH_H
#define FETCH_FETCH_H

#define FETCH_REPORT_FD 4

/* Gives up all but that.  The Landlock ABI in force, 0: this kernel has none;
 * -1: it failed, and errno says why. */
int fetch_confine (const char *ca_file, const char *ca_folder);

#endif /* FETCH_FETCH_H */
