#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The attacks on sandboxes of profile strict, beside those on general, which the
# same program makes: all on, each layer off, none.
exec "${COFFER_BUILD:?}/tests/attack/attack" strict
