/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of cases: one a file. */

#include "kit.h"

extern const struct kit_case kit_codes_cases[], kit_code_reach_cases[], kit_life_cases[],
  kit_load_cases[], kit_strain_cases[], kit_time_cases[];
extern const struct kit_case kit_exec_cases[], kit_exec_life_cases[],
  kit_exec_stream_cases[], kit_exec_more_cases[], kit_file_cases[],
  kit_file_tree_cases[], kit_file_name_cases[], kit_pause_cases[],
  kit_port_cases[], kit_metric_cases[], kit_snapshot_cases[], kit_ttl_cases[],
  kit_secret_cases[], kit_isolation_cases[], kit_limit_cases[],
  kit_archive_cases[], kit_warm_cases[];

const struct kit_case *const kit_tables[] = {
  kit_load_cases,
  kit_life_cases,
  kit_time_cases,
  kit_exec_cases,
  kit_exec_life_cases,
  kit_exec_stream_cases,
  kit_exec_more_cases,
  kit_warm_cases,
  kit_file_cases,
  kit_file_tree_cases,
  kit_file_name_cases,
  kit_archive_cases,
  kit_pause_cases,
  kit_port_cases,
  kit_metric_cases,
  kit_snapshot_cases,
  kit_ttl_cases,
  kit_secret_cases,
  kit_isolation_cases,
  kit_limit_cases,
  kit_strain_cases,
  kit_codes_cases,
  kit_code_reach_cases,
  NULL
};
