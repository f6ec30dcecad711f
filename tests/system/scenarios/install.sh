# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# The installed service: its unit, start, D-Bus activation, watchdog, restart, and a stop after
# which the kernel is as it was.

. "${BASH_SOURCE[0]%/*}/assert.sh"

main_pid() {
        systemctl show -P MainPID tlobd
}

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
        check "it is not more exposed than 3.0" systemd-analyze security --no-pager --threshold=30 tlobd
check "what only root may do, no one else does" as_nobody sh -c '! busctl call org.freedesktop.DBus \
        /org/freedesktop/DBus org.freedesktop.DBus RequestName su org.tlob1 0'

check "a binding can be added" tlobctl add-binding step --executable=libsqlite3.so.0 --function=sqlite3_step --budget=1s
active=$(comm -13 <(printf '%s\n' "$before") <(bpf_objects))
matches "its programs are in the kernel" "$active" '^prog '

old=$(main_pid)
check "it can be restarted" systemctl restart tlobd
check "it is another process now" [ "$(main_pid)" != "$old" ]
holds "and has its binding" "$(tlobctl show -j step)" '.[0].State == "active"'

check "it can be reloaded" systemctl reload tlobd

# A daemon that hangs.
mkdir -p /run/systemd/system/tlobd.service.d
printf '[Service]\nWatchdogSec=2s\n' >/run/systemd/system/tlobd.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart tlobd
old=$(main_pid)
busctl wait --timeout=5 org.freedesktop.systemd1 /org/freedesktop/systemd1/unit/tlobd_2eservice \
        org.freedesktop.DBus.Properties PropertiesChanged >/dev/null 2>&1
equal "it feeds the watchdog" "$(main_pid) $(systemctl is-active tlobd)" "$old active"
kill -STOP "$old"
check "systemd finds that it hangs" wait_for_entry '.MESSAGE | test("tlobd.service: Watchdog timeout")' _PID=1
until_true eval "[ \"\$(main_pid)\" != $old ] && systemctl is-active tlobd"
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
matches "so does tlobctl" "$(tlobctl status)" '^tlobd [0-9]'

finish
