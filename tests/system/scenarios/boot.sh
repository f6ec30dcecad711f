# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The machine itself, without tlobd: what the other scenarios build on.

. "${BASH_SOURCE[0]%/*}/assert.sh"

tracing=/sys/kernel/tracing
group=$(tr -c '[:alnum:]\n' _ </proc/sys/kernel/hostname) # what the container's end would clean up

equal "systemd has booted and nothing has failed" "$(systemctl is-system-running)" running

marker=marker-$RANDOM
logger -t boot-scenario "$marker" 2>/dev/null || systemd-cat -t boot-scenario echo "$marker"
check "the journal takes and gives entries" wait_for_entry ".MESSAGE == \"$marker\"" -t boot-scenario

check "the bus answers" busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus GetId
matches "polkit is started by the bus and answers" \
        "$(busctl call org.freedesktop.PolicyKit1 /org/freedesktop/PolicyKit1/Authority \
                org.freedesktop.PolicyKit1.Authority EnumerateActions s '' 2>&1)" org.freedesktop.policykit

equal "a service's processes are in a cgroup v2 of the unit's name" \
        "$(systemd-run --quiet --wait --pipe --unit=where cat /proc/self/cgroup | grep ^0::)" 0::/system.slice/where.service

check "the kernel has BTF" test -s /sys/kernel/btf/vmlinux
check "BPF programs can be listed" bpftool prog list
check "bpffs is there" mountpoint -q /sys/fs/bpf

# A uprobe at the program's first instruction, in a tracefs instance of our own.
entry=$(od -An -t u8 -j 24 -N 8 /usr/bin/sleep)
echo "p:$group/entry /usr/bin/sleep:$((entry))" >>$tracing/uprobe_events
mkdir "$tracing/instances/$group"
echo 1 >"$tracing/instances/$group/events/$group/entry/enable"
/usr/bin/sleep 0
matches "a uprobe fires" "$(cat "$tracing/instances/$group/trace")" 'sleep-[0-9]+ .*entry:'
echo 0 >"$tracing/instances/$group/events/$group/entry/enable"
rmdir "$tracing/instances/$group"
echo "-:$group/entry" >>$tracing/uprobe_events
equal "and is gone again" "$(grep -c "$group" $tracing/uprobe_events)" 0

# Sections for other programs in a unit file, in a drop-in too, whatever is in them.
unit=/run/systemd/system/ignored.service
mkdir -p $unit.d
cat >$unit <<END
[Unit]
Description=Has a section that systemd does not know

[Service]
Type=oneshot
ExecStart=/usr/bin/true

[X-Tlob request]
Function=some_function
BudgetSec=5ms
Other=$(printf 'x%.0s' {1..4000})
END
cat >$unit.d/50-latency.conf <<'END'
[X-Tlob other]
Start=0x1234
END
systemctl daemon-reload
equal "systemd-analyze verify has nothing against X- sections" "$(systemd-analyze verify $unit 2>&1)" ""
check "and the unit starts" systemctl start ignored.service
equal "and systemd warns about none of it" "$(journalctl --boot _PID=1 --grep='X-Tlob|ignored.service:[0-9]+:' -o cat)" ""
matches "the drop-in counts as one" "$(systemctl show -P DropInPaths ignored.service)" 50-latency.conf
rm -r $unit $unit.d # what comes after has tlobd, which reads them
systemctl daemon-reload

finish
