# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# All that a machine does to tlobd, again and again for two minutes, or for as many seconds as TLOB_SOAK says. What
# tlobd takes of the machine is the same at the end as after the first quarter; each probe that it has is a descriptor.

. "${BASH_SOURCE[0]%/*}/assert.sh"

victim=/usr/libexec/tlob-tests/victim
soak=${TLOB_SOAK:-120}
etc=/etc/systemd/system

usage() { # KEY
        tlobctl status -j | jq ".Usage.$1"
}

section() { # BUDGET
        printf '[X-Tlob nap]\nFunction=victim_a\nBudgetSec=%s\n' "$1"
}

# One of each: its last service has ended when it returns.
round() {
        local i=$1 monitor

        tlobctl monitor >/dev/null 2>&1 &
        monitor=$!
        systemctl start "soak@$i.service" "soak@$i-too.service" soak-once.service
        tlobctl add-binding "mine$i" --executable="$victim" --function=victim_b --budget=1ms
        "$victim" 'b(' sleep:2000000 ')' >/dev/null
        tlobctl set-budget "mine$i" 2ms
        tlobctl show "mine$i" soak-once.service/nap >/dev/null
        tlobctl violations >/dev/null
        tlobctl verify --executable="$victim" --function=victim_c --budget=1ms >/dev/null
        tlobctl remove-binding "mine$i"
        cp "$victim" "$run/copy.new" && mv "$run/copy.new" "$run/copy"
        "$run/copy" repeat:20 '(' 'a(' sleep:1000000 ')' ')' >/dev/null
        section "$((i % 5 + 1))00us" | cat "$run/once" - >"$etc/soak-once.service"
        systemctl daemon-reload
        tlobctl reload >/dev/null
        [ $((i % 5)) != 0 ] || tlobctl reset-statistics
        kill "$monitor"
        wait "$monitor" 2>/dev/null
}

# At rest: removed probes are gone, and reports have been told. Each reader of files is a process and a descriptor;
# there are as many as were ever needed at once, and that is not the same in each round.
rest() {
        pause 3
        memory=$(usage MemoryBytes)
        descriptors=$(($(usage Descriptors) - $(wc -l </sys/fs/cgroup/system.slice/tlobd.service/cgroup.procs)))
        rests=$((rests + 1))
        find "/proc/$(systemctl show --value -P MainPID tlobd)/fd" -type l -printf '%l\n' |
                sed 's/[0-9]\+/N/g' | sort | uniq -c >"$run/descriptors.$rests"
        echo "# after $((SECONDS - begin)) s and $i rounds: $((memory / 1024)) kB, $descriptors descriptors, $(($(usage CpuNSec) / 1000000)) ms of CPU time"
}

cp "$victim" "$run/copy"
printf '[Service]\nType=oneshot\nExecStart=%s threads:4 ( repeat:50 ( a( sleep:1000000 ) ) )\n' "$victim" >"$run/once"
section 200us | cat "$run/once" - >"$etc/soak-once.service"
section 200us | cat "$run/once" - >"$etc/soak@.service"
printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=%s repeat:1000000 ( a( sleep:1000000 ) )\n%s\n' "$victim" "$(section 500us)" >"$etc/soak-always.service"
mkdir -p /etc/tlob/tlobd.conf.d
printf '[Daemon]\nViolationsMax=100\n' >/etc/tlob/tlobd.conf.d/soak.conf
systemctl daemon-reload
start_fresh
check "a binding on a program that is replaced" tlobctl add-binding copy --executable="$run/copy" --function=victim_a --budget=100us
check "a service that breaks its budget all the time" systemctl start soak-always.service
begin=$SECONDS i=0 rests=0
while [ $((SECONDS - begin)) -lt $((soak / 4)) ]; do
        round $((++i)) >"$run/round" 2>&1 || cat "$run/round"
done
rest
first_memory=$memory first_descriptors=$descriptors
while [ $((SECONDS - begin)) -lt "$soak" ]; do
        round $((++i)) >"$run/round" 2>&1 || cat "$run/round"
done
rest
diff "$run"/descriptors.[12]
equal "descriptors" "$descriptors" "$first_descriptors"
# Sanitizers keep what has been freed.
[ -e $etc/tlobd.service.d/sanitizers.conf ] ||
        check "memory, within a tenth" [ "$memory" -lt $((first_memory * 11 / 10)) ]
equal "nothing is lost" "$(tlobctl status -j | jq '.Lost + ([.Undelivered[]] | add)')" 0
holds "the books balance" "$(binding soak-always.service/nap Counters)" \
        '.starts == ."in-budget" + .violated + .open + .exit + .exec + .abandoned + .removed + ."over-limit"'
finish
