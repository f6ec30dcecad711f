# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Syscall=, of services: of redis against what strace counts, of a program in Go against the same, of a
# static program in a root of its own, of instances that nobody knows yet; through a restart of tlobd;
# and what an administrator reads.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
tests=/usr/libexec/tlob-tests

windows() {
        tlobctl show -j "$1" | jq '.[0].Windows'
}

# The calls of that name in a table of strace -c.
traced() { # FILE CALL
        awk -v call="$2" '$NF == call { print $4 }' "$1"
}

mkdir -p "$etc/redis-server.service.d" /etc/tlob/tlobd.conf.d
printf '[Daemon]\nCPULimit=infinity\n' >/etc/tlob/tlobd.conf.d/price.conf
printf '[X-Tlob sync]\nSyscall=fdatasync\nBudgetSec=1us\nCPULimit=infinity\n' >"$etc/redis-server.service.d/sync.conf"
# Its own descriptors show that strace does not make the call itself.
printf '[Service]\nType=oneshot\nExecStart=/usr/bin/strace -f -c -o /run/go-calls /usr/bin/gron /run/go.json\nStandardOutput=null\n' \
        >"$etc/go.service"
printf '[X-Tlob stacks]\nSyscall=sigaltstack\nBudgetSec=1s\nCPULimit=infinity\n' >>"$etc/go.service"
echo '{"a": [1, 2, 3]}' >/run/go.json
root=/srv/calls-root
mkdir -p "$root/run"
cp "$tests/system-caller-static" "$root/caller"
printf '[Service]\nType=oneshot\nRootDirectory=%s\nExecStart=/caller try:1000 wait:60000000\n[X-Tlob wait]\nSyscall=rt_sigtimedwait\nBudgetSec=20ms\n' \
        "$root" >"$etc/rooted.service"
printf '[Service]\nExecStart=%s/system-caller try:25 wait:60000000000\n[X-Tlob wait]\nSyscall=rt_sigtimedwait\nBudgetSec=1s\n' \
        "$tests" >"$etc/calls@.service"
printf '[Service]\nExecStart=%s/system-caller storm:4:100000\n[X-Tlob try]\nSyscall=rt_sigtimedwait\nBudgetSec=1min\nCPULimit=infinity\n' \
        "$tests" >"$etc/busy.service"
# Below, when all else may cost what it does.
dear() {
        printf '[Service]\nExecStart=%s/system-caller ppid:1000000000\n[X-Tlob dear]\nSyscall=getppid\nBudgetSec=1s\nCPULimit=2%%\n' \
                "$tests" >"$etc/dear.service"
}
systemctl daemon-reload
start_fresh

# redis
check "redis: verify" tlobctl verify --unit=redis-server
tlobctl verify --unit=redis-server | sed 's/^/# /'
check "redis: it starts" systemctl start redis-server
check "redis: and is active" until_true sh -c 'tlobctl show -j redis-server.service/sync | grep -q "\"active\""'
redis-cli config set appendonly yes >/dev/null
redis-cli config set appendfsync always >/dev/null
until_true sh -c "redis-cli info persistence | grep -q 'aof_rewrite_in_progress:0'"
pause 1
strace -f -c -o /run/redis-calls -p "$(systemctl show -P MainPID redis-server)" 2>/run/redis-strace &
strace=$!
check "redis: strace has attached" until_true grep -q attached /run/redis-strace
before=$(windows redis-server.service/sync)
check "redis: its benchmark" redis-benchmark -q -n 3000 -c 1 -t set
kill -INT $strace
wait $strace
counted=$(($(windows redis-server.service/sync) - before))
equal "redis: each fdatasync() is a window, by strace" "$counted" "$(traced /run/redis-calls fdatasync)"
check "redis: and they are not few" [ "$counted" -ge 3000 ]
echo "# $counted windows"
check "redis: the books balance" balanced redis-server.service/sync
holds "redis: violations name the unit and its program" "$(tlobctl violations -j -b redis-server.service/sync)" \
        'length > 0 and all(.Unit == "redis-server.service" and .Executable == "/usr/bin/redis-check-rdb")'
tlobctl show redis-server.service/sync | sed 's/^/# /'
systemctl stop redis-server

