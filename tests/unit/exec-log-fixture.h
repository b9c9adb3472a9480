/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of commands in a folder of the test's own, written from pipes. */

#ifndef UNIT_EXEC_LOG_FIXTURE_H
#define UNIT_EXEC_LOG_FIXTURE_H

#include "sandbox/exec-log.h"

#define CAP (UINT64_C (8) << 20)

struct fixture {
  void *home;
  struct place place;
  struct exec_logs *logs;
  char sandbox[SANDBOX_ID_SIZE];
};

void logs_open (struct fixture *f, uint64_t cap, uint64_t cap_all);
int fixture_new (void **state);
int fixture_free (void **state);
struct exec_log *log_new (struct fixture *f, const char *exec);
struct exec_log *log_again (struct fixture *f, const char *exec);
void pipe_new (int ends[2]);
/* All that a pipe has, until there is no more now. */
int take_all (struct exec_log *log, int stream, int pipe);
void put (struct exec_log *log, int stream, int ends[2], const char *text);

#define TEST(name) \
  cmocka_unit_test_setup_teardown (test_##name, fixture_new, fixture_free)

#endif /* UNIT_EXEC_LOG_FIXTURE_H */
