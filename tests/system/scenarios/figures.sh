# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What following units costs, as rows of a table: for tools/bench-units. Nothing passes or fails by a figure; that
# what is measured is right is checked.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
victim=/usr/libexec/tlob-tests/victim

# row TEXT FIGURE: with or without its spread, behind a bar.
row() {
        case $2 in
        *'|'*) echo "# | $1 | $2 |" ;;
        *) echo "# | $1 | $2 | |" ;;
        esac
}

# spread UNIT: of numbers on lines, as "median UNIT | smallest to largest".
spread() {
        sort -n | awk -v unit="$1" '{ v[NR] = $1 } END { printf "%.1f %s | %.1f to %.1f\n", v[int((NR + 1) / 2)], unit, v[1], v[NR] }'
}

tlobd_pid() {
        systemctl show -P MainPID tlobd
}

# In kilobytes: of the daemon, and of all maps in the kernel.
memory_of_daemon() {
        awk '/^Pss:/ { print $2 }' "/proc/$(tlobd_pid)/smaps_rollup"
}

memory_of_maps() {
        bpftool map -j | jq '[.[].bytes_memlock] | add / 1024'
}

cpu_ms() {
        awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) * 1000 / hz }' "/proc/$(tlobd_pid)/stat"
}

wake_ups() {
        awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$(tlobd_pid)/status"
}

# From the start to the first call.
printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=%s a( spin:2000000 )\n[Unit]\nStartLimitIntervalSec=0\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=1ms\n' \
        "$victim" >"$etc/first.service"
systemctl daemon-reload
mkdir -p /etc/tlob/tlobd.conf.d
printf '[Daemon]\nRateLimitIntervalSec=0\n' >/etc/tlob/tlobd.conf.d/figures.conf
start_fresh
n_starts=0
has_ended() {
        [ "$(journalctl --boot -q -t tlob -o cat TLOB_END=stop | wc -l)" -ge "$1" ]
}
for _ in {1..20}; do
        systemctl stop first.service
        begin=${EPOCHREALTIME/./}
        systemctl start first.service
        until_true has_ended $((++n_starts))
        entry=$(journalctl --boot -q -t tlob -o json -n 1 TLOB_END=stop)
        forked=$(systemctl show -P ExecMainStartTimestampMonotonic first.service)
        jq -r --argjson begin "$begin" --argjson forked "$forked" '
                ((.__REALTIME_TIMESTAMP | tonumber) - (.__MONOTONIC_TIMESTAMP | tonumber)) as $offset |
                        ((.TLOB_TIME_NS | tonumber) - (.TLOB_ELAPSED_NS | tonumber)) / 1000 |
                        "\((. + $offset - $begin) / 1000) \((. - $forked) / 1000)"' <<<"$entry"
done >"$run/first"
equal "each start has its first call measured" "$(tlobctl show -j first.service/a | jq '.[0].Windows')" 20
row 'from calling systemctl start to the first measured call' "$(cut -d' ' -f1 "$run/first" | spread ms)"
row 'from the fork of systemd to that' "$(cut -d' ' -f2 "$run/first" | spread ms)"
systemctl stop first.service
rm "$etc/first.service"

# The longest time without a report across a restart, of a service that breaks its budget all the time.
printf '[Service]\nExecStart=%s repeat:1000000 ( a( sleep:10000000 ) )\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=5ms\n' \
        "$victim" >"$etc/over.service"
mkdir -p /run/systemd/system/tlobd.service.d
printf '[Unit]\nStartLimitIntervalSec=0\n' >/run/systemd/system/tlobd.service.d/figures.conf

has_reported() { # NUMBER
        [ "$(reported_windows over.service/a | wc -l)" -ge "$1" ]
}
kill_tlobd() {
        systemctl kill --signal=KILL --kill-whom=main tlobd
}

