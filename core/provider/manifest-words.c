/* SPDX-License-Identifier: Apache-2.0 */
/* The words and values that manifests and operator files are made of: each
 * predicate says what is well formed, and nothing here touches the system. */

#include <config.h>

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "provider/manifest.h"
#include "provider/proxy.h"

#define MAX_VALUE 4096          /* of a configuration value, with the NUL */
#define MAX_PEM (64 << 10)
#define MAX_PATH 4096

const char *const manifest_archs[] = {
  "x86_64", "aarch64", "i686", "armv7l", "riscv64", "ppc64le", "s390x",
  "loongarch64", NULL
};

static const char *const type_names[] = {
  [CONFIG_TEXT] = "text", [CONFIG_SECRET] = "secret", [CONFIG_URL] = "url",
  [CONFIG_SIZE] = "size", [CONFIG_DURATION] = "duration",
  [CONFIG_NUMBER] = "number", [CONFIG_FLAG] = "flag", [CONFIG_PATH] = "path",
  [CONFIG_PROXY] = "proxy", [CONFIG_PEM] = "pem",
};

const char *const manifest_config_froms[] = {
  "docker.host", "docker.ca", "docker.certificate", "docker.key",
  "docker.auths", "podman.auths", NULL
};

int
manifest_config_is_secret (enum manifest_config_type type)
{
  return type == CONFIG_SECRET || type == CONFIG_PEM;
}

const char *
manifest_config_type_name (enum manifest_config_type type)
{
  return type_names[type];
}

/* The architecture of this program, not of the kernel: a 32-bit host on a
 * 64-bit kernel loads 32-bit modules. */
const char *
manifest_machine (void)
{
#if defined __x86_64__
  return "x86_64";
#elif defined __aarch64__
  return "aarch64";
#elif defined __i386__
  return "i686";
#elif defined __arm__
  return "armv7l";
#elif defined __riscv && __riscv_xlen == 64
  return "riscv64";
#elif defined __powerpc64__ && defined __LITTLE_ENDIAN__
  return "ppc64le";
#elif defined __s390x__
  return "s390x";
#elif defined __loongarch_lp64
  return "loongarch64";
#else
  return "unknown";
#endif
}

int
manifest_is_file_name (const char *s)
{
  size_t n;

  if (!isalnum ((unsigned char) s[0]) && s[0] != '_')
    return 0;
  n = strspn (s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                 "0123456789._+-");
  return s[n] == '\0' && n <= 128;
}

int
manifest_is_path (const char *s)
{
  const char *p = s;
  size_t n;

  if (s[0] != '/' || strlen (s) >= MAX_PATH)
    return 0;
  if (s[1] == '\0')
    return 1;
  while (*p == '/') {
    p++;
    n = strcspn (p, "/");
    if (n == 0 || (n == 1 && p[0] == '.')
        || (n == 2 && p[0] == '.' && p[1] == '.') || n > 255)
      return 0;
    p += n;
  }
  return 1;
}

static int
is_port (const char *s)
{
  uint64_t port;

  return text_parse_u64 (s, 1, 65535, &port) == 0;
}

/* A host name or IPv4 address of `size` bytes: labels of letters, digits and
 * inner dashes. */
static int
is_host (const char *s, size_t size)
{
  size_t i, label = 0;

  if (size == 0 || size > 253)
    return 0;
  for (i = 0; i < size; i++) {
    if (s[i] == '.') {
      if (label == 0 || s[i - 1] == '-')
        return 0;
      label = 0;
    } else if (isalnum ((unsigned char) s[i]) || s[i] == '_'
               || (s[i] == '-' && label > 0)) {
      if (++label > 63)
        return 0;
    } else
      return 0;
  }
  return label > 0 && s[size - 1] != '-';
}

/* The inside of [...]. */
static int
is_ipv6 (const char *s, size_t size)
{
  size_t i, colons = 0;

  for (i = 0; i < size; i++) {
    colons += s[i] == ':';
    if (!isxdigit ((unsigned char) s[i]) && s[i] != ':' && s[i] != '.')
      return 0;
  }
  return colons >= 2 && size <= 45;
}

/* HOST or [V6]; *rest is what follows. */
static int
take_host (const char *s, const char **rest)
{
  const char *end;

  if (s[0] == '[') {
    end = strchr (s, ']');
    if (end == NULL || !is_ipv6 (s + 1, (size_t) (end - s - 1)))
      return 0;
    *rest = end + 1;
    return 1;
  }
  end = s + strcspn (s, ":/?#");
  *rest = end;
  return is_host (s, (size_t) (end - s));
}

