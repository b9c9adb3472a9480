/* SPDX-License-Identifier: Apache-2.0 */
/* The switches of plugins/linux/layer.h, in builds of the tests.
 *
 * COFFER_TEST_LAYERS names the layers that a sandbox is to do without
 * ("seccomp,landlock"; with COFFER_TEST_INIT_ONLY only its init is told),
 * COFFER_TEST_FAULT a call that fails instead of being
 * made: "SIDE:NUMBER:ERRNO", the side being `init`, or `beside`: of one that makes
 * its network beside its other work, as one that is begun early.  The module reads
 * them at each creation and hands the init its share in a word of PREPARE. */

#ifndef ATTACK_SWITCHES_H
#define ATTACK_SWITCHES_H

#include <stdint.h>

#define LAYERS(X)                                                             \
  X (USER, "user") X (IDS, "ids") X (GROUPS, "groups") X (MOUNT, "mount")     \
  X (DETACH, "detach") X (BINDS, "binds") X (MASKS, "masks")                  \
  X (USERNS, "userns") X (PID, "pid") X (NET, "net") X (IPC, "ipc")           \
  X (UTS, "uts") X (CGROUPNS, "cgroupns") X (CAPS, "caps") X (NNP, "nnp")     \
  X (DUMPABLE, "dumpable") X (LANDLOCK, "landlock") X (SECCOMP, "seccomp")    \
  X (RLIMITS, "rlimits") X (CGROUP, "cgroup") X (DISK, "disk") X (FDS, "fds") \
  X (EXEC_FDS, "exec-fds") X (SESSION, "session") X (LIFELINE, "lifeline")

enum {
#define ENUM(symbol, name) LAYER_##symbol,
  LAYERS (ENUM)
#undef ENUM
  LAYERS_COUNT
};

/* In the word of PREPARE: a layer's bit, or with this one a fault: the errno
 * in bits 16 to 23, the number of the call below. */
#define LAYERS_FAULT (UINT32_C (1) << 31)
#define LAYERS_BESIDE (UINT32_C (1) << 30)

extern uint32_t layers_off;

#define LAYER_ON(name) ((layers_off >> LAYER_##name & 1) == 0)
#define LAYERS_WHOLE (layers_off == 0)
#define LAYER_FLAG(name, flag) (LAYER_ON (name) ? (flag) : 0)
/* Of a mount: 1 is read-only. */
#define LAYER_ATTRIBUTES(flags)                                               \
  (LAYER_ON (BINDS) ? (flags) : (flags) & ~UINT64_C (1))

void layers_read (void);
uint32_t layers_word (void);
void layers_take (uint32_t word);
#define LAYERS_READ() layers_read ()
#define LAYERS_GIVE(word) ((word) = layers_word ())
#define LAYERS_TAKE(word) layers_take (word)
#define LAYERS_IDS(plan)                                                      \
  layers_ids ((plan)->shape.flags & PLAN_PRIVILEGED, (plan)->shape.uid,       \
              (plan)->shape.gid)

/* Without a user namespace the ids are taken last, and capabilities kept. */
void layers_ids (int privileged, uint32_t uid, uint32_t gid);

long layers_call (long n, long a, long b, long c, long d, long e, long f);
#define LAYER_CALL layers_call

#endif /* ATTACK_SWITCHES_H */
