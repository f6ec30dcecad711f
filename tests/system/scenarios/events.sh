# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Start=event:…, Stop=event:…: the steps of redis' event loop, against what strace counts and what redis
# is told to do; the same calls as Syscall= measures, through a restart of tlobd; a stop that no task
# comes to; what is too dear; and what an administrator reads.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
tests=/usr/libexec/tlob-tests
enter=event:syscalls:sys_enter
exit=event:syscalls:sys_exit

windows() {
        tlobctl show -j "$1" | jq '.[0].Windows'
}

mkdir -p "$etc/redis-server.service.d" /etc/tlob/tlobd.conf.d
printf '[Daemon]\nCPULimit=infinity\n' >/etc/tlob/tlobd.conf.d/price.conf
printf '[X-Tlob step]\nStart=%s_epoll_wait\nStop=%s_epoll_wait\nBudgetSec=100ms\nCPULimit=infinity\n' $exit $enter \
        >"$etc/redis-server.service.d/step.conf"
printf '[Service]\nExecStart=%s/system-caller storm:4:100000\n' "$tests" >"$etc/busy.service"
printf '[X-Tlob call]\nSyscall=rt_sigtimedwait\nBudgetSec=1min\nCPULimit=infinity\n' >>"$etc/busy.service"
printf '[X-Tlob between]\nStart=%s_rt_sigtimedwait\nStop=%s_rt_sigtimedwait\nBudgetSec=1min\nCPULimit=infinity\n' \
        $enter $exit >>"$etc/busy.service"
printf '[Service]\nExecStart=%s/system-caller storm:1:1000 wait:60000000000\n' "$tests" >"$etc/wrong.service"
printf '[X-Tlob wrong]\nStart=%s_rt_sigtimedwait\nStop=event:workqueue:workqueue_execute_start\nBudgetSec=1min\n' \
        $enter >>"$etc/wrong.service"
# Below, when all else may cost what it does.
dear() {
        printf '[Service]\nExecStart=%s/system-caller ppid:1000000000\n[X-Tlob dear]\nStart=%s_getppid\nStop=%s_getppid\nBudgetSec=1s\nCPULimit=2%%\n' \
                "$tests" $enter $exit >"$etc/dear.service"
}
systemctl daemon-reload
start_fresh

# The event loop of redis
check "redis: verify" tlobctl verify --unit=redis-server
tlobctl verify --unit=redis-server | sed 's/^/# /'
check "redis: it starts" systemctl start redis-server
check "redis: it is measured" until_true sh -c '[ "$(tlobctl show -j redis-server.service/step | jq ".[0].Windows")" -gt 0 ]'
strace -f -c -e trace=epoll_wait -o /run/redis-steps -p "$(systemctl show -P MainPID redis-server)" 2>/run/redis-strace &
strace=$!
check "redis: strace has attached" until_true grep -q attached /run/redis-strace
before=$(windows redis-server.service/step)
check "redis: its benchmark" redis-benchmark -q -n 3000 -c 1 -t set
counted=$(($(windows redis-server.service/step) - before))
kill -INT $strace
wait $strace
traced=$(awk '$NF == "epoll_wait" { print $4 }' /run/redis-steps)
check "redis: each step is a window, by strace: $counted of $traced" \
        [ "$counted" -ge 3000 -a "$((traced - counted))" -le 20 -a "$((counted - traced))" -le 1 ]
check "redis: it is to note what is slow" redis-cli config set slowlog-log-slower-than 100000
check "redis: a script keeps it from its loop" \
        redis-cli -e eval 'local n = 0; for i = 1, 120000000 do n = n + i end; return n' 0