# Go
systemctl start go.service
equal "Go: each sigaltstack() is a window, by strace" "$(windows go.service/stacks)" "$(traced /run/go-calls sigaltstack)"
check "Go: and there are some" [ "$(windows go.service/stacks)" -gt 2 ]
check "Go: the books balance" balanced go.service/stacks

# Static, in a root of its own.
systemctl start rooted.service
equal "RootDirectory=: all calls of a static program are windows" "$(windows rooted.service/wait)" 1001
end=$(wait_for_entry '.TLOB_BINDING == "rooted.service/wait" and .TLOB_END != null' -t tlob)
holds "RootDirectory=: the long one was reported" "$end" \
        '(.TLOB_ELAPSED_NS | tonumber) >= 60000000 and (.TLOB_SLEEPING_NS | tonumber) > 40000000'
matches "and where in the kernel it slept" "$(tlobctl violations -j -b rooted.service/wait | jq -r '.[0].BlockedIn')" 'sigtimedwait'

# Instances that nobody knows yet.
systemctl start calls@{1,2,3}.service
for i in 1 2 3; do
        check "calls@$i.service: it is known" until_true tlobctl show "calls@$i.service/wait"
        check "calls@$i.service: it waits" until_true sh -c "[ \"\$(tlobctl show -j calls@$i.service/wait | jq '.[0].Counters.open')\" = 1 ]"
        equal "calls@$i.service: all calls are windows, from the first on" "$(windows "calls@$i.service/wait")" 26
done
systemctl stop calls@{1,2,3}.service

# tlobd restarts, and is killed.
systemctl start busy.service
check "a busy service: it is seen" until_true sh -c '[ "$(tlobctl show -j busy.service/try | jq ".[0].Windows")" -gt 1000 ]'
pid=$(main_pid)
systemctl kill --signal=KILL --kill-whom=main tlobd
check "tlobd comes back after it was killed" until_true started_anew "$pid"
check "tlobd restarts" systemctl restart tlobd
has_ended() {
        [ "$(systemctl show -P ActiveState busy.service)" = inactive ]
}
check "a busy service: it ends" until_true has_ended
equal "a busy service: no call was missed" "$(windows busy.service/try)" 1600000
check "a busy service: the books balance" balanced busy.service/try

# Too dear.
rm /etc/tlob/tlobd.conf.d/price.conf
dear
systemctl daemon-reload
tlobctl reload
systemctl start dear.service
check "too many calls: the binding goes" until_true sh -c 'tlobctl show -j dear.service/dear | grep -q "\"failed\""'
matches "and says what it took" "$(binding dear.service/dear StateReason)" \
        '^It took [0-9]+% of a CPU, more than CPULimit=2%: by each system call of the whole machine'
systemctl stop dear.service

# What people read.
refuse "a name that does not exist" 1 "'fsnyc' is not the name of a system call; near names: fsync" \
        tlobctl add-binding x --syscall=fsnyc --budget=1s
refuse "a call that does not return" 1 "'exit_group' never returns" tlobctl verify --syscall=exit_group --budget=1s
refuse "a call of a file" 1 'exclude each other' tlobctl verify --syscall=fsync --executable=libc.so.6 --budget=1s
refuse "another stop" 1 'Stop=close is not possible' tlobctl verify --start=syscall:fsync --stop=close --budget=1s
refuse "another back end" 1 "back end 'kernel'|Back end 'kernel'" \
        tlobctl verify --syscall=fsync --budget=1s --backend=kernel
matches "adding one tells what others pay" \
        "$(tlobctl add-binding syncs --syscall=fsync --unit=redis-server --budget=20ms 2>&1)" \
        'every system call on this machine takes'
equal "it can be added" "$(binding syncs Start) $(binding syncs Stop) $(binding syncs Executable)" "syscall:fsync return "
matches "show: in no program" "$(tlobctl show syncs)" 'Probes in: +no program: the kernel reports its system calls'
tlobctl show syncs | sed 's/^/# /'
tlobctl verify --syscall=fsync --unit=redis-server --budget=20ms | sed 's/^/# /'
tlobctl list-bindings | sed 's/^/# /'
sed 's/^/# /' /run/tlob/bindings.d/tlobctl-syncs.conf
tlobctl cat redis-server | sed 's/^/# /'
check "it can be removed" tlobctl remove-binding syncs

rm -r "$etc"/{go,rooted,calls@,busy,dear}.service "$etc/redis-server.service.d" "$root"
systemctl daemon-reload
finish
