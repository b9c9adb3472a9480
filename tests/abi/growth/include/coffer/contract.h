/* SPDX-License-Identifier: Apache-2.0 */
/* A contract of major 1 for tests alone, to grow under their eyes: minor 1
 * appends an options field, two record fields, a record and an operation.
 * It stands before the real <coffer/contract.h> on the include path, so that
 * <coffer/provider.h> and the host's own sources are compiled against it. */

#ifndef COFFER_CONTRACT_H
#define COFFER_CONTRACT_H

#define COFFER_CONTRACT_MAJOR 1
#ifndef COFFER_CONTRACT_MINOR
#define COFFER_CONTRACT_MINOR 1
#endif

#if COFFER_CONTRACT_MINOR >= 1
#define COFFER_SINCE_1(...) __VA_ARGS__
#else
#define COFFER_SINCE_1(...)
#endif

#define COFFER_CODES(CODE)                                                    \
  CODE (0, OK, no, "success")                                                 \
  CODE (1, UNSUPPORTED, no, "not there")                                      \
  CODE (2, INVALID, no, "malformed")                                          \
  CODE (3, INTERNAL, unknown, "a fault")

#define COFFER_CAPABILITIES(CAP) CAP (GREET, "greet", "greet people")

#define COFFER_FIELDS_wish(FIELD, RFIELD)                                     \
  FIELD (text, what, 0, "what is wished")                                     \
  COFFER_SINCE_1 (FIELD (u64, urgency, 1, "0: none"))

#define COFFER_FIELDS_greeting(FIELD, RFIELD)                                 \
  FIELD (text, words, 0, "what was said")                                     \
  FIELD (u32, times, 0, "how often")                                          \
  FIELD (flag, loud, 0, "1: loudly")                                          \
  COFFER_SINCE_1 (FIELD (text, language, 1, "in which language"))             \
  COFFER_SINCE_1 (FIELD (i32, mood, 1, "higher is better"))                   \
  COFFER_SINCE_1 (FIELD (fd, card, 1, "a postcard"))

#define COFFER_FIELDS_echo(FIELD, RFIELD)                                     \
  FIELD (text, words, 1, "what came back")

#define COFFER_RECORDS(REC)                                                   \
  REC (1, wish, 0, COFFER_FIELDS_wish, "something wished")                    \
  REC (2, greeting, 0, COFFER_FIELDS_greeting, "something said")              \
  COFFER_SINCE_1 (REC (3, echo, 1, COFFER_FIELDS_echo, "what came back"))

#define COFFER_OPTS_NONE(FIELD, RFIELD)
#define COFFER_OPTS_greet(FIELD, RFIELD)                                      \
  FIELD (u32, times, 0, "0: once")                                            \
  FIELD (flag, loud, 0, "1: loudly")                                          \
  RFIELD (recv, wish, more, 0, "further wishes")                              \
  COFFER_SINCE_1 (FIELD (text, language, 1, "NULL: the module's own"))

#define COFFER_OPERATIONS(OP, ARG, RARG)                                      \
  OP (1, open, 0, "", ARG (strv, config, "KEY=VALUE"), COFFER_OPTS_NONE, "")  \
  OP (2, close, 0, "", , COFFER_OPTS_NONE, "end")                             \
  OP (10, greet, 0, "greet", ARG (str, name, "of a person")                   \
      RARG (rec, wish, wish, "what to wish"),                                 \
      COFFER_OPTS_greet, "emit greeting")                                     \
  COFFER_SINCE_1 (OP (9, part, 1, "greet", ARG (str, name, "of a person"),    \
                      COFFER_OPTS_NONE, "emit greeting"))

#endif /* COFFER_CONTRACT_H */
