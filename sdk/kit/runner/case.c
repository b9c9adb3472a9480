/* SPDX-License-Identifier: Apache-2.0 */
/* The case's own process: its beginning, its end, its memory and its chance. */

#include <config.h>

#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <coffer/fd.h>

#include "base/log.h"
#include "contract/contract.h"
#include "provider/dispatch.h"
#include "runner.h"

/* ---- ids of sandboxes ---------------------------------------------------- */

/* Once each; one that does not fit was never made by a sane case. */
void
shared_add_id (struct kit *kit, const char *id)
{
  struct shared *shared = kit->shared;
  size_t size = strlen (id) + 1, at = 0;
  uint32_t i;

  pthread_mutex_lock (&kit->lock);
  for (i = 0; i < shared->n_ids; i++) {
    if (strcmp (shared->ids + at, id) == 0)
      break;
    at += strlen (shared->ids + at) + 1;
  }
  if (i == shared->n_ids && size <= SHARED_IDS - shared->ids_size) {
    memcpy (shared->ids + shared->ids_size, id, size);
    shared->ids_size += size;
    shared->n_ids++;
  }
  pthread_mutex_unlock (&kit->lock);
}

/* ---- the end ------------------------------------------------------------- */

#define KILL_MS 10000

static int
kill_one (struct kit_instance *instance, const char *id, char *why,
          size_t size)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  int32_t code;

  reply.deadline_ms = KILL_MS;
  code = kit_sandbox_kill (instance, &reply, id, NULL);
  /* An id that no provider takes was made by none. */
  if (code == COFFER_OK || code == COFFER_NOT_FOUND || code == COFFER_INVALID)
    return 0;
  snprintf (why, size, "the sandbox %.64s cannot be killed at the end: %s: "
            "%.200s", id, kit_code_name (code), reply.message);
  return -1;
}

/* None of the case's sandboxes may be in the list any more. */
static int
check_list (struct kit_instance *instance, char *why, size_t size)
{
  const struct shared *shared = instance->kit->shared;
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_sandbox_info *info;
  size_t i, at;
  uint32_t k;

  reply.deadline_ms = KILL_MS;
  if (kit_sandbox_list (instance, &reply, NULL) != COFFER_OK)
    return 0;                   /* a case of its own says so */
  for (i = 0; (info = kit_reply_sandbox_info (&reply, i)); i++)
    for (k = 0, at = 0; k < shared->n_ids; k++) {
      if (info->sandbox && strcmp (info->sandbox, shared->ids + at) == 0
          && (!info->state || strcmp (info->state, "gone") != 0)) {
        snprintf (why, size, "the sandbox %.64s was killed and is still in "
                  "the list", info->sandbox);
        return -1;
      }
      at += strlen (shared->ids + at) + 1;
    }
  return 0;
}

/* A pristine instance where the case may have broken its own. */
static int
sweep (struct kit *kit, char *why, size_t size)
{
  const struct shared *shared = kit->shared;
  struct kit_instance *instance = kit->first;
  auto_error struct error *error = NULL;
  size_t at = 0;
  uint32_t i;
  int result = 0;

  if (shared->n_ids == 0)
    return 0;
  if (!instance || !instance->provider)
    instance = instance_open (kit, NULL, 0, &error);
  if (!instance) {
    snprintf (why, size, "the provider cannot be opened to clean up: %.300s",
              error_message (error));
    return -1;
  }
  for (i = 0; i < shared->n_ids; i++) {
    if (kill_one (instance, shared->ids + at, why, size) < 0)
      result = -1;
    at += strlen (shared->ids + at) + 1;
  }
  if (result == 0)
    result = check_list (instance, why, size);
  return result;
}

static void
verdict_set (struct shared *shared, enum verdict verdict, const char *reason)
{
  shared->verdict = verdict;
  snprintf (shared->reason, sizeof shared->reason, "%s", reason ? reason : "");
  atomic_store (&shared->ended, 1);
}

/* The first thread that ends the case does; any other stays where it is until
 * the process is gone. */
_Noreturn void
case_end (struct kit *kit, enum verdict verdict, const char *reason)
{
  struct kit_instance *instance;
  char why[512] = "";

  pthread_mutex_lock (&kit->end_lock);
  verdict_set (kit->shared, verdict, reason);
  atomic_store (&kit->shared->cleaning, 1);
  kit->deadline_ns = coffer_now_ns () + KIT_CLEAN_MS * 1000000LL;
  if (sweep (kit, why, sizeof why) < 0 && verdict == VERDICT_PASSED)
    verdict_set (kit->shared, VERDICT_FAILED, why);
  for (instance = kit->instances; instance; instance = instance->next)
    instance_close (instance);
  fflush (NULL);
  _exit (0);
}

_Noreturn void
kit_fail (struct kit *kit, const char *fmt, ...)
{
  char text[sizeof kit->shared->reason];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (text, sizeof text, fmt, ap);
  va_end (ap);
  case_end (kit, VERDICT_FAILED, text);
}

_Noreturn void
kit_fail_code (struct kit *kit, const struct kit_reply *reply, int32_t wanted,
               const char *fmt, ...)
{
  char text[512];
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (text, sizeof text, fmt, ap);
  va_end (ap);
  kit_fail (kit, "%s: expected %s, came %s", text, kit_code_name (wanted),
            kit_shown (kit, reply));
}

