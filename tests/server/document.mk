# SPDX-License-Identifier: Apache-2.0
# The daemon by what knows its document, and by the command line.
EXTRA_DIST += %D%/daemon.py %D%/shapes.py %D%/judge.mjs %D%/redocly.yaml \
  %D%/npm/package.json %D%/npm/package-lock.json
SCENARIOS += \
  %D%/attacks.py \
  %D%/cli.py \
  %D%/document.py \
  %D%/driver.py \
  %D%/faults.py \
  %D%/fuzz.py \
  %D%/routes.py \
  %D%/storm.py
