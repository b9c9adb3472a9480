/* SPDX-License-Identifier: Apache-2.0 */
/* What no message may show: a secret as it is, URL-encoded and in base64, each
 * in the forms in which it can lie in a longer text.  The host looks for what it
 * handed out itself; this knows also what a provider has made of it. */

#define _GNU_SOURCE

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "internal.h"

#define HIDDEN "[hidden]"       /* no longer than the least secret */

static void
form_add (struct coffer_strings *forms, const char *text)
{
  if (strlen (text) >= SECRET_LEAST)
    coffer_strings_add (forms, text);
}

static void
encoded_add (struct coffer_strings *forms, const char *secret,
             const char *digits)
{
  struct coffer_buffer text = { 0 };
  const unsigned char *p = (const unsigned char *) secret;

  for (; *p; p++)
    if (isalnum (*p) || strchr ("-._~", *p))
      coffer_buffer_add (&text, p, 1);
    else
      coffer_buffer_printf (&text, "%%%c%c", digits[*p >> 4],
                            digits[*p & 15]);
  if (!text.failed && text.data && strcmp (text.data, secret) != 0)
    form_add (forms, text.data);
  forms->failed |= text.failed;
  coffer_buffer_free (&text);
}

static void
alphabet_url (char *text)
{
  for (; *text; text++)
    *text = *text == '+' ? '-' : *text == '/' ? '_' : *text;
}

/* Behind `shift` bytes of something else: without the characters that are also
 * made of what is before and behind. */
static void
base64_add (struct coffer_strings *forms, const char *secret, size_t shift)
{
  const size_t size = strlen (secret);
  char *bytes = calloc (1, shift + size + 1);
  char *text = malloc ((shift + size + 2) / 3 * 4 + 1);
  const size_t from = (shift * 8 + 5) / 6, to = (shift + size) * 8 / 6;

  if (bytes && text) {
    memcpy (bytes + shift, secret, size);
    http_base64 (bytes, shift + size, text);
    text[to] = '\0';
    form_add (forms, text + from);
    if (strpbrk (text + from, "+/")) {
      alphabet_url (text + from);
      form_add (forms, text + from);
    }
  }
  forms->failed |= !bytes || !text;
  free (bytes);
  free (text);
}

void
http_secret_add (struct coffer_strings *forms, const char *secret)
{
  if (strlen (secret) < SECRET_LEAST)
    return;
  form_add (forms, secret);
  encoded_add (forms, secret, "0123456789ABCDEF");
  encoded_add (forms, secret, "0123456789abcdef");
  for (size_t shift = 0; shift < 3; shift++)
    base64_add (forms, secret, shift);
}

void
http_secret_add_header (struct coffer_strings *forms, const char *header)
{
  const char *value = strchr (header, ':');
  char *copy, *word, *rest = NULL;

  if (!value)
    return;
  value += 1 + strspn (value + 1, " \t");
  http_secret_add (forms, value);
  copy = strdup (value);
  forms->failed |= !copy;
  for (word = copy ? strtok_r (copy, " \t", &rest) : NULL; word;
       word = strtok_r (NULL, " \t", &rest))
    if (strcmp (word, value) != 0)
      http_secret_add (forms, word);
  free (copy);
}

void
http_secrets_hide (const struct coffer_strings *forms, char *text)
{
  char *at;
  size_t n;

  for (size_t i = 0; i < forms->count; i++) {
    n = strlen (forms->items[i]);
    for (at = text; (at = strstr (at, forms->items[i]));
         at += sizeof HIDDEN - 1) {
      memcpy (at, HIDDEN, sizeof HIDDEN - 1);
      memmove (at + sizeof HIDDEN - 1, at + n, strlen (at + n) + 1);
    }
  }
}
