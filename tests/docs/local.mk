# SPDX-License-Identifier: Apache-2.0
# What is written is true: README.md's commands, the manual pages.
SCENARIOS += %D%/docker-manual.sh %D%/providers.sh %D%/readme.sh %D%/tutorial.sh
EXTRA_DIST += %D%/blocks.sh
