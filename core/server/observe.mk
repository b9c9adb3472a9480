# SPDX-License-Identifier: Apache-2.0
# What is seen of the daemon: numbers, logs, errors of late, spans.
core_server_libserver_a_SOURCES += \
  %D%/audit.c %D%/audit.h \
  %D%/errors-ring.c %D%/errors-ring.h \
  %D%/metrics.c %D%/metrics-process.c %D%/metrics-warm.c %D%/metrics.h \
  %D%/observe.c %D%/observe-config.c %D%/observe-routes.c %D%/observe.h \
  %D%/refusals.c %D%/refusals.h \
  %D%/trace.c %D%/trace.h \
  %D%/trace-context.c %D%/trace-context.h \
  %D%/trace-settings.c %D%/trace-settings.h
