# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Who pays for a probe: a binding on a function of the C library, confined to a service, reaches the processes
# of that service and no others. And a tlobd that is killed with many probes is there again at once.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
victim=/usr/libexec/tlob-tests/victim

service() {
        printf '[Service]\nExecStart=%s\n%s' "$2" "$3" >"$etc/$1"
}

binding() {
        tlobctl show -j lib.service/nap | jq -r ".[0].$1"
}

more_windows_than() {
        [ "$(binding Windows)" -gt "$1" ]
}

service lib.service "$victim repeat:100000 ( sleep:10000000 )" \
        $'[X-Tlob nap]\nExecutable=libc.so.6\nFunction=nanosleep\nBudgetSec=1s\n'
service other.service "$victim repeat:100000 ( sleep:10000000 )" ''
service forks.service "/bin/sh -c 'while :; do $victim sleep:20000000 sleep:20000000; done'" \
        $'[X-Tlob nap]\nExecutable=libc.so.6\nFunction=nanosleep\nBudgetSec=1s\n'
systemctl daemon-reload
start_fresh

systemctl start other.service
sleep 0.2
equal "a service that does not run is measured nowhere" "$(binding Windows) $(binding Counters.outside)" "0 0"

systemctl start lib.service
check "a service that starts is measured in its library" until_true more_windows_than 3
equal "in its own process" "$(binding Counters.processes) $(binding 'Counters["processes-missed"]')" "1 0"
check "how late that was is known" [ "$(binding 'Counters["processes-late-max-ns"]')" -gt 0 ]
echo "# $(($(binding 'Counters["processes-late-max-ns"]') / 1000)) us"
equal "and nobody else calls it" "$(binding Counters.outside)" 0
check "show says so" sh -c "tlobctl show lib.service/nap | grep -q 'the processes of its unit (1)'"

systemctl restart lib.service
windows=$(binding Windows)
check "so it is after a restart" until_true more_windows_than "$windows"

systemctl start forks.service
check "children that execute a program get their probes" \
        until_true sh -c '[ "$(tlobctl show -j forks.service/nap | jq .[0].Windows)" -gt 3 ]'
check "that they are another unit's is said" \
        until_true sh -c "tlobctl show lib.service/nap | grep -qE 'of its unit, and of others that are measured there \([2-4]\)'"
systemctl stop forks.service

# One after the other, their probes would take the kernel 5 s.
before=nanosleep
for f in read write open close stat lseek mmap poll fork kill getpid getuid getgid chdir rename mkdir rmdir link unlink \
        chmod chown umask nice alarm pause dup dup2 pipe access sync fsync truncate socket bind listen accept \
        connect send recv shutdown uname semop msgget fcntl flock getcwd ioctl readlink; do
        printf '[Binding many-%s]\nExecutable=libc.so.6\nStart=%s\nStop=%s\nBudgetSec=1s\nUnit=lib.service\n' \
                "$f" "$f" "$before"
        before=$f
done >/etc/tlob/bindings.d/many.conf
tlobctl reload >/dev/null
n=$(tlobctl list-bindings -j | jq '[.[] | select(.State == "active")] | length')
check "there are many bindings ($n)" [ "$n" -gt 40 ]
pid=$(systemctl show -P MainPID tlobd)
began=$(date +%s%N)
kill -KILL "$pid"
while [ -d "/proc/$pid" ]; do :; done
gone=$((($(date +%s%N) - began) / 1000000))
check "tlobd is gone at once when it is killed ($gone ms)" [ "$gone" -lt 3000 ]
measures() {
        [ "$(systemctl show -P MainPID tlobd)" != "$pid" ] && more_windows_than 1
}
check "and measures again" until_true measures
echo "# after $((($(date +%s%N) - began) / 1000000)) ms"
check "it holds its probes in a file system of its own" sh -c '! tlobctl status | grep -q "one by one"'

finish
