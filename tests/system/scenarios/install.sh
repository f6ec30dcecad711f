# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The installed service: its unit, start, D-Bus activation, watchdog, restart, and a stop after
# which the kernel is as it was.

. "${BASH_SOURCE[0]%/*}/assert.sh"

# The BPF programs, maps and links of the machine, but for systemd's own.
bpf_objects() {
        local kind

        for kind in prog map link; do
                bpftool -j $kind list | jq -r --arg kind $kind '.[] |
                        select((.name // "") | test("^sd_") | not) | "\($kind) \(.id) \(.name // "")"'
        done | sort
}

# Those in a list that still are there.
left_of() {
        comm -12 <(printf '%s\n' "$1") <(bpf_objects)
}

nothing_left_of() {
        [ -z "$(left_of "$1")" ]
}

# constants NAME: of that name, of the programs of the daemon that was started last, in one line.
constants() {
        bpftool map dump id "$(bpftool -j map list | jq 'map(select(.name == "tlob_bpf.rodata")) | last.id')" |
                tr -d ' \n' | grep -oE "\"$1\":\[?[0-9]+"
}

# addresses NAME SYMBOL: as constants shows it.
addresses() {
        printf '"%s":%u' "$1" "0x$(awk -v name="$2" '$3 == name { print $1; exit }' /proc/kallsyms)"
}

equal "the unit file is sound" "$(systemd-analyze verify --man=no /usr/lib/systemd/system/tlobd.service 2>&1)" ""
check "as is the bus policy" busctl --quiet call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus ReloadConfig

before=$(bpf_objects)
start_fresh
equal "it is ready, not just started" "$(systemctl show -P Type tlobd) $(systemctl is-active tlobd)" "notify active"
matches "it tells its status" "$(systemctl show -P StatusText tlobd)" '^0 bindings'
matches "it has the name on the bus" "$(busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus \
        GetConnectionUnixProcessID s org.tlob1)" "^u $(main_pid)$"
systemd-analyze security --no-pager tlobd | tail -n 1 | sed 's/^/# /'
[ -e /etc/systemd/system/tlobd.service.d/sanitizers.conf ] ||
        check "it is not more exposed than 2.0" systemd-analyze security --no-pager --threshold=20 tlobd
equal "nothing in it can read the kernel's addresses" "$(head -n 1 "/proc/$(main_pid)/root/proc/kallsyms")" ""
# Field 5 is where it is mounted, 6 what holds for the mount. A kernel without the monitor has no rv. Since version 254,
# systemd lets each service watch the memory pressure of its own cgroup, for which it writes there.
equal "it can write only where it must" \
        "$(awk '$6 ~ /^rw/ && $5 != "/sys/kernel/tracing/rv" && $5 !~ "/tlobd.service/memory.pressure$" { print $5 }' \
                "/proc/$(main_pid)/mountinfo" | sort | xargs)" \
        "/dev/pts /etc/tlob/bindings.d /etc/tlob/overrides.d /proc /run/tlob /sys/kernel/tracing/instances"
# Bits 2, 19 and 21, as <linux/capability.h> numbers them.
equal "it has no capability but CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE and CAP_SYS_ADMIN" \
        "$(sed -n 's/^CapPrm:\t*//p' "/proc/$(main_pid)/status")" 0000000000280004
check "what only root may do, no one else does" as_nobody sh -c '! busctl call org.freedesktop.DBus \
        /org/freedesktop/DBus org.freedesktop.DBus RequestName su org.tlob1 0'

check "a binding can be added" tlobctl add-binding step --executable=libsqlite3.so.0 --function=sqlite3_step --budget=1s
# Sanitizers reserve terabytes of addresses: readers have no limit there.
[ -e /etc/systemd/system/tlobd.service.d/sanitizers.conf ] ||
        equal "who has read its file for that could not take all memory" "$(for reader in $(pgrep -x tlobd-files); do
                sed -n 's/^Max address space *\([0-9][0-9]*\) .*/\1/p' "/proc/$reader/limits"
        done | sort -u)" $((768 << 20))
equal "its programs know them all the same, for causes" "$(constants network | tr -d '[')" "$(addresses network net_rx_action)"
equal "and for time that a hypervisor takes" "$(constants steal_time)" "$(addresses steal_time steal_time)"
active=$(comm -13 <(printf '%s\n' "$before") <(bpf_objects))
matches "its programs are in the kernel" "$active" '^prog '

old=$(main_pid)
check "it can be restarted" systemctl restart tlobd
check "it is another process now" [ "$(main_pid)" != "$old" ]
holds "and has its binding" "$(tlobctl show -j step)" '.[0].State == "active"'

check "it can be reloaded" systemctl reload tlobd

# A daemon that hangs. It is stopped first, for what runs has been told of the other time; and the time has
# to do for loading its programs, too, on a busy machine.
systemctl stop tlobd
mkdir -p /run/systemd/system/tlobd.service.d
printf '[Service]\nWatchdogSec=6s\n' >/run/systemd/system/tlobd.service.d/watchdog.conf
systemctl daemon-reload
systemctl start tlobd
old=$(main_pid)
busctl wait --timeout=9 org.freedesktop.systemd1 /org/freedesktop/systemd1/unit/tlobd_2eservice \
        org.freedesktop.DBus.Properties PropertiesChanged >/dev/null 2>&1
equal "it feeds the watchdog" "$(main_pid) $(systemctl is-active tlobd)" "$old active"
kill -STOP "$old"
check "systemd finds that it hangs" wait_for_entry '.MESSAGE | test("tlobd.service: Watchdog timeout")' _PID=1
until_true started_anew "$old"
holds "and starts it again, with its binding" "$(tlobctl show -j step)" '.[0].State == "active"'
rm -r /run/systemd/system/tlobd.service.d
systemctl daemon-reload

active=$(comm -13 <(printf '%s\n' "$before") <(bpf_objects))
check "it can be stopped" systemctl stop tlobd
equal "its end was clean" "$(systemctl show -P Result tlobd)" success
until_true nothing_left_of "$active"
equal "it leaves nothing in the kernel" "$(left_of "$active")" ""
equal "nor in tracefs" "$(grep -i tlob /sys/kernel/tracing/uprobe_events; compgen -G '/sys/kernel/tracing/instances/*tlob*')" ""
equal "nor in bpffs" "$(find /sys/fs/bpf -mindepth 1 ! -name '*.debug')" ""

matches "a call on the bus starts it" "$(busctl get-property org.tlob1 /org/tlob1 org.tlob1.Manager Version)" '^s "[0-9]'
equal "as a service" "$(systemctl is-active tlobd)" active
systemctl stop tlobd
check "so does tlobctl, when it is to change something" tlobctl set-budget step 2s
equal "as a service, too" "$(systemctl is-active tlobd)" active

finish