slow_usec=$(redis-cli slowlog get 1 | sed -n 3p)
check "redis: for long, by its own clock: $slow_usec us" [ "$slow_usec" -gt 100000 ]
# On a slow machine other steps are long, too.
end=$(wait_for_entry '.TLOB_BINDING == "redis-server.service/step" and .TLOB_END != null and
        (.TLOB_ELAPSED_NS | tonumber) >= '"$slow_usec * 1000" -t tlob)
holds "redis: that is a long step" "$end" '(.TLOB_RUNNING_NS | tonumber) > 100000000'
holds "redis: it was reported while it lasted" "$(tlobctl violations -j -b redis-server.service/step)" \
        'length > 0 and all(.Unit == "redis-server.service")'
# Its first epoll_wait() ends no window.
holds "redis: the books balance" "$(tlobctl show -j redis-server.service/step)" \
        '.[0].Counters | .starts == .["in-budget"] + .violated + .open and .unmatched <= 1 and .nested == 0'
tlobctl show redis-server.service/step | sed 's/^/# /'
systemctl stop redis-server

# tlobd restarts, and is killed.
systemctl start busy.service
check "a busy service: it is seen" until_true sh -c '[ "$(tlobctl show -j busy.service/between | jq ".[0].Windows")" -gt 1000 ]'
pid=$(main_pid)
systemctl kill --signal=KILL --kill-whom=main tlobd
check "tlobd comes back after it was killed" until_true started_anew "$pid"
check "tlobd restarts" systemctl restart tlobd
has_ended() {
        [ "$(systemctl show -P ActiveState busy.service)" = inactive ]
}
check "a busy service: it ends" until_true has_ended
equal "a busy service: nothing was missed" "$(windows busy.service/between) $(windows busy.service/call)" "1600000 1600000"
check "a busy service: the books balance" balanced busy.service/between

# A binding can go and come again at once: the kernel takes its time to let go of a program.
for i in 1 2 3; do
        check "add $i" tlobctl add-binding again --start=${enter}_getppid --stop=${exit}_getppid --budget=1s
        check "remove $i" tlobctl remove-binding again
done

# A stop in threads of the kernel.
systemctl start wrong.service
check "a wrong stop: it is said" until_true sh -c 'tlobctl show -j wrong.service/wrong | grep -q "write another Stop="'
entry=$(wait_for_entry '.MESSAGE | test("wrong.service/wrong.*write another Stop=")' -u tlobd)
check "a wrong stop: also in the journal" [ -n "$entry" ]
equal "a wrong stop: no window has ended" "$(tlobctl show -j wrong.service/wrong | jq '.[0].Counters | .["in-budget"] + .violated')" 0
systemctl stop wrong.service

# Too dear.
rm /etc/tlob/tlobd.conf.d/price.conf
dear
systemctl daemon-reload
tlobctl reload
systemctl start dear.service
check "too many hits: the binding goes" until_true sh -c 'tlobctl show -j dear.service/dear | grep -q "\"failed\""'
matches "and says what it took" "$(binding dear.service/dear StateReason)" \
        '^It took [0-9]+% of a CPU, more than CPULimit=2%: by each system call of the whole machine'
systemctl stop dear.service

# What people read.
refuse "a name that does not exist" 1 "'syscalls:sys_enter_fsnyc' is no event of this kernel; near names: .*sys_enter_fsync" \
        tlobctl add-binding x --start=${enter}_fsnyc --stop=${exit}_fsync --budget=1s
refuse "a group that does not exist" 1 "which has no group 'syscall'" \
        tlobctl verify --start=event:syscall:sys_enter_fsync --stop=${exit}_fsync --budget=1s
refuse "one that cannot be" 1 "'sched:sched_switch' is where tlobd itself" \
        tlobctl verify --start=event:sched:sched_switch --stop=${exit}_fsync --budget=1s
refuse "no event" 1 'write event:GROUP:NAME' tlobctl verify --start=event:fsync --stop=${exit}_fsync --budget=1s
[ -e /sys/kernel/tracing/user_events_data ] ||
        refuse "an event of programs, where there are none" 1 "this kernel has none \(CONFIG_USER_EVENTS\)" \
                tlobctl verify --start=user_event:a --stop=user_event:b --budget=1s
refuse "an event, and a place in a file" 1 'do not go together' \
        tlobctl verify --start=${enter}_fsync --stop=main --budget=1s
refuse "an event, and a return" 1 'do not go together' tlobctl verify --start=${enter}_fsync --stop=return --budget=1s
refuse "an event of a file" 1 'exclude each other' \
        tlobctl verify --start=${enter}_fsync --stop=${exit}_fsync --executable=libc.so.6 --budget=1s
refuse "an event as a function" 1 'is not a function' tlobctl verify --function=${enter}_fsync --budget=1s
refuse "another back end" 1 "back end 'kernel'|Back end 'kernel'" \
        tlobctl verify --start=${enter}_fsync --stop=${exit}_fsync --budget=1s --backend=kernel
matches "adding one tells what others pay" \
        "$(tlobctl add-binding syncs --start=${enter}_fsync --stop=${exit}_fsync --unit=redis-server --budget=20ms 2>&1)" \
        'every system call on this machine takes .* us longer, and each syscalls:sys_enter_fsync and each syscalls:sys_exit_fsync'
matches "verify, of others, too" \
        "$(tlobctl verify --start=event:signal:signal_generate --stop=event:signal:signal_deliver --budget=1s)" \
        'each signal:signal_generate and each signal:signal_deliver on this machine takes'
equal "it can be added" "$(binding syncs Start) $(binding syncs Stop) $(binding syncs Executable)" "${enter}_fsync ${exit}_fsync "
matches "show: in no program" "$(tlobctl show syncs)" 'Probes in: +no program: the kernel reports its events'
tlobctl show syncs | sed 's/^/# /'
tlobctl verify --start=${enter}_fsync --stop=${exit}_fsync --unit=redis-server --budget=20ms | sed 's/^/# /'
tlobctl list-bindings | sed 's/^/# /'
tlobctl cat redis-server | sed 's/^/# /'
check "it can be removed" tlobctl remove-binding syncs

rm -r "$etc"/{busy,wrong,dear}.service "$etc/redis-server.service.d"
systemctl daemon-reload
finish
