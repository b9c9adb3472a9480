/* SPDX-License-Identifier: Apache-2.0 */
/* The init's side of the switches. */

#include "../../plugins/linux/init/init.h"

#define PR_SET_KEEPCAPS_ 8
#define PR_CAP_AMBIENT_ 47

/* Until the plan has said: nothing is relied on. */
uint32_t layers_off = ~UINT32_C (0);

static long calls, fault_at;
static long failed;              /* which one it was */
static int fault_error;

void
layers_take (uint32_t word)
{
  layers_off = word & LAYERS_FAULT ? 0 : word;
  if (word & LAYERS_FAULT) {
    fault_at = (long) (word & 0xffff);
    fault_error = (int) (word >> 16 & 0xff);
    if (word & LAYERS_BESIDE)
      network_late = 1;
  }
  calls = 0;
}

/* The call that fails is not made.  What only ends something cannot fail, and
 * the one that reports is the test's own witness. */
/* That a call has failed and been put up with is told by the name of the first
 * process, which a test reads from outside. */
static void
fault_told (void)
{
  static int told;
  char name[32], digits[21];

  if (told || calls < fault_at || sys6 (__NR_getpid, 0, 0, 0, 0, 0, 0) != 1)
    return;
  told = 1;
  text_join (name, sizeof name, "fault-",
             text_number (digits, (uint64_t) failed), NULL);
  sys6 (__NR_prctl, 15 /* PR_SET_NAME */, (long) name, 0, 0, 0, 0);
}

long
layers_call (long n, long a, long b, long c, long d, long e, long f)
{
  if (fault_at != 0)
    fault_told ();
  if (fault_at != 0 && n != __NR_exit_group && n != __NR_close
      && n != __NR_sendmsg
      && __atomic_add_fetch (&calls, 1, __ATOMIC_RELAXED) == fault_at) {
    failed = n;
    return -fault_error;
  }
  return sys6 (n, a, b, c, d, e, f);
}

void
layers_ids (int privileged, uint32_t uid, uint32_t gid)
{
  struct {
    uint32_t version;
    int pid;
  } header = { 0x20080522, 0 };
  uint32_t data[6];
  int i;

  if (LAYER_ON (USER) || !privileged || uid == 0)
    return;
  SYS (prctl, PR_SET_KEEPCAPS_, 1, 0, 0, 0);
  must ("setresgid", SYS (setresgid, gid, gid, gid));
  must ("setresuid", SYS (setresuid, uid, uid, uid));
  SYS (capget, &header, data);
  for (i = 0; i < 6; i += 3)
    data[i] = data[i + 2] = data[i + 1];        /* effective, inheritable */
  SYS (capset, &header, data);
  for (i = 0; !LAYER_ON (CAPS) && i < 64; i++)
    SYS (prctl, PR_CAP_AMBIENT_, 2, i, 0, 0);
}
