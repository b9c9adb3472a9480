# SPDX-License-Identifier: Apache-2.0
# The daemon from outside, by curl and by sockets.
EXTRA_DIST += %D%/corpus.py %D%/exposition.py %D%/lib.sh %D%/peer.py %D%/sink.py
SCENARIOS += \
  %D%/audit.sh \
  %D%/execute.sh \
  %D%/guard.py \
  %D%/metrics.sh \
  %D%/otlp.sh \
  %D%/serve.sh
# And by what knows the document.
EXTRA_DIST += %D%/daemon.py %D%/shapes.py %D%/judge.mjs %D%/redocly.yaml \
  %D%/npm/package.json %D%/npm/package-lock.json
SCENARIOS += \
  %D%/document.py %D%/sandboxes.py %D%/execs.py %D%/execs-kill.py