void
kit_note (struct kit *kit, const char *fmt, ...)
{
  char *notes = kit->shared->notes, text[512];
  size_t used;
  va_list ap;

  va_start (ap, fmt);
  vsnprintf (text, sizeof text, fmt, ap);
  va_end (ap);
  pthread_mutex_lock (&kit->lock);
  used = strlen (notes);
  if (used + strlen (text) + 2 < sizeof kit->shared->notes)
    snprintf (notes + used, sizeof kit->shared->notes - used, "%s\n", text);
  pthread_mutex_unlock (&kit->lock);
}

_Noreturn void
kit_skip_narrowed (struct kit *kit, const char *capability)
{
  const char *reason = subject_narrowed (kit->subject, capability);

  if (!reason)
    kit_fail (kit, "%s is claimed and probe takes nothing from it, but it is "
              "not there", capability);
  case_end (kit, VERDICT_SKIPPED, reason);
}

/* ---- memory and chance --------------------------------------------------- */

/* Freed with the process. */
void *
kit_memory (struct kit *kit, size_t size)
{
  void *memory = calloc (1, size ? size : 1);

  if (!memory)
    kit_fail (kit, "out of memory: %zu bytes", size);
  return memory;
}

char *
kit_text (struct kit *kit, const char *fmt, ...)
{
  char *text;
  va_list ap;
  int n;

  va_start (ap, fmt);
  n = vasprintf (&text, fmt, ap);
  va_end (ap);
  if (n < 0)
    kit_fail (kit, "out of memory");
  return text;
}

/* The splitmix64 sequence. */
static uint64_t
next_random (uint64_t *state)
{
  uint64_t z = (*state += UINT64_C (0x9e3779b97f4a7c15));

  z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

uint64_t
kit_random (struct kit *kit)
{
  uint64_t value;

  pthread_mutex_lock (&kit->lock);
  value = next_random (&kit->random);
  pthread_mutex_unlock (&kit->lock);
  return value;
}

uint64_t
kit_random_below (struct kit *kit, uint64_t n)
{
  return n ? kit_random (kit) % n : 0;
}

char *
kit_random_word (struct kit *kit, size_t length)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  char *word = kit_memory (kit, length + 1);
  size_t i;

  for (i = 0; i < length; i++)
    word[i] = letters[kit_random_below (kit, sizeof letters - 1)];
  return word;
}

uint8_t *
kit_random_bytes (struct kit *kit, size_t size)
{
  uint8_t *bytes = kit_memory (kit, size + 1);
  uint64_t value = 0, state = kit_random (kit);
  size_t i;

  for (i = 0; i < size; i++) {
    if (i % 8 == 0)
      value = next_random (&state);
    bytes[i] = (uint8_t) (value >> i % 8 * 8);
  }
  bytes[size] = 0;
  return bytes;
}

/* ---- the beginning ------------------------------------------------------- */

static void
kit_init (struct kit *kit, const struct subject *subject,
          struct shared *shared)
{
  *kit = (struct kit){ .subject = subject, .shared = shared };
  pthread_mutex_init (&kit->lock, NULL);
  pthread_mutex_init (&kit->end_lock, NULL);
  kit->deadline_ns = coffer_now_ns () + KIT_CLEAN_MS * 1000000LL;
  /* Every line that the provider says: secrets are looked for in them. */
  log_configure ("debug:provider");
  signal (SIGPIPE, SIG_IGN);
}

_Noreturn void
case_main (const struct kit_case *row, const struct subject *subject,
           struct shared *shared, uint64_t seed)
{
  static struct kit kit;
  const char *p;

  kit_init (&kit, subject, shared);
  kit.row = row;
  for (p = row->id; *p; p++)
    seed = seed * 1099511628211u + (unsigned char) *p;
  kit.random = seed;
  kit.deadline_ns = coffer_now_ns ()
                    + (row->timeout_ms ? row->timeout_ms : KIT_CASE_MS)
                        * 1000000LL;
  row->run (&kit);
  case_end (&kit, VERDICT_PASSED, NULL);
}

_Noreturn void
case_sweep (const struct subject *subject, struct shared *shared)
{
  static struct kit kit;
  char why[512] = "";

  kit_init (&kit, subject, shared);
  if (sweep (&kit, why, sizeof why) < 0)
    kit_note (&kit, "%s", why);
  if (kit.instances)
    instance_close (kit.instances);
  _exit (0);
}

_Noreturn void
case_probe (const struct subject *subject, struct shared *shared)
{
  static struct kit kit;
  auto_error struct error *error = NULL;
  struct kit_instance *instance;
  json_t *facts = NULL;
  char *text = NULL;

  kit_init (&kit, subject, shared);
  instance = instance_open (&kit, NULL, 0, &error);
  if (!instance
      || provider_probe (instance->provider, &facts, &error) < 0) {
    case_end (&kit, VERDICT_FAILED, error_message (error));
  }
  text = json_text (facts);
  if (!text || strlen (text) >= sizeof shared->text)
    case_end (&kit, VERDICT_FAILED, "probe emits more than 256 KiB of facts");
  memcpy (shared->text, text, strlen (text) + 1);
  case_end (&kit, VERDICT_PASSED, NULL);
}
