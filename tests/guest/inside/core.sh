# SPDX-License-Identifier: Apache-2.0
# kernels: qemu
# A machine whose crashes go to a program: for a process of a sandbox it would
# run as root, outside of it, and does not.
. "${COFFER_SOURCE:?}/tests/e2e/lib.sh"
cat >"$T/handler" <<END
#!/bin/sh
cat >/dev/null
echo fired >>"$T/fired"
END
chmod 755 "$T/handler"
old=$(cat /proc/sys/kernel/core_pattern)
echo "|$T/handler %p" >/proc/sys/kernel/core_pattern
fired () { [ -s "$T/fired" ]; }

# With a limit of none it runs all the same: the control of this test.
sh -c 'ulimit -c 0; kill -SEGV $$' 2>"$err"
ok "a crash outside runs the handler" soon 10 fired
rm -f "$T/fired"

run coffer run -- sh -c 'ulimit -c unlimited 2>/dev/null; ulimit -Sc unlimited 2>/dev/null; kill -SEGV $$'
is "a crash inside ends as one" "$status" 139
id=$(coffer sandbox create) && remember "$id"
run coffer sandbox exec "$id" -- sh -c 'sh -c "kill -ABRT \$\$"; kill -SEGV $$'
is "in a lasting sandbox as well" "$status" 139
coffer sandbox kill "$id" >"$out" 2>"$err"
sleep 2
ok "and runs nothing" test ! -e "$T/fired"

echo "$old" >/proc/sys/kernel/core_pattern
finish
