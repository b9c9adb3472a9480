/* SPDX-License-Identifier: Apache-2.0 */
/* What of the caller's environment a program that asks the network is given:
 * proxies, and certificates that the operator trusts.  Nothing under
 * AT_SECURE. */

#include <config.h>

#include <stdlib.h>

#include "provider/source.h"

void
source_env (struct coffer_strings *env, const char *ca_file,
            const char *ca_folder)
{
  static const char *const proxies[]
    = { "https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy", "ALL_PROXY",
        "no_proxy", "NO_PROXY" };
  const char *value;
  size_t i;

  for (i = 0; i < sizeof proxies / sizeof proxies[0]; i++) {
    value = secure_getenv (proxies[i]);
    if (value && *value)
      coffer_strings_printf (env, "%s=%s", proxies[i], value);
  }
  value = secure_getenv ("CURL_CA_BUNDLE");
  if (value == NULL || *value == '\0')
    value = secure_getenv ("SSL_CERT_FILE");
  if (value && *value)
    coffer_strings_printf (env, "%s=%s", ca_file, value);
  value = secure_getenv ("SSL_CERT_DIR");
  if (value && *value)
    coffer_strings_printf (env, "%s=%s", ca_folder, value);
}