# silence COMMAND...: in ms, as the journal has it.
silence() {
        local cursor pid

        pause 1
        pid=$(tlobd_pid)
        cursor=$(journalctl --boot -q -t tlob -n 1 --show-cursor | sed -n 's/^-- cursor: //p')
        "$@"
        until_true started_anew "$pid"
        until_true has_reported $(($(reported_windows over.service/a | wc -l) + 50))
        journalctl --boot -q -t tlob -o json --cursor="$cursor" MESSAGE_ID=270a2c0044b740cdb4f203a0156802cb |
                jq -s 'map(.__MONOTONIC_TIMESTAMP | tonumber) | [.[1:], .[:-1]] | transpose |
                        map((.[0] // .[1]) - .[1]) | max / 1000'
}

for n in 1 100; do
        for ((i = 1; i < n; i++)); do
                printf '[Service]\nExecStart=/bin/true\n[X-Tlob x]\nExecutable=%s\nFunction=victim_c\nBudgetSec=1s\n' \
                        "$victim" >"$etc/idle-$i.service"
        done
        systemctl daemon-reload
        tlobctl reload
        systemctl start over.service
        for how in "systemctl restart tlobd" kill_tlobd; do
                for _ in {1..10}; do
                        # shellcheck disable=SC2086
                        silence $how
                done >"$run/silences"
                row "without a report, $([ "$how" = kill_tlobd ] && echo 'killed and started by systemd' || echo "$how"), bindings: $n" \
                        "$(spread ms <"$run/silences")"
        done
        systemctl stop over.service
        check "and each was reported" until_true has_reported "$(binding over.service/a Violations)"
        equal "once" "$(told_twice over.service/a)" ""
        equal "no entry was lost" "$(unwritten)" 0
done
rm -r "$etc/over.service" "$etc"/idle-* /run/systemd/system/tlobd.service.d
systemctl daemon-reload
tlobctl reload

# A daemon-reload, until all bindings are as written.
for n in 10 1000; do
        for ((i = 0; i < n; i++)); do
                printf '[Service]\nExecStart=/bin/true\n[X-Tlob x]\nExecutable=%s\nFunction=victim_c\nBudgetSec=1s\n' \
                        "$victim" >"$etc/idle-$i.service"
        done
        begin=$EPOCHREALTIME
        systemctl daemon-reload
        tlobctl reload
        row "daemon-reload, $n units with sections, new" "$(jq -n "($EPOCHREALTIME - $begin) * 1000 | floor") ms"
        equal "$n units have bindings" "$(tlobctl list-bindings -j | jq length)" "$n"
        for _ in 1 2 3; do
                sed -i 's/BudgetSec=.*/BudgetSec='"$RANDOM"'us/' "$etc/idle-7.service"
                begin=$EPOCHREALTIME
                systemctl daemon-reload
                tlobctl reload
                jq -n "($EPOCHREALTIME - $begin) * 1000"
        done >"$run/reloads"
        row "daemon-reload, one of $n units with sections changed" "$(spread ms <"$run/reloads")"
        equal "and it holds" "$(tlobctl show -j idle-7.service/x | jq '.[0].BudgetNSec')" \
                "$(sed -n 's/^BudgetSec=\(.*\)us/\1000/p' "$etc/idle-7.service")"
        daemon[n]=$(memory_of_daemon)
        maps[n]=$(memory_of_maps)
done
row 'memory of tlobd, a unit with a binding' "$(jq -n "(${daemon[1000]} - ${daemon[10]}) / 990 * 100 | round / 100") kB"
row 'memory of its maps in the kernel, a unit with a binding' "$(jq -n "(${maps[1000]} - ${maps[10]}) / 990 * 100 | round / 100") kB"

# Nothing happens to them.
pause 2
cpu=$(cpu_ms)
switches=$(wake_ups)
pause 10
row 'CPU time of tlobd in 10 s, 1000 idle units with bindings' "$(jq -n "$(cpu_ms) - $cpu") ms"
row 'wake-ups of tlobd in 10 s, the same' "$(($(wake_ups) - switches))"

rm "$etc"/idle-* /etc/tlob/tlobd.conf.d/figures.conf
systemctl daemon-reload
finish
