# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The life of units, and what tlobd makes of it: crash and automatic restart, activation by a socket
# and by D-Bus, tlobd started before and after, delegation, a reload that touches one of many, ten
# thousand units that have nothing to do with it, systemd busy with other things, and the bus that goes.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
victim=/usr/libexec/tlob-tests/victim
section=$'[X-Tlob a]\nFunction=victim_a\nBudgetSec=5ms\n'

# service NAME LINES: with a budget.
service() {
        printf '[Service]\n%s\n%s' "$2" "$section" >"$etc/$1"
}

binding() {
        tlobctl show -j "$1/a" | jq -r ".[0].$2"
}

is_in_state() {
        [ "$(binding "$1" State)" = "$2" ]
}

service crash.service "ExecStart=$victim a( sleep:20000000 ) kill
Restart=always
RestartSec=50ms
StartLimitIntervalSec=0"
service never.service "ExecStart=$victim a( sleep:20000000 ) kill"
service echo@.service "ExecStart=$victim a( sleep:20000000 )
StandardInput=socket
StandardOutput=null"
service named.service "Type=dbus
BusName=org.example.Named
ExecStart=$victim a( sleep:20000000 ) sleep:3000000000"
service inner.service "Delegate=yes
ExecStart=/bin/sh -c \"mkdir \$below; echo \$\$\$\$ >\$below/cgroup.procs; exec $victim 'a(' sleep:20000000 ')' say:x\"
Environment=below=/sys/fs/cgroup/system.slice/inner.service/below"
sed -i 's,^Function,Executable='"$victim"'\nFunction,' "$etc/inner.service"
service twin-one.service "Type=oneshot
ExecStart=$victim a( sleep:20000000 )"
service twin-two.service "Type=oneshot
ExecStart=$victim a( sleep:20000000 )"
sed -i 's/5ms/1s/' "$etc/twin-two.service"
printf '[Socket]\nListenStream=127.0.0.1:7777\nAccept=yes\n' >"$etc/echo.socket"
mkdir -p /usr/share/dbus-1/system-services
printf '[D-BUS Service]\nName=org.example.Named\nExec=/bin/false\nUser=root\nSystemdService=named.service\n' \
        >/usr/share/dbus-1/system-services/org.example.Named.service
systemctl daemon-reload
systemctl reload dbus
start_fresh

# Crash.
systemctl start never.service
until_true systemctl is-failed never.service
check "after a crash the binding waits" until_true is_in_state never.service waiting
equal "and has measured" "$(binding never.service Windows)" 1
systemctl start crash.service
until_true sh -c '[ "$(systemctl show -P NRestarts crash.service)" -ge 10 ]'
n=$(systemctl show -P NRestarts crash.service)
windows=$(binding crash.service Windows)
check "each automatic restart is measured ($n restarts, $windows windows)" [ "$windows" -ge "$n" ]
systemctl stop crash.service
holds "and the books balance" "$(tlobctl show -j crash.service/a | jq '.[0].Counters')" \
        '.starts == ."in-budget" + .violated + .open + .exit + .exec + .abandoned + .removed + ."over-limit" and .open == 0'

# Activation.
busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus StartServiceByName su org.example.Named 0 \
        >/dev/null 2>&1 &
check "a service that D-Bus starts is measured" until_true sh -c '[ "$(tlobctl show -j named.service/a | jq .[0].Windows)" = 1 ]'
systemctl stop named.service
wait
check "it waits then" until_true is_in_state named.service waiting

systemctl start echo.socket
check "all instances of a socket's template have a binding" tlobctl add-binding connections --unit=echo@.service \
        --executable=$victim --function=victim_a --budget=5ms
for i in 1 2; do
        cat </dev/tcp/127.0.0.1/7777 >/dev/null
done
check "each connection's own instance is measured, from its first call" until_true sh -c \
        '[ "$(tlobctl show -j connections | jq -c ".[0] | [.Windows, .Violations]")" = "[2,2]" ]'
tlobctl remove-binding connections
systemctl stop echo.socket

# Confinement: the same program in two units, with two budgets, and in none.
systemctl start twin-one.service twin-two.service
"$victim" 'a(' sleep:20000000 ')' >/dev/null
equal "the same program in two units and a shell: each its own" \
        "$(tlobctl show -j twin-one.service/a twin-two.service/a | jq -c 'map([.Windows, .Violations])')" '[[1,1],[1,0]]'
systemctl start --no-block inner.service
check "a delegated cgroup below the unit's is the unit's" until_true sh -c '[ "$(tlobctl show -j inner.service/a | jq .[0].Windows)" = 1 ]'
systemctl stop inner.service

