/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of cases: one a file. */

#include "kit.h"

extern const struct kit_case kit_codes_cases[], kit_life_cases[],
  kit_load_cases[], kit_strain_cases[], kit_time_cases[];

const struct kit_case *const kit_tables[] = {
  kit_load_cases,
  kit_life_cases,
  kit_time_cases,
  kit_strain_cases,
  kit_codes_cases,
  NULL
};
