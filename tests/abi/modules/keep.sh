#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# keep.sh MINOR: makes the module of the tests' contract 1.MINOR that is kept,
# in the folder of this architecture.  Small, and the same bytes from the same
# compiler: nothing of the place or the time is in it.
set -eu
cd "$(dirname "$0")"
arch=$(uname -m)
mkdir -p "$arch"
${CC:-gcc} -std=gnu11 -Os -fPIC -fvisibility=hidden \
  "-ffile-prefix-map=$(cd ../growth && pwd)=." -I ../growth/include \
  -I ../../../sdk/include "-DCOFFER_CONTRACT_MINOR=$1" -DCOFFER_LEAST_MINOR=0 \
  -shared -Wl,-z,defs -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now \
  -Wl,-z,noexecstack -Wl,-z,noseparate-code -Wl,--hash-style=gnu \
  -Wl,--build-id=none -s -o "$arch/greeter-1.$1.so" ../growth/greeter.c
