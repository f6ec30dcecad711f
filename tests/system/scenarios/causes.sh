# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Causes that systemd's own settings make, on kernels with the controllers for it: a CPUQuota= is time spent
# waiting, a disk that is held back is time spent sleeping, and neither is the other.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
victim=/usr/libexec/tlob-tests/victim

# service NAME COMMAND LINE...: and a section.
service() {
        printf '[Service]\nType=oneshot\nExecStart=%s\n' "$2" >"$etc/$1.service"
        printf '%s\n' "${@:3}" >>"$etc/$1.service"
}

# The last violation of a binding that has ended: its times and its unit.
last_end() {
        wait_for_entry ".TLOB_BINDING == \"$1\" and .TLOB_END != null" -t tlob |
                jq '{ running: (.TLOB_RUNNING_NS | tonumber), waiting: (.TLOB_WAITING_NS | tonumber),
                        sleeping: (.TLOB_SLEEPING_NS | tonumber), elapsed: (.TLOB_ELAPSED_NS | tonumber),
                        unit: .TLOB_UNIT, by: .TLOB_PREEMPTED_BY, message: .MESSAGE }'
}

controllers=$(cat /sys/fs/cgroup/cgroup.controllers)
matches "this kernel has the controllers" "$controllers" '\bcpu\b.*\bio\b'
disk=$(lsblk -no PKNAME "$(findmnt -no SOURCE /)")

service quota "$victim a( spin:300000000 )" 'CPUQuota=10%' '[X-Tlob a]' 'Function=victim_a' 'BudgetSec=100ms'
service beside "$victim a( spin:300000000 )" 'CPUQuota=10%' '[X-Tlob a]' 'Function=victim_a' 'BudgetSec=100ms'
mkfifo "$run/go" "$run/begin"
exec {go}<>"$run/go" {begin}<>"$run/begin"
service hogged "$victim a( say:inside spin:650000000 )" 'CPUQuota=20%' 'CPUAffinity=0' "StandardInput=file:$run/begin" \
        "StandardOutput=file:$run/hogged" '[X-Tlob a]' 'Function=victim_a' 'BudgetSec=100ms'
service many "$victim threads:16 ( a( spin:1000000000 ) )" 'CPUQuota=10%' 'CPUAffinity=0' '[X-Tlob a]' 'Function=victim_a' 'BudgetSec=500ms'
printf '[Service]\nExecStart=%s spin:100000000000\nNice=19\n' "$victim" >"$etc/idler.service"
service sliced "$victim a( spin:300000000 ) sleep:2000000000" 'Slice=limited.slice' '[X-Tlob a]' 'Function=victim_a' 'BudgetSec=100ms'
printf '[Slice]\nCPUQuota=10%%\n' >"$etc/limited.slice"
service free "$victim a( spin:300000000 )" '[X-Tlob a]' 'Function=victim_a' 'BudgetSec=100ms'
service disk "/bin/dd if=/var/tlob-big of=/dev/null bs=256K count=2 iflag=direct" "IOReadBandwidthMax=/dev/$disk 200K" \
        '[X-Tlob read]' 'Executable=libc.so.6' 'Function=read' 'BudgetSec=300ms'
dd if=/dev/zero of=/var/tlob-big bs=256K count=2 2>/dev/null
sync
echo 3 >/proc/sys/vm/drop_caches
systemctl daemon-reload
start_fresh

# While it may not run, nobody does, or another, who takes nothing from it.
for name in quota beside; do
        [ $name = quota ] || systemctl start idler.service
        systemctl start $name.service
        end=$(last_end $name.service/a)
        jq -r .message <<<"$end" | sed 's/^/# /'
        holds "$name: a CPU quota is waiting" "$end" ".waiting > 0.6 * .elapsed and .unit == \"$name.service\""
        holds "$name: it is the cause" "$end" \
                ".by == \"CPU quota of $name.service\" and (.message | test(\", held back by the CPU quota of $name.service\"))"
        holds "$name: already when the budget is used up" "$(tlobctl violations -j -b $name.service/a)" \
                "length == 1 and .[0].PreemptedBy == \"CPU quota of $name.service\""
        matches "$name: people are told" "$(tlobctl violations -b $name.service/a)" "held back by the CPU quota of $name.service"
done
systemctl stop idler.service

# One of all in a slice.
systemctl start sliced.service
end=$(last_end sliced.service/a)
jq -r .message <<<"$end" | sed 's/^/# /'
holds "whose quota it is is told" "$end" \
        '.by == "CPU quota of limited.slice" and (.message | test(", held back by the CPU quota of limited.slice"))'
matches "and people are told" "$(tlobctl violations -b sliced.service/a)" 'held back by the CPU quota of limited.slice'

# The quota is there again before the CPU is, which another one has for longer than it was used up. That one leaves in
# time, lest the kernel lends the CPU, and the quota is overdrawn. All that is done in the window is done by this shell.
install "$victim" /usr/local/bin/hog
taskset --cpu-list 0 chrt --fifo 50 /usr/local/bin/hog say:ready spin:600000000 <"$run/go" >"$run/hog" &
check "another one is ready" wait_for_line "$run/hog" ready
systemctl start --no-block hogged.service
check "the window is open" wait_for_line "$run/hogged" inside
# How often its quota was used up, in $n_throttled.
n_throttled() {
        local stat

        mapfile -t stat </sys/fs/cgroup/system.slice/hogged.service/cpu.stat
        n_throttled=${stat[*]}
        n_throttled=${n_throttled#*nr_throttled }
        n_throttled=${n_throttled%% *}
}
taskset --cpu-list --pid 1 $$ >/dev/null
n_throttled
before=$n_throttled deadline=$((SECONDS + WAIT))
echo >&"$begin"
until n_throttled && [ "$n_throttled" -gt "$before" ] || [ $SECONDS -ge $deadline ]; do
        :
done
echo >&"$go"
taskset --cpu-list --pid 0-1 $$ >/dev/null
end=$(last_end hogged.service/a)
jq -r .message <<<"$end" | sed 's/^/# /'
holds "another one that has the CPU for longer is the cause" "$end" '.by | startswith("hog[")'

# Of more tasks than have a place in the list of those that wait for a CPU.
systemctl start many.service
causes() {
        journalctl --boot -t tlob -o json TLOB_BINDING=many.service/a | jq -r 'select(.TLOB_END != null) | .TLOB_PREEMPTED_BY'
}
all_told() {
        [ "$(causes | wc -l)" -eq 16 ]
}
check "all have ended" until_true all_told
echo "# $(causes | sort | uniq -c | xargs)"
check "nearly all say that a quota held them back" [ "$(causes | grep -cx 'CPU quota of many.service')" -ge 15 ]

systemctl start free.service
end=$(last_end free.service/a)
holds "without it, the same is running" "$end" '.running > .waiting and .unit == "free.service"'

systemctl start disk.service
end=$(last_end disk.service/read)
holds "a slow disk is sleeping" "$end" '.sleeping > 0.6 * .elapsed and .unit == "disk.service"'
matches "in a function of the kernel that waits for it" "$(tlobctl violations -j -b disk.service/read | jq -r '.[0].BlockedIn')" 'io|wait|bio'
echo "# blocked in $(tlobctl violations -j -b disk.service/read | jq -r '.[0].BlockedIn')"

rm "$etc"/{quota,beside,hogged,many,idler,free,disk}.service /var/tlob-big /usr/local/bin/hog
systemctl daemon-reload
finish
