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

# -- what is installed: done, or not done and as it was before

without_conformance
echo 'accept: [network.none]' >>"$COFFER_HOME/config/coffer.yaml"
providers=$COFFER_HOME/providers
mkdir "$T/parrot" "$T/packed"
cp "$COFFER_BUILD/tests/e2e/modules/parrot.so" "$COFFER_SOURCE/tests/e2e/modules/parrot.yaml" "$T/parrot"
coffer seal "$T/parrot/parrot.yaml"
failing () { # INJECTION WORDS…
  injected=$1; shift
  status=0
  timeout 20 strace -f -qq -o "$T/trace" -e "trace=${injected%%:*}" -e "inject=$injected" \
    "$COFFER_BUILD/coffer" provider "$@" >"$out" 2>"$err" </dev/null || status=$?
  said=$(sed -n 's/^coffer: \(E[0-9]*\): .*/\1/p' "$err")
}
coffer provider install "$T/parrot" >/dev/null 2>&1
coffer provider default parrot >/dev/null
failing fsync:error=EIO uninstall parrot
is "one whose default cannot be reset is not uninstalled" \
  "$status $said $(ls "$providers") $(coffer provider default)" "1 E9001 parrot parrot (user)"
run coffer provider uninstall parrot
is "and goes when it can be" "$status $(cat "$err") $(coffer provider default)" \
  "0 coffer: Default provider reset to 'linux' linux (builtin)"

mkdir -p "$providers" "$COFFER_HOME/config/providers.d"
chmod 755 "$providers" "$COFFER_HOME/config/providers.d"
cp -r "$T/parrot" "$providers"; chmod -R go-w "$providers/parrot"
echo 'enabled: false' >"$COFFER_HOME/config/providers.d/parrot.yaml"
chmod 644 "$COFFER_HOME/config/providers.d/parrot.yaml"
for first in 1 2 3; do # its receipt, the folder of that, the operator's file
  failing "fsync:error=EIO:when=$first+" enable parrot
  is "one that cannot be enabled is as it was: $first" "$status $said $(ls "$providers/parrot" | tr '\n' ' ')" \
    "1 E9001 parrot.so parrot.yaml "
done
# Killed while it writes: whoever writes there next clears up.
failing renameat:signal=SIGKILL enable parrot
like "a file is left of a killed one" "$(ls -A "$providers/parrot")" '^\.coffer-'
failing renameat:signal=SIGKILL:when=2 enable parrot
like "also in the configuration" "$(ls -A "$COFFER_HOME/config/providers.d")" '^\.coffer-'
run coffer provider enable parrot
is "enabled" "$status $(ls -A "$providers/parrot" "$COFFER_HOME/config/providers.d" | grep -c '^\.coffer-')" "0 0"

coffer provider pack "$T/parrot" --output "$T/packed" >/dev/null
archive=$(ls "$T/packed"/*.gz)
for first in 3 4; do # the archive, its hash
  echo old | tee "$archive.minisig" >"$archive.sha256"
  failing "renameat:error=EIO:when=$first+" pack "$T/parrot" --output "$T/packed"
  is "an archive is there with the rest or not at all: $first" "$status $said $(ls -A "$T/packed")" "1 E9001 "
done

finish