int
manifest_is_target (const char *s)
{
  const char *rest;

  if (strcmp (s, "config") == 0)
    return 1;
  if (strncmp (s, "unix:", 5) == 0)
    return manifest_is_path (s + 5) && s[6] != '\0';
  if (strncmp (s, "*.", 2) == 0)
    s += 2;
  return take_host (s, &rest) && rest[0] == ':' && is_port (rest + 1);
}

/* Where a service of this machine listens, or one that speaks without TLS: as
 * container engines write it. */
static int
is_socket (const char *s)
{
  if (strncmp (s, "unix://", 7) == 0)
    return manifest_is_path (s + 7);
  return strncmp (s, "tcp://", 6) == 0 && take_host (s + 6, &s)
         && s[0] == ':' && is_port (s + 1);
}

/* http and https, and no name or password in it: those are secrets. */
static int
is_url (const char *s)
{
  const char *p, *rest;
  char port[8];
  size_t n;

  if (strncasecmp (s, "https://", 8) == 0)
    p = s + 8;
  else if (strncasecmp (s, "http://", 7) == 0)
    p = s + 7;
  else
    return is_socket (s);
  for (rest = s; *rest; rest++) {
    if ((unsigned char) *rest <= ' ' || *rest == 0x7f)
      return 0;
  }
  if (!take_host (p, &rest))
    return 0;
  if (*rest == ':') {
    n = strcspn (++rest, "/?#");
    if (n == 0 || n >= sizeof port)
      return 0;
    memcpy (port, rest, n);
    port[n] = '\0';
    if (!is_port (port))
      return 0;
    rest += n;
  }
  return *rest == '\0' || *rest == '/' || *rest == '?' || *rest == '#';
}

static int
is_line (const char *s)
{
  for (; *s; s++) {
    if ((unsigned char) *s < ' ' || *s == 0x7f)
      return 0;
  }
  return 1;
}

/* Lines of text with such a block in them; what is in that is for whoever reads
 * certificates. */
static const char *
check_pem (const char *value)
{
  const char *p;

  if (strlen (value) >= MAX_PEM)
    return "must be shorter than 64 KiB";
  for (p = value; *p; p++)
    if ((unsigned char) *p < ' ' && !strchr ("\n\r\t", *p))
      return "must be text";
  return strstr (value, "-----BEGIN ") ? NULL
         : "must hold a PEM block, -----BEGIN …";
}

const char *
manifest_check_value (enum manifest_config_type type, const char *value)
{
  uint64_t n;

  if (type == CONFIG_PEM)
    return check_pem (value);
  if (strlen (value) >= MAX_VALUE)
    return "must be shorter than 4096 bytes";
  if (!is_line (value))
    return "must be one line without control characters";
  switch (type) {
  case CONFIG_TEXT:
    return text_is_utf8 (value, strlen (value)) ? NULL : "must be UTF-8";
  case CONFIG_PEM:
    break;
  case CONFIG_SECRET:
    return value[0] ? NULL : "must not be empty";
  case CONFIG_URL:
    return is_url (value) ? NULL
      : "must be an http or https URL without a name or password in it, "
        "unix:///PATH or tcp://HOST:PORT";
  case CONFIG_SIZE:
    return text_parse_size (value, &n) == 0 ? NULL
      : "must be a size such as 512, 64MiB or 1.5G";
  case CONFIG_DURATION:
    return text_parse_duration (value, &n) == 0 ? NULL
      : "must be a duration such as 500ms, 30s or 2h";
  case CONFIG_NUMBER:
    return text_parse_u64 (value, 0, INT64_MAX, &n) == 0 ? NULL
      : "must be a whole number";
  case CONFIG_FLAG:
    return strcmp (value, "true") == 0 || strcmp (value, "false") == 0 ? NULL
      : "must be true or false";
  case CONFIG_PATH:
    return manifest_is_path (value) ? NULL
      : "must be an absolute path without \".\", \"..\" or empty parts";
  case CONFIG_PROXY:
    return proxy_is_url (value) ? NULL
      : "must be http://, https:// or socks5h:// and HOST:PORT";
  }
  return "is of a type that is not known";
}
