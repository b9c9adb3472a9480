/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing values in memory by their row of the table.  Private to
 * core/contract. */

#ifndef CONTRACT_VALUES_H
#define CONTRACT_VALUES_H

#include "contract/contract.h"

/* Bytes that a value of this type takes in a struct. */
size_t contract_type_size (enum contract_type type);

/* From and to `at`, which need not be aligned. */
void contract_value_read (enum contract_type type, const void *at,
                          union contract_value *value);
void contract_value_write (enum contract_type type, void *at,
                           const union contract_value *value);
/* 0, NULL, and -1 for a descriptor. */
void contract_value_default (enum contract_type type,
                             union contract_value *value);
/* An empty strv or recv counts as the default. */
int contract_value_is_default (enum contract_type type,
                               const union contract_value *value);

/* Reads a field of a record that may be shorter than ours: what it does not
 * reach is the default. */
void contract_field_read (const struct contract_field *field,
                          const void *record, union contract_value *value);

/* Must the host give this argument? */
int contract_argument_required (const struct contract_field *argument);

/* Is there, in the record or below it, a field of a later minor than `minor`
 * with another value than the default? */
int contract_record_is_later (const struct contract_record *record,
                              const void *data, uint16_t minor);
int contract_value_is_later (const struct contract_field *field,
                             const union contract_value *value,
                             uint16_t minor);

#endif /* CONTRACT_VALUES_H */
