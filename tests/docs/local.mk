# SPDX-License-Identifier: Apache-2.0
# What is written is true: README.md's commands, the manual pages.
SCENARIOS += %D%/readme.sh %D%/tutorial.sh
EXTRA_DIST += %D%/blocks.sh
