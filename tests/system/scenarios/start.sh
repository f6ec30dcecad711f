# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# Nothing is missed at the start: a program that runs over its budget in its first millisecond is
# measured each time, however often it is started, by whomever.

. "${BASH_SOURCE[0]%/*}/assert.sh"

# An emulator is fifty times slower.
N=200
! grep -q 'QEMU TCG' /proc/cpuinfo || N=20
etc=/etc/systemd/system

section=(
        '[X-Tlob nap]' 'Function=victim_a' 'BudgetSec=200us'
)

# books NAME: windows and violations.
books() {
        tlobctl show -j "$1" | jq -c '.[0] | [.Windows, .Violations]'
}

drop_in() {
        mkdir -p "$etc/$1.d"
        printf '%s\n' "${section[@]}" >"$etc/$1.d/tlob.conf"
}

printf '[Service]\nType=oneshot\nExecStart=/usr/libexec/tlob-tests/victim a( sleep:1000000 )\nStartLimitBurst=0\n[Unit]\nStartLimitIntervalSec=0\n' >"$etc/quick.service"
drop_in quick.service
printf '[Service]\nType=oneshot\nExecStart=/usr/libexec/tlob-tests/victim a( sleep:1000000 )\n[Unit]\nStartLimitIntervalSec=0\n' >"$etc/quick@.service"
drop_in quick@known.service
printf '[Service]\nType=oneshot\nSlice=deep-er.slice\nExecStart=/usr/libexec/tlob-tests/victim a( sleep:1000000 )\n[Unit]\nStartLimitIntervalSec=0\n' >"$etc/memory.service"
drop_in memory.service
printf '[Service]\nExecStart=/usr/libexec/tlob-tests/victim a( sleep:1000000 )\nRestart=always\nRestartSec=0\n[Unit]\nStartLimitIntervalSec=0\n' >"$etc/again.service"
drop_in again.service
systemctl daemon-reload
start_fresh

begin=$EPOCHREALTIME
for ((i = 0; i < N; i++)); do
        systemctl start quick.service || break
done
echo "# $N starts in $(jq -n "$EPOCHREALTIME - $begin") s"
equal "$N starts, $N windows, $N violations" "$(books quick.service/nap)" "[$N,$N]"
holds "and the books balance" "$(tlobctl show -j quick.service/nap | jq '.[0].Counters')" \
        '.starts == .violated and .open == 0'

systemctl start quick@known.service
equal "the first start of an instance, in a slice that is made for it" "$(books quick@known.service/nap)" '[1,1]'
systemctl start memory.service
equal "the first start in a slice of its own, with a name that systemd escapes" "$(books memory.service/nap)" '[1,1]'

systemctl start --no-block again.service
until_true sh -c '[ "$(systemctl show -P NRestarts again.service)" -ge 20 ]'
restarts=$(systemctl show -P NRestarts again.service)
systemctl stop again.service
windows=$(tlobctl show -j again.service/nap | jq '.[0].Windows')
check "it is measured each time that systemd starts it again ($windows of $restarts and 1)" \
        [ "$windows" -ge "$restarts" ]

# All instances of a template, by one binding: those that run already, and those that come.
cat >"$etc/crowd@.service" <<'END'
[Service]
ExecStart=/usr/libexec/tlob-tests/victim a( sleep:300000000 )
END
systemctl daemon-reload
systemctl start crowd@before.service
# In its call: systemd says that a service has started before it has.
until_true sh -c 'grep -q sleep "/proc/$(systemctl show -P MainPID crowd@before.service)/wchan"'
tlobctl add-binding crowd --unit=crowd@.service --executable=/usr/libexec/tlob-tests/victim --function=victim_a --budget=100ms
equal "a template's binding is active" "$(tlobctl show -j crowd | jq -r '.[0].State')" active
systemctl start crowd@one.service crowd@two.service quick.service
until_true sh -c '! systemctl is-active -q crowd@one.service crowd@two.service'
equal "each instance is measured by it, from its first call" "$(books crowd)" '[2,2]'
systemctl start crowd@one.service
until_true sh -c '! systemctl is-active -q crowd@one.service'
equal "each time" "$(books crowd)" '[3,3]'
N=$((N + 1))
holds "the reports tell the instance" "$(tlobctl violations -j -b crowd)" \
        'map(.Unit) | unique == ["crowd@one.service", "crowd@two.service"]'
check "it is removed" tlobctl remove-binding crowd
printf '[Binding none]\nUnit=nosuch@.service\nExecutable=libc.so.6\nFunction=fsync\nBudgetSec=1s\n' >/etc/tlob/bindings.d/none.conf
check "for a template that is not there it waits" sh -c 'tlobctl reload; tlobctl show -j none | grep -q waiting'
rm /etc/tlob/bindings.d/none.conf "$etc/crowd@.service"
tlobctl reload

# While tlobd does not listen, the kernel goes on.
pid=$(systemctl show -P MainPID tlobd)
kill -STOP "$pid"
systemctl start quick.service
systemctl start quick.service
kill -CONT "$pid"
equal "also when tlobd does not come to know it in time" "$(books quick.service/nap)" "[$((N + 2)),$((N + 2))]"

# A unit of the same name elsewhere in the tree is not it.
if mkdir -p /sys/fs/cgroup/other.scope/system.slice/quick.service 2>/dev/null; then
        before=$(books quick.service/nap)
        sh -c 'echo $$ >/sys/fs/cgroup/other.scope/system.slice/quick.service/cgroup.procs; exec /usr/libexec/tlob-tests/victim "a(" sleep:1000000 ")"'
        equal "a cgroup of the same name below another one is not the unit's" "$(books quick.service/nap)" "$before"
        pause 0.1
        rmdir -p /sys/fs/cgroup/other.scope/system.slice/quick.service 2>/dev/null
fi

rm -r "$etc"/quick* "$etc"/memory.service* "$etc"/again.service*
systemctl daemon-reload
finish
