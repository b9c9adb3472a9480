#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stands in for all unit tests where configure found no cmocka.
echo "1..0 # SKIP missing: cmocka"