# tlobd after the units.
service long.service "ExecStart=$victim repeat:1000 ( a( sleep:20000000 ) )"
systemctl daemon-reload
systemctl start long.service
check "tlobd restarts" systemctl restart tlobd
equal "a unit that runs already is measured as soon as tlobd is ready" "$(binding long.service State)" active
check "really" until_true sh -c '[ "$(tlobctl show -j long.service/a | jq .[0].Windows)" -ge 5 ]'

# A reload is a transaction: one of a thousand changes.
for ((i = 0; i < 1000; i++)); do
        printf '[Binding many-%s]\nExecutable=%s\nFunction=victim_b\nBudgetSec=1s\nEnabled=%s\n' "$i" "$victim" \
                "$([ $((i % 100)) = 0 ] && echo yes || echo no)"
done >/etc/tlob/bindings.d/many.conf
tlobctl reload
before=$(binding long.service Windows)
sed -i 's/^\[Binding many-100\]$/&\nPriority=err/; /many-200\]/,/BudgetSec/s/1s/2s/' /etc/tlob/bindings.d/many.conf
SYSTEMD_LOG_LEVEL=debug busctl monitor --json=short org.tlob1 >"$run/signals" 2>"$run/signals.log" &
monitor=$!
check "busctl monitor listens" wait_for_line "$run/signals.log" 'member=NameLost'
links=$(bpftool link -j | jq 'map(.id) | sort')
begin=$EPOCHREALTIME
tlobctl reload
echo "# a reload of 1000 bindings: $(jq -n "$EPOCHREALTIME - $begin") s"
equal "no probe was touched" "$(bpftool link -j | jq 'map(.id) | sort')" "$links"
equal "a changed budget holds" "$(tlobctl show -j many-200 | jq '.[0].BudgetNSec')" 2000000000
check "counters go on" [ "$(binding long.service Windows)" -ge "$before" ]
pause 0.2
kill $monitor
equal "no binding was removed or added" "$(grep -cE '"member":"Binding(Added|Removed)"' "$run/signals")" 0
rm /etc/tlob/bindings.d/many.conf
tlobctl reload
systemctl stop long.service

# Ten thousand units that nobody has a word about, and some that do.
for ((i = 0; i < 10000; i++)); do
        printf '[Service]\nExecStart=/bin/true\n' >"$etc/idle-$i.service"
done
for n in 10 1000; do
        for ((i = 0; i < n; i++)); do
                mkdir -p "$etc/idle-$i.service.d"
                printf '[X-Tlob x]\nExecutable=%s\nFunction=victim_c\nBudgetSec=1s\n' "$victim" >"$etc/idle-$i.service.d/x.conf"
        done
        systemctl daemon-reload
        begin=$EPOCHREALTIME
        tlobctl reload
        echo "# $n of 10000 units have sections: a reload takes $(jq -n "$EPOCHREALTIME - $begin") s," \
                "tlobd has $(systemctl show -P MemoryCurrent tlobd) bytes in its cgroup, VmRSS" \
                "$(awk '/VmRSS/ { print $2 $3 }' "/proc/$(systemctl show -P MainPID tlobd)/status")"
        equal "$n of them have bindings" "$(tlobctl list-bindings -j | jq 'map(select(.Name | startswith("idle"))) | length')" "$n"
done
systemctl start idle-1.service
check "and one of them is followed" until_true sh -c '[ "$(tlobctl show -j idle-1.service/x | jq -r .[0].State)" = waiting ]'
find "$etc" -name 'idle-*' -prune -exec rm -r {} +
systemctl daemon-reload
check "they are gone" until_true sh -c '! tlobctl list-bindings -j | grep -q idle-'

# systemd under load: many reloads at once, while units start and stop.
for ((i = 0; i < 20; i++)); do
        systemctl daemon-reload &
        systemctl start --no-block twin-one.service
        tlobctl reload &
done
wait
check "all that comes at once comes to rest" until_true is_in_state twin-one.service waiting
check "and tlobd is well" systemctl is-active tlobd

# The bus goes, and all connections with it; units go on.
service longer.service "ExecStart=$victim repeat:10000 ( a( sleep:20000000 ) )"
systemctl daemon-reload
systemctl start longer.service
check "a unit runs" until_true is_in_state longer.service active
before=$(systemctl show -P InvocationID tlobd)
check "the system bus restarts" systemctl restart dbus
check "tlobd comes back with it" until_true sh -c \
        "[ \"\$(systemctl show -P InvocationID tlobd)\" != $before ] && tlobctl status >/dev/null"
check "what runs is measured again" until_true is_in_state longer.service active
check "really, too" until_true sh -c '[ "$(tlobctl show -j longer.service/a | jq .[0].Windows)" -ge 5 ]'
systemctl stop longer.service

rm "$etc"/{crash,never,named,inner,twin-one,twin-two,long,longer}.service "$etc"/echo* \
        /usr/share/dbus-1/system-services/org.example.Named.service
systemctl daemon-reload
finish
