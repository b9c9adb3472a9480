/* SPDX-License-Identifier: Apache-2.0 */
/* coffer-verify: see verify.h.  What libcrypto makes ready is ready before the
 * rights are given up, and nothing that somebody else wrote is read before. */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <seccomp.h>

#include <coffer/fd.h>

#include "base/json.h"
#include "base/minisign.h"
#include "verify.h"

#define INPUT_MAX                                                             \
  (sizeof (struct verify_header)                                              \
   + VERIFY_MAX_KEYS * sizeof (struct minisign_key) + MINISIGN_MAX_BYTES      \
   + VERIFY_MAX_MESSAGE)

struct input {
  const struct minisign_key *keys;
  size_t n_keys;
  const char *signature, *message;
  size_t signature_size, message_size;
};

struct crypto {
  EVP_MD *blake2b;
  EVP_MD_CTX *context;
};

/* -- rights ---------------------------------------------------------------- */

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif

/* No file at all, by a domain without a rule, where there is Landlock. */
static int
landlock_enter (void)
{
  const uint64_t handled = (UINT64_C (1) << 13) - 1;    /* of the first ABI */
  long set = syscall (SYS_landlock_create_ruleset, &handled, sizeof handled,
                      0);

  if (set < 0)
    return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -1;
  return (int) syscall (SYS_landlock_restrict_self, set, 0);
}

