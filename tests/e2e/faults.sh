# SPDX-License-Identifier: Apache-2.0
# A system call that fails, in coffer or in what it starts: the command runs all
# the same, or there is one line that says why it did not, soon, and nothing is
# left behind.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
roles both
needs strace
strace -f -o "$T/trace" true 2>"$err" || skip_all "the right to trace"

# LeakSanitizer is a tracer too.
ASAN_OPTIONS=detect_leaks=0; export ASAN_OPTIONS

fault () { # call error first last
  wrong= n=$3
  while [ "$n" -le "$4" ]; do
    status=0
    timeout 60 strace -f -qq -o "$T/trace" -e "trace=$1" \
      -e "inject=$1:error=$2:when=$n" "$COFFER_BUILD/coffer" run -- echo through \
      >"$out" 2>"$err" </dev/null || status=$?
    case $status-$(cat "$out")-$(grep -c '^coffer: E' "$err") in
      0-through-0|125--1|125-through-1) ;;
      *) wrong="$wrong $n: $status $(tr '\n' ' ' <"$err");" ;;
    esac
    n=$((n + 1))
  done
  is "$1 fails with $2" "$wrong" ""
}

fault sendmsg ENOBUFS 1 4
fault sendmsg EPIPE 1 4
fault recvmsg ENOMEM 1 2
fault eventfd2 EMFILE 1 3
fault pipe2 EMFILE 1 3
fault socketpair EMFILE 1 2
fault memfd_create ENOMEM 1 2
fault clone EAGAIN 1 2
fault clone3 EAGAIN 1 2
fault mkdirat ENOSPC 1 2
fault openat EMFILE 12 16
fault pread64 EIO 3 5
fault ppoll ENOMEM 1 2
fault mount EPERM 1 2
fault seccomp EINVAL 1 2

status=0
strace -f -qq -o "$T/trace" -e trace=faccessat2 \
  -e inject=faccessat2:error=EIO:when=1 "$COFFER_BUILD/coffer" run -- true \
  >"$out" 2>"$err" || status=$?
unlike "a provider that cannot be seen is not called unknown" "$status $(cat "$err")" E8001

finish
