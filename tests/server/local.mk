# SPDX-License-Identifier: Apache-2.0
# The daemon from outside, by curl and by sockets.
EXTRA_DIST += %D%/lib.sh %D%/peer.py
SCENARIOS += \
  %D%/serve.sh
