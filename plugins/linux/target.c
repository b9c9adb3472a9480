/* SPDX-License-Identifier: Apache-2.0 */
/* Names and addresses in one form, compared whole.
 *
 * What is compared is what is resolved, and what is resolved is a name of
 * letters, digits, dashes and underscores in labels: a NUL, a space, a percent
 * sign or a letter beyond ASCII is in no name, and what a resolver would take
 * for a number (0x7f.1, 2130706433, 127.1) is no name either. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <coffer/address.h>

#include "target.h"

static int
is_digit (char c)
{
  return c >= '0' && c <= '9';
}

/* The last label is a number in the eyes of somebody. */
static int
ends_in_number (const char *name)
{
  const char *label = strrchr (name, '.');

  label = label != NULL ? label + 1 : name;
  if (label[0] == '0' && label[1] == 'x')
    return label[2 + strspn (label + 2, "0123456789abcdef")] == '\0';
  return label[strspn (label, "0123456789")] == '\0';
}

static int
name_is_whole (const char *name)
{
  size_t label = 0, i;

  for (i = 0;; i++) {
    char c = name[i];

    if (c == '.' || c == '\0') {
      if (label == 0 || label > 63 || name[i - 1] == '-')
        return 0;
      if (c == '\0')
        return 1;
      label = 0;
    } else if (!(c >= 'a' && c <= 'z') && !is_digit (c) && c != '_'
               && !(c == '-' && label > 0))
      return 0;
    else
      label++;
  }
}

static int
address_take (int family, const char *text, struct target *out)
{
  char again[INET6_ADDRSTRLEN];
  uint8_t bytes[16] = { 0 };

  if (inet_pton (family, text, bytes) != 1
      || inet_ntop (family, bytes, again, sizeof again) == NULL)
    return -1;
  out->family = family;
  memcpy (out->address, bytes, sizeof bytes);
  snprintf (out->name, sizeof out->name, "%s", again);
  return 0;
}

int
target_host (const char *host, size_t size, struct target *out)
{
  char name[TARGET_NAME_MAX + 1];
  size_t i;

  if (size > 1 && host[size - 1] == '.')
    size--;
  if (size == 0 || size > TARGET_NAME_MAX)
    return -1;
  for (i = 0; i < size; i++) {
    if (host[i] == '\0')
      return -1;
    name[i] = host[i] >= 'A' && host[i] <= 'Z' ? (char) (host[i] + 32)
                                               : host[i];
  }
  name[size] = '\0';
  if (strchr (name, ':') != NULL)
    return address_take (AF_INET6, name, out);
  if (ends_in_number (name))
    return address_take (AF_INET, name, out);
  if (!name_is_whole (name))
    return -1;
  out->family = 0;
  memset (out->address, 0, sizeof out->address);
  memcpy (out->name, name, size + 1);
  return 0;
}

/* 1 to 65535, in at most five digits. */
static int
port_read (const char *text, size_t size, uint16_t *out)
{
  uint32_t value = 0;
  size_t i;

  if (size == 0 || size > 5)
    return -1;
  for (i = 0; i < size; i++) {
    if (!is_digit (text[i]))
      return -1;
    value = value * 10 + (uint32_t) (text[i] - '0');
  }
  if (value == 0 || value > 65535)
    return -1;
  *out = (uint16_t) value;
  return 0;
}

int
target_authority (const char *text, size_t size, uint16_t port,
                  struct target *out)
{
  const char *end = text + size, *host = text, *host_end, *rest;

  if (size > 0 && text[0] == '[') {
    host = text + 1;
    host_end = memchr (host, ']', size - 1);
    if (host_end == NULL || memchr (host, ':', (size_t) (host_end - host))
                              == NULL)
      return -1;
    rest = host_end + 1;
  } else {
    host_end = memchr (text, ':', size);
    if (host_end == NULL)
      host_end = end;
    rest = host_end;
  }
  out->port = port;
  if (rest < end
      && (*rest != ':' || port_read (rest + 1, (size_t) (end - rest - 1),
                                     &out->port) == -1))
    return -1;
  if (out->port == 0)
    return -1;
  return target_host (host, (size_t) (host_end - host), out);
}

void
target_text (const struct target *target, int with_port,
             char out[TARGET_TEXT_MAX])
{
  int v6 = target->family == AF_INET6;

  if (with_port)
    snprintf (out, TARGET_TEXT_MAX, "%s%s%s:%u", v6 ? "[" : "", target->name,
              v6 ? "]" : "", target->port);
  else
    snprintf (out, TARGET_TEXT_MAX, "%s%s%s", v6 ? "[" : "", target->name,
              v6 ? "]" : "");
}

/* ---- the list ------------------------------------------------------------- */

int
policy_add (struct policy *policy, const char *entry)
{
  int below = strncmp (entry, "*.", 2) == 0;
  struct target target;

  if (below)
    entry += 2;
  memset (&target, 0, sizeof target);
  if (target_authority (entry, strlen (entry), 0, &target) == -1
      || (below && target.family != 0))
    return -1;
  if (policy->count == POLICY_MAX)
    return -2;
  policy->entries[policy->count].below = below;
  policy->entries[policy->count++].target = target;
  return 0;
}

/* Below a name there are labels and a dot, and not the name itself. */
static int
is_below (const char *name, const char *parent)
{
  size_t have = strlen (name), want = strlen (parent);

  return have > want + 1 && name[have - want - 1] == '.'
         && strcmp (name + have - want, parent) == 0;
}

int
policy_allows (const struct policy *policy, const struct target *target)
{
  const struct target *entry;
  size_t i;

  for (i = 0; i < policy->count; i++) {
    entry = &policy->entries[i].target;
    if (entry->port != target->port || entry->family != target->family)
      continue;
    if (target->family != 0
        ? memcmp (entry->address, target->address, sizeof entry->address) == 0
        : policy->entries[i].below ? is_below (target->name, entry->name)
                                   : strcmp (target->name, entry->name) == 0)
      return 1;
  }
  return 0;
}

const char *
policy_forbids (const struct sockaddr *address)
{
  int carried;
  enum coffer_address_kind kind = coffer_address_kind (address, &carried);

  if (kind != COFFER_ADDRESS_PUBLIC)
    return coffer_address_word (kind);
  return carried ? "translated" : NULL;
}
