# SPDX-License-Identifier: Apache-2.0
# Which packages building and testing need, by Debian's and Ubuntu's names, and
# how they are installed.  Sourced by quickstart and check.

build_packages='gcc musl-tools make autoconf automake pkg-config libc6-dev linux-libc-dev
  libffi-dev libyaml-dev libjansson-dev libseccomp-dev libsqlite3-dev libmd-dev
  libarchive-dev libcurl4-openssl-dev libssl-dev libmicrohttpd-dev
  python3 python3-dev'
test_packages='git g++ clang libclang-rt-dev llvm binutils libcmocka-dev bubblewrap procps
  strace util-linux mandoc curl iproute2 openssl busybox-static
  abigail-tools ccache gdb minisign python3-jsonschema python3-numpy python3-pandas
  python3-scipy'

# For guests of other kernels; the QEMU one boots Debian's linux-image-cloud-amd64,
# which tests/guest/kernel.sh fetches and nobody installs.
guest_packages='qemu-system-x86 user-mode-linux e2fsprogs attr util-linux strace
  kmod iproute2 mawk procps'

# Container engines, which `make check-engines` starts for itself.
engine_packages='docker.io docker-registry podman runc conmon uidmap runsc catatonit busybox-static
  curl iproute2 util-linux procps'

# A root file system for `make check-debian`.
debian_packages='debootstrap'

# A tool may come from another package than the one we would install.
package_present () {
  case $1 in
    busybox-static) command -v busybox >/dev/null 2>&1 && return 0 ;;
    musl-tools) command -v musl-gcc >/dev/null 2>&1 && return 0 ;;
    docker.io) command -v dockerd >/dev/null 2>&1 && return 0 ;;
    podman|runc|runsc|conmon) command -v "$1" >/dev/null 2>&1 && return 0 ;;
    pkg-config|gcc|make|autoconf|automake|python3|git|clang|g++)
      command -v "$1" >/dev/null 2>&1 && return 0 ;;
    libclang-rt-dev)
      [ -e "$(clang -print-resource-dir 2>/dev/null)/lib/linux/libclang_rt.fuzzer-$(uname -m).a" ] \
        && return 0 ;;
  esac
  command -v dpkg-query >/dev/null 2>&1 || return 0
  [ "$(dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | head -1)" \
    = installed ]
}

packages_missing () {
  for package; do
    package_present "$package" || printf '%s ' "$package"
  done
}

as_root () {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

# Ubuntu before 24.04 has clang's runtime in a package that clang depends on, and
# gVisor's runsc is not everywhere: its tests skip by name then.
packages_known () {
  for package; do
    case $package in
      libclang-rt-dev|runsc)
        [ -n "$(apt-cache show "$package" 2>/dev/null | head -1)" ] || continue ;;
    esac
    printf '%s ' "$package"
  done
}

# Installs what is missing; without the rights to, says what to install.
packages_install () {
  missing=$(packages_missing "$@")
  [ -n "$missing" ] || return 0
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "These are needed, under this system's names: $missing" >&2
    return 1
  fi
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null 2>&1; then
    echo "As root, run: apt-get install -y $missing" >&2
    return 1
  fi
  echo "Installing: $missing"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update &&
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install -y --no-install-recommends \
    $(packages_known $missing) >/dev/null
}
