/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox uses. */

#include <math.h>

#include "case.h"

/* -1: it has none of that name. */
static double
metric (struct kit *kit, const char *sandbox, const char *name)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_metric *record;
  double value = -1;

  KIT_OK (kit, kit_metrics (kit_first (kit), &reply, sandbox, NULL), &reply,
          "metrics");
  for (size_t i = 0; (record = kit_reply_metric (&reply, i)) != NULL; i++)
    if (record->name != NULL && strcmp (record->name, name) == 0)
      value = record->value;
  kit_reply_reset (&reply);
  return value;
}

static void
metrics_plausible (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;
  const struct coffer_metric *record, *other;
  size_t i, k;

  KIT_OK (kit,
          kit_metrics (kit_first (kit), &reply, kit_sandbox (kit), NULL),
          &reply, "metrics");
  for (i = 0; (record = kit_reply_metric (&reply, i)) != NULL; i++) {
    KIT_CHECK (kit, record->name != NULL
                      && record->name[strspn (record->name,
                                              "abcdefghijklmnopqrstuvwxyz"
                                              "0123456789_")]
                           == '\0',
               "metrics named a value \"%s\"", record->name ? record->name
                                                            : "");
    KIT_CHECK (kit, isfinite (record->value) && record->value >= 0
                      && record->value < 1e19,
               "metrics said that %s is %g", record->name, record->value);
    for (k = 0; k < i; k++) {
      other = kit_reply_metric (&reply, k);
      KIT_CHECK (kit, strcmp (other->name, record->name) != 0,
                 "metrics named %s twice", record->name);
    }
  }
  KIT_CHECK (kit, i > 0, "metrics emitted nothing");
  kit_reply_reset (&reply);
}

/* A command that takes some 40 MB and waits. */
static void
metrics_memory (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit);
  double before, after;
  struct case_run run;

  before = metric (kit, sandbox, "memory_bytes");
  KIT_CHECK (kit, before >= 0, "metrics did not say memory_bytes");
  case_start (kit, sandbox,
              "awk 'BEGIN { s = \"x\"; while (length(s) < 20000000) s = s s; "
              "print \"took\"; fflush(); while (1) system(\"sleep 1\") }'",
              0, NULL, &run);
  case_until (&run, "took");
  after = metric (kit, sandbox, "memory_bytes");
  KIT_CHECK (kit, after >= before + 15e6 && after < before + 2e9,
             "a command has 20 MB and more in memory: memory_bytes was %.0f "
             "before it and is %.0f",
             before, after);
}

static void
metrics_cpu (struct kit *kit)
{
  const char *const sandbox = kit_sandbox (kit), *const other
    = kit_sandbox (kit);
  const double before = metric (kit, sandbox, "cpu_seconds_total");
  const double idle = metric (kit, other, "cpu_seconds_total");
  const int64_t began = kit_now_us ();
  double grown, wall;

  KIT_CHECK (kit, before >= 0, "metrics did not say cpu_seconds_total");
  case_sh (kit, sandbox,
           "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done");
  wall = (double) (kit_now_us () - began) / 1e6;
  grown = metric (kit, sandbox, "cpu_seconds_total") - before;
  KIT_CHECK (kit, grown >= 0.02 && grown <= wall * 1.5 + 0.2,
             "a command computed for some of %.3f seconds, and "
             "cpu_seconds_total grew by %.3f",
             wall, grown);
  grown = metric (kit, other, "cpu_seconds_total") - idle;
  KIT_CHECK (kit, grown <= 0.02,
             "while another sandbox computed, cpu_seconds_total of one that "
             "rests grew by %.3f",
             grown);
}

static void
metrics_unknown (struct kit *kit)
{
  struct kit_reply reply = KIT_REPLY_INIT;

  KIT_CODE (kit,
            kit_metrics (kit_first (kit), &reply, kit_new_id (kit), NULL),
            &reply, COFFER_NOT_FOUND, "metrics of no sandbox");
  kit_reply_reset (&reply);
}

const struct kit_case kit_metric_cases[] = {
  { "metrics.plausible", "metrics",
    "Each value has a name of its own and is a number that can be.",
    metrics_plausible },
  { "metrics.memory", "exec metrics",
    "memory_bytes grows with what a command takes.", metrics_memory },
  { "metrics.cpu", "exec metrics",
    "cpu_seconds_total grows with what is computed in this sandbox, and not "
    "with what is in another.",
    metrics_cpu, 60000 },
  { "metrics.unknown", "metrics", "Of no sandbox it is NOT_FOUND.",
    metrics_unknown },
  { NULL }
};