#ifndef COFFER_SANITIZERS
static int
filter_enter (void)
{
#define S(name) SCMP_SYS (name)
  static const int calls[] = {
    S (read), S (write), S (close), S (lseek), S (fstat), S (newfstatat),
    S (munmap), S (mremap), S (madvise), S (brk), S (futex),
    S (rt_sigaction), S (rt_sigprocmask), S (rt_sigreturn),
    S (rt_sigpending), S (rt_sigtimedwait), S (exit),
    S (exit_group), S (clock_gettime), S (getrandom), S (getpid), S (gettid),
    S (restart_syscall), S (poll), S (ppoll)
  };
#undef S
  scmp_filter_ctx filter = seccomp_init (SCMP_ACT_ERRNO (EPERM));
  int r = filter ? 0 : -ENOMEM;
  size_t i;

  for (i = 0; r == 0 && i < sizeof calls / sizeof calls[0]; i++)
    if (calls[i] >= 0)
      r = seccomp_rule_add (filter, SCMP_ACT_ALLOW, calls[i], 0);
  if (r == 0)
    r = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (mmap), 1,
                          SCMP_CMP32 (2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
  if (r == 0)
    r = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (mprotect), 1,
                          SCMP_CMP32 (2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
  if (r == 0)
    r = seccomp_load (filter);
  if (filter)
    seccomp_release (filter);
  return r;
}
#endif

static const char *
confine (void)
{
  const struct rlimit none = { 0, 0 };

  setrlimit (RLIMIT_CORE, &none);
  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || landlock_enter () < 0)
    return "its rights cannot be given up";
#ifndef COFFER_SANITIZERS
  if (filter_enter () != 0)
    return "its system calls cannot be filtered";
#endif
  return NULL;
}

/* -- reading --------------------------------------------------------------- */

static const char *
input_split (const char *bytes, size_t size, struct input *out)
{
  const struct verify_header *header = (const void *) bytes;
  size_t left = size - sizeof *header, keys;

  if (size < sizeof *header || header->keys > VERIFY_MAX_KEYS
      || header->signature_bytes > MINISIGN_MAX_BYTES
      || header->message_bytes > VERIFY_MAX_MESSAGE)
    return "what it was given is malformed";
  keys = header->keys * sizeof (struct minisign_key);
  if (left != keys + header->signature_bytes + header->message_bytes)
    return "what it was given is malformed";
  out->keys = (const void *) (bytes + sizeof *header);
  out->n_keys = header->keys;
  out->signature = bytes + sizeof *header + keys;
  out->signature_size = header->signature_bytes;
  out->message = out->signature + out->signature_size;
  out->message_size = header->message_bytes;
  return NULL;
}

/* -- verifying ------------------------------------------------------------- */

static int
crypto_init (struct crypto *crypto)
{
  static const unsigned char any[32] = { 9 };
  EVP_PKEY *key;

  if (!OPENSSL_init_crypto (OPENSSL_INIT_NO_LOAD_CONFIG, NULL))
    return -1;
  crypto->blake2b = EVP_MD_fetch (NULL, "BLAKE2B-512", NULL);
  crypto->context = EVP_MD_CTX_new ();
  key = EVP_PKEY_new_raw_public_key (EVP_PKEY_ED25519, NULL, any, sizeof any);
  if (!crypto->blake2b || !crypto->context || !key
      || EVP_DigestVerifyInit (crypto->context, NULL, NULL, NULL, key) != 1)
    return -1;
  EVP_PKEY_free (key);
  return 0;
}

static int
verifies (struct crypto *crypto, const struct minisign_key *by,
          const uint8_t signature[64], const void *bytes, size_t size)
{
  EVP_PKEY *key = EVP_PKEY_new_raw_public_key (EVP_PKEY_ED25519, NULL, by->key,
                                               sizeof by->key);
  int good;

  EVP_MD_CTX_reset (crypto->context);
  good = key
         && EVP_DigestVerifyInit (crypto->context, NULL, NULL, NULL, key) == 1
         && EVP_DigestVerify (crypto->context, signature, 64, bytes, size)
              == 1;
  EVP_PKEY_free (key);
  return good;
}

/* The file, and the comment that goes with it. */
static int
is_by (struct crypto *crypto, const struct minisign_key *key,
       const struct minisign_signature *s, const struct input *input)
{
  uint8_t digest[EVP_MAX_MD_SIZE], global[64 + MINISIGN_COMMENT_MAX];
  unsigned length = 0;

  if (EVP_Digest (input->message, input->message_size, digest, &length,
                  crypto->blake2b, NULL) != 1 || length != 64)
    return 0;
  memcpy (global, s->signature, 64);
  memcpy (global + 64, s->comment, s->comment_size);
  return verifies (crypto, key, s->signature, digest, length)
         && verifies (crypto, key, s->global, global, 64 + s->comment_size);
}

static json_t *
fail (const char *what)
{
  return json_pack ("{s:s}", "error", what);
}

static json_t *
judge (struct crypto *crypto, const struct input *input)
{
  struct minisign_signature signature;
  const char *wrong = minisign_read_signature (
    input->signature, input->signature_size, &signature);
  char id[MINISIGN_ID_SIZE];
  size_t i;
  int known = 0;

  if (wrong)
    return fail (wrong);
  minisign_id_text (signature.id, id);
  for (i = 0; i < input->n_keys; i++) {
    if (memcmp (input->keys[i].id, signature.id, sizeof signature.id) != 0)
      continue;
    known = 1;
    if (is_by (crypto, &input->keys[i], &signature, input))
      return json_pack ("{s:s, s:s}", "key_id", id, "comment",
                        signature.comment);
  }
  if (!known)
    return json_pack ("{s:s}", "unknown", id);
  return fail ("it is not a signature of these bytes, or its comment was "
               "changed");
}

/* -- the whole ------------------------------------------------------------- */

static json_t *
run (void)
{
  struct crypto crypto = { NULL, NULL };
  struct input input;
  const char *wrong;
  char *bytes = NULL;
  size_t size = 0;

  /* Its own choice would be read from a device. */
  json_object_seed (1);
  if (crypto_init (&crypto) < 0)
    return fail ("libcrypto has no Ed25519 or no BLAKE2b");
  wrong = confine ();
  if (wrong)
    return fail (wrong);
  if (coffer_read_whole (STDIN_FILENO, INPUT_MAX, &bytes, &size) < 0)
    return fail ("what it was given cannot be read");
  wrong = input_split (bytes, size, &input);
  return wrong ? fail (wrong) : judge (&crypto, &input);
}

int
main (int argc, char **argv)
{
  auto_json json_t *report = NULL;
  auto_free char *text = NULL;

  (void) argv;
  if (argc != 1 || fcntl (VERIFY_REPORT_FD, F_GETFD) < 0) {
    fprintf (stderr, "coffer-verify is run by coffer\n");
    return 2;
  }
  report = run ();
  text = report ? json_text (report) : NULL;
  if (text == NULL
      || coffer_write_all (VERIFY_REPORT_FD, text, strlen (text)) < 0)
    return 1;
  return json_object_get (report, "error") != NULL;
}
