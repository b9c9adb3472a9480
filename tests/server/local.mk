# SPDX-License-Identifier: Apache-2.0
# The daemon from outside, by curl and by sockets.
EXTRA_DIST += %D%/corpus.py %D%/exposition.py %D%/lib.sh %D%/peer.py %D%/sink.py
EXTRA_DIST += %D%/client.py %D%/files-client.py %D%/folders-client.py \
  %D%/inside.py %D%/ports-client.py
SCENARIOS += \
  %D%/audit.sh \
  %D%/execute.sh \
  %D%/files.sh \
  %D%/folders.sh \
  %D%/guard.py \
  %D%/metrics.sh \
  %D%/otlp.sh \
  %D%/ports.sh \
  %D%/providers.sh \
  %D%/serve.sh
# And by what knows the document.
EXTRA_DIST += %D%/daemon.py %D%/shapes.py %D%/judge.mjs %D%/redocly.yaml \
  %D%/npm/package.json %D%/npm/package-lock.json
SCENARIOS += \
  %D%/document.py %D%/sandboxes.py %D%/execs.py %D%/execs-kill.py
