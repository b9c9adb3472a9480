# SPDX-License-Identifier: Apache-2.0
# The service that runs Python code.
core_server_libserver_a_SOURCES += \
  %D%/body.c %D%/body.h \
  %D%/execute.c
